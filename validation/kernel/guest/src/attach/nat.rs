//! Clients behind NAT on this machine: each has its share of the link, however many flows it has,
//! since the program in front of `fq-lanes` asks conntrack for them.

use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use netdev::link::{Home, Links};
use netdev::netns::Namespace;
use serde_json::Value;

use super::machine::Machine;
use super::{Path, keep_account_of_programs, print_cost_of, run_parts, succeed};
use crate::command::run as shell;

const CLIENTS: [&str; 2] = ["10.8.0.1", "10.8.0.2"];
/// How many flows each of them has.
const FLOWS: [usize; 2] = [8, 1];
/// Both are offered more than half of 10 Mbit/s.
const OFFERED: [u64; 2] = [2_000_000, 8_000_000];
const SIZE: usize = 1_000;
const HELLO: [u8; 1] = [1];
const TIME: Duration = Duration::from_secs(3);
const SERVERS: [&str; 2] = ["10.9.0.2:100", "10.9.0.2:101"];
const ATTACH: &str = "attach v0 --rate 10mbit --ingress 10mbit --engine kernel";

pub(crate) fn run(names: &[String]) -> Result<()> {
    run_parts(&[("sent", sent), ("received", received), ("without", without)], names)
}

/// A router, which translates for two clients.
struct Router {
    inside: Namespace,
    path: Path,
}

impl Router {
    fn new() -> Result<Self> {
        let path = Path::new()?;
        let inside = Namespace::new()?;
        Links::open()?.add_veth("u0", "u1", Home::Namespace(&inside))?;
        shell("ip addr add 10.8.0.254/24 dev u0")?;
        shell("ip link set u0 up")?;
        shell("sysctl -w net.ipv4.ip_forward=1")?;
        // So that it is known on which side of the device clients are.
        shell("ip route add default via 10.9.0.2")?;
        inside.run(|| -> Result<()> {
            for at in CLIENTS {
                shell(&format!("ip addr add {at}/24 dev u1"))?;
            }
            shell("ip link set u1 up")?;
            shell("ip route add default via 10.8.0.254").map(drop)
        })??;
        Ok(Self { inside, path })
    }

    fn translates(&self) -> Result<()> {
        shell("nft add table ip nat")?;
        shell("nft add chain ip nat out { type nat hook postrouting priority srcnat; }")?;
        shell("nft add rule ip nat out oifname v0 masquerade").map(drop)
    }

    /// Sockets of both clients and, for each, one of its server with the address that it has seen.
    fn flows(&self) -> Result<Vec<Flow>> {
        let mut flows = Vec::new();
        for client in 0..CLIENTS.len() {
            let server = self.path.far.run(|| UdpSocket::bind(SERVERS[client]))??;
            server.set_read_timeout(Some(Duration::from_secs(5)))?;
            for _ in 0..FLOWS[client] {
                let near = self.inside.run(|| UdpSocket::bind((CLIENTS[client], 0)))??;
                near.send_to(&HELLO, SERVERS[client])?;
                let seen = hello_from(&server)?;
                flows.push(Flow { client, near, server: server.try_clone()?, seen });
            }
        }
        Ok(flows)
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = shell("nft delete table ip nat");
        let _ = shell("sysctl -w net.ipv4.ip_forward=0");
        let _ = shell("ip route del default");
        let _ = shell("ip link del u0");
    }
}

/// Who says hello; what is still queued of flows before is let pass.
fn hello_from(server: &UdpSocket) -> Result<SocketAddr> {
    loop {
        let (bytes, from) = server.recv_from(&mut [0; SIZE]).context("no hello")?;
        if bytes == HELLO.len() {
            return Ok(from);
        }
    }
}

struct Flow {
    client: usize,
    near: UdpSocket,
    server: UdpSocket,
    seen: SocketAddr,
}

