//! An engine that is asked, changed and ended by its control sockets.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use common::{B4, Lab, ip, link};
use engine::control::{self, Changes, ControlError};
use engine::status::{EngineKind, Heading, Status};
use engine::{EngineError, Forwarder, Io, Rate, Report};
use netdev::link::index_of;
use netdev::netns::Namespace;

/// Runs `job` in the namespace of a live engine, with the indices of its two interfaces, and then
/// stops it by its socket.
fn while_live<T: Send>(lab: &Lab, job: impl FnOnce(u32, u32) -> T + Send) -> (T, Report) {
    let open = || {
        let (forth, back) = (link("efd", 50_000_000), link("fq-codel", 80_000_000));
        Forwarder::bridge("left", "right", forth, back, Io::Packet)
    };
    let stop = AtomicBool::new(false);
    let run = || {
        let engine = open().unwrap();
        let (left, right) = (index_of("left").unwrap(), index_of("right").unwrap());
        let (ready, is_ready) = channel();
        thread::scope(|scope| {
            let stop = &stop;
            let running =
                scope.spawn(move || engine.run_live(stop, move || ready.send(()).unwrap()));
            is_ready.recv().unwrap();
            let _stop = StopAtPanic(stop);
            let done = job(left, right);
            assert!(!control::stop(right).unwrap(), "it ends by itself");
            (done, running.join().unwrap().unwrap())
        })
    };
    lab.middle.run(run).unwrap()
}

/// A job that has failed does not keep the engine running.
struct StopAtPanic<'a>(&'a AtomicBool);

impl Drop for StopAtPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

fn raw(ifindex: u32) -> SocketAddr {
    SocketAddr::from_abstract_name(format!("shortlane/interface/{ifindex}")).unwrap()
}

/// Sends datagrams from `a` to `b` until one has arrived, and then some more.
fn talk(lab: &Lab) {
    let sink = lab.b.run(|| UdpSocket::bind((ip(B4), 0))).unwrap().unwrap();
    sink.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let source = lab.a.run(|| UdpSocket::bind(("0.0.0.0", 0))).unwrap().unwrap();
    for _ in 0..50 {
        source.send_to(&[1; 500], sink.local_addr().unwrap()).unwrap();
    }
    let mut packet = [0; 500];
    for _ in 0..50 {
        assert_eq!(sink.recv(&mut packet).unwrap(), 500);
    }
}

fn towards(all: &[Status], heading: Heading) -> Status {
    all.iter().find(|status| status.direction == heading).unwrap().clone()
}

#[test]
fn it_tells_what_it_is_and_has_counted() {
    let Some(lab) = Lab::new() else { return };
    let ((left, right), report) = while_live(&lab, |left, right| {
        talk(&lab);
        let ask = |ifindex| control::status(ifindex).unwrap();
        (ask(left), ask(right))
    });
    assert_eq!(report.fault, None);
    // A bridge's direction leaves by one interface and comes in by the other.
    let (forth, same) = (towards(&right, Heading::Egress), towards(&left, Heading::Ingress));
    assert_eq!((forth.device.as_str(), forth.peer.as_deref()), ("right", Some("left")));
    assert_eq!((same.device.as_str(), same.peer.as_deref()), ("left", Some("right")));
    for status in [&forth, &same] {
        assert_eq!(status.engine, EngineKind::Userspace);
        assert_eq!((status.scheduler.as_str(), status.link.rate), ("efd", Rate(50_000_000)));
        assert_eq!(status.lanes.len(), 2);
        assert!(status.sent_packets() >= 50, "{status:?}");
        assert!(status.lanes[0].sojourn.packets() == status.lanes[0].sent_packets);
        let process = status.process.as_ref().unwrap();
        assert_eq!(process.pid, std::process::id());
        assert!(process.received.packets >= 50 && process.lost_in_kernel == 0, "{process:?}");
        let seen = status.seen.as_ref().unwrap();
        for flows in [&seen.biggest_flows, &seen.newest_flows] {
            let flow = flows.iter().find(|flow| flow.flow.ends_with(" udp")).unwrap();
            assert!(flow.flow.contains(&format!("> {B4}:")), "{}", flow.flow);
            assert_eq!(flow.sent.packets, 50);
        }
    }
    let back = towards(&left, Heading::Egress);
    assert_eq!((back.scheduler.as_str(), back.lanes.len()), ("fq-codel", 1));
}

