//! Short sequences for each discipline, worked out by hand from the papers.
//!
//! The notation is explained in `conformance::golden`. Packets are 1000 bytes unless they say so.

use conformance::golden::golden;

/// Two packets fit, the third is lost; in bytes a small one may still fit where a large one did
/// not, and a super-packet counts as its segments.
#[test]
fn every_discipline_has_a_sequence_worked_out_by_hand() {
    let written = include_str!("golden.rs");
    for info in sched::registry::ALL {
        let name = info.name;
        let is_written = [format!("\"{name}\""), format!("\"{name}:")];
        let begin = format!("golden(\"{name}:limit=3packets\", \"+A +A +B >A1 ...\")");
        assert!(
            is_written.iter().any(|start| written.contains(start.as_str())),
            "{name} has none: write what its paper says, as in {begin}"
        );
    }
}

#[test]
fn fifo() {
    golden("fifo:limit=2packets", "+A +B +A!A2 >A1 +B >B1 >B2 >-");
    golden("fifo:limit=2500b", "+A=1500 +B=1001!B1 +B=1000 >A1 >B2 >-");
    golden("fifo:limit=4packets", "+A=4500x3 +B +A!A2 >A1 +A=4500x4!A3 +A=4500x3 >B1 >A4");
    // A lowered limit loses nothing that is queued, and refuses until there is room again.
    golden("fifo:limit=3packets", "+A +A +A limit=1packets +B!B1 >A1 >A2 +B!B2 >A3 +B >B3");
}

#[test]
fn efd() {
    // The first two packets of an episode are high; B overtakes what is low.
    golden("efd:threshold=2packets", "+A/high +A/high +A/low +B/high >A1 >A2 >B1 >A3 >-");
    // When A has nothing queued its episode is over: the next packet is its first again. The
    // count goes on while a packet is queued, though two have left.
    golden("efd:threshold=2packets", "+A/high >A1 +A/high +A/high >A2 +A/low >A3 >A4 +A/high");
    // Counting the one on the wire, the episode lasts until the next departure.
    golden(
        "efd:threshold=2packets,hold-on-wire=yes",
        "+A/high >A1 +A/high >A2 +A/low >A3 >- +A/high",
    );
    // Full: a high arrival takes the place of the long lane's tail; a low one is lost; with an
    // empty long lane a high one is lost as well.
    golden(
        "efd:threshold=1packets,limit=3packets",
        "+A/high +A/low +A/low +B/high!A3 +A/low!A4 +C/high!A2 +D/high!D1 >A1 >B1 >C1 >-",
    );
    // A lost arrival with nothing else queued leaves no entry: D2 is the first of an episode.
    golden("efd:threshold=1packets,limit=1packets", "+A/high +D!D1 >A1 +D/high +D/low!D3 >D2");
    // Lost packets count in an episode: A4 is the third.
    golden("efd:threshold=2packets,limit=1packets", "+A/high +A!A2 +A/low!A3 >A1 +A/high");
    // th+1 packets by the literal reading; in bytes a packet that begins within is high whole.
    golden("efd:threshold=1packets,boundary=literal", "+A/high +A/high +A/low");
    golden("efd:threshold=1500b", "+A=1000/high +A=1000/high +A=40/low");
    golden("efd:threshold=1500b,boundary=after", "+A=1000/high +A=1000/low +A=40/low");
    // A super-packet counts as its segments, and its first arrival is high all the same.
    golden("efd:threshold=20packets", "+A=65160x45/high +A/low +B/high >A1 >B1 >A2");
    // Two segments are needed; one low packet is not enough, two are.
    golden(
        "efd:threshold=1packets,limit=4packets",
        "+A/high +A/low +A/low +A/low +B=2896x2/high!A4,A3 >A1 >B1 >A2 >-",
    );
    // Even an empty long lane would not do: the arrival is lost, and nobody else.
    golden("efd:threshold=1packets,limit=3packets", "+A/high +A/low +B=4344x3/high!B1 >A1 >A2");
    // A raised threshold promotes nobody within an episode; a lowered one acts at once.
    golden(
        "efd:threshold=1packets",
        "+A/high +A/low threshold=9packets +A/low +B/high +B/high threshold=2packets +B/low",
    );
    // With a share of one half, the long lane earns 500 bytes with each packet of 1000 that
    // leaves while both lanes wait. At 1000 it is served, and pays.
    golden(
        "efd:threshold=1packets,low-share=0.5",
        "+A/high +A/low +A/low +B/high +C/high +D/high +E/high >A1 >B1 >A2 >C1 >A3 >D1 >E1",
    );
    // Half of the buffer is the long lane's too: B pushes out what is beyond that, C is lost. E is
    // lost though a place is free.
    golden(
        "efd:threshold=1packets,low-share=0.5,limit=4packets",
        "+A/high +A/low +A/low +A/low +B/high!A4 +C!C1 >A1 >B1 >A2 +D/high +E/high +F!F1 >D1",
    );
}

