//! One block: one workload through one scheduler.

use std::fs;
use std::panic::resume_unwind;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use lab::traffic::{
    CbrPacket, ClientReport, ConnectionKind, ConnectionRow, DownloadRow, Plan, ServerReport,
    cbr_packets, monotonic_ns, run_client, run_server,
};
use netdev::netns::Namespace;
use serde::Serialize;

use crate::command;

use super::path::Path;
use super::settings::{Kinds, Setting};
use super::warm_up;
use super::workloads::{WARM_UP, Workload};

/// A measurement of one block.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) round: u64,
    pub(super) setting: &'static str,
    pub(super) workload: &'static str,
    pub(super) metric: String,
    /// How many values there are.
    pub(super) n: usize,
    /// Their mean.
    pub(super) value: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) values: Vec<f64>,
}

/// Why a block does not count.
const LATE_NS: u64 = 10_000_000;
const BUSY: f64 = 0.9;

pub(super) struct Block<'a> {
    pub(super) path: &'a Path,
    pub(super) setting: Setting,
    pub(super) workload: Workload,
    /// Its traffic's seed as well.
    pub(super) round: u64,
}

/// What a full packet takes of the link over what it carries.
const WITH_HEADERS: f64 = 1514.0 / 1448.0;

/// What has become of a block's traffic.
struct Traffic {
    server: ServerReport,
    client: ClientReport,
    /// Of the other host, if there is one.
    neighbour: Option<ClientReport>,
    /// At the begin and at the end of measuring.
    readings: [Reading; 2],
}

/// What a device's root qdisc and the CPU have done up to a moment.
#[derive(Clone, Copy, Debug)]
struct Reading {
    at_ns: u64,
    bytes: u64,
    packets: u64,
    drops: u64,
    cpu_ticks: u64,
    idle_ticks: u64,
}

impl Block<'_> {
    /// Runs it and gives its rows.
    pub(super) fn run(&self, kinds: &mut Kinds) -> Result<Vec<Row>> {
        let Workload { place, rate_bps, rtt_ms, .. } = self.workload;
        self.path.prepare(place, rtt_ms)?;
        let (home, device) = self.path.downlink(place);
        let commands = self.setting.commands(rate_bps, kinds)?;
        home.run(|| self.setting.put_on(device, rate_bps, &commands))??;
        let (router, up) = self.path.uplink();
        if self.workload.uploads.is_empty() {
            router.run(|| {
                let _ = engine::kernel::detach(up);
                command::run(&format!("tc qdisc del dev {up} root")).ok()
            })?;
        } else {
            router.run(|| self.setting.put_on(up, rate_bps, &commands))??;
        }
        let (server, client) = Path::addresses(place);
        self.path.server.run(|| warm_up::flood(server, client))??;
        let plan = self.workload.plan(self.round);
        let traffic = self.traffic(&plan, home, device)?;
        Ok(self.rows(&plan, &traffic))
    }

    fn traffic(&self, plan: &Plan, home: &Namespace, device: &str) -> Result<Traffic> {
        let neighbour = &self.workload.neighbour(plan);
        thread::scope(|scope| {
            let own = scope.spawn(|| self.exchange(plan));
            let other = neighbour.as_ref().map(|plan| scope.spawn(|| self.exchange(plan)));
            let watch = scope.spawn(|| -> Result<[Reading; 2]> {
                home.enter()?;
                sleep_until(plan.epoch_ns + WARM_UP);
                let begin = Reading::now(device)?;
                sleep_until(plan.epoch_ns + self.workload.end_ns());
                Ok([begin, Reading::now(device)?])
            });
            let (server, client) = own.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            let other =
                other.map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            let neighbour = other.transpose()?.map(|(_, client)| client);
            let readings = watch.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            Ok(Traffic { server, client, neighbour, readings })
        })
    }

    /// Plays server and client of a plan.
    fn exchange(&self, plan: &Plan) -> Result<(ServerReport, ClientReport)> {
        let (ready, listening) = mpsc::channel();
        thread::scope(|scope| {
            let server = scope.spawn(move || {
                self.path.server.enter()?;
                let tell = || {
                    let _ = ready.send(());
                };
                std::io::Result::Ok(run_server(plan, tell))
            });
            let client = scope.spawn(move || {
                // If it ended without a word its own error says more.
                let _ = listening.recv();
                self.path.client.enter().map(|()| run_client(plan, || ()))
            });
            let client = client.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            let server = server.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            let server = server.map_err(|error| anyhow!("server: {error}"))?;
            let client = client.map_err(|error| anyhow!("client: {error}"))?;
            Ok((server, client))
        })
    }

    fn rows(&self, plan: &Plan, traffic: &Traffic) -> Vec<Row> {
        let Traffic { server, client, neighbour, readings: [begin, end] } = traffic;
        let mut rows = Vec::new();
        let mut add = |metric: String, values: Vec<f64>| rows.push(self.row(metric, values));
        for &(size, _) in self.workload.fetches {
            let of_size = plan.transfers.iter().filter(|t| t.size_bytes == size);
            let times: Vec<Option<u64>> = of_size
                .map(|t| client.transfers.iter().find(|row| row.id == t.id)?.completion_ns())
                .collect();
            add(format!("fetch {size} B, ms"), times.iter().flatten().map(ms).collect());
            let failed = times.iter().map(|time| f64::from(u8::from(time.is_none())));
            add(format!("fetch {size} B, unfinished"), failed.collect());
            let of_size = plan
                .transfers
                .iter()
                .filter(|t| t.size_bytes == size)
                .map(|t| resent(server, t.id));
            add(format!("fetch {size} B, resent"), of_size.flatten().collect());
        }
        for row in &client.pings {
            let times = row.rows.iter().filter_map(|ping| Some(ping.received_ns? - ping.sent_ns));
            add("ping, ms".into(), times.map(|time| ms(&time)).collect());
            let lost = row.rows.iter().map(|ping| f64::from(u8::from(ping.received_ns.is_none())));
            add("ping, lost".into(), lost.collect());
        }
        for (sent, received) in server.cbr.iter().zip(&client.cbr) {
            let packets = cbr_packets(sent, received);
            let delays = packets.iter().filter_map(CbrPacket::delay_ns);
            add(format!("{}, ms", sent.name), delays.map(|delay| ms(&delay)).collect());
            let lost = packets.iter().map(|p| f64::from(u8::from(p.received_ns.is_none())));
            add(format!("{}, lost", sent.name), lost.collect());
        }
        let seconds = (self.workload.end_ns() - WARM_UP) as f64 / 1e9;
        let mbps = |bytes: u64| bytes as f64 * 8.0 / seconds / 1e6;
        let window = (WARM_UP, self.workload.end_ns());
        let downloads: Vec<f64> =
            client.downloads.iter().map(|d| mbps(d.received.between(window.0, window.1))).collect();
        let uploads: Vec<f64> =
            server.uploads.iter().map(|u| mbps(u.received.between(window.0, window.1))).collect();
        for (name, flows) in [("download", downloads), ("upload", uploads)] {
            if !flows.is_empty() {
                add(format!("{name}, all, Mbit/s"), vec![flows.iter().sum()]);
                add(format!("{name}, Mbit/s"), flows);
            }
        }
        if let Some(neighbour) = neighbour {
            let of = |d: &DownloadRow| mbps(d.received.between(window.0, window.1));
            let all: f64 = neighbour.downloads.iter().map(of).sum();
            let share = all * 1e6 * WITH_HEADERS / self.workload.rate_bps as f64;
            add("other host, share of the link".into(), vec![share]);
        }
        let span = (end.at_ns - begin.at_ns) as f64 / 1e9;
        let bits = (end.bytes - begin.bytes) as f64 * 8.0;
        add("link, used".into(), vec![bits / span / self.workload.rate_bps as f64]);
        add("link, dropped".into(), vec![(end.drops - begin.drops) as f64]);
        add("link, packets".into(), vec![(end.packets - begin.packets) as f64]);
        add("cpu, busy".into(), vec![end.busy_since(begin)]);
        let neighbour_late = neighbour.as_ref().map_or(0, |neighbour| neighbour.worst_late_ns);
        let late = client.worst_late_ns.max(server.worst_late_ns).max(neighbour_late);
        add("late, ms".into(), vec![ms(&late)]);
        let void = late > LATE_NS || end.busy_since(begin) > BUSY;
        add("void".into(), vec![f64::from(u8::from(void))]);
        rows
    }

    fn row(&self, metric: String, values: Vec<f64>) -> Row {
        let (n, sum) = (values.len(), values.iter().sum::<f64>());
        let value = if n == 0 { 0.0 } else { sum / n as f64 };
        Row {
            round: self.round,
            setting: self.setting.name,
            workload: self.workload.name,
            metric,
            n,
            value,
            values: if n > 1 { values } else { Vec::new() },
        }
    }
}

