//! The userspace engine's process: what it is told, and running it.

use std::io;
use std::net::IpAddr;

use engine::status::{EngineKind, Heading};
use engine::userspace::HookKind;
use engine::{Following, Forwarder, LinkConfig};
use sched::Spec;
use serde::{Deserialize, Serialize};

use crate::attach::daemon;
use crate::attach::goal::{self, Goal};
use crate::attach::in_place::{NEXT, does, make_way_for, pace};
use crate::attach::link::LinkOptions;
use crate::attach::order::Order;
use crate::attach::probe::Probe;
use crate::{Call, Failure, say};

/// What the process in the background is told.
#[derive(Serialize, Deserialize)]
struct Task {
    device: String,
    egress: Option<Way>,
    ingress: Option<Way>,
    link: LinkOptions,
    probe: Option<IpAddr>,
    is_beyond: bool,
    dry_run: bool,
}

/// A direction, as on the command line.
#[derive(Serialize, Deserialize)]
struct Way {
    rate: String,
    scheduler: String,
}

/// A task that was read.
struct Links {
    egress: Option<LinkConfig>,
    ingress: Option<LinkConfig>,
    following: Option<Following>,
}

impl Task {
    fn of(order: &Order, probe: Option<&Probe>) -> Self {
        let way = |heading| {
            let rate = order.goal(heading)?.to_string();
            Some(Way { rate, scheduler: order.spec(heading).to_string() })
        };
        Self {
            device: order.device.clone(),
            egress: way(Heading::Egress),
            ingress: way(Heading::Ingress),
            link: order.options,
            probe: probe.map(|probe| probe.address),
            is_beyond: probe.is_some_and(Probe::is_beyond),
            dry_run: order.dry_run,
        }
    }

    fn links(&self) -> Result<Links, Failure> {
        let goal = |way: &Option<Way>| -> Result<Option<Goal>, Failure> {
            way.as_ref().map(|way| goal::read(&way.rate)).transpose().map_err(Failure::Usage)
        };
        let link = |way: &Option<Way>, goal: Option<Goal>| -> Result<_, Failure> {
            let Some((way, goal)) = way.as_ref().zip(goal) else { return Ok(None) };
            let spec: Spec = way.scheduler.parse()?;
            Ok(Some(LinkConfig::on(spec, self.link.at(goal.rate()))))
        };
        let (sends, receives) = (goal(&self.egress)?, goal(&self.ingress)?);
        let [follows_out, follows_in] = [sends, receives].map(|goal| goal.and_then(Goal::bounds));
        let following = |probe| Following {
            egress: follows_out,
            ingress: follows_in,
            probe,
            is_beyond: self.is_beyond,
            dry_run: self.dry_run,
        };
        Ok(Links {
            egress: link(&self.egress, sends)?,
            ingress: link(&self.ingress, receives)?,
            following: self.probe.map(following),
        })
    }

    fn open(&self, mut log: impl FnMut(&str) + Send + 'static) -> Result<Forwarder, Failure> {
        let Links { egress, ingress, following } = self.links()?;
        let engine = Forwarder::attach(&self.device, egress, ingress, HookKind::Auto)?;
        let name = self.device.clone();
        Ok(match following {
            None => engine,
            Some(following) => {
                engine.following(following, move |line| log(&format!("{name}: {line}")))
            }
        })
    }
}

pub(in crate::attach) fn attach(
    order: &Order,
    since: Option<&str>,
    call: &Call,
) -> Result<(), Failure> {
    let device = &order.device;
    let probe = order.chosen_probe()?;
    let task = Task::of(order, probe.as_ref());
    if order.replace {
        // Validated before the running one is detached.
        let Links { egress, ingress, .. } = task.links()?;
        engine::userspace::check(device, egress.as_ref(), ingress.as_ref())?;
    }
    make_way_for(order, EngineKind::Userspace)?;
    if order.foreground {
        let engine = task.open(say)?;
        said(order, probe.as_ref(), since);
        return daemon::foreground(engine, || ());
    }
    let text = serde_json::to_string(&task).map_err(|error| Failure::Failed(error.to_string()))?;
    daemon::start(device, &text, call)?;
    said(order, probe.as_ref(), since);
    Ok(())
}

fn said(order: &Order, probe: Option<&Probe>, since: Option<&str>) {
    let device = &order.device;
    if let Some(since) = since {
        say(&format!("{device}: the userspace engine, since {since}"));
    }
    let mut ways = Vec::new();
    for heading in [Heading::Egress, Heading::Ingress] {
        let at = match order.goal(heading) {
            None => continue,
            Some(Goal::Fixed(rate)) => pace(rate),
            Some(goal @ Goal::Auto(_)) => goal.to_string(),
        };
        let spec = order.spec(heading);
        ways.push(format!("{spec} for what it {}, at {at}", does(heading)));
    }
    say(&format!("{device}: {}, in userspace; {NEXT}", ways.join("; ")));
    if let Some(probe) = probe {
        let dry = if order.dry_run { "a dry run, the rate stays at its base; " } else { "" };
        say(&format!("{device}: {dry}{probe}"));
    }
}

/// The process in the background: its task is on standard input.
pub(in crate::attach) fn serve() -> Result<(), Failure> {
    let task: Task = serde_json::from_reader(io::stdin().lock()).map_err(|error| {
        Failure::Usage(format!("this is for `shortlane attach` alone: {error}"))
    })?;
    let log = daemon::Log::open(&task.device);
    let inner = log.clone();
    let engine = task.open(move |line| inner.inform(line))?;
    daemon::background(engine, &log)
}

/// Removes what an engine that was killed has left, where the kernel does not do so itself.
pub(in crate::attach) fn tidy_up(device: &str) -> Result<bool, Failure> {
    let found = engine::userspace::tidy_up(device)?;
    if found {
        say(&format!("{device}: removed what an engine that was killed had left"));
    }
    Ok(found)
}
