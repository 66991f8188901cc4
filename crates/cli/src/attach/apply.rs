//! `shortlane apply`: brings what is attached to what a configuration file says.

use std::path::PathBuf;

use clap::Args;
use engine::control::Changes;
use engine::status::{EngineKind, Heading, Status};
use sched::Rate;

use super::engines::engine;
use super::goal::Goal;
use super::order::Order;
use super::{AttachOptions, attach_as_told, attached, change_as_told, index_of};
use crate::{Call, Failure, config, print};

/// The options of `shortlane apply`.
#[derive(Args)]
pub(crate) struct ApplyOptions {
    /// Read this file, as `attach --config` does: a table for each device
    #[arg(default_value = config::DEFAULT)]
    file: PathBuf,
    /// Print what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn apply(options: &ApplyOptions, call: &Call) -> Result<(), Failure> {
    let tables = config::attachments(&options.file, None, &[])?;
    let there = attached(None)?;
    let plans: Vec<_> = tables.into_iter().map(|wanted| Plan::of(wanted, &there)).collect();
    for plan in plans.iter().flatten() {
        print(&format!("{}\n", plan.describe()))?;
    }
    for device in unnamed(&plans, &there) {
        print(&format!("{device}: left alone, it is not in {}\n", options.file.display()))?;
    }
    // One that fails does not keep the others from their due.
    crate::all(plans.into_iter().map(|plan| match plan {
        Ok(plan) if !options.dry_run => plan.carry_out(call),
        plan => plan.map(|_| ()),
    }))
}

/// Devices with something attached that no table names, if all tables could be read.
fn unnamed<'a>(plans: &[Result<Plan, Failure>], there: &'a [Status]) -> Vec<&'a str> {
    if plans.iter().any(Result::is_err) {
        return Vec::new();
    }
    let named = |device: &&str| plans.iter().flatten().any(|plan| plan.device() == *device);
    let mut devices: Vec<&str> = there.iter().map(|status| status.device.as_str()).collect();
    devices.dedup();
    devices.retain(|device| !named(device));
    devices
}

/// What is to be done with a device.
struct Plan {
    wanted: Order,
    /// The engine that is asked for; `None`: the one that runs, or the first that can.
    engine: Option<EngineKind>,
    step: Step,
}

enum Step {
    Keep,
    Attach,
    /// While packets are queued; and what differs.
    Change(Changes, Vec<String>),
    /// Since this cannot change while it runs.
    Replace(String),
}

impl Plan {
    fn of(wanted: AttachOptions, there: &[Status]) -> Result<Self, Failure> {
        let ifindex = index_of(wanted.device.as_deref().unwrap_or_default())?;
        let now: Vec<_> = there.iter().filter(|status| status.ifindex == ifindex).collect();
        let (wanted, engine) = Order::of(wanted)?;
        let step = step(&wanted, engine, &now)?;
        Ok(Self { wanted, engine, step })
    }

    fn device(&self) -> &str {
        &self.wanted.device
    }

    fn describe(&self) -> String {
        let device = self.device();
        match &self.step {
            Step::Keep => format!("{device}: as it is"),
            Step::Attach => {
                let way =
                    |heading| Some(format!("{} at {}", does(heading), self.wanted.goal(heading)?));
                let ways: Vec<String> = HEADINGS.into_iter().filter_map(way).collect();
                format!("{device}: attach, to {}", ways.join(", "))
            }
            Step::Change(_, differences) => format!("{device}: change: {}", differences.join(", ")),
            Step::Replace(difference) => format!("{device}: replace, {difference}"),
        }
    }

    fn carry_out(self, call: &Call) -> Result<(), Failure> {
        let Self { mut wanted, engine, step } = self;
        match step {
            Step::Keep => Ok(()),
            Step::Attach => attach_as_told(&wanted, engine, call),
            Step::Change(changes, _) => change_as_told(&wanted.device, &changes),
            Step::Replace(_) => {
                wanted.replace = true;
                attach_as_told(&wanted, engine, call)
            }
        }
    }
}

const HEADINGS: [Heading; 2] = [Heading::Egress, Heading::Ingress];

