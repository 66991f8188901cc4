//! Behind a narrow link: loss and queueing delay show where they belong.

use std::sync::mpsc;
use std::thread;

use lab::traffic::{
    Cause, Cbr, ClientReport, ConnectionKind, Plan, ServerReport, Tcp, cbr_packets, run_client,
    run_server,
};
use nix::unistd::gettid;

use crate::setup::{MS, command, enter_namespace, plan, stream, transfer};

/// Runs both roles in namespaces of their own, with a router between them that sends to the
/// client at 10 Mbit/s from a drop-tail queue of 60 kB: 48 ms.
///
/// The queue is not on the sender's host: there TCP sees a drop as a refusal to send.
fn run_across_router(plan: &Plan) -> (ServerReport, ClientReport) {
    std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
    thread::scope(|scope| {
        let (ready, is_ready) = mpsc::channel();
        let server = beside_router(scope, "2", move || {
            run_server(plan, || ready.send(()).unwrap()).unwrap()
        });
        let client = beside_router(scope, "1", move || {
            is_ready.recv().unwrap();
            run_client(plan, || {}).unwrap()
        });
        command("tc qdisc add dev to1 root tbf rate 10mbit burst 5kb limit 60000");
        (server.join().unwrap(), client.join().unwrap())
    })
}

/// Starts `role` in a fresh namespace at 10.0.`net`.1, linked to the calling thread's.
fn beside_router<'scope, R: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    net: &'static str,
    role: impl FnOnce() -> R + Send + 'scope,
) -> thread::ScopedJoinHandle<'scope, R> {
    let (entered, has_entered) = mpsc::channel();
    let (linked, is_linked) = mpsc::channel();
    let host = scope.spawn(move || {
        enter_namespace().unwrap();
        entered.send(gettid()).unwrap();
        is_linked.recv().unwrap();
        command(&format!("ip addr add 10.0.{net}.1/24 dev eth0"));
        command("ip link set eth0 up");
        command(&format!("ip route add default via 10.0.{net}.254"));
        role()
    });
    let host_thread = has_entered.recv().unwrap();
    command(&format!("ip link add to{net} type veth peer name eth0 netns {host_thread}"));
    command(&format!("ip addr add 10.0.{net}.254/24 dev to{net}"));
    command(&format!("ip link set to{net} up"));
    linked.send(()).unwrap();
    host
}

pub(crate) fn loss_and_queueing_show_in_both_reports() {
    let mut plan = plan(1500, 60_000);
    plan.epoch += 2000 * MS; // time to build the network
    (plan.server, plan.client) = ("10.0.2.1".parse().unwrap(), "10.0.1.1".parse().unwrap());
    plan.transfers = (0..20).map(|id| transfer(id, u64::from(id) * 70, 20_000)).collect();
    plan.downloads = Tcp::ALL.iter().zip(1..).map(|(tcp, id)| stream(id, *tcp, 0, 2000)).collect();
    let (start, stop) = (10 * MS, 2000 * MS);
    let name = "video".into();
    plan.cbr.push(Cbr { name, rate: units::Rate(500_000), packet_bytes: 1000, start, stop });
    let (server, client) = run_across_router(&plan);

    assert!(client.transfers.iter().all(|row| row.bytes == 20_000 && row.failure.is_none()));
    let mut lossy = 0;
    for row in server.connections.iter().filter(|row| row.kind == ConnectionKind::Transfer) {
        let info = row.info.unwrap();
        let [sent, again] = [info.bytes_sent.unwrap(), info.retransmissions.unwrap().into()];
        assert_eq!(sent > 20_000, again > 0, "{info:?}");
        assert!(sent <= 20_000 + again * 1448, "{info:?}");
        assert!(
            info.duplicates <= info.retransmissions,
            "the network duplicates nothing: {info:?}"
        );
        lossy += u32::from(again > 0);
    }
    assert!(lossy > 0, "a full queue dropped nothing");
    let delivered: u64 = client.downloads.iter().map(|row| row.received.total()).sum();
    // What 10 Mbit/s carry in the 2 s to the stop, and what the receivers had buffered.
    assert!((500_000..=2_500_000).contains(&delivered), "{delivered} bytes");

    let packets = cbr_packets(&server.cbr[0], &client.cbr[0]);
    assert_eq!(packets.len(), plan.cbr[0].packets() as usize);
    let received = packets.iter().filter(|packet| packet.received.is_some()).count();
    assert_eq!(received, client.cbr[0].arrivals.len());
    let longest = packets.iter().filter_map(|packet| packet.delay()).max().unwrap();
    assert!(longest > 20 * MS, "a queue of 48 ms that was full delayed nobody by 20 ms");
    assert!(!client.failures.contains_key(&Cause::HardStop.to_string()));
}
