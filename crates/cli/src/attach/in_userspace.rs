//! `attach` by the userspace engine.

use std::io;

use engine::status::EngineKind;
use engine::userspace::HookKind;
use engine::{Forwarder, LinkConfig, Overhead};
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
    };
    if order.replace {
        // Validated before the running one is detached.
        let (egress, ingress) = links(&task)?;
        engine::userspace::check(device, egress.as_ref(), ingress.as_ref())?;
    }
    make_way_for(order, EngineKind::Userspace)?;
    if order.foreground {
        let engine = open(&task)?;
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
    let at = |rate: Rate, spec: Spec, what: &str| {
        format!("{spec} for what it {what}, at {}", pace(rate))
    };
    let ways = [
        order.rate.map(|rate| at(rate, order.leaving(rate), "sends")),
        order.ingress.map(|rate| at(rate, order.arriving(rate), "receives")),
    ];
    let ways: Vec<String> = ways.into_iter().flatten().collect();
    say(&format!("{}: {}, in userspace; {NEXT}", order.device, ways.join("; ")));
}

/// The process in the background: its task is on standard input.
pub(super) fn serve() -> Result<(), Failure> {
    let task: Task = serde_json::from_reader(io::stdin().lock()).map_err(|error| {
        Failure::Usage(format!("this is for `shortlane attach` alone: {error}"))
    })?;
    daemon::background(open(&task)?, &task.device)
}

/// Removes what an engine that was killed has left, where the kernel does not do so itself.
pub(super) fn tidy_up(device: &str) -> Result<bool, Failure> {
    let found = engine::userspace::tidy_up(device)?;
    if found {
        say(&format!("{device}: removed what an engine that was killed had left"));
    }
    Ok(found)
}

fn open(task: &Task) -> Result<Forwarder, Failure> {
    let (egress, ingress) = links(task)?;
    Ok(Forwarder::attach(&task.device, egress, ingress, HookKind::Auto)?)
}

/// Of what leaves and of what arrives.
fn links(task: &Task) -> Result<(Option<LinkConfig>, Option<LinkConfig>), Failure> {
    let spec: Spec = task.scheduler.parse()?;
    let link = |spec: Spec, rate: Rate| LinkConfig {
        overhead: task.overhead,
        burst_time: Nanos(task.burst_ns),
        ..LinkConfig::new(spec.with_limit_for(rate), rate)
    };
    let egress = task.rate.map(|rate| link(hosts::leaving(&spec, &task.device), rate));
    let ingress = task.ingress.map(|rate| link(hosts::arriving(&spec, &task.device), rate));
    Ok((egress, ingress))
}
