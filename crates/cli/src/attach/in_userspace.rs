//! `attach` by the userspace engine.

use std::io;
use std::net::IpAddr;

use engine::status::EngineKind;
use engine::userspace::HookKind;
use engine::{Bounds, Following, Forwarder, LinkConfig, Overhead};
use sched::{Nanos, Rate, Spec};
use serde::{Deserialize, Serialize};

use super::{NEXT, Order, daemon, hosts, make_way_for, pace};
use crate::{Call, Failure, say};

/// What the process in the background is told.
#[derive(Serialize, Deserialize)]
struct Task {
    device: String,
    rate: Option<Rate>,
    ingress: Option<Rate>,
    scheduler: String,
    overhead: Overhead,
    burst_ns: u64,
    following: Option<Followed>,
}

/// [`Following`], as text.
#[derive(Serialize, Deserialize)]
struct Followed {
    egress: Option<String>,
    ingress: Option<String>,
    probe: IpAddr,
}

impl Followed {
    fn of(following: &Following) -> Self {
        let text = |bounds: Option<Bounds>| bounds.map(|bounds| bounds.to_string());
        let Following { egress, ingress, probe } = *following;
        Self { egress: text(egress), ingress: text(ingress), probe }
    }

    fn read(&self) -> Result<Following, Failure> {
        let bounds = |text: &Option<String>| text.as_ref().map(|text| text.parse()).transpose();
        let read = || -> Result<_, engine::BoundsError> {
            let (egress, ingress) = (bounds(&self.egress)?, bounds(&self.ingress)?);
            Ok(Following { egress, ingress, probe: self.probe })
        };
        read().map_err(|error| Failure::Usage(error.to_string()))
    }
}

pub(super) fn attach(order: &Order, since: Option<&str>, call: &Call) -> Result<(), Failure> {
    let device = &order.device;
    let task = Task {
        device: device.clone(),
        rate: order.rate,
        ingress: order.ingress,
        scheduler: order.spec.to_string(),
        overhead: order.overhead,
        burst_ns: order.burst_time.0,
        following: order.following.as_ref().map(Followed::of),
    };
    if order.replace {
        // Validated before the running one is detached.
        let (egress, ingress) = links(&task)?;
        engine::userspace::check(device, egress.as_ref(), ingress.as_ref())?;
    }
    make_way_for(order, EngineKind::Userspace)?;
    if order.foreground {
        let engine = open(&task, say)?;
        said(order, since);
        return daemon::foreground(engine, || ());
    }
    let text = serde_json::to_string(&task).map_err(|error| Failure::Failed(error.to_string()))?;
    daemon::start(device, &text, call)?;
    said(order, since);
    Ok(())
}

fn said(order: &Order, since: Option<&str>) {
    if let Some(since) = since {
        say(&format!("{}: the userspace engine, since {since}", order.device));
    }
    let at = |rate: Rate, bounds: Option<Bounds>, spec: &dyn Fn(Rate) -> Spec, what: &str| {
        let most = bounds.map_or(rate, |bounds| bounds.ceiling());
        let goal = bounds.map_or_else(|| pace(rate), |bounds| format!("auto:{bounds}"));
        format!("{} for what it {what}, at {goal}", spec(most))
    };
    let followed = order.following.as_ref();
    let (egress, ingress) = (
        followed.and_then(|following| following.egress),
        followed.and_then(|following| following.ingress),
    );
    let ways = [
        order.rate.map(|rate| at(rate, egress, &|rate| order.leaving(rate), "sends")),
        order.ingress.map(|rate| at(rate, ingress, &|rate| order.arriving(rate), "receives")),
    ];
    let ways: Vec<String> = ways.into_iter().flatten().collect();
    say(&format!("{}: {}, in userspace; {NEXT}", order.device, ways.join("; ")));
}

/// The process in the background: its task is on standard input.
pub(super) fn serve() -> Result<(), Failure> {
    let task: Task = serde_json::from_reader(io::stdin().lock()).map_err(|error| {
        Failure::Usage(format!("this is for `shortlane attach` alone: {error}"))
    })?;
    let log = daemon::Log::open(&task.device);
    let inner = log.clone();
    let engine = open(&task, move |line| inner.inform(line))?;
    daemon::background(engine, &log)
}

/// Removes what an engine that was killed has left, where the kernel does not do so itself.
pub(super) fn tidy_up(device: &str) -> Result<bool, Failure> {
    let found = engine::userspace::tidy_up(device)?;
    if found {
        say(&format!("{device}: removed what an engine that was killed had left"));
    }
    Ok(found)
}

fn open(task: &Task, log: impl FnMut(&str) + Send + 'static) -> Result<Forwarder, Failure> {
    let (egress, ingress) = links(task)?;
    let engine = Forwarder::attach(&task.device, egress, ingress, HookKind::Auto)?;
    let Some(followed) = &task.following else { return Ok(engine) };
    let name = task.device.clone();
    let mut log = log;
    Ok(engine.following(followed.read()?, move |line| log(&format!("{name}: {line}"))))
}

/// Of what leaves and of what arrives.
fn links(task: &Task) -> Result<(Option<LinkConfig>, Option<LinkConfig>), Failure> {
    let spec: Spec = task.scheduler.parse()?;
    let following = task.following.as_ref().map(Followed::read).transpose()?;
    let link = |spec: Spec, rate: Rate, bounds: Option<Bounds>| {
        // A queue that is long enough for the highest rate.
        let most = bounds.map_or(rate, |bounds| bounds.ceiling());
        LinkConfig {
            overhead: task.overhead,
            burst_time: Nanos(task.burst_ns),
            ..LinkConfig::new(spec.with_limit_for(most), rate)
        }
    };
    let bounds = |of: fn(&Following) -> Option<Bounds>| following.as_ref().and_then(of);
    let (leaving, arriving) =
        (hosts::leaving(&spec, &task.device), hosts::arriving(&spec, &task.device));
    let egress = task.rate.map(|rate| link(leaving, rate, bounds(|f| f.egress)));
    let ingress = task.ingress.map(|rate| link(arriving, rate, bounds(|f| f.ingress)));
    Ok((egress, ingress))
}
