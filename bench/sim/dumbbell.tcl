# TCP transfers from a list over a dumbbell, in ns-2.35: a peer that Shortlane's simulator is
# timed against. The list and the topology are those of validation/ns3/dumbbell.cc.
#
#     ns dumbbell.tcl FLOWS.csv PAIRS ACCESS_MBIT ACCESS_MS RATE_MBIT MS BUFFER WINDOW STOP_S
#
# The transport is ns-2's one-way SACK TCP (Agent/TCP/Sack1 and a delayed-ACK sink): no
# handshake and no FIN, which transfers that outlast the run do not notice, and less work for
# each packet than the others do. WINDOW is in packets of 1460 bytes of payload.

if {$argc != 9} {
    puts stderr "found $argc arguments, not the 9 that the head of this script names"
    exit 2
}
lassign $argv flows pairs accessMbit accessMs rateMbit ms buffer window stop

# CPU seconds of this process up to now.
proc cpu {} {
    set file [open /proc/self/schedstat]
    gets $file line
    close $file
    return [expr {[lindex $line 0] / 1e9}]
}

proc peakKib {} {
    set file [open /proc/self/status]
    regexp {VmHWM:\s+(\d+)} [read $file] all kib
    close $file
    return $kib
}

# No header for a protocol that is not used: packets stay small.
remove-all-packet-headers
add-packet-header Flags IP TCP
set ns [new Simulator]
Agent/TCP set packetSize_ 1460
Agent/TCP set window_ $window
Agent/TCP set windowInit_ 10
Agent/TCP set minrto_ 1.0
Agent/TCP set rtxcur_init_ 3.0

set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right ${rateMbit}Mb ${ms}ms DropTail
$ns queue-limit $left $right $buffer
$ns queue-limit $right $left 100000
for {set i 0} {$i < $pairs} {incr i} {
    foreach {router hosts} [list $left senders $right receivers] {
        set host [$ns node]
        $ns duplex-link $host $router ${accessMbit}Mb ${accessMs}ms DropTail
        $ns queue-limit $host $router 100000
        $ns queue-limit $router $host 100000
        lappend $hosts $host
    }
}

set file [open $flows]
gets $file line
if {$line ne "start_s,size_bytes"} {
    puts stderr "$flows: found '$line', not start_s,size_bytes"
    exit 2
}
set connections {}
while {[gets $file line] >= 0} {
    lassign [split $line ,] start size
    set pair [expr {[llength $connections] % $pairs}]
    set tcp [new Agent/TCP/Sack1]
    set sink [new Agent/TCPSink/Sack1/DelAck]
    $ns attach-agent [lindex $senders $pair] $tcp
    $ns attach-agent [lindex $receivers $pair] $sink
    $ns connect $tcp $sink
    $ns at $start "$tcp advance [expr {($size + 1459) / 1460}]"
    lappend connections $tcp
}
close $file

# Routes are computed by the first event: after it starts what is timed.
$ns at 0 "set before \[cpu\]"
$ns at $stop "report"
proc report {} {
    global connections before
    set cpu [expr {[cpu] - $before}]
    set data 0
    set again 0
    set acks 0
    foreach tcp $connections {
        incr data [$tcp set ndatapack_]
        incr again [$tcp set nrexmitpack_]
        incr acks [$tcp set nackpack_]
    }
    # Three transmissions for a packet that arrives, one for a packet that is dropped; what was
    # sent again stands for what was dropped, since a monitor at the queue would cost time.
    puts "hops,[expr {3 * ($data - $again) + $again + 3 * $acks}]"
    puts "arrived,$data"
    puts "dropped,$again"
    puts "cpu_s,$cpu"
    puts "peak_kib,[peakKib]"
    exit 0
}
$ns run