#[test]
fn run2c() {
    // The count never expires: A4 is low though nothing of A is queued.
    golden("run2c:threshold=2packets", "+A/high >A1 +A/high >A2 +A/low +B/high >B1 >A3 >-");
    // Drop-tail by default, whoever it hits; with knockout the long lane's tail makes room.
    golden("run2c:threshold=1packets,limit=2packets", "+A/high +A/low +B/high!B1 >A1 >A2");
    golden(
        "run2c:threshold=1packets,limit=2packets,buffer=knockout",
        "+A/high +A/low +B/high!A2 >A1 >B1 >-",
    );
    // With the packet, the count must be within 1500 bytes.
    golden("run2c:threshold=1500b", "+A/high +A/low +B=1500/high +B=40/low");
    // Lost packets count as well: A2 was the second.
    golden("run2c:threshold=2packets,limit=1packets", "+A/high +A!A2 >A1 +A/low");
    // Forgotten after more than a second without a packet, at the first arrival after a sweep.
    golden(
        "run2c:threshold=1packets,idle=1s,sweep=1s",
        "+A/high >A1 @500ms +A/low >A2 @2s +A/high",
    );
}

/// A1 begins at byte 0, A2 at 1000, A3 at 2000.
#[test]
fn run2c_seq() {
    golden("run2c-seq:threshold=1001b", "+A/high +A/high +A/low +B/high >A1 >A2 >B1 >A3");
    golden("run2c-seq:threshold=1packets,segment=1000b", "+A/high +A/low");
}

/// Certain sampling leaves nothing to the dice; none leaves a FIFO.
#[test]
fn sampling_disciplines() {
    golden("x-protect:probability=1,threshold=2000b", "+A/high +A/high +A/low +B/high >A1 >A2 >B1");
    golden("x-protect:probability=1,threshold=2000b,count-sampled=no", "+A/high +A/high +A/high");
    golden("x-protect:probability=0,threshold=0b", "+A/high +A/high +A/high");
    golden("sift:probability=1,weight=1", "+A/high +A/low +B/high +B/low >A1 >B1 >A2 >B2");
    golden("sift:probability=1,weight=1,sampled-to=low", "+A/low +B/low >A1 >B1");
    golden("sift:probability=0,weight=1", "+A/high +A/high +B/high >A1 >A2 >B1");
    // Found once, and then again, before A is long.
    golden("sift:probability=1,weight=1,retest=yes", "+A/high +A/high +A/low +B/high >A1 >A2 >B1");
    golden("sb-sh:probability=1,threshold=2packets,weight=1", "+A/high +A/high +A/low +B/high");
    golden("sb-sh:probability=0,threshold=0packets", "+A/high +A/high +A/high");
    // At the end of an interval long flows are short again, and those below `keep` forgotten.
    golden(
        "sb-sh:probability=1,threshold=1packets,weight=1,interval=1s,keep=1",
        "+A/high +A/low @1s +A/high +A/low >A1 >A3 >A2 >A4",
    );
}

/// Stamps in units of w(1-w), with w = 0.8: a high packet of 1000 takes 200, a low one 800.
#[test]
fn sb() {
    // Low: A2 at 800, A3 at 1600. High: A1 at 200, B1 400, C1 600, D1 800 (after A2, which
    // arrived before it), E1 1000.
    golden(
        "sb:threshold=1packets,weight=0.8,boundary=after",
        "+A/high +A/low +A/low +B/high +C/high +D/high +E/high >A1 >B1 >C1 >A2 >D1 >E1 >A3 >-",
    );
    // Strict when the weight is 1. At 0.5 a packet takes 500 in both: A1 and A2 at 500, A3 and B1
    // at 1000, C1 at 1500.
    golden("sb:threshold=1packets,weight=1", "+A +A/low +B +C >A1 >B1 >C1 >A2");
    golden("sb:threshold=1packets,weight=0.5", "+A +A/low +A/low +B +C >A1 >A2 >A3 >B1 >C1");
    // The long lane has the link alone while nobody is high.
    golden("sb:threshold=0packets,weight=0.8", "+A/low +A/low >A1 >A2 >-");
    // Drop-tail without knockout, push-out with it; a long flow's arrival is lost in both.
    golden("sb:threshold=1packets,limit=2packets", "+A +A/low +B!B1 +A/low!A3");
    golden("sb-ko:threshold=1packets,limit=2packets", "+A +A/low +B!A2 +A/low!A3 +C!C1 >A1 >B1");
    // A packet of 1000 bytes at 8 kbit/s holds the short lane for a second, not the long lane.
    golden(
        "sb:threshold=1packets,cap-high=8kbit",
        "+A +B >A1 >- @500ms >- +A/low >B1 >A2 @1s +C >- @1500ms >C1",
    );
}

/// Knockout with a sampled flow that is counted as far as it was seen.
#[test]
fn sb_sh() {
    golden(
        "sb-sh:probability=1,threshold=1packets,limit=2packets",
        "+A/high +A/low +B/high!A2 +B/low!B2 >A1 >B1 >-",
    );
}