/// What a direction does, as an order.
const fn does(heading: Heading) -> &'static str {
    match heading {
        Heading::Egress => "send",
        Heading::Ingress => "receive",
    }
}

/// What brings a device from what it has to what is wanted.
fn step(wanted: &Order, asked: Option<EngineKind>, now: &[&Status]) -> Result<Step, Failure> {
    let Some(first) = now.first() else { return Ok(Step::Attach) };
    let device = &first.device;
    if let Some(peer) = now.iter().find_map(|status| status.peer.as_ref()) {
        return Err(Failure::Failed(format!(
            "{device} is bridged to {peer}; `shortlane detach {device}` ends that"
        )));
    }
    if let Some(difference) = replaced(wanted, asked, now)? {
        return Ok(Step::Replace(difference));
    }
    let (mut changes, mut differences) = (Changes::default(), Vec::new());
    for status in now {
        let link = engine(status.engine).changes(wanted, status);
        let rate = match status.direction {
            Heading::Egress => &mut changes.rate,
            Heading::Ingress => &mut changes.ingress_rate,
        };
        if let (None, Some(wanted)) = (*rate, link.rate) {
            let does = does(status.direction);
            differences.push(format!("{does} at {wanted} instead of {}", status.link.rate));
            *rate = Some(wanted);
        }
        changes.overhead = changes.overhead.or(link.overhead);
        changes.burst_time = changes.burst_time.or(link.burst_time);
    }
    if let Some(overhead) = changes.overhead {
        differences.push(format!("overhead {overhead} instead of {}", first.link.overhead));
    }
    if let Some(time) = changes.burst_time {
        differences.push(format!("burst time {time} instead of {}", first.link.burst_time));
    }
    Ok(match differences.is_empty() {
        true => Step::Keep,
        false => Step::Change(changes, differences),
    })
}

/// What differs that cannot change while it runs: engine, directions, and what the engine says.
fn replaced(
    wanted: &Order,
    asked: Option<EngineKind>,
    now: &[&Status],
) -> Result<Option<String>, Failure> {
    let runs = now[0].engine;
    if let Some(asked) = asked.filter(|asked| *asked != runs) {
        return Ok(Some(format!("engine {} instead of {}", asked.name(), runs.name())));
    }
    for heading in HEADINGS {
        let is_wanted = wanted.attaches(heading);
        if now.iter().any(|status| status.direction == heading) != is_wanted {
            let what = if is_wanted { "is to be attached" } else { "is not to be attached" };
            return Ok(Some(format!("{} {what}", heading.name())));
        }
    }
    for status in now {
        if let Some(difference) = followed(wanted, status) {
            return Ok(Some(difference));
        }
        if let Some(other) = engine(status.engine).other_than(wanted, status)? {
            return Ok(Some(format!("{other} instead of {}", status.scheduler)));
        }
    }
    Ok(None)
}

/// What differs in how a rate follows the link.
fn followed(wanted: &Order, status: &Status) -> Option<String> {
    let auto = status.auto.as_ref();
    let only = |dry_run: bool| if dry_run { ", dry run" } else { "" };
    let now = auto.map(|auto| {
        let [floor, base, ceiling] =
            [auto.floor_bps, auto.base_bps, auto.ceiling_bps].map(|rate| Rate(rate).to_string());
        format!("auto:{floor}..{base}..{ceiling} by {}{}", auto.probe, only(auto.dry_run))
    });
    // Whoever was chosen as nobody was named stays.
    let named = wanted.probe.as_ref().map(|named| named.address.to_string());
    let probe = named.or(auto.map(|auto| auto.probe.clone())).unwrap_or("a probe".into());
    let wanted = match wanted.goal(status.direction) {
        Some(goal @ Goal::Auto(_)) => Some(format!("{goal} by {probe}{}", only(wanted.dry_run))),
        _ => None,
    };
    let name = |rate: Option<String>| rate.unwrap_or_else(|| "a fixed rate".into());
    (now != wanted).then(|| format!("{} instead of {}", name(wanted), name(now)))
}