/// The part of all that arrives which is the second client's, if all flows send.
fn share_of_second(flows: &[Flow], upward: bool) -> Result<f64> {
    let begin = Instant::now();
    let mut arrived = [0u64; 2];
    thread::scope(|scope| -> Result<()> {
        for Flow { client, near, server, seen } in flows {
            let (from, to) =
                if upward { (near, SERVERS[*client].parse()?) } else { (server, *seen) };
            let apart = Duration::from_nanos(SIZE as u64 * 8_000_000_000 / OFFERED[*client]);
            scope.spawn(move || {
                for number in 0.. {
                    let due = apart * number;
                    if due > TIME {
                        break;
                    }
                    thread::sleep(due.saturating_sub(begin.elapsed()));
                    let _ = from.send_to(&[2; SIZE], to);
                }
            });
        }
        // Of what is sent there is one socket for each server, of what is received one for each flow.
        let last = |at: usize| flows.get(at + 1).is_none_or(|next| next.client != flows[at].client);
        let ends = (0..flows.len()).filter(|at| !upward || last(*at));
        let counting: Vec<_> = ends
            .map(|at| {
                let Flow { client, near, server, .. } = &flows[at];
                let end = if upward { server } else { near };
                (*client, scope.spawn(move || count(end, begin)))
            })
            .collect();
        for (client, counted) in counting {
            arrived[client] += counted.join().expect("no panic")?;
        }
        Ok(())
    })?;
    println!("packets that arrived: {arrived:?}");
    let all = arrived[0] + arrived[1];
    ensure!(all > 2_000, "the link was not full: {arrived:?}");
    Ok(arrived[1] as f64 / all as f64)
}

/// Packets that arrive while they are sent.
fn count(end: &UdpSocket, begin: Instant) -> Result<u64> {
    end.set_read_timeout(Some(Duration::from_millis(100)))?;
    let mut packets = 0;
    while begin.elapsed() < TIME {
        packets += u64::from(end.recv_from(&mut [0; SIZE]).is_ok());
    }
    Ok(packets)
}

fn must_be_apart(router: &Router, upward: bool) -> Result<()> {
    let share = share_of_second(&router.flows()?, upward)?;
    ensure!((0.45..0.55).contains(&share), "the second client has {share:.2} of the link");
    Ok(())
}

/// What leaves, and the same without the program.
fn sent() -> Result<()> {
    let router = Router::new()?;
    router.translates()?;
    keep_account_of_programs()?;
    let before = Machine::now()?;
    let said = succeed(ATTACH)?;
    ensure!(said.words.matches("behind NAT").count() == 2, "{}", said.words);
    must_be_apart(&router, true)?;
    clients_have_names()?;
    print_cost_of("shortlane_ecn_nat")?;
    shell("tc filter del dev v0 egress")?;
    let share = share_of_second(&router.flows()?, true)?;
    ensure!(share < 0.3, "without the program the second client has {share:.2} of the link");
    succeed("detach v0")?;
    before.must_be_back()
}

/// `show` tells of the clients with the addresses that they have behind NAT.
fn clients_have_names() -> Result<()> {
    let document: Value = serde_json::from_str(&succeed("show v0 --json")?.output)?;
    let all = document["attached"].as_array().context("no list")?;
    let egress = all.iter().find(|one| one["direction"] == "egress").context("no egress")?;
    let hosts = egress["busiest_hosts"].as_array().context("no hosts")?;
    for (client, flows) in CLIENTS.iter().zip(FLOWS) {
        let host = hosts.iter().find(|host| host["host"] == *client);
        let host = host.with_context(|| format!("no {client} in {hosts:#?}"))?;
        ensure!(host["flows"] == flows, "{host:#}");
    }
    Ok(())
}

/// What arrives.
fn received() -> Result<()> {
    let router = Router::new()?;
    router.translates()?;
    let before = Machine::now()?;
    succeed(ATTACH)?;
    must_be_apart(&router, false)?;
    succeed("detach v0")?;
    before.must_be_back()
}

/// A machine that does not translate asks nobody, and has the clients' own addresses.
fn without() -> Result<()> {
    let router = Router::new()?;
    router.path.far.run(|| shell("ip route add 10.8.0.0/24 via 10.9.0.1"))??;
    succeed(ATTACH)?;
    must_be_apart(&router, true)?;
    must_be_apart(&router, false).context("received")?;
    succeed("detach v0").map(drop)
}