/// The short lane holds 2 packets for a second where 1 is wanted: ease is halved, so that one packet
/// of a flow is short, not two, and the long lane's fifth of the link becomes a tenth. Then nothing
/// waits, and ease grows by half to 0.75, which is still one packet, and to 1.125.
#[test]
fn auto() {
    golden(
        "auto:limit=10packets,threshold=2packets,target=0.1,step=0.5",
        "+A/high +A/high +A/low @1s +B/high +B/low >A1 >A2 >B1 >A3 >B2 \
         @2s +C/high +C/low >C1 >C2 @3s +D/high +D/high +D/low",
    );
    // One packet is neither above the target nor below half of it.
    golden(
        "auto:limit=10packets,threshold=2packets,target=1packets,step=0.5",
        "+A/high @1s +B/high +B/high +B/low",
    );
    // At its range ease stays where it is: five times, and two packets are at least one.
    golden(
        "auto:threshold=2packets,target=0,step=0.5,range=2",
        "+A @1s +A/low @2s +B/high +B/low @3s +C/high +C/low",
    );
}

/// Free composition: offset accounting, strict service, knockout.
#[test]
fn lanes() {
    golden(
        "lanes:accounting=offset,service=strict,buffer=knockout,threshold=1000b,limit=2packets",
        "+A/high +A/low +B/high!A2 >A1 >B1 >-",
    );
    // Tagged packets are short, whoever they are of.
    golden("lanes:accounting=mark", "+A/low +A~/high +B/low >A2 >A1 >B1");
    golden("lanes:accounting=mark,short-dscp=11", "+A/low +A~/low");
    // The threshold counts from the packet on that was found again.
    golden(
        "lanes:accounting=retest,probability=1,threshold=1packets,service=strict",
        "+A/high +A/high +A/low +B/high +B/high >A1 >A2 >B1 >B2 >A3",
    );
}

#[test]
fn las() {
    // Keys: A 0, 1000, 2000; B 0, 1000. Equal keys in order of arrival.
    golden("las", "+A +A +A +B +B >A1 >B1 >A2 >B2 >A3 >-");
    // A was served 2000; B and C are new.
    golden("las", "+A >A1 +A >A2 +A +B +C +B >B1 >C1 >B2 >A3");
    // Full: the largest key goes, which may be the arrival's; bytes pushed out are rolled back,
    // so A4 has key 1000 and arrives later than B2.
    golden("las:limit=3packets", "+A +A +A +B!A3 +B!B2 >A1 >B1 +A >A2 >A4");
    golden("las:limit=2packets", "+A +A +A!A3 >A1 +A >A2 >A4 >-");
    // Charged for what was lost: A3 counts, so A4 is at 3000 and behind B's 2000.
    golden("las:limit=2packets,charge-drops=yes", "+A +A +A!A3 >A1 >A2 +A +B=2000 >B1 +B >B2 >A4");
    // The other victim: A was served most, though B's tail has the largest key.
    golden("las:limit=5packets", "+A=1500 >A1 +A +B +B +B +B +C!B4");
    golden("las:limit=5packets,victim=most-served", "+A=1500 >A1 +A +B +B +B +B +C!A2");
    // Ties of new flows: the latest arrival is lost.
    golden("las:limit=2packets", "+A +B +C!C1 >A1 >B1");
    // Forgotten when idle for more than 30 s, and new again.
    golden("las", "+A >A1 @1s +B >B1 +A=500 >A2 @40s +A +B=100 +A >A3 >B2 >A4");
}

#[test]
fn lars() {
    golden("lars", "+A +A +A +B +B >A1 >B1 >A2 >B2 >A3 >-");
    // A half-life later, A's 2000 are 1000, less than B's 1500.
    golden("lars:half-life=1s", "+A=2000 >A1 @1s +B=1500 >B1 +B +A >A2 >B2 >-");
    golden("lars:half-life=2s", "+A=2000 >A1 @1s +B=1400 >B1 +B +A >B2 >A2 >-");
    // After ten half-lives and more, 2000 are 1 and 3000 are 2.
    golden("lars:half-life=1s", "+A=3000 >A1 +B=2000 >B1 @11s +C=40 >C1 +C +A +B >B2 >A2 >C2");
    // Full: the flow with the largest volume loses its newest packet; by key, what is queued
    // ahead of that packet counts as well, and does not fade.
    golden("lars:limit=5packets", "+A=1500 >A1 +A +B +B +B +B +C!A2");
    golden("lars:limit=5packets,victim=key", "+A=1500 >A1 +A +B +B +B +B +C!B4");
    let by_key = "lars:limit=3packets,half-life=1s,victim=key";
    golden(by_key, "+A=4000 >A1 +A +B=3000 +B +C!A2");
    golden(by_key, "+A=4000 >A1 +A +B=3000 +B @1s +C!B2");
    // Ties of new flows: the latest arrival is lost.
    golden("lars:limit=2packets", "+A +B +C!C1 >A1 >B1");
    // Forgotten when idle for more than 30 s, and new again.
    golden("lars:half-life=inf", "+A >A1 @1s +B >B1 +A=500 >A2 @40s +A +B=100 +A >A3 >B2 >A4");
}

