//! The commands by marks in front of the kernel's own queues.

use engine::control;
use engine::kernel::{self, KernelError, marks};
use engine::status::{EngineKind, Status};
use sched::Rate;

use super::{Join, NEXT, Order, Queues, daemon, make_way_for};
use crate::{Failure, say};

impl Queues {
    const fn of_engine(self) -> marks::Queues {
        match self {
            Self::Cake => marks::Queues::Cake,
            Self::Prio => marks::Queues::Prio,
            Self::Htb => marks::Queues::Htb,
        }
    }
}

/// Whether this kernel has the queues, and the link a rate.
pub(super) fn can(order: &Order) -> bool {
    let rates = [order.rate, order.ingress].into_iter().flatten();
    rates.into_iter().all(|rate| !rate.is_unlimited()) && marks::can(None).is_ok()
}

pub(super) fn attach(order: &Order, since: Option<&str>) -> Result<(), Failure> {
    let device = &order.device;
    for rate in [order.rate, order.ingress].into_iter().flatten() {
        if rate.is_unlimited() {
            return Err(Failure::Usage(format!(
                "{device}: marks take a rate; --engine kernel and userspace take unlimited"
            )));
        }
    }
    if order.join.is_none() {
        // What would be refused is not to cost what is there.
        marks::can(order.queues.map(Queues::of_engine))?;
    }
    make_way_for(order, EngineKind::Marks)?;
    if let Some(since) = since {
        say(&format!(
            "{device}: marks in front of the kernel's own queues, since {since}; --engine userspace \
             would run a discipline in a process"
        ));
    }
    let ordered = |rate: Option<Rate>| marks::Order {
        device,
        rate,
        overhead: order.overhead,
        burst: order.burst_time,
        queues: order.queues.map(Queues::of_engine),
        join: order.join.map(|Join(classes)| marks::Join { classes }),
        threshold: None,
        replace: order.replace,
    };
    if order.rate.is_some() || order.join.is_some() {
        tell(&marks::attach(&ordered(order.rate))?);
        said(order, order.rate, "sends")?;
    }
    if order.ingress.is_some() {
        match marks::attach_ingress(&ordered(order.ingress)) {
            Ok(notes) => tell(&notes),
            Err(error) => {
                if order.rate.is_some() || order.join.is_some() {
                    tell(&kernel::detach(device).unwrap_or_default());
                }
                return Err(error.into());
            }
        }
        said(order, order.ingress, "receives")?;
    }
    if order.foreground {
        daemon::wait()?;
        tell(&kernel::detach(device)?);
    }
    Ok(())
}

fn said(order: &Order, rate: Option<Rate>, does: &str) -> Result<(), Failure> {
    let at = rate.map_or_else(String::new, |rate| format!(", at {rate}"));
    let marks = holder(&order.device)?.unwrap_or_default();
    let device = &order.device;
    say(&format!("{device}: {marks} for what it {does}{at}; {NEXT}"));
    Ok(())
}

pub(super) fn change(device: &str, changes: &control::Changes) -> Result<(), Failure> {
    if changes.scheduler.is_some() {
        return Err(Failure::Usage(format!(
            "{device} has marks, which take no --scheduler; `shortlane attach {device} --replace` \
             attaches one"
        )));
    }
    let rate = |rate: Option<Rate>| match rate {
        Some(Rate::UNLIMITED) => {
            Err(Failure::Usage(format!("{device} has marks, which take a rate")))
        }
        rate => Ok(rate),
    };
    let of = |rate| marks::Changes { rate, overhead: changes.overhead, burst: changes.burst_time };
    let (sent, received) = (rate(changes.rate)?, rate(changes.ingress_rate)?);
    Ok(marks::change(device, of(sent), of(received))?)
}

/// What of marks is on a device, in words.
pub(super) fn holder(device: &str) -> Result<Option<String>, Failure> {
    match marks::holder(device) {
        // An ordinary user has attached none.
        Err(KernelError::Journal { .. }) => Ok(None),
        held => Ok(held?),
    }
}

pub(super) fn show(device: Option<&str>) -> Result<Vec<Status>, Failure> {
    match marks::show(device) {
        Err(KernelError::NoPermission { .. } | KernelError::Journal { .. }) => Ok(Vec::new()),
        shown => Ok(shown?),
    }
}

/// What else there is to know.
fn tell(notes: &[String]) {
    notes.iter().for_each(|note| say(note));
}
