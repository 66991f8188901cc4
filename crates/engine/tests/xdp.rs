//! What is particular to `AF_XDP`: when it is taken, and what happens when nobody attends to it.

mod common;

use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;

use common::{A4, B4, Lab, ip, link};
use engine::{EngineError, Forwarder, Io, Unavailable};
use netdev::link::Links;

const RATE: u64 = 100_000_000;

/// An engine between the two hosts that does not run yet; `None`, said loudly, without permission.
fn open(lab: &Lab, io: Io) -> Option<Result<Forwarder, EngineError>> {
    let fifo = || link("fifo", RATE);
    let open = || Forwarder::bridge("left", "right", fifo(), fifo(), io);
    // A process that another test is about to start holds what was just closed until it runs.
    let engine = std::iter::repeat_with(|| lab.middle.run(open).unwrap())
        .take(1000)
        .find(|engine| !matches!(engine, Err(EngineError::Taken { .. })))
        .expect("nobody holds it for long");
    if let Err(EngineError::Xdp(Unavailable::System { ref source, .. })) = engine {
        eprintln!("SKIPPED, AF_XDP was not tested: {source}");
        return None;
    }
    Some(engine)
}

fn shell(lab: &Lab, script: &str) {
    let run = || Command::new("sh").args(["-ec", script]).status();
    assert!(lab.middle.run(run).unwrap().unwrap().success(), "{script}");
}

/// Whether a packet from one host reaches the other.
fn reaches(lab: &Lab) -> bool {
    let sink = lab.b.run(|| UdpSocket::bind((ip(B4), 0))).unwrap().unwrap();
    sink.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let source = lab.a.run(|| UdpSocket::bind((ip(A4), 0))).unwrap().unwrap();
    source.send_to(&[1; 100], sink.local_addr().unwrap()).unwrap();
    sink.recv(&mut [0; 100]).is_ok()
}

#[test]
fn a_bridge_of_the_kernel_takes_over_while_nobody_attends_to_the_sockets() {
    let Some(lab) = Lab::new() else { return };
    shell(&lab, "ip link add br0 type bridge && ip link set br0 up");
    shell(&lab, "ip link set left master br0 && ip link set right master br0");
    // Attached, and not run: no heartbeat any more, as with a process that is stopped.
    let Some(engine) = open(&lab, Io::Xdp) else { return };
    let engine = engine.unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert!(reaches(&lab), "frames pass the program");
    drop(engine);
    assert!(reaches(&lab), "and go on when it is gone");
}

#[test]
fn with_the_engine_running_a_bridge_of_the_kernel_sees_nothing() {
    let Some(lab) = Lab::each().nth(1) else { return };
    shell(&lab, "ip link add br0 type bridge && ip link set br0 up");
    shell(&lab, "ip link set left master br0 && ip link set right master br0");
    let (received, report) = lab.while_bridged(link("fifo", RATE), link("fifo", RATE), || {
        assert!(reaches(&lab), "the hosts know each other");
        let sink = lab.b.run(|| UdpSocket::bind((ip(B4), 0))).unwrap().unwrap();
        sink.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let source = lab.a.run(|| UdpSocket::bind((ip(A4), 0))).unwrap().unwrap();
        source.connect(sink.local_addr().unwrap()).unwrap();
        for number in 0..50u8 {
            source.send(&[number]).unwrap();
        }
        std::iter::from_fn(|| sink.recv(&mut [0]).ok()).count()
    });
    assert_eq!(received, 50, "once each");
    // Not all of them on a machine that is too busy to run the engine for a while.
    assert!(report.directions[0].sent.packets > 0);
}

#[test]
fn packet_sockets_beside_a_bridge_of_the_kernel_would_double_every_frame_and_are_refused() {
    let Some(lab) = Lab::new() else { return };
    shell(&lab, "ip link add br0 type bridge && ip link set left master br0");
    let Some(engine) = open(&lab, Io::Packet) else { return };
    let error = engine.err().expect("refused").to_string();
    assert!(error.starts_with("left: ") && error.contains("nomaster"), "{error}");
}

#[test]
fn frames_that_do_not_fit_are_a_reason_for_packet_sockets() {
    let Some(lab) = Lab::new() else { return };
    lab.middle.run(|| Links::open().unwrap().set_mtu("right", 9000)).unwrap().unwrap();
    let Some(engine) = open(&lab, Io::Auto) else { return };
    let io = engine.unwrap().io().to_owned();
    assert!(io.starts_with("AF_PACKET") && io.contains("MTU of 9000"), "{io}");
    let Some(engine) = open(&lab, Io::Xdp) else { return };
    let error = engine.err().expect("refused").to_string();
    assert!(error.starts_with("right has an MTU of 9000"), "{error}");
}

#[test]
fn tags_that_the_interface_takes_off_are_a_reason_for_packet_sockets() {
    let Some(lab) = Lab::new() else { return };
    let Some(engine) = open(&lab, Io::Xdp) else { return };
    drop(engine);
    let engine = open(&lab, Io::Auto).unwrap().unwrap();
    assert!(engine.io().starts_with("AF_XDP, "), "{}", engine.io());
    drop(engine);
    // As the kernel makes them.
    shell(&lab, "ip link del right");
    shell(&lab, "ip link add right type veth peer name far");
    shell(&lab, "ip link set far up && ip link set right up");
    let io = open(&lab, Io::Auto).unwrap().unwrap().io().to_owned();
    assert!(io.contains("right takes VLAN tags off"), "{io}");
}

#[test]
fn two_queues_are_a_reason_for_packet_sockets() {
    let Some(lab) = Lab::new() else { return };
    shell(&lab, "ip link del left");
    shell(&lab, "ip link add left numrxqueues 2 numtxqueues 2 type veth peer name far");
    shell(&lab, "ip link set far up && ip link set left up");
    let Some(engine) = open(&lab, Io::Xdp) else { return };
    let error = engine.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.starts_with("left receives by 2 queues"), "{error}");
    let Some(engine) = open(&lab, Io::Auto) else { return };
    assert!(engine.unwrap().io().starts_with("AF_PACKET, since "));
}