/// A flow's size is what the sequence offers: A 3000, B 2000, C 1000.
#[test]
fn srpt() {
    golden("srpt", "+A +A +A +B +B +C >C1 >B1 >B2 >A1 >A2 >A3 >-");
    // A has 1000 left when B, of 2000, comes.
    golden("srpt", "+A +A +A >A1 >A2 +B +B >A3 >B1 >B2");
    // Full: the newest of the flow with most remaining.
    golden("srpt:limit=3packets", "+A +A +A +B!A3 +B!A2 >B1 >B2 >A1");
    // C has 2000 to come, and 40 once C1 has left: less than D, though A was back in between.
    golden(
        "srpt:limit=2packets",
        "+A=2500 +B=1500 +C=1960!A1 >C1 +A=2500 +C=40!A2 +D!B1 >C2 >D1 +B=1500 >B2 >-",
    );
}

/// With a quantum of 1500: A 1000 (500 left), 1000 more do not fit; B the same; then both have
/// 2000 and send two.
#[test]
fn drr() {
    golden("drr:quantum=1500b", "+A +A +A +A +B +B +B >A1 >B1 >A2 >A3 >B2 >B3 >A4 >-");
    // Small packets share bytes, not packets.
    golden("drr:quantum=1000b", "+A +A +B=500 +B=500 +B=500 >A1 >B1 >B2 >A2 >B3");
    // An emptied flow loses its deficit: B's 500 of the first turn do not help B2.
    golden("drr:quantum=1000b", "+A +A +B=500 >A1 >B1 +B=1500 >A2 >B2");
    // The longest queue, in bytes, loses its tail, or its head.
    golden("drr:limit=3packets", "+A +A +B=1500 +C!A2 >A1 >B1 >C1");
    golden("drr:limit=3packets,victim=head", "+A +A +B=1500 +C!A1 >A2 >B1 >C1");
    // Of equally long ones that which has been backlogged longest.
    golden("drr:limit=2packets", "+A +B +C!A1 >B1 >C1");
}

#[test]
fn scfq() {
    // Tags: A 1000, 2000, 3000; B 400, 800, 1200.
    golden("scfq", "+A +A +A +B=400 +B=400 +B=400 >B1 >B2 >A1 >B3 >A2 >A3 >-");
    // The clock is the tag in service: B1 is at 1000 + 900, or ties with A2 at 2000 and is later.
    golden("scfq", "+A +A >A1 +B=900 >B1 >A2");
    golden("scfq", "+A +A >A1 +B >A2 >B1");
    // Who was idle has saved nothing up: B1 is at 3500, A3 at 3000, A4 at 4000.
    golden("scfq", "+A +A +A >A1 >A2 +B=1500 +A >A3 >B1 >A4");
    // A lost arrival does not count: B3 is at 1900.
    golden("scfq:limit=3packets", "+A +A +B=1100 +B=1100!B2 >A1 +B=800 >B1 >B3 >A2");
    // The longest queue loses its newest packet, and its tag: A3 is at 1450.
    let longest = "scfq:limit=3packets,drop=longest-queue";
    golden(longest, "+A +A +B=1500 +C=700!A2 >C1 +A=450 >A1 >A3 >B1");
    golden(longest, "+A +B +B=500 +B!B3 >A1 >B1 >B2");
    // Of equally long queues, the one that has been backlogged longest.
    golden("scfq:limit=2packets,drop=longest-queue", "+A +B +C!A1 >B1 >C1");
}

/// C is of DSCP EF, D of CS1.
#[test]
fn wfq() {
    // Finishes: A 1000, 2000, 3000; B 400, 800, 1200.
    golden("wfq", "+A +A +A +B=400 +B=400 +B=400 >B1 >B2 >A1 >B3 >A2 >A3 >-");
    // V is the fluid system's, not the tag in service: B is at 1000 + 1500, A3 at 3000.
    golden("wfq", "+A +A +A >A1 >A2 +B=1500 >B1 >A3");
    // In it, B is done at V = 200, after 400 bytes. From there V is faster: 1000 after A1, so that
    // C is at 3100, behind A3 at 3000.
    golden("wfq", "+A +A +B=200 >B1 >A1 >A2 +A +C=2100 >A3 >C1");
    // 900 bytes of A1 are sent when B comes, which is then at 2100; or that is not known.
    golden("wfq:rate=8kbit", "+A +A >A1 @900ms +B=1200 >A2 >B1");
    golden("wfq", "+A +A >A1 @900ms +B=1200 >B1 >A2");
    // Once the last packet has been sent, all starts again; B is then at 1000, and first.
    golden("wfq:rate=8kbit", "+A=2000 >A1 @1s +A +B=1900 >B1 >A2 >-");
    golden("wfq:rate=8kbit", "+A=2000 >A1 @2s +A=500 +B >A2 >B1 >-");
    // Four times the share: C is at 250, 500, 750, 1000 and 1250.
    golden("wfq:weights=1+4@ef", "+C +C +C +C +C +A +B +D +E >C1 >C2 >C3 >C4 >A1 >B1 >D1 >E1 >C5");
    // What is pushed out leaves the fluid system as well: A3 is at 1450.
    golden("wfq:limit=3packets", "+A +A +B=1500 +C=700!A2 >C1 +A=450 >A1 >A3 >B1");
    golden("wfq:limit=3packets,drop=tail", "+A +A +B=1500 +C=700!C1 >A1 +B=1700 >B1 >A2 >B2");
}

