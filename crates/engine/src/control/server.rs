//! The control thread of an engine.

use std::io::{self, BufReader};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, sync_channel};
use std::time::Duration;

use netdev::link::name_of;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use sched::{Nanos, Rate, Spec};

use super::lock::{Lock, Peer};
use super::pilot::Pilot;
use super::protocol::{Answer, Changes, Request, hear, say};
use crate::datapath::clock;
use crate::datapath::command::{Command, Snapshot};
use crate::datapath::shaper::Pacing;
use crate::settings::LinkConfig;
use crate::settings::link::LinkSettings;
use crate::settings::merge::overlaid;
use crate::status::{Auto, DropCounter, EngineKind, Heading, Process, Status};

/// How often the flags are looked at.
const PERIOD: Nanos = Nanos::from_millis(50);
/// How long a client may take to say what it wants, and a direction to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// An interface that an engine holds.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) name: String,
    pub(crate) ifindex: u32,
    pub(crate) lock: Lock,
}

/// One direction of an engine, from the control thread's side.
pub(crate) struct Handle {
    /// What runs; only the control thread changes it.
    pub(crate) config: LinkConfig,
    /// To the direction's thread.
    pub(crate) commands: Sender<Command>,
    /// As which direction of which [`Port`], by place, it is known. One of a bridge leaves by one
    /// and comes in by the other.
    pub(crate) known_as: Vec<(usize, Heading)>,
    /// Told of a change before it is made, such as to have super-packets split for a lower rate.
    pub(crate) adjust: Option<Adjust>,
}

/// Makes what surrounds a direction ready for a link.
pub(crate) type Adjust = Box<dyn FnMut(&LinkConfig) -> io::Result<()> + Send>;

/// Answers on the control sockets of an engine.
pub(crate) struct Server {
    pub(crate) ports: Vec<Port>,
    pub(crate) ways: Vec<Handle>,
    /// `CLOCK_MONOTONIC` time at which the engine started.
    pub(crate) began: Nanos,
    /// Has rates follow the link, if they are to.
    pilot: Option<Pilot>,
    /// Clients that wait for the end.
    waiting: Vec<UnixStream>,
}

/// Why a change is refused, and whether what was asked for is at fault.
struct Refusal {
    text: String,
    usage: bool,
}

fn usage(text: impl ToString) -> Refusal {
    Refusal { text: text.to_string(), usage: true }
}

impl Server {
    pub(crate) fn new(ports: Vec<Port>, ways: Vec<Handle>, pilot: Option<Pilot>) -> Self {
        Self { ports, ways, began: clock::now(), pilot, waiting: Vec::new() }
    }