/// Segments that the server sent again in a fetch, as its TCP says.
fn resent(server: &ServerReport, id: u32) -> Option<f64> {
    let is_it = |row: &&ConnectionRow| row.kind == ConnectionKind::Transfer && row.id == id;
    let info = server.connections.iter().find(is_it)?.info?;
    info.retransmissions.map(f64::from)
}

fn ms(ns: &u64) -> f64 {
    (*ns as f64 / 1e3).round() / 1e3
}

fn sleep_until(at_ns: u64) {
    thread::sleep(Duration::from_nanos(at_ns.saturating_sub(monotonic_ns())));
}

impl Reading {
    /// Of a device of the calling thread's namespace.
    fn now(device: &str) -> Result<Self> {
        // Not as JSON, which tc 6.1 and 6.15 write wrongly for hfsc.
        let text = command::run(&format!("tc -s qdisc show dev {device} root"))?;
        let says = || format!("tc says {text}");
        let line = text.lines().find(|line| line.trim_start().starts_with("Sent "));
        // `Sent 1 bytes 2 pkt (dropped 3, overlimits 4 requeues 5)`
        let mut numbers = line
            .with_context(says)?
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|word| word.parse().ok());
        let mut number = || numbers.next().with_context(says);
        let (bytes, packets, drops) = (number()?, number()?, number()?);
        let (cpu_ticks, idle_ticks) = cpu_ticks()?;
        Ok(Self { at_ns: monotonic_ns(), bytes, packets, drops, cpu_ticks, idle_ticks })
    }

    fn busy_since(&self, begin: &Self) -> f64 {
        let all = self.cpu_ticks - begin.cpu_ticks;
        1.0 - (self.idle_ticks - begin.idle_ticks) as f64 / all.max(1) as f64
    }
}

/// All CPUs' ticks, and the idle ones.
fn cpu_ticks() -> Result<(u64, u64)> {
    let text = fs::read_to_string("/proc/stat")?;
    let line = text.lines().next().context("/proc/stat is empty")?;
    let ticks = line.split_whitespace().skip(1).map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    let idle = ticks.get(3).zip(ticks.get(4)).context("/proc/stat is short")?;
    Ok((ticks.iter().sum(), idle.0 + idle.1))
}