#[test]
fn wf2q() {
    // C1 is at 250, and its next ones may not begin before V = 250, 500, ...: after 2000 bytes each.
    golden(
        "wf2q+:weights=1+4@ef",
        "+C +C +C +C +C +A +B +D +E >C1 >A1 >C2 >B1 >C3 >D1 >C4 >E1 >C5 >-",
    );
    // A3 alone is backlogged, from 2000 on: V is there, and B is at 3500.
    golden("wf2q+", "+A +A +A >A1 >A2 +B=1500 >A3 >B1");
    // A has 1000 behind it, V is 500 when it comes back: B2 is at 1700, A2 at 1500.
    golden("wf2q+", "+A +B=1100 +B=600 >A1 >B1 +A=500 >A2 >B2");
    golden("wf2q+:limit=2packets", "+A +B +C=500!A1 >C1 >B1");
}

/// Bursts of 2000 bytes at twice the speed.
#[test]
fn fsc() {
    // A comes to 500, 1000, 2000, 3000, 4000. The clock is in the middle of 2000 and 3000 then; B
    // comes from 2500 to 3000, 3500, 4500.
    golden(
        "fsc:bpr=2,pbs=2000b",
        "+A +A +A +A +A +A >A1 >A2 >A3 >A4 +B +B +B +B >B1 >A5 >B2 >B3 >A6 >B4",
    );
    // Without a burst, A comes to 4000, and B from 3500 to 4500, ...
    for fair in ["fsc:bpr=1", "fsc:pbs=0b"] {
        golden(fair, "+A +A +A +A +A +A >A1 >A2 >A3 >A4 +B +B +B +B >B1 >A5 >B2 >A6 >B3 >B4");
    }
    // C is served at 4 times the weight, D with a burst of its own.
    golden("fsc:bpr=1,curves=4@ef", "+A +A +C +C +C +C +C >A1 >C1 >C2 >C3 >C4 >A2 >C5");
    golden("fsc:bpr=1,curves=1x2/2kb@cs1", "+A +A +A +D +D +D >A1 >D1 >D2 >A2 >D3 >A3");
    golden("fsc:limit=2packets", "+A +B +C!A1 >B1 >C1");
}

/// C is of DSCP EF, D of CS1, A and B of none.
#[test]
fn h_fsc() {
    // C comes to 333, 667, 1000, A to 1000.
    golden("h-fsc:bpr=1,classes=x=3@ef+y=1", "+C +C +C +C +A +A >C1 >A1 >C2 >C3 >C4 >A2 >-");
    // C and D have a half together, of which D has a quarter.
    golden(
        "h-fsc:bpr=1,classes=o=1(p=3@ef+q=1@cs1)+r=1",
        "+C +C +C +D +D +A +A +A +A >C1 >A1 >D1 >A2 >C2 >A3 >C3 >A4 >D2 >-",
    );
    // What D leaves is for C before it is for A.
    golden(
        "h-fsc:bpr=1,classes=o=1(p=1@ef+q=1@cs1)+r=1",
        "+C +C +C +A +A +A >C1 >A1 >C2 >A2 >C3 >A3",
    );
    // A class has its burst whoever is in it, a flow whatever class it is in.
    golden("h-fsc:bpr=1,classes=x=1x2/2kb@ef+y=1", "+A +A +A +C +C +C >C1 >A1 >C2 >C3 >A2 >A3");
    golden(
        "h-fsc:bpr=2,pbs=2000b,classes=all=1",
        "+A +A +A +A +A +A >A1 >A2 >A3 >A4 +B +B +B +B >B1 >A5 >B2 >B3 >A6 >B4",
    );
}

/// Target 5 ms, interval 100 ms. Packets arrive at 0 and leave late.
#[test]
fn codel() {
    // Above target from 10 ms on; at 110 ms an interval has passed and the head is dropped, again
    // after 100 ms (n = 1) and after 100/sqrt(2) = 70.7 ms more (n = 2).
    golden(
        "codel",
        "+A +A +A +A +A +A +A +A +A +A +A @10ms >A1 @109ms >A2 @110ms >A4!A3 @209ms >A5 \
         @210ms >A7!A6 @280ms >A8 @281ms >A10!A9 >A11 >-",
    );
    // The same with marks, one at most in a call.
    golden(
        "codel:ecn=yes",
        "+A^ +A^ +A^ +A^ +A^ +A^ +A^ @10ms >A1 @110ms >A2* @209ms >A3 @210ms >A4* @280ms >A5 \
         @281ms >A6 >A7",
    );
    // A1 is late at 10 ms, but A2 has less than a packet behind it, so the wait starts again
    // with A3 at 110 ms.
    golden("codel", "+A +A +A @10ms >A1 >A2 +B +B +B @110ms >A3 @209ms >B1 @210ms +C >B3!B2");
    golden("codel:limit=2packets", "+A +A +A!A3 >A1");
}

