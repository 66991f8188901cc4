//! `shortlane apply`: brings what is attached to what a configuration file says.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use engine::control::Changes;
use engine::status::{EngineKind, Heading, Status};
use sched::{Rate, Spec};

use super::goal::Goal;
use super::probe::Named;
use super::{
    AttachOptions, DEFAULT, Queues, attach_one, attached, change_as_told, hosts, index_of,
};
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
    wanted: AttachOptions,
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
        let step = step(&wanted, &now)?;
        Ok(Self { wanted, step })
    }

    fn device(&self) -> &str {
        self.wanted.device.as_deref().unwrap_or_default()
    }

    fn describe(&self) -> String {
        let device = self.device();
        match &self.step {
            Step::Keep => format!("{device}: as it is"),
            Step::Attach => {
                let way = |does, goal: Option<Goal>| goal.map(|goal| format!("{does} at {goal}"));
                let ways = [way("send", self.wanted.rate), way("receive", self.wanted.ingress)];
                let ways: Vec<String> = ways.into_iter().flatten().collect();
                format!("{device}: attach, to {}", ways.join(", "))
            }
            Step::Change(_, differences) => format!("{device}: change {}", differences.join(", ")),
            Step::Replace(difference) => format!("{device}: replace, {difference}"),
        }
    }

    fn carry_out(self, call: &Call) -> Result<(), Failure> {
        match &self.step {
            Step::Keep => Ok(()),
            Step::Attach => attach_one(self.wanted, call),
            Step::Change(changes, _) => change_as_told(self.device(), changes),
            Step::Replace(_) => attach_one(AttachOptions { replace: true, ..self.wanted }, call),
        }
    }
}

/// What brings a device from what it has to what is wanted.
fn step(wanted: &AttachOptions, now: &[&Status]) -> Result<Step, Failure> {
    let Some(first) = now.first() else { return Ok(Step::Attach) };
    let device = &first.device;
    if let Some(peer) = now.iter().find_map(|status| status.peer.as_ref()) {
        return Err(Failure::Failed(format!(
            "{device} is bridged to {peer}; `shortlane detach {device}` ends that"
        )));
    }
    if let Some(difference) = replaced(wanted, now)? {
        return Ok(Step::Replace(difference));
    }
    let mut differences = Vec::new();
    let mut changes = Changes::default();
    for status in now {
        let (goal, does, rate) = match status.direction {
            Heading::Egress => (wanted.rate, "send", &mut changes.rate),
            Heading::Ingress => (wanted.ingress, "receive", &mut changes.ingress_rate),
        };
        // One that follows the link is where it is.
        let fixed = goal.and_then(Goal::fixed).unwrap_or(status.link.rate);
        let link = status.link.changes_to(wanted.link.at(fixed));
        if let Some(wanted) = link.rate {
            differences.push(format!("{does} at {wanted} instead of {}", status.link.rate));
        }
        *rate = link.rate;
        changes.overhead = changes.overhead.or(link.overhead);
        changes.burst_time = changes.burst_time.or(link.burst_time);
    }
    if let Some(wanted) = changes.overhead {
        differences.push(format!("overhead {wanted} instead of {}", first.link.overhead));
    }
    if let Some(wanted) = changes.burst_time {
        differences.push(format!("burst time {wanted} instead of {}", first.link.burst_time));
    }
    Ok(match differences.is_empty() {
        true => Step::Keep,
        false => Step::Change(changes, differences),
    })
}