#[test]
fn it_changes_as_it_runs_all_of_it_or_nothing() {
    let Some(lab) = Lab::new() else { return };
    let (_, report) = while_live(&lab, |left, right| {
        let change = |ifindex, changes: Changes| control::change(ifindex, &changes);
        let now = |ifindex, heading| towards(&control::status(ifindex).unwrap(), heading);
        let changes = Changes {
            rate: Some(Rate(7_000_000)),
            ingress_rate: Some(Rate::UNLIMITED),
            overhead: Some("ip+38,ptm".parse().unwrap()),
            burst_time: Some(sched::Nanos::from_millis(3)),
            ..Changes::default()
        };
        change(right, changes).unwrap();
        let (forth, back) = (now(right, Heading::Egress), now(right, Heading::Ingress));
        assert_eq!((forth.link.rate, back.link.rate), (Rate(7_000_000), Rate::UNLIMITED));
        assert_eq!((forth.framing.overhead, back.framing.overhead), (24, 24));
        assert_eq!(forth.link.overhead.to_string(), "ip+38,ptm");
        assert_eq!(forth.link.burst_time, sched::Nanos::from_millis(3));
        assert_eq!(now(left, Heading::Ingress).link.rate, Rate(7_000_000), "the same direction");
        talk(&lab);

        // What no live link can meet changes nothing, not even the rate.
        let (scheduler, rate) = (Some("srpt".to_owned()), Some(Rate(1_000_000)));
        let refused = change(right, Changes { scheduler, rate, ..Changes::default() }).unwrap_err();
        assert!(refused.is_usage(), "{refused}");
        assert!(refused.to_string().contains("srpt needs the size of a flow"), "{refused}");
        let forth = now(right, Heading::Egress);
        assert_eq!((forth.scheduler.as_str(), forth.link.rate), ("efd", Rate(7_000_000)));

        // Parameters of the same discipline, and another one in the place of the other.
        let scheduler = Some("efd:threshold=3packets".to_owned());
        change(right, Changes { scheduler, ..Changes::default() }).unwrap();
        for heading in [Heading::Egress, Heading::Ingress] {
            assert_eq!(now(right, heading).scheduler, "efd:threshold=3packets");
        }
        talk(&lab);

        for (scheduler, word) in [("nope", "no discipline"), ("efd:limit=0packets", "limit=0")] {
            let scheduler = Some(scheduler.to_owned());
            let refused = change(right, Changes { scheduler, ..Changes::default() }).unwrap_err();
            assert!(refused.is_usage() && refused.to_string().contains(word), "{refused}");
        }
        let refused = change(left, Changes { rate: Some(Rate(0)), ..Changes::default() });
        assert!(refused.unwrap_err().to_string().contains("rate 0"));
    });
    assert_eq!(report.fault, None);
}

#[test]
fn one_engine_holds_an_interface_until_it_ends() {
    let Some(lab) = Lab::new() else { return };
    let ((left, right), _) = while_live(&lab, |left, right| {
        let second =
            Forwarder::bridge("right", "left", link("efd", 1000), link("efd", 1000), Io::Packet);
        assert!(matches!(second, Err(EngineError::Taken { .. })));
        (left, right)
    });
    lab.middle
        .run(|| {
            for ifindex in [left, right] {
                assert!(matches!(control::status(ifindex), Err(ControlError::Nobody)));
                assert!(matches!(control::stop(ifindex), Err(ControlError::Nobody)));
            }
            let again = Forwarder::bridge(
                "right",
                "left",
                link("efd", 1000),
                link("efd", 1000),
                Io::Packet,
            );
            assert!(again.is_ok());
        })
        .unwrap();
}

#[test]
fn nonsense_and_silence_on_its_socket_do_it_no_harm() {
    let Some(lab) = Lab::new() else { return };
    while_live(&lab, |left, _| {
        let connect = || UnixStream::connect_addr(&raw(left)).unwrap();
        for nonsense in ["{}\n", "hello\n", "{\"request\":\"dance\"}\n", "\n", "\u{0}\n"] {
            let mut stream = connect();
            stream.write_all(nonsense.as_bytes()).unwrap();
            let mut answer = String::new();
            BufReader::new(stream).read_line(&mut answer).unwrap();
            assert!(answer.contains("\"refused\""), "{nonsense:?}: {answer}");
        }
        // Those that say nothing, an end, half a line, or too long a one, get no answer.
        let (silent, ended) = (connect(), connect());
        drop(ended);
        let mut half = connect();
        half.write_all(b"{\"request\":").unwrap();
        half.shutdown(std::net::Shutdown::Write).unwrap();
        let mut endless = connect();
        thread::spawn(move || {
            // It is cut off.
            let _ = endless.write_all(&vec![b' '; 4 << 20]);
        });
        let mut rest = Vec::new();
        (&half).read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty());
        let patient = (0..5).find_map(|_| control::status(left).ok());
        assert_eq!(patient.unwrap().len(), 2, "it answers again");
        drop(silent);
    });
}

/// Makes the calling thread that of an ordinary user.
fn become_nobody() {
    let nobody = 65534;
    // SAFETY: no pointers; the raw call changes this thread alone.
    assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, nobody, nobody, nobody) }, 0);
}

#[test]
fn an_ordinary_user_is_not_answered() {
    let Some(lab) = Lab::new() else { return };
    while_live(&lab, |left, _| {
        thread::scope(|scope| {
            let ask = scope.spawn(|| {
                become_nobody();
                (control::status(left), control::stop(left))
            });
            let (status, stop) = ask.join().unwrap();
            for refused in [status.map(|_| ()), stop.map(|_| ())] {
                let refused = refused.unwrap_err().to_string();
                assert!(refused.contains("only root"), "{refused}");
            }
        });
        assert!(control::status(left).is_ok());
    });
}

#[test]
fn who_is_no_engine_is_not_believed() {
    let Ok(namespace) = Namespace::new() else {
        eprintln!("SKIPPED, nothing was tested: no namespaces");
        return;
    };
    let in_there = || {
        let hold = |ifindex| UnixListener::bind_addr(&raw(ifindex)).unwrap();
        thread::scope(|scope| {
            // Another user has taken the name.
            let stranger = scope.spawn(|| {
                become_nobody();
                hold(100)
            });
            let _stranger = stranger.join().unwrap();
            for refused in [control::status(100).map(|_| ()), control::stop(100).map(|_| ())] {
                let refused = refused.unwrap_err();
                assert!(matches!(refused, ControlError::Stranger { uid: 65534, .. }), "{refused}");
            }
            // One that is stuck.
            let _silent = hold(101);
            assert!(matches!(control::status(101), Err(ControlError::Silent { .. })));
            // One of another version.
            let other = hold(102);
            scope.spawn(move || {
                let (mut stream, _) = other.accept().unwrap();
                stream.write_all(b"{\"answer\":\"music\"}\n").unwrap();
            });
            let refused = control::status(102).unwrap_err();
            assert!(matches!(refused, ControlError::Foreign { .. }), "{refused}");
        });
    };
    namespace.run(in_there).unwrap();
}