/// With an averaging of 1 the average is the queue before the arrival.
#[test]
fn red() {
    // From 2 packets on everything is lost: the queue is short until then.
    golden("red:averaging=1,min=2packets,max=2packets,gentle=no", "+A +A +A!A3 +B!B1 >A1 +A >A2");
    // At 2 packets p is 1/3, at 3 it is 2/3. A3 is the first above min, and passes; at A4 the
    // count of 2 makes the drop certain. At 4 = max marks are over.
    let red = "red:averaging=1,min=1packets,max=4packets,max-probability=1,wait=no";
    golden(red, "+A +A +A +A!A4 >A1 >A2 >A3 >-");
    golden(red, "+A^ +A^ +A^ +A^ +A^!A5 >A1 >A2 >A3 >A4*");
    golden(&format!("{red},ecn=no"), "+A^ +A^ +A^ +A^!A4");
    // ECN of one packet does not help another: B is not capable.
    golden(red, "+A^ +A^ +A^ +B!B1 +A^ >A1 >A2 >A3");
    // Waiting, 2/3 counts twice before a drop is possible and three times before it is certain.
    let red = "red:averaging=1,min=1packets,max=4packets,max-probability=1";
    golden(red, "+A +A +A +A=40x2!A4 >A1");
    // Half way to the queue each time: 0, 0.5, 1.25, 2.125 packets; then 1.06, 1.03, 1.52.
    let half = "red:averaging=0.5,limit=10packets,min=0.15,max=0.15,gentle=no,rate=1mbit";
    golden(half, "+A +A +A +A!A4 >A1 >A2 >A3 +A +B +C!C1");
    // While the link is idle the average is halved with every 500 bytes it could have sent, 4 ms.
    // A3 takes 8 ms before that.
    golden(half, "+A +A +A +A!A4 >A1 >A2 >A3 @11ms +A +B +C!C1");
    golden(half, "+A +A +A +A!A4 >A1 >A2 >A3 @12ms +A +B +C +D!D1");
    // In bytes, super-packets as they are; the first above min passes.
    golden("red:averaging=1,limit=9000b,min=2000b,max=3000b,gentle=no", "+A +A +A +A!A4 >A1 +A");
    // A full queue loses whoever comes.
    golden("red:min=inf,max=inf,limit=2packets", "+A^ +A^ +A^!A3 >A1 >A2 >-");
}

#[test]
fn fred() {
    // A has its 2 packets. B and C may come in; with 4 queued nobody may.
    let fred = "fred:averaging=1,min=2packets,max=4packets,max-probability=0";
    golden(fred, "+A +A +A!A3 +B +C +D!D1 >A1 >A2 >B1 >C1");
    golden(&format!("{fred},two-packets=yes"), "+A +A +A!A3 +B +C +D +B +B!B3");
    // Two strikes: A is held to its share, 1 packet, where B may have 2.
    golden(fred, "+A +A +A!A3 +A!A4 +B >A1 +A!A5 +B >A2 +A");
    // The coin, here certain from the second time on, is for flows with min-queue packets.
    let coin = "fred:averaging=1,min=3packets,max=5packets,max-probability=1";
    golden(coin, "+A +A +B +C +A!A3");
    golden(&format!("{coin},min-queue=3"), "+A +A +B +C");
    // The limit in bytes is one of 8 packets of 500 bytes: min is 2, max 4.
    golden("fred:averaging=1,limit=4000b,max-probability=0", "+A=9 +A=9 +A=9!A3 +B=9 +C=9 +D=9!D1");
}

#[test]
fn rio() {
    // Out is lost at 2 packets in all, In at 2 packets of its own.
    let rio = "rio:averaging=1,gentle=no,in-min=2packets,in-max=2packets,out-min=1packets,out-max=2packets";
    golden(rio, "+A~/high +B/low +C!C1 +A~/high +A~!A3 >A1 >B1 >A2 >-");
    golden(&format!("{rio},in-dscp=9"), "+A~/low +A~/low +A~!A3");
    // The average of all moves with In packets as well: half way to 0, 1, 2 is 1.25 at B1.
    let half = "rio:averaging=0.5,gentle=no,out-min=1packets,out-max=1packets";
    golden(half, "+A~ +A~ +A~ +B!B1 +A~");
    // Marks are by the curve of the packet.
    let marks = "rio:averaging=1,out-min=1packets,out-max=4packets,out-probability=1,wait=no";
    golden(marks, "+A~^ +B^ +B^ +B^ +A~^ >A1 >B1 >B2 >B3* >A2");
}

