//! Under live TCP, through a shaped `efd`: at every event there are no more flow entries than
//! queued packets; no flow is reordered; what came in is what went out, was dropped or is queued,
//! and `tc` says the same; each second carries the rate.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use engine::LinkSettings;
use engine::buffers::Buffers;
use engine::io::{BATCH, FrameIo};
use engine::kernel::testing::TestHooks;
use engine::kernel::{Instance, Registered, compose, load};
use engine::packet_socket::PacketSocket;
use netdev::link::{Home, Links};
use netdev::netns::Namespace;
use sched::{Nanos, Rate, Spec};

use super::device::run_command;

const KIND: &str = "sllive";
const NEAR: &str = "near";
const NEAR_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const FAR_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const BULK_FLOWS: usize = 4;
const SHORT_BYTES: usize = 20_000;
/// Records that the kernel keeps, and places for releases.
const RECORDS: u64 = 4096;
/// Left out of all windows: connections are still being made.
const WARM_UP: Duration = Duration::from_secs(2);
/// Of a packet on the link.
const MOST_BYTES: u64 = 1514;

pub(crate) fn run(words: &[String]) -> Result<()> {
    let seconds = match words {
        [] => 6,
        [seconds] => seconds.parse().context("live takes a number of seconds")?,
        _ => bail!("live takes a number of seconds"),
    };
    for rate in [1_000_000, 20_000_000, 100_000_000] {
        // At the lowest rate a queue of 300 packets is more than three seconds long.
        let limit = if rate < 10_000_000 { 60 } else { 300 };
        let spec: Spec = format!("efd:limit={limit}packets,low-share=0.1").parse()?;
        at_rate(&spec, rate, seconds).with_context(|| format!("{spec} at {rate} bit/s"))?;
    }
    Ok(())
}

fn at_rate(spec: &Spec, rate: u64, seconds: u64) -> Result<()> {
    let far = Namespace::new()?;
    let mut links = Links::open()?;
    links.add_veth(NEAR, "far", Home::Namespace(&far))?;
    links.add_address(NEAR, NEAR_ADDRESS.into(), 24)?;
    far.run(|| -> Result<()> {
        let mut links = Links::open()?;
        links.offloads_off("far")?;
        links.set_up("far")?;
        Ok(links.add_address("far", FAR_ADDRESS.into(), 24)?)
    })??;
    links.offloads_off(NEAR)?;
    links.set_up(NEAR)?;
    let burst_time = Nanos::from_millis(5);
    let link = LinkSettings { rate: Rate(rate), burst_time, ..LinkSettings::default() };
    let hooks = TestHooks { key_seed: 1, seed: 1, only_slow_parser: false, recorded: true };
    let registered = load(KIND, &compose(spec, &link.into())?, 1, Some(hooks))?;
    let let_out = |packets| (0..RECORDS).try_for_each(|n| registered.let_out(0, n, packets));
    let_out(u32::MAX)?;
    run_command(&format!("tc qdisc replace dev {NEAR} root {KIND}"))?;
    let ifindex = links.get(NEAR)?.index;
    let instance = Instance::find(ifindex)?.context("the qdisc is not found")?;

    // A failure ends the threads as well.
    let stop = AtomicBool::new(false);
    let listener = far.run(|| TcpListener::bind((FAR_ADDRESS, 0)))??;
    let server = listener.local_addr()?;
    let far_index = far.run(|| anyhow::Ok(Links::open()?.get("far")?.index))??;
    let sniffer = far.run(|| PacketSocket::receiver(far_index))??;
    let mut watch = Watch::new(&registered);
    let order = thread::scope(|scope| -> Result<Order> {
        scope.spawn(|| serve(&listener, &stop));
        let order = scope.spawn(|| check_order(sniffer, &stop));
        for _ in 0..BULK_FLOWS {
            scope.spawn(|| send_bulk(server, &stop));
        }
        scope.spawn(|| send_short(server, &stop));
        let result = watch.run(rate, Duration::from_secs(seconds)).and_then(|()| {
            // From the next arrival on nothing leaves, so that a backlog can be looked at.
            let_out(0)?;
            let result = check_conservation(&instance);
            let_out(u32::MAX)?;
            result
        });
        stop.store(true, Relaxed);
        // Ends the server's wait for connections.
        let _ = far.run(|| TcpStream::connect(server));
        let order = order.join().map_err(|_| anyhow::anyhow!("the sniffer panicked"))?;
        result.and(order)
    })?;
    watch.report(rate);
    println!("  {} flows, {} packets, none out of order", order.last.len(), order.packets);
    ensure!(order.packets > 100, "too few packets were seen");
    run_command(&format!("tc qdisc del dev {NEAR} root"))?;
    run_command(&format!("ip link del {NEAR}")).map(|_| ())
}