/// What differs that cannot change while it runs: engine, directions, discipline, queues.
fn replaced(wanted: &AttachOptions, now: &[&Status]) -> Result<Option<String>, Failure> {
    let engine = now[0].engine;
    if let Some(asked) = wanted.engine.kind().filter(|asked| *asked != engine) {
        return Ok(Some(format!("engine {} instead of {}", asked.name(), engine.name())));
    }
    let sends = wanted.rate.is_some() || wanted.join.is_some();
    for (heading, wanted) in
        [(Heading::Egress, sends), (Heading::Ingress, wanted.ingress.is_some())]
    {
        if now.iter().any(|status| status.direction == heading) != wanted {
            let what = if wanted { "is to be attached" } else { "is not to be attached" };
            return Ok(Some(format!("{} {what}", heading.name())));
        }
    }
    for status in now {
        let goal = match status.direction {
            Heading::Egress => wanted.rate,
            Heading::Ingress => wanted.ingress,
        };
        if let Some(difference) = followed(goal, wanted, status) {
            return Ok(Some(difference));
        }
        let scheduler = match engine {
            EngineKind::Marks => marks(wanted, &status.scheduler),
            EngineKind::Kernel | EngineKind::Userspace => discipline(wanted, status)?,
        };
        if let Some(scheduler) = scheduler {
            return Ok(Some(format!("{scheduler} instead of {}", status.scheduler)));
        }
    }
    Ok(None)
}

/// What differs in how a rate follows the link.
fn followed(goal: Option<Goal>, wanted: &AttachOptions, status: &Status) -> Option<String> {
    let auto = status.process.as_ref().and_then(|process| process.auto.as_ref());
    let only = |dry_run: bool| if dry_run { ", dry run" } else { "" };
    let now = auto.map(|auto| {
        let [floor, base, ceiling] =
            [auto.floor_bps, auto.base_bps, auto.ceiling_bps].map(|rate| Rate(rate).to_string());
        format!("auto:{floor}..{base}..{ceiling} by {}{}", auto.probe, only(auto.dry_run))
    });
    // Whoever was chosen as nobody was named stays.
    let named = wanted.probe.as_ref().map(|Named { address, .. }| address.to_string());
    let probe = named.or(auto.map(|auto| auto.probe.clone())).unwrap_or("a probe".into());
    let wanted = match goal {
        Some(goal @ Goal::Auto(_)) => Some(format!("{goal} by {probe}{}", only(wanted.dry_run))),
        _ => None,
    };
    let name = |rate: Option<String>| rate.unwrap_or_else(|| "a fixed rate".into());
    (now != wanted).then(|| format!("{} instead of {}", name(wanted), name(now)))
}

/// The discipline that is wanted, if another one runs. A limit that is not asked for is that which
/// it got when it was attached: it stays when the rate changes.
fn discipline(wanted: &AttachOptions, status: &Status) -> Result<Option<String>, Failure> {
    let spec: Spec = wanted.scheduler.as_deref().unwrap_or(DEFAULT).parse()?;
    let mut spec = match status.direction {
        Heading::Egress => hosts::leaving(&spec, &status.device),
        Heading::Ingress => hosts::arriving(&spec, &status.device),
    };
    let Ok(runs) = status.scheduler.parse::<Spec>() else { return Ok(Some(spec.to_string())) };
    let has_limit = |spec: &Spec| spec.params().has("limit") && spec.params().is_given("limit");
    if spec.info().name == runs.info().name && has_limit(&runs) && !has_limit(&spec) {
        spec = spec.with("limit", &runs.params().amount("limit").to_string())?;
    }
    Ok((spec.to_string() != runs.to_string()).then(|| spec.to_string()))
}

/// The queues behind marks that are wanted, if others are there.
fn marks(wanted: &AttachOptions, runs: &str) -> Option<String> {
    if let Some(scheduler) = &wanted.scheduler {
        return Some(scheduler.clone());
    }
    let name = |queues: Queues| queues.to_possible_value().map(|value| value.get_name().to_owned());
    let asked = match (wanted.join, wanted.queues.and_then(name)) {
        (Some(_), _) => "marks:joined=".to_owned(),
        (None, Some(queues)) => format!("marks:queues={queues},"),
        (None, None) => "marks:queues=".to_owned(),
    };
    (!runs.starts_with(&asked)).then(|| asked.trim_end_matches([',', '=']).to_owned())
}