    /// Answers until one of the flags is set, and sets `stop` if a client asks for it. Whoever
    /// asked hears of the end when the server is dropped.
    pub(crate) fn serve(&mut self, stop: &AtomicBool, halt: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) && !halt.load(Ordering::Relaxed) {
            let mut fds: Vec<PollFd<'_>> = self
                .ports
                .iter()
                .map(|port| PollFd::new(port.lock.listener.as_fd(), PollFlags::POLLIN))
                .collect();
            let mut wait = PERIOD;
            if let Some(pilot) = &self.pilot {
                fds.push(PollFd::new(pilot.fd(), PollFlags::POLLIN));
                wait = wait.min(pilot.next_tick() - clock::now());
            }
            // EINTR is as good as a wake-up.
            let _ = poll(&mut fds, PollTimeout::from((wait.0 / 1_000_000) as u16 + 1));
            self.steer();
            for port in 0..self.ports.len() {
                while let Ok((stream, _)) = self.ports[port].lock.listener.accept() {
                    // A client that does not listen has itself to blame.
                    let _ = self.attend(port, stream, stop);
                }
            }
        }
    }

    /// Sets the rates that the link can be seen to carry.
    fn steer(&mut self) {
        let decided = self.pilot.as_mut().map(Pilot::turn).unwrap_or_default();
        for (at, rate) in decided {
            let way = &mut self.ways[at];
            let link = LinkSettings { rate, ..way.config.link };
            let changed = way.change(LinkConfig { link, ..way.config.clone() });
            if let (Err(refusal), Some(pilot)) = (changed, &mut self.pilot) {
                pilot.failed(&refusal.text);
            }
        }
    }

    /// Answers one request.
    fn attend(&mut self, port: usize, mut stream: UnixStream, stop: &AtomicBool) -> io::Result<()> {
        // It does not come with the listener's being non-blocking.
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let peer = Peer::of(&stream)?;
        if !peer.is_trusted() {
            let text = "the engine answers only root and its own user".to_owned();
            return say(&mut stream, &Answer::Refused { text, usage: false });
        }
        let request = hear(&mut BufReader::new(&stream));
        let answer = match request {
            Ok(Request::Status) => match self.status(port) {
                Some(status) => Answer::Status(status),
                None => refused(silent()),
            },
            Ok(Request::Change(changes)) => match self.change(port, &changes) {
                Ok(()) => Answer::Done,
                Err(refusal) => refused(refusal),
            },
            Ok(Request::Stop) => {
                stop.store(true, Ordering::Relaxed);
                self.waiting.push(stream.try_clone()?);
                Answer::Done
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let text = format!("no request of version {}: {error}", env!("CARGO_PKG_VERSION"));
                Answer::Refused { text, usage: false }
            }
            Err(error) => return Err(error),
        };
        say(&mut stream, &answer)
    }

    /// What each direction of a port is and has counted; `None` if one does not answer.
    fn status(&self, port: usize) -> Option<Vec<Status>> {
        let mut found = Vec::new();
        for (at, way) in self.ways.iter().enumerate() {
            for (_, heading) in way.known_as.iter().filter(|(at, _)| *at == port) {
                let snapshot = ask(&way.commands, Command::Status)?;
                let auto = self.pilot.as_ref().and_then(|pilot| pilot.describe(at));
                found.push(self.describe(way, port, *heading, *snapshot, auto));
            }
        }
        found.sort_by_key(|status| status.direction);
        Some(found)
    }

    fn describe(
        &self,
        way: &Handle,
        port: usize,
        heading: Heading,
        snapshot: Snapshot,
        auto: Option<Auto>,
    ) -> Status {
        let Snapshot { report, seen, flows, paced, nat_revealed } = snapshot;
        let Handle { config, known_as, .. } = way;
        let params = config.spec.params();
        let peer = known_as.iter().find(|(other, _)| *other != port);
        let hosts = if params.has("hosts") { params.word("hosts") } else { "none" };
        let busiest_hosts = match hosts {
            "none" => Vec::new(),
            end => seen.busiest_hosts(end == "destination"),
        };
        let (biggest_flows, newest_flows) = (seen.biggest_flows(), seen.newest_flows());
        let (totals, counters) = (seen.totals, seen.counters);
        let mut drops = seen.drops;
        drops.extend(report.drops.iter().filter(|drop| drop.lane.is_none()).map(|drop| {
            DropCounter { reason: drop.reason.clone(), lane: None, packets: drop.count.packets }
        }));
        Status {
            device: self.name(port),
            ifindex: self.ports[port].ifindex,
            engine: EngineKind::Userspace,
            direction: heading,
            peer: peer.map(|(other, _)| self.name(*other)),
            scheduler: config.spec.to_string(),
            limit: params.has("limit").then(|| params.amount("limit").to_string()),
            link: config.link,
            framing: config.framing(),
            uptime: clock::now().since(self.began),
            attached_at: self.began,
            lanes: seen.lanes,
            drops,
            marked: report.marked,
            most_packets: totals.most_packets,
            flows,
            most_flows: report.peak_flows,
            flow_bound: params.has("flows").then(|| params.number("flows")),
            flows_created: totals.flows_created,
            flows_removed: totals.flows_removed,
            demoted: totals.demotions,
            promoted: totals.promotions,
            flows_untracked: totals.flows_untracked,
            fragments: counters.fragments,
            not_ip: counters.not_ip,
            super_packets: counters.super_packets,
            paced,
            qdisc: None,
            process: Some(Process {
                pid: process::id(),
                received: report.received,
                handed_on: report.sent,
                in_flight: report.in_flight,
                lost_in_kernel: report.lost_in_kernel,
                passed: report.passed,
                realtime: report.realtime,
                nat_revealed,
                auto,
                punctuality: report.punctuality,
                busiest_hosts,
                biggest_flows,
                newest_flows,
            }),
        }
    }

    /// What a port is called now.
    fn name(&self, port: usize) -> String {
        let Port { name, ifindex, .. } = &self.ports[port];
        name_of(*ifindex).unwrap_or_else(|| name.clone())
    }

    /// Changes the directions of a port: all of it, or nothing.
    fn change(&mut self, port: usize, changes: &Changes) -> Result<(), Refusal> {
        let headings = |way: &Handle| -> Vec<Heading> {
            let here = way.known_as.iter().filter(|(at, _)| *at == port);
            here.map(|(_, heading)| *heading).collect()
        };
        let all: Vec<Heading> = self.ways.iter().flat_map(headings).collect();
        for heading in [Heading::Egress, Heading::Ingress] {
            if changes.link(heading).rate.is_some() && !all.contains(&heading) {
                let (name, heading) = (&self.ports[port].name, heading.name());
                return Err(usage(format!(
                    "{name}: its {heading} is not attached; `shortlane attach --replace` with a \
                     rate for each direction attaches both"
                )));
            }
        }
        let mut wanted = Vec::new();
        for (at, way) in self.ways.iter().enumerate() {
            if let Some(heading) = headings(way).first() {
                let config = changed(&way.config, changes, *heading)?;
                config.check(&self.ports[port].name).map_err(usage)?;
                wanted.push((at, config, changes.link(*heading).rate));
            }
        }
        for (at, config, set) in wanted {
            self.ways[at].change(config)?;
            // What is set by hand stays.
            if let (Some(rate), Some(pilot)) = (set, &mut self.pilot) {
                pilot.dismiss(at, rate);
            }
        }
        Ok(())
    }
}