/// A, B and C are of one host, D of another.
#[test]
fn fq_lanes() {
    // Ages 0, 1000, 2000 are new, 3000 is not.
    golden("fq-lanes", "+A/high >A1 >- +A/high >A2 >- +A/high >A3 >- +A/low");
    // 1.5 MB is the most that an age can be: half of it 2 s later is the last tier, a quarter is not.
    golden("fq-lanes", "+A=3000000x2000/high >A1 >- @2s +A/other");
    golden("fq-lanes", "+A=3000000x2000/high >A1 >- @4s +A/low");
    // A has sent 20 packets and waits for B, which is new, and then of the first tier.
    golden("fq-lanes", "+A=30000x20 >A1 >- +A +A +B +B +B >B1 >B2 >B3 >A2 >A3 >-");
    // The last tier may stand 30 ms. At 125 ms it does, so that at 226 ms an interval has passed.
    golden(
        "fq-lanes",
        "+A=1500000x1000 >A1 >- +A +A +A +A +A +A @20ms >A2 @125ms >A3 @224ms >A4 @226ms >A6!A5",
    );
    // B is sent for 200 ms, and A's clock stands. At 240 ms it has waited 40 ms.
    golden(
        "fq-lanes",
        "+A=1500000x1000 >A1 >- +A +A +A +A +A +A +B >B1 @200ms >A2 @240ms >A3 @310ms >A4 \
         @341ms >A6!A5 >A7 >-",
    );
    // Full: half of the fattest flow of the fattest host, though D has most of all flows. Thin ones
    // make room for other hosts alone.
    golden("fq-lanes:limit=24050b", "+A=7000 +B=7000 +D=9000 +D=1000 +D=100!A1 >B1");
    // Full of packets: the host with most of these.
    golden("fq-lanes:limit=4packets", "+A=7000 +B=7000 +D=100 +D=100 +D=100!D3 >A1 >D1 >B1");
    golden("fq-lanes:limit=2packets", "+A +B +A!A2 +D!A1 >B1 >D1 >-");
    // D beside A and B, after a turn each.
    golden("fq-lanes", "+A=1514 +A=1514 +B=1514 +D=1514 +D=1514 +D=1514 >A1 >D1 >B1 >D2 >A2 >D3");
}

#[test]
fn rio_ps() {
    let ps = "rio-ps:averaging=1,gentle=no,threshold=2,short-min=4packets,short-max=4packets,\
              long-min=2packets,long-max=2packets";
    golden(ps, "+A/high +A/high +A!A3 +B/high +B/high +C!C1 >A1 >A2 +A!A4 >B1 +A/low");
    // A new flow after a second without a packet, at the first or a later one.
    golden("rio-ps:threshold=1", "+A/high +A/low >A1 @1s +A/low @2001ms +A/high +A/low");
    // By tags, which a flow does not change.
    golden("rio-ps:classifier=tag,threshold=1", "+A~/high +A~/high +A/low");
    // After 10 s one short and no long flow is active: short flows shrink, to a packet at least.
    let moves = "rio-ps:threshold=2";
    golden(moves, "+A/high @9500ms +B/high @10s +C/high +C/low @19900ms +D/high @20s +D/low");
    golden("rio-ps:threshold=1", "+A @9500ms +B @10s +C/high +C/low");
    // Two long flows want six short ones: the threshold rises to 2.
    golden("rio-ps:threshold=1", "+A +A +B @9500ms +A +A +B +B @10s +C/high +C/high +C/low");
}

/// A, C and E have a bucket each, with a quantum of 1514; B shares A's.
#[test]
fn fq_codel() {
    // A sends A1 (514 left) and A2 (-486), goes to the old list with 1028. C, and then E, are new
    // and go first.
    golden("fq-codel", "+A +A +A +A +C >A1 >A2 >C1 +E >E1 >A3 >A4 >-");
    golden("fq-codel", "+A +A +A +A +B >A1 >A2 >A3 >A4 >B1 >-");
    // Full: the fattest bucket loses half its bytes at its head, here A1 and A2 of 4000.
    golden("fq-codel:limit=4packets", "+A +A +A +C +A!A1,A2 >A3 >A4 >C1");
    golden("fq-codel:limit=4packets,drop-batch=1", "+A +A +A +C +A!A1 >A2 >A3 >C1 >A4");
    golden("fq-codel:memory=4000b", "+A +A +A +C +A!A1,A2 >A3 >A4 >C1");
}

