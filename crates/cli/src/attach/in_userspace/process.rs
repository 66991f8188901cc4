//! The userspace engine's process: what it is told, and running it.

use std::net::IpAddr;

use engine::status::{EngineKind, Heading};
use engine::userspace::HookKind;
use engine::{Following, Forwarder, LinkConfig};
use sched::Spec;
use serde::{Deserialize, Serialize};

use crate::attach::daemon::{self, Errand};
use crate::attach::goal::{self, Goal};
use crate::attach::in_place::{NEXT, at, does, make_way_for, take_off, tell_probe};
use crate::attach::link::LinkOptions;
use crate::attach::order::Order;
use crate::attach::probe::Probe;
use crate::attach::{in_kernel, in_marks};
use crate::{Call, Failure, say};

/// What the process in the background is told.
#[derive(Serialize, Deserialize)]
pub(in crate::attach) struct Task {
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

    /// In the background.
    pub(in crate::attach) fn serve(&self) -> Result<(), Failure> {
        let log = daemon::Log::open(&self.device);
        let inner = log.clone();
        let engine = self.open(move |line| inner.inform(line))?;
        daemon::background(engine, &log)
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
    daemon::start(device, &Errand::Engine(task), call)?;
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
        let Some(at) = at(order, heading) else { continue };
        let spec = order.spec(heading);
        ways.push(format!("{spec} for what it {}, at {at}", does(heading)));
    }
    say(&format!("{device}: {}, in userspace; {NEXT}", ways.join("; ")));
    tell_probe(order, probe);
}

/// The process in the background.
pub(in crate::attach) fn serve(call: &Call) -> Result<(), Failure> {
    daemon::serve(call)
}

/// Takes off the queues in the kernel that the process on a device was there for, if it was.
pub(in crate::attach) fn take_queues_off(device: &str) -> Result<(), Failure> {
    match in_kernel::is_there(device)? || in_marks::held(device)?.is_some() {
        true => take_off(device),
        false => Ok(()),
    }
}

/// Removes what an engine that was killed has left, where the kernel does not do so itself.
pub(in crate::attach) fn tidy_up(device: &str) -> Result<bool, Failure> {
    let found = engine::userspace::tidy_up(device)?;
    if found {
        say(&format!("{device}: removed what an engine that was killed had left"));
    }
    Ok(found)
}
