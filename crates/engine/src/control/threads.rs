//! Directions that are threads of this process, as the control socket knows them.

use std::io;
use std::process;
use std::sync::mpsc::{Receiver, Sender, sync_channel};

use sched::{Nanos, Rate, Spec};

use super::protocol::Changes;
use super::server::{PATIENCE, Port, Refusal, Steered, usage};
use crate::datapath::clock;
use crate::datapath::command::{Command, Snapshot};
use crate::datapath::shaper::Pacing;
use crate::settings::LinkConfig;
use crate::settings::link::LinkSettings;
use crate::settings::merge::overlaid;
use crate::status::{DropCounter, EngineKind, Heading, Process, Seen, Status};

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

/// All directions of an engine.
pub(crate) struct Threads {
    ways: Vec<Handle>,
    /// `CLOCK_MONOTONIC` time at which the engine started.
    began: Nanos,
}

impl Threads {
    pub(crate) fn new(ways: Vec<Handle>) -> Self {
        Self { ways, began: clock::now() }
    }
}

impl Steered for Threads {
    fn status(&mut self, ports: &[Port], port: usize) -> Result<Vec<(usize, Status)>, Refusal> {
        let mut found = Vec::new();
        for (at, way) in self.ways.iter().enumerate() {
            for (_, heading) in way.known_as.iter().filter(|(at, _)| *at == port) {
                let snapshot = ask(&way.commands, Command::Status).ok_or_else(silent)?;
                found.push((at, self.describe(way, ports, port, *heading, *snapshot)));
            }
        }
        Ok(found)
    }

    fn change(
        &mut self,
        ports: &[Port],
        port: usize,
        changes: &Changes,
        is_set: &mut dyn FnMut(usize, Rate),
    ) -> Result<(), Refusal> {
        let headings = |way: &Handle| -> Vec<Heading> {
            let here = way.known_as.iter().filter(|(at, _)| *at == port);
            here.map(|(_, heading)| *heading).collect()
        };
        let all: Vec<Heading> = self.ways.iter().flat_map(headings).collect();
        for heading in [Heading::Egress, Heading::Ingress] {
            if changes.link(heading).rate.is_some() && !all.contains(&heading) {
                let (name, heading) = (&ports[port].name, heading.name());
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
                config.check(&ports[port].name).map_err(usage)?;
                wanted.push((at, config, changes.link(*heading).rate));
            }
        }
        for (at, config, rate) in wanted {
            self.ways[at].change(config)?;
            if let Some(rate) = rate {
                is_set(at, rate);
            }
        }
        Ok(())
    }

    fn set(&mut self, way: usize, rate: Rate) -> Result<(), Refusal> {
        let way = &mut self.ways[way];
        let link = LinkSettings { rate, ..way.config.link };
        way.change(LinkConfig { link, ..way.config.clone() })
    }
}

impl Threads {
    fn describe(
        &self,
        way: &Handle,
        ports: &[Port],
        port: usize,
        heading: Heading,
        snapshot: Snapshot,
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
            device: ports[port].name(),
            ifindex: ports[port].ifindex,
            engine: EngineKind::Userspace,
            direction: heading,
            peer: peer.map(|(other, _)| ports[*other].name()),
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
            auto: None,
            follows: None,
            process: Some(Process {
                pid: process::id(),
                received: report.received,
                handed_on: report.sent,
                in_flight: report.in_flight,
                lost_in_kernel: report.lost_in_kernel,
                passed: report.passed,
                realtime: report.realtime,
                nat_revealed,
                punctuality: report.punctuality,
            }),
            seen: Some(Seen { busiest_hosts, biggest_flows, newest_flows }),
        }
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
