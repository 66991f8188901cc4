//! TCP transfers from a list over a dumbbell, with nothing recorded but their ends: the twin of
//! `validation/ns3/dumbbell.cc` and `bench/sim/dumbbell.tcl`, for comparing speed.
//!
//! ```text
//! dumbbell FLOWS.csv [pairs=5] [access_mbit=100] [access_us=1000] [mbit=10] [us=1000]
//!          [buffer=300] [queue=fifo] [tcp=newreno-sack] [window=44] [limited_transmit=true]
//!          [cubic_friendly=false] [validate_window=false] [stop_s=100] [out=FILE]
//! ```
//!
//! Writes `name,value` lines; `cpu_s` is the run's user and system time, set-up excluded.

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::str::FromStr;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use sched::{Amount, Nanos, Rate, Spec};
use sim::{
    Connection, Context, FlowReport, Impairments, LinkConfig, LinkId, Network, NetworkError,
    NodeId, Queue, Recorder, Simulation, Source, TcpId,
};
use tcp::Recovery;
use workload::TransferList;

type Failure = Box<dyn Error>;

/// Arguments of the form `key=value`.
struct Arguments(HashMap<String, String>);

impl Arguments {
    /// Removes and reads one of them.
    fn take<T: FromStr>(&mut self, key: &str, default: T) -> Result<T, Failure> {
        match self.0.remove(key) {
            None => Ok(default),
            Some(text) => text.parse().map_err(|_| format!("{key}={text} is not accepted").into()),
        }
    }
}

struct Settings {
    pairs: usize,
    access: (u64, u64), // bit/s, ns
    bottleneck: (u64, u64),
    queue: Spec,
    tcp: tcp::Config,
    stop: Nanos,
    out: String,
}

fn settings(mut given: Arguments) -> Result<Settings, Failure> {
    let buffer = given.take("buffer", 300_u64)?;
    let queue: Spec = given.take("queue", String::from("fifo"))?.parse()?;
    let mut link = |rate: &str, delay: &str, mbit: u64| -> Result<_, Failure> {
        Ok((given.take(rate, mbit)? * 1_000_000, given.take(delay, 1000_u64)? * 1000))
    };
    let (access, bottleneck) = (link("access_mbit", "access_us", 100)?, link("mbit", "us", 10)?);
    let window = given.take("window", 44)?;
    let tcp = tcp_config(&given.take("tcp", String::from("newreno-sack"))?, window)?;
    let settings = Settings {
        pairs: given.take("pairs", 5)?,
        access,
        bottleneck,
        queue: queue.with_default("limit", &format!("{buffer}packets"))?,
        tcp: tcp::Config {
            limited_transmit: given.take("limited_transmit", tcp.limited_transmit)?,
            cubic_friendly: given.take("cubic_friendly", tcp.cubic_friendly)?,
            validate_window: given.take("validate_window", tcp.validate_window)?,
            ..tcp
        },
        stop: Nanos((given.take("stop_s", 100.0)? * 1e9) as u64),
        out: given.take("out", String::new())?,
    };
    match given.0.keys().next() {
        None => Ok(settings),
        Some(key) => Err(format!("{key} is not an argument of this program").into()),
    }
}

/// As `validation/ns3/dumbbell.cc` sets ns-3 up. The header is that of IPv4 and TCP with
/// timestamps, and the 2 bytes of PPP that ns-3 sends with every packet.
fn tcp_config(name: &str, window: u32) -> Result<tcp::Config, Failure> {
    let (preset, recovery) = match name {
        "newreno" => (tcp::Config::ns3_new_reno(), Recovery::NewReno),
        "newreno-sack" => (tcp::Config::ns3_new_reno(), Recovery::Sack),
        "cubic" => (tcp::Config::ns3(), Recovery::Sack),
        "cubic-no-hystart" => {
            let config =
                tcp::Config { slow_start_exit: tcp::SlowStartExit::Loss, ..tcp::Config::ns3() };
            (config, Recovery::Sack)
        }
        _ => {
            let accepted = "newreno, newreno-sack, cubic or cubic-no-hystart";
            return Err(format!("tcp={name}: {accepted}").into());
        }
    };
    Ok(tcp::Config {
        mss: 1448,
        header_bytes: 54,
        receive_window: (window + 1) * 1448,
        send_buffer: window * 1448,
        recovery,
        // Without SACK ns-3 is told to do as RFC 6582 has it.
        prr: recovery == Recovery::Sack,
        ..preset
    })
}

/// More than any window: queues that are not under test never drop.
const LONG: Amount = Amount::Packets(100_000);