/// Reads every connection to its end.
fn serve(listener: &TcpListener, stop: &AtomicBool) {
    thread::scope(|scope| {
        while let Ok((stream, _)) = listener.accept() {
            if stop.load(Relaxed) {
                break;
            }
            scope.spawn(|| read(stream, stop));
        }
    });
}

fn read(mut stream: TcpStream, stop: &AtomicBool) {
    let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
    let mut buffer = [0; 65_536];
    while !stop.load(Relaxed) {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

/// One connection that sends for as long as it may.
fn send_bulk(server: SocketAddr, stop: &AtomicBool) {
    let Ok(mut stream) = TcpStream::connect(server) else { return };
    // So that it sees `stop` though nothing leaves.
    let _ = stream.set_write_timeout(Some(Duration::from_millis(200)));
    let data = [0; 65_536];
    while !stop.load(Relaxed) {
        let _ = stream.write(&data);
    }
    let _ = stream.shutdown(Shutdown::Both);
}

/// One short connection after another.
fn send_short(server: SocketAddr, stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        let connected = TcpStream::connect_timeout(&server, Duration::from_millis(500));
        let Ok(mut stream) = connected else { continue };
        let _ = stream.set_write_timeout(Some(Duration::from_millis(500)));
        let _ = stream.write_all(&[0; SHORT_BYTES]);
        let _ = stream.shutdown(Shutdown::Write);
        thread::sleep(Duration::from_millis(20));
    }
}

/// The order in which flows' packets came.
#[derive(Default)]
struct Order {
    /// The last IP identification of a flow, by ports.
    last: HashMap<(u16, u16), u16>,
    packets: u64,
}

impl Order {
    /// A connection numbers what it sends, retransmissions as well, in the identification field;
    /// 0 and resets come from outside of a connection.
    fn packet(&mut self, frame: &[u8]) -> Result<()> {
        const RST: u8 = 4;
        let word = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
        let is_tcp = frame.len() >= 54 && word(12) == 0x0800 && frame[14] == 0x45 && frame[23] == 6;
        if !is_tcp || word(18) == 0 || frame[47] & RST != 0 {
            return Ok(());
        }
        let (flow, id) = ((word(34), word(36)), word(18));
        self.packets += 1;
        if let Some(last) = self.last.insert(flow, id) {
            let ahead = id.wrapping_sub(last);
            ensure!(ahead > 0 && ahead < 1 << 15, "flow {flow:?}: packet {id} came after {last}");
        }
        Ok(())
    }
}

/// Watches the far end of the link until told to stop.
fn check_order(mut sniffer: PacketSocket, stop: &AtomicBool) -> Result<Order> {
    let mut buffers = Buffers::new(2048, BATCH)?;
    let mut received = Vec::new();
    let mut order = Order::default();
    while !stop.load(Relaxed) {
        sniffer.receive(&mut buffers, &mut received)?;
        if received.is_empty() {
            thread::sleep(Duration::from_millis(2));
        }
        for buffer in received.drain(..) {
            order.packet(buffers.frame(buffer))?;
            buffers.give(buffer);
        }
    }
    Ok(order)
}

/// What the interface has sent.
fn carried_bytes() -> Result<u64> {
    let path = format!("/sys/class/net/{NEAR}/statistics/tx_bytes");
    Ok(std::fs::read_to_string(&path).context(path)?.trim().parse()?)
}

/// Follows the records.
struct Watch<'r> {
    registered: &'r Registered,
    seen: u64,
    queued: i64,
    most_queued: i64,
    most_flows: i64,
    /// When the current window began and what it has carried; it begins anew when the queue runs
    /// empty.
    window: Option<(u64, u64)>,
    sent_bytes: u64,
    /// What the link carried in windows of a second throughout which packets were queued, in bit/s.
    windows: Vec<f64>,
}

impl<'r> Watch<'r> {
    fn new(registered: &'r Registered) -> Self {
        Self {
            registered,
            seen: 0,
            queued: 0,
            most_queued: 0,
            most_flows: 0,
            window: None,
            sent_bytes: 0,
            windows: Vec::new(),
        }
    }

    /// Looks at all events for some time.
    fn run(&mut self, rate: u64, time: Duration) -> Result<()> {
        let begin = Instant::now();
        let before = carried_bytes()?;
        while begin.elapsed() < WARM_UP + time {
            thread::sleep(Duration::from_millis(5));
            self.drain(rate as f64, begin.elapsed() >= WARM_UP)?;
        }
        ensure!(self.windows.len() >= 3, "only {} full windows of a second", self.windows.len());
        let carried = carried_bytes()? - before;
        let beyond = carried.abs_diff(self.sent_bytes);
        // Packets that left between the last look at the events and that at the interface.
        ensure!(
            beyond <= rate / 8 / 20 + 20 * MOST_BYTES,
            "the interface carried {carried} bytes, the records say {}",
            self.sent_bytes
        );
        Ok(())
    }

