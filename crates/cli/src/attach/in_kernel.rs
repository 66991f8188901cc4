//! The commands by the kernel engine.

use engine::control;
use engine::kernel::{self, KernelError, Shaping};
use engine::status::{EngineKind, Status};
use sched::{Rate, Spec};

use super::{NEXT, Order, daemon, make_way_for, pace};
use crate::{Failure, say};

impl From<KernelError> for Failure {
    fn from(error: KernelError) -> Self {
        let text = error.to_string();
        if error.is_usage() { Self::Usage(text) } else { Self::Failed(text) }
    }
}

/// Why the kernel engine cannot do this, for userspace to do it.
pub(super) fn obstacle(order: &Order) -> Result<Option<String>, Failure> {
    match can(order) {
        Ok(()) => Ok(None),
        Err(
            error @ (KernelError::Kernel { .. }
            | KernelError::NotInKernel { .. }
            | KernelError::Parameter { .. }),
        ) => Ok(Some(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

/// Whether the kernel can do what is wanted in each direction.
fn can(order: &Order) -> Result<(), KernelError> {
    let leaving = order.rate.map(|rate| (rate, order.leaving(rate)));
    let arriving = order.ingress.map(|rate| (rate, order.arriving(rate)));
    let mut ways = [leaving, arriving].into_iter().flatten();
    ways.try_for_each(|(rate, spec)| kernel::can(&spec, &shaping(order, rate)))
}

fn shaping(order: &Order, rate: Rate) -> Shaping {
    Shaping { rate, overhead: order.overhead, burst: order.burst_time, ..Shaping::default() }
}

pub(super) fn attach(order: &Order) -> Result<(), Failure> {
    let device = &order.device;
    if order.replace {
        // Validated before the running one is detached.
        can(order)?;
    }
    make_way_for(order, EngineKind::Kernel)?;
    if let Some(rate) = order.rate {
        let spec = order.leaving(rate);
        tell(&kernel::attach(&ordered(order, rate, &spec))?);
        said(order, rate, &spec, "sends");
    }
    if let Some(rate) = order.ingress {
        let spec = order.arriving(rate);
        match kernel::attach_ingress(&ordered(order, rate, &spec)) {
            Ok(notes) => tell(&notes),
            Err(error) => {
                if order.rate.is_some() {
                    tell(&kernel::detach(device).unwrap_or_default());
                }
                return Err(error.into());
            }
        }
        said(order, rate, &spec, "receives");
    }
    if order.foreground {
        daemon::wait()?;
        tell(&kernel::detach(device)?);
    }
    Ok(())
}

/// What of the kernel engine's is on a device, in words.
pub(super) fn holder(device: &str) -> Result<Option<String>, Failure> {
    let ingress = kernel::ingress_device(device)?;
    Ok(kernel::attached_qdisc(device)?.or(ingress))
}

fn ordered<'a>(order: &'a Order, rate: Rate, spec: &'a Spec) -> kernel::Order<'a> {
    kernel::Order {
        device: &order.device,
        spec,
        shaping: shaping(order, rate),
        replace: order.replace,
        keep_offloads: order.keep_offloads,
    }
}

fn said(order: &Order, rate: Rate, spec: &Spec, does: &str) {
    let at = pace(rate);
    say(&format!("{}: {spec} for what it {does}, at {at}, in the kernel; {NEXT}", order.device,));
}

pub(super) fn change(
    device: &str,
    changes: &control::Changes,
    spec: Option<Spec>,
) -> Result<(), Failure> {
    let of = |rate| kernel::Changes {
        rate,
        spec: spec.clone(),
        overhead: changes.overhead,
        burst: changes.burst_time,
    };
    let is_for_both = spec.is_some() || changes.overhead.is_some() || changes.burst_time.is_some();
    let ingress = kernel::ingress_device(device)?;
    let mut all = Vec::new();
    if changes.rate.is_some() || ingress.is_none() && changes.ingress_rate.is_none() {
        all.push((device.to_owned(), of(changes.rate)));
    } else if is_for_both && kernel::attached_qdisc(device)?.is_some() {
        all.push((device.to_owned(), of(None)));
    }
    match ingress {
        Some(ifb) if changes.ingress_rate.is_some() || is_for_both => {
            all.push((ifb, of(changes.ingress_rate)));
        }
        None if changes.ingress_rate.is_some() => {
            return Err(Failure::Failed(format!(
                "{device}: what it receives is not attached; `shortlane attach {device} --ingress \
                 RATE` attaches it"
            )));
        }
        _ => {}
    }
    // Both directions or none.
    for (device, changes) in &all {
        kernel::check_change(device, changes)?;
    }
    for (device, changes) in &all {
        tell(&kernel::change(device, changes)?);
    }
    Ok(())
}

pub(super) fn detach(device: &str) -> Result<(), Failure> {
    tell(&kernel::detach(device)?);
    Ok(())
}

pub(super) fn show(device: Option<&str>) -> Result<Vec<Status>, Failure> {
    Ok(kernel::show(device)?)
}

/// What else was changed, and what could not be put back.
fn tell(notes: &[String]) {
    notes.iter().for_each(|note| say(note));
}
