//! A device whose packets have no link header, as those of PPP and WireGuard.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::time::Duration;

use engine::Forwarder;
use netdev::link::Links;

use super::hooks;
use super::hosts::{Hosts, adds_up, came_through, ip, link, while_running};

nix::ioctl_write_ptr!(set_interface, b'T', 202, libc::c_int);

/// Makes `wan0`; what leaves by it can be read here, what is written here arrives by it.
fn make_device() -> File {
    let file = OpenOptions::new().read(true).write(true).open("/dev/net/tun").unwrap();
    // SAFETY: all zeros is a value of this plain C struct.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"wan0") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as i16;
    // SAFETY: the command reads and writes an `ifreq`.
    unsafe { set_interface(file.as_raw_fd(), (&raw mut request).cast()) }.unwrap();
    file
}

/// The packet as it comes back: addresses and ports change places, so that checksums stay right.
fn answer(packet: &[u8]) -> Vec<u8> {
    let mut answer = packet.to_vec();
    answer[12..16].copy_from_slice(&packet[16..20]);
    answer[16..20].copy_from_slice(&packet[12..16]);
    answer[20..22].copy_from_slice(&packet[22..24]);
    answer[22..24].copy_from_slice(&packet[20..22]);
    answer
}

#[test]
fn bare_ip_packets_pass_both_directions() {
    let Some(hosts) = Hosts::new() else { return };
    let mut far_end = hosts.a.run(make_device).unwrap();
    hosts
        .a
        .run(|| {
            let mut links = Links::open().unwrap();
            links.set_up("wan0").unwrap();
            links.add_address("wan0", ip("10.8.0.1"), 24).unwrap();
        })
        .unwrap();
    let socket = hosts.a.run(|| UdpSocket::bind("10.8.0.1:0")).unwrap().unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket.connect("10.8.0.2:7").unwrap();
    for hook in hooks() {
        let config = || link("efd", 10_000_000);
        let attach = || Forwarder::attach("wan0", config(), config(), hook);
        let engine = hosts.a.run(attach).unwrap().unwrap();
        let ((), report) = while_running(engine, || {
            let mut packet = [0; 2000];
            for number in 0..50 {
                socket.send(&[number; 100]).unwrap();
                // The host may have something to say of its own.
                let length = loop {
                    let length = far_end.read(&mut packet).unwrap();
                    if packet[0] >> 4 == 4 && packet[9] == 17 {
                        break length;
                    }
                };
                assert_eq!(packet[28..length], [number; 100]);
                far_end.write_all(&answer(&packet[..length])).unwrap();
                assert_eq!(socket.recv(&mut packet).unwrap(), 100);
                assert_eq!(packet[..100], [number; 100]);
            }
        });
        assert_eq!(report.fault, None);
        for direction in &report.directions {
            adds_up(direction);
            assert!(direction.sent.packets > 0, "{hook:?} {direction:#?}");
            assert!(came_through(direction).packets >= 50, "{hook:?} {direction:#?}");
            assert_eq!(direction.dropped().packets, 0, "{direction:#?}");
        }
    }
}