    /// A packet has left: a window ends with the first one after a second, whose own bytes belong
    /// to the next.
    fn left(&mut self, now: u64, bytes: u32, rate: f64) -> Result<()> {
        let (begin, carried) = *self.window.get_or_insert((now, 0));
        let seconds = (now - begin) as f64 / 1e9;
        self.window = Some((begin, carried + u64::from(bytes)));
        if seconds >= 1.0 {
            let found = carried as f64 * 8.0 / seconds;
            ensure!(
                (found - rate).abs() <= rate * 0.01,
                "the link carried {found:.0} bit/s in {seconds:.3} s"
            );
            self.windows.push(found);
            self.window = Some((now, bytes.into()));
        }
        Ok(())
    }

    /// Looks at the events since the last call.
    fn drain(&mut self, rate: f64, is_warm: bool) -> Result<()> {
        let (_, events, _) = self.registered.progress(0);
        ensure!(events - self.seen < RECORDS, "records were overwritten before they were read");
        for n in self.seen..events {
            let event = self.registered.record(0, n)?;
            // The flow of an arrival that pushes others out is there before its packet.
            let (change, arriving) = match event.kind {
                0 => (1, 0),
                1 => (-1, 0),
                3 => (-1, 1),
                _ => (0, 0),
            };
            self.queued += change;
            if event.kind == 1 {
                self.sent_bytes += u64::from(event.size);
                if is_warm {
                    self.left(event.now, event.size, rate)?;
                }
            }
            if self.queued == 0 {
                self.window = None;
            }
            let flows = i64::from(event.flows);
            ensure!(
                flows <= self.queued + arriving,
                "event {n}: {flows} flow entries for {} queued packets",
                self.queued
            );
            self.most_flows = self.most_flows.max(flows);
            self.most_queued = self.most_queued.max(self.queued);
        }
        self.seen = events;
        Ok(())
    }

    fn report(&self, rate: u64) {
        let least = self.windows.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.windows.iter().copied().fold(0.0, f64::max);
        println!(
            "{rate} bit/s: {} windows of 1 s carried {:.3} to {:.3} of it; {} events, at most {} \
             flow entries and {} queued packets",
            self.windows.len(),
            least / rate as f64,
            most / rate as f64,
            self.seen,
            self.most_flows,
            self.most_queued
        );
    }
}

/// With a backlog that stands still: what came is what went, was dropped or waits; `tc` agrees.
fn check_conservation(instance: &Instance) -> Result<()> {
    let mut queued = 0;
    for _ in 0..200 {
        thread::sleep(Duration::from_millis(20));
        let before = instance.status();
        let shown = run_command(&format!("tc -s -j qdisc show dev {NEAR} root"))?;
        let status = instance.status();
        let packets = |of: fn(&engine::status::LaneCounters) -> u64| -> u64 {
            status.lanes.iter().map(of).sum()
        };
        queued = packets(|lane| lane.backlog_packets);
        if before != status || queued == 0 {
            continue;
        }
        let enqueued = packets(|lane| lane.enqueued_packets);
        let (sent, pushed_out) =
            (packets(|lane| lane.sent_packets), packets(|lane| lane.pushed_out));
        ensure!(enqueued == sent + pushed_out + queued, "nothing is conserved: {status:?}");
        ensure!(
            status.qdisc.as_ref().is_some_and(|qdisc| qdisc.lost == 0),
            "packets got lost: {status:?}"
        );
        // tc's `packets` are segments.
        let shown: serde_json::Value = serde_json::from_str(&shown)?;
        let shown = |name: &str| shown[0][name].as_u64().with_context(|| format!("tc: no {name}"));
        for (name, ours) in [
            ("qlen", queued),
            ("backlog", packets(|lane| lane.backlog_bytes)),
            ("drops", packets(|lane| lane.full) + pushed_out),
            ("bytes", packets(|lane| lane.sent_bytes)),
        ] {
            ensure!(shown(name)? == ours, "tc says {name} {}, the qdisc {ours}", shown(name)?);
        }
        println!(
            "  {enqueued} enqueued = {sent} sent + {pushed_out} pushed out + {queued} queued, and \
             tc's qlen, backlog, drops and bytes are the qdisc's"
        );
        return Ok(());
    }
    bail!("no moment without arrivals to look at a backlog of {queued}")
}