impl Handle {
    fn change(&mut self, config: LinkConfig) -> Result<(), Refusal> {
        if let Some(adjust) = &mut self.adjust {
            adjust(&config).map_err(|error| Refusal {
                text: format!("cannot make the device ready for the change: {error}"),
                usage: false,
            })?;
        }
        let spec = config.spec.clone().on_link(config.link.rate);
        let pacing = Pacing::on(&config);
        let running = &self.config.spec;
        let is_live = spec.info() == running.info()
            && config.spec.params().check_live(running.params()).is_ok();
        if is_live {
            let params = spec.params().clone();
            let answer = ask(&self.commands, |answer| Command::Change(params, pacing, answer));
            answer.ok_or_else(silent)?.map_err(usage)?;
        } else {
            let (spec, seed) = (Box::new(spec), config.seed);
            let answer = ask(&self.commands, |done| Command::Replace(spec, seed, pacing, done));
            answer.ok_or_else(silent)?;
        }
        self.config = config;
        Ok(())
    }
}

/// A link with what is asked for of a direction.
fn changed(
    config: &LinkConfig,
    changes: &Changes,
    heading: Heading,
) -> Result<LinkConfig, Refusal> {
    let link = config.link.with(changes.link(heading));
    if link.rate == Rate(0) {
        return Err(usage("a link of rate 0 carries nothing; give a rate above 0, or unlimited"));
    }
    let spec = match &changes.scheduler {
        Some(text) => {
            let wanted: Spec = text.parse().map_err(usage)?;
            overlaid(&config.spec, &wanted).map_err(usage)?
        }
        None => config.spec.clone(),
    };
    Ok(LinkConfig { spec, link, ..config.clone() })
}

/// Asks a direction and waits for its answer.
fn ask<T>(
    commands: &Sender<Command>,
    command: impl FnOnce(std::sync::mpsc::SyncSender<T>) -> Command,
) -> Option<T> {
    let (sender, answer): (_, Receiver<T>) = sync_channel(1);
    commands.send(command(sender)).ok()?;
    answer.recv_timeout(PATIENCE).ok()
}

fn silent() -> Refusal {
    Refusal { text: "a direction of the engine does not answer".into(), usage: false }
}

fn refused(Refusal { text, usage }: Refusal) -> Answer {
    Answer::Refused { text, usage }
}