/// A and D come from one host, B and E from another, C from a third; A, B, C go to one host, D and
/// E to another. A sparse queue has 1514 bytes, a bulk one its part of as many.
#[test]
fn cake() {
    // A1 leaves 514, A2 -486, and then A is bulk. C and E are sparse.
    golden("cake", "+A +A +A +A +C >A1 >A2 >C1 +E >E1 >A3 >A4 >-");
    // C is found empty before A3, and sparse again at once (in fq-codel it waits among the old).
    golden("cake", "+A +A +A +A +A +A +C >A1 >A2 >C1 >A3 +C >C2 >A4 >A5 >A6");
    golden("fq-codel", "+A +A +A +A +A +A +C >A1 >A2 >C1 >A3 +C >A4 >C2 >A5 >A6");
    // A and D halve their host's turns, and B has whole ones: two for each one of theirs.
    let three = "+A=1514 +A=1514 +A=1514 +D=1514 +D=1514 +D=1514 \
                 +B=1514 +B=1514 +B=1514 +B=1514 +B=1514";
    golden(
        "cake:isolation=dual-srchost",
        &format!("{three} >A1 >D1 >B1 >A2 >D2 >B2 >A3 >B3 >D3 >B4 >B5 >-"),
    );
    // By flows all take turns.
    golden(
        "cake:isolation=flows",
        &format!("{three} >A1 >D1 >B1 >A2 >D2 >B2 >A3 >D3 >B3 >B4 >B5 >-"),
    );
    // A and B halve the turns of theirs.
    let three = "+A=1514 +A=1514 +A=1514 +B=1514 +B=1514 +B=1514 \
                 +D=1514 +D=1514 +D=1514 +D=1514 +D=1514";
    golden(
        "cake:isolation=dual-dsthost",
        &format!("{three} >A1 >B1 >D1 >A2 >B2 >D2 >A3 >D3 >B3 >D4 >D5 >-"),
    );
    // One queue for each host, and for all.
    golden("cake:isolation=srchost", "+A +B +D +E >A1 >D1 >B1 >E1");
    golden("cake:isolation=srchost", "+A=1514 +B=1514 +D=1514 +E=1514 >A1 >B1 >D1 >E1");
    golden("cake:isolation=dsthost", "+A +A +A +D >A1 >A2 >D1 >A3");
    golden("cake:isolation=flowblind", "+A +A +A +D >A1 >A2 >A3 >D1");
    // Late from 10 ms on: signals at 110, and 100/sqrt(2) and 100/sqrt(3) ms after that: 180.7, 238.4.
    golden(
        "cake",
        "+A +A +A +A +A +A +A +A +A +A +A @10ms >A1 @109ms >A2 @110ms >A4!A3 @180ms >A5 \
         @181ms >A7!A6 @238ms >A8 @239ms >A10!A9 >A11 >-",
    );
    golden("cake", "+A^ +A^ +A^ +A^ +A^ @10ms >A1 @110ms >A2* @180ms >A3 @181ms >A4* >A5");
    // A 20th of 400 ms is 20 ms; four packets of 1514 bytes are 24.2 ms at 2 Mbit/s.
    golden("cake:rtt=400ms", "+A +A +A @20ms >A1 @440ms >A2 >A3");
    golden("cake:rate=2mbit", "+A +A +A @24ms >A1 @140ms >A2 >A3");
    golden("cake:rate=2mbit", "+A +A +A +A @25ms >A1 @130ms >A3!A2 >A4");
    // A queue that was idle for long: an interval from its first late packet on, though that is
    // its first.
    golden("cake", "+A >A1 @5s +A +A +A @5010ms >A2 @5020ms >A3 >A4");
    // The longest queue loses its head; of equals the first. The last packet is not dropped.
    golden("cake:limit=4packets", "+A +A +A +C +A!A1 >A2 >A3 >C1 >A4");
    golden("cake:limit=4000b", "+A=2500 +C=1500 +C!A1 >C1 >C2");
    golden("cake", "+A @10ms >A1 @2s +A @3s >A2");
}

/// A and B have no DSCP, C is EF, D is CS1. At 10 Mbit/s a packet of 1000 bytes takes Best Effort
/// 0.8 ms, Voice 3.2, Bulk 12.8.
#[test]
fn cake_with_tins() {
    let one = "cake:tins=diffserv3,rate=10mbit";
    // Of those that are due, Voice and then Bulk; then Best Effort, for nothing else is due.
    golden(
        one,
        "+A/high +A +D/low +D +C +C >C1 >D1 >A1 @800us >A2 @1600us +A >A3 @3200us >C2 @4ms >D2 >-",
    );
    // Nothing is due: D is at 12.8 ms, A at 1.6.
    golden(one, "+D +D +A +A >D1 >A1 >A2 >D2 >-");
    // Without a rate 1024, 64 and 256 bytes in turns; a tin goes on while it has not overdrawn.
    golden("cake:tins=diffserv3", "+A +A +A +D +D >A1 >D1 >A2 >A3 >D2 >-");
    golden("cake:tins=besteffort", "+D +A +C >D1 >A1 >C1");
}

/// At 1 Mbit/s a flow may send 30 kB at once, and 62.5 kbit/s for ever.
#[test]
fn marked() {
    let arrivals = "+A=15000/high +A=15000/high +A/low +E/high";
    // Bulk is due, so that A3 passes those before it; A and E have turns of 300 bytes.
    golden("marked:rate=1mbit", &format!("{arrivals} >A3 >A1 >E1 >A2 >-"));
    // The first band, and then the other.
    golden("marked:rate=1mbit,queues=prio", &format!("{arrivals} >A1 >E1 >A2 >A3 >-"));
    // Short again after a second without a packet, and not before.
    golden("marked:rate=1mbit", "+A=31000/low @999ms +A/low @1999ms +A/high >A1 >A3 >A2");
    // One set: the ninth flow takes A's place, for which A is new, and short.
    let eight = "+B +C +D +E +F +G +H";
    golden(
        "marked:rate=1mbit,sets=1,queues=prio",
        &format!("+A=31000/low @1ms {eight} +A/low @2ms {eight} @3ms +I +A/high"),
    );
}
