//! All of it as an ordinary user: a user namespace is enough.
//!
//! A program of its own, as a process can get a user namespace only while it has one thread.

mod common;

use std::net::UdpSocket;
use std::time::Duration;

use common::{A4, B4, Lab, ip, link};
use netdev::netns;
use nix::sys::prctl;
use nix::unistd::{Gid, Uid, geteuid, setgid, setuid};

fn main() {
    if geteuid().is_root() {
        let nobody = 65534;
        setgid(Gid::from_raw(nobody)).unwrap();
        setuid(Uid::from_raw(nobody)).unwrap();
        // A process that changes its user may not write to its own /proc files otherwise.
        prctl::set_dumpable(true).unwrap();
    }
    if let Err(error) = netns::isolate() {
        let text = error.to_string();
        assert!(text.contains("run as root"), "no remedy is named: {text}");
        eprintln!("SKIPPED, nothing was tested: {text}");
        return;
    }
    assert!(geteuid().is_root(), "root within the namespace");
    let lab = Lab::new().expect("namespaces can be made in a namespace of one's own");
    let echo = lab.b.run(|| UdpSocket::bind((ip(B4), 0))).unwrap().unwrap();
    let client = lab.a.run(|| UdpSocket::bind((ip(A4), 0))).unwrap().unwrap();
    for socket in [&echo, &client] {
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    }
    let (answer, report) =
        lab.while_bridged(link("efd", 10_000_000), link("fifo", 10_000_000), || {
            client.send_to(b"question", echo.local_addr().unwrap()).unwrap();
            let mut packet = [0; 100];
            let (length, from) = echo.recv_from(&mut packet).unwrap();
            assert_eq!(&packet[..length], b"question");
            echo.send_to(b"answer", from).unwrap();
            let length = client.recv(&mut packet).unwrap();
            packet[..length].to_vec()
        });
    assert_eq!(answer, b"answer");
    assert_eq!(report.fault, None);
    println!("an ordinary user's engine has passed {} frames", report.directions[0].sent.packets);
}