/// Both directions of a link.
fn join(
    network: &mut Network,
    name: &str,
    ends: [NodeId; 2],
    (rate_bps, delay_ns): (u64, u64),
    queue: Queue,
) -> Result<LinkId, NetworkError> {
    let mut link = |name: String, from, to, queue| {
        network.link(LinkConfig {
            name,
            from,
            to,
            rate: Rate(rate_bps),
            varying: None,
            delay: Nanos(delay_ns),
            overhead: 0,
            queue,
            edge: None,
            impairments: Impairments::default(),
        })
    };
    let there = link(name.to_owned(), ends[0], ends[1], queue)?;
    link(format!("{name}-back"), ends[1], ends[0], Queue::Fifo { limit: LONG })?;
    Ok(there)
}

/// The network, the bottleneck, and who sends to whom.
fn dumbbell(settings: &Settings) -> Result<(Network, LinkId, Vec<[NodeId; 2]>), NetworkError> {
    let mut network = Network::new();
    let routers = [network.node("left")?, network.node("right")?];
    let queue = Queue::Discipline { spec: settings.queue.clone(), log: false };
    let bottleneck = join(&mut network, "bottleneck", routers, settings.bottleneck, queue)?;
    let mut pairs = Vec::new();
    for number in 0..settings.pairs {
        let mut ends = routers;
        for (side, router) in ["left", "right"].into_iter().zip(routers) {
            let name = format!("{side}{number}");
            let node = network.node(&name)?;
            let queue = Queue::Fifo { limit: LONG };
            join(&mut network, &name, [node, router], settings.access, queue)?;
            ends[usize::from(side == "right")] = node;
        }
        pairs.push(ends);
    }
    Ok((network, bottleneck, pairs))
}

/// Opens the connections of the list, the pairs in turn.
struct InTurn {
    list: TransferList,
    pairs: Vec<[NodeId; 2]>,
    tcp: TcpId,
    next: usize,
}

impl Source for InTurn {
    fn start(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        context.wake_at(self.list.transfers()[0].start);
        Ok(())
    }

    fn wake(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        let transfer = self.list.transfers()[self.next];
        let [client, server] = self.pairs[self.next % self.pairs.len()];
        context.connect(&Connection {
            client,
            server,
            tcp: self.tcp,
            request_bytes: transfer.size_bytes,
            response_bytes: 0,
            keep_open: false,
            index: self.next as u64,
        })?;
        self.next += 1;
        if let Some(transfer) = self.list.transfers().get(self.next) {
            context.wake_at(transfer.start);
        }
        Ok(())
    }
}

/// A line for each flow, if somebody wants them.
struct Rows {
    wanted: bool,
    text: String,
    complete: u64,
}

impl Recorder for Rows {
    fn flow(&mut self, flow: &FlowReport) {
        self.complete += u64::from(flow.completed.is_some());
        if self.wanted {
            let end = flow.completed.map_or(0, |at| at.0);
            let FlowReport { index, started, bytes, received, .. } = flow;
            let complete = u8::from(flow.completed.is_some());
            let _ =
                writeln!(self.text, "{index},{},{end},{bytes},{received},{complete}", started.0);
        }
    }
}

/// User and system time of this process so far, in seconds, and the most memory it had, in KiB.
fn used() -> Result<(f64, i64), Failure> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let time = usage.user_time() + usage.system_time();
    Ok((time.num_microseconds() as f64 / 1e6, usage.max_rss()))
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("the list of transfers is missing")?;
    let given = arguments.map(|argument| match argument.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err(format!("'{argument}' is not of the form key=value")),
    });
    let settings = settings(Arguments(given.collect::<Result<_, _>>()?))?;
    let list = TransferList::from_csv(File::open(&path)?, &path)?;

    let (network, bottleneck, pairs) = dumbbell(&settings)?;
    let mut simulation = Simulation::new(network, 1);
    let tcp = simulation.add_tcp(settings.tcp)?;
    for [client, server] in &pairs {
        simulation.expect(*client, *server)?;
    }
    simulation.add_source(Box::new(InTurn { list, pairs, tcp, next: 0 }));

    let mut rows = Rows { wanted: !settings.out.is_empty(), text: String::new(), complete: 0 };
    let (before, _) = used()?;
    simulation.run_until(settings.stop, &mut rows)?;
    let (after, peak_kib) = used()?;
    let effort = simulation.effort();
    let totals = simulation.port(bottleneck).ok_or("no port")?.ledger().totals().clone();
    simulation.finish(&mut rows);

    if rows.wanted {
        let head = "index,start_ns,end_ns,size_bytes,received_bytes,complete\n";
        fs::write(&settings.out, head.to_owned() + &rows.text)?;
    }
    println!("complete,{}", rows.complete);
    println!("arrived,{}", totals.arrived.packets);
    println!("dropped,{}", totals.drops.total().packets);
    println!("hops,{}", effort.packet_hops);
    println!("events,{}", effort.events);
    println!("cpu_s,{}", after - before);
    println!("peak_kib,{peak_kib}");
    Ok(())
}
