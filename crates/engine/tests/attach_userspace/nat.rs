//! Clients behind NAT on the machine that the engine runs on.

use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use engine::control;
use engine::kernel::inspect::machine;
use engine::status::Status;
use engine::userspace::HookKind;
use netdev::link::{Home, Links};
use netdev::netns::{Namespace, set_parameter};

use super::hosts::{A4, B4, Hosts, Stop, ip, link};

const CLIENTS: [&str; 2] = ["10.7.0.2", "10.7.0.3"];

/// `a` of the hosts translates for this one.
fn clients(hosts: &Hosts) -> Namespace {
    let behind = Namespace::new().unwrap();
    let cable = || {
        let mut links = Links::open().unwrap();
        links.add_veth("lan", "eth0", Home::Namespace(&behind)).unwrap();
        links.set_up("lan").unwrap();
        links.add_address("lan", ip("10.7.0.1"), 24).unwrap();
        set_parameter("ipv4.ip_forward", "1").unwrap();
    };
    hosts.a.run(cable).unwrap();
    let address = || {
        let mut links = Links::open().unwrap();
        links.set_up("eth0").unwrap();
        CLIENTS.iter().for_each(|at| links.add_address("eth0", ip(at), 24).unwrap());
        links.add_default_route(ip("10.7.0.1")).unwrap();
    };
    behind.run(address).unwrap();
    Hosts::says(&hosts.a, "nft add table ip nat");
    for (chain, hook, rule) in [
        ("out", "postrouting priority srcnat", "oifname eth0 masquerade"),
        ("in", "prerouting priority dstnat", "iifname eth0 udp dport 99 dnat to 10.7.0.3"),
    ] {
        let hook = format!("nft add chain ip nat {chain} {{ type nat hook {hook}; }}");
        Hosts::says(&hosts.a, &hook);
        Hosts::says(&hosts.a, &format!("nft add rule ip nat {chain} {rule}"));
    }
    behind
}

/// Why nothing can be told of clients here.
fn obstacle() -> Option<&'static str> {
    if Command::new("nft").arg("--version").output().is_err() {
        return Some("there is no nft");
    }
    let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let asks = symbols.lines().any(|line| line.contains(" bpf_skb_ct_lookup"));
    (!asks || !machine().tcx).then_some("the kernel has no conntrack for programs, or no TCX")
}

/// Sends, and waits for it.
fn send(from: &UdpSocket, to: SocketAddr, at: &UdpSocket) -> SocketAddr {
    from.send_to(&[1; 100], to).unwrap();
    at.recv_from(&mut [0; 100]).unwrap().1
}

#[test]
fn clients_behind_nat_are_told_apart() {
    let Some(hosts) = Hosts::new() else { return };
    if let Some(obstacle) = obstacle() {
        return eprintln!("SKIPPED, nothing was tested: {obstacle}");
    }
    let behind = clients(&hosts);
    let index = hosts.a.run(|| Links::open().unwrap().get("eth0").unwrap().index).unwrap();
    let config = |hosts| link(&format!("fq-lanes:hosts={hosts}"), 100_000_000);
    let engine = hosts.attach(config("source"), config("destination"), HookKind::Auto);
    let server = Hosts::udp(&hosts.b, B4);
    let stop = AtomicBool::new(false);
    let statuses: Vec<Status> = thread::scope(|scope| {
        let running = scope.spawn(|| engine.run_live(&stop, || {}));
        let stopping = Stop(&stop);
        thread::sleep(Duration::from_millis(100));
        for at in CLIENTS {
            let client = Hosts::udp(&behind, at);
            let seen = send(&client, server.local_addr().unwrap(), &server);
            assert_eq!(seen.ip(), ip(A4), "it is translated");
            send(&server, seen, &client);
        }
        // One that begins outside; conntrack knows it when its second packet comes.
        let inside = behind.run(|| UdpSocket::bind("10.7.0.3:99")).unwrap().unwrap();
        let port: SocketAddr = format!("{A4}:99").parse().unwrap();
        let seen = send(&server, port, &inside);
        send(&server, port, &inside);
        assert_eq!(send(&inside, seen, &server).port(), 99);
        let statuses = hosts.a.run(|| control::status(index)).unwrap().unwrap();
        drop(stopping);
        running.join().unwrap().unwrap();
        statuses
    });
    let ends = |way: usize, end: usize| {
        assert!(statuses[way].process.as_ref().unwrap().nat_revealed);
        let seen = statuses[way].seen.as_ref().unwrap();
        let end =
            |flow: &str| flow.split(" > ").nth(end).unwrap().split(':').next().unwrap().into();
        let flows = seen.biggest_flows.iter().filter(|flow| flow.flow.ends_with(" udp"));
        let mut ends: Vec<String> = flows.map(|flow| end(&flow.flow)).collect();
        ends.sort();
        ends
    };
    let expected = [CLIENTS[0], CLIENTS[1], CLIENTS[1]];
    assert_eq!(ends(0, 0), expected, "who sends what leaves");
    assert_eq!(ends(1, 1), expected, "for whom what arrives is");
    for status in &statuses {
        let shown = &status.seen.as_ref().unwrap().busiest_hosts;
        let has = |at: &&str| shown.iter().any(|host| host.host == *at && host.flows > 0);
        assert!(CLIENTS.iter().all(has), "{shown:?}");
    }
    assert_eq!(hosts.left_behind(), [""; 0]);
}
