//! The commands by the kernel engine.

use engine::LinkSettings;
use engine::control::Changes;
use engine::kernel::{self, Instance, KernelError};
use engine::status::{EngineKind, Heading, Status};
use sched::{Rate, Spec};

use super::engines::Engine;
use super::in_place::{
    at, attach_both, does, follower_lacks, follower_probe, make_way_for, note_fixed, tell,
};
use super::index_of;
use super::order::Order;
use crate::{Call, Failure};

/// A qdisc inside the kernel.
pub(super) struct Kernel;

impl From<KernelError> for Failure {
    fn from(error: KernelError) -> Self {
        let text = error.to_string();
        if error.is_usage() { Self::Usage(text) } else { Self::Failed(text) }
    }
}

impl Engine for Kernel {
    fn obstacle(&self, order: &Order) -> Result<Option<String>, Failure> {
        if let Some(lacking) = follower_lacks(order) {
            return Ok(Some(lacking));
        }
        for (_, spec, link) in ways(order) {
            match kernel::can(&spec, link) {
                Ok(()) => {}
                Err(
                    error @ (KernelError::Kernel { .. }
                    | KernelError::NotInKernel { .. }
                    | KernelError::Parameter { .. }),
                ) => return Ok(Some(error.to_string())),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    fn holder(&self, order: &Order) -> Result<Option<String>, Failure> {
        let ingress = kernel::ingress_device(&order.device)?;
        let qdisc = kernel::attached_qdisc(&order.device)?.or(ingress);
        Ok(qdisc.map(|qdisc| format!("{qdisc} already")))
    }

    fn attach(&self, order: &Order, _: Option<&str>, call: &Call) -> Result<(), Failure> {
        let ways = ways(order);
        let probe = follower_probe(order)?;
        if order.replace {
            // Validated before the running one is detached.
            ways.iter().try_for_each(|(_, spec, link)| kernel::can(spec, *link))?;
        }
        make_way_for(order, EngineKind::Kernel)?;
        attach_both(order, EngineKind::Kernel, probe.as_ref(), call, |heading| {
            let Some((_, spec, link)) = ways.iter().find(|way| way.0 == heading) else {
                return Ok(None);
            };
            let wanted = kernel::Order {
                device: &order.device,
                spec,
                link: *link,
                replace: order.replace,
                keep_offloads: order.keep_offloads,
                // What is received has a device with one queue.
                per_queue: order.per_queue && heading == Heading::Egress,
            };
            let notes = match heading {
                Heading::Egress => kernel::attach(&wanted)?,
                Heading::Ingress => kernel::attach_ingress(&wanted)?,
            };
            let (does, at) = (does(heading), at(order, heading).unwrap_or_default());
            Ok(Some((notes, format!("{spec} for what it {does}, at {at}, in the kernel"))))
        })
    }

    /// It says what is there if nothing of ours is.
    fn change(&self, device: &str, changes: &Changes) -> Result<bool, Failure> {
        let spec: Option<Spec> = changes.scheduler.as_deref().map(str::parse).transpose()?;
        let (sent, received) = (changes.link(Heading::Egress), changes.link(Heading::Ingress));
        let is_for_both =
            spec.is_some() || changes.overhead.is_some() || changes.burst_time.is_some();
        let ingress = kernel::ingress_device(device)?;
        let mut all = Vec::new();
        if changes.rate.is_some()
            || ingress.is_none() && changes.ingress_rate.is_none()
            || is_for_both && kernel::attached_qdisc(device)?.is_some()
        {
            all.push((device.to_owned(), sent));
        }
        match ingress {
            Some(ifb) if changes.ingress_rate.is_some() || is_for_both => all.push((ifb, received)),
            None if changes.ingress_rate.is_some() => {
                return Err(Failure::Failed(format!(
                    "{device}: what it receives is not attached; `shortlane attach {device} \
                     --ingress RATE` attaches it"
                )));
            }
            _ => {}
        }
        // Both directions or none.
        for (device, link) in &all {
            kernel::check_change(device, *link, spec.as_ref())?;
        }
        for (device, link) in &all {
            tell(&kernel::change(device, *link, spec.as_ref())?);
        }
        note_fixed(device, changes)?;
        Ok(true)
    }

    /// Marks as well: one journal tells what both have changed. It says what is there if nothing
    /// of ours is.
    fn detach(&self, device: &str) -> Result<bool, Failure> {
        tell(&kernel::detach(device)?);
        Ok(true)
    }

    fn show(&self, device: Option<&str>) -> Result<Vec<Status>, Failure> {
        Ok(kernel::show(device)?)
    }
}

/// Whether a qdisc of ours is on a device, or has what it receives.
pub(super) fn is_there(device: &str) -> Result<bool, Failure> {
    Ok(kernel::attached_qdisc(device)?.or(kernel::ingress_device(device)?).is_some())
}

/// The qdisc of a direction, for another rate now and then.
pub(super) struct Paced {
    device: String,
    instances: Vec<Instance>,
}

impl Paced {
    pub(super) fn find(device: &str, heading: Heading) -> Result<Self, Failure> {
        let ifb = match heading {
            Heading::Egress => None,
            Heading::Ingress => kernel::ingress_device(device)?,
        };
        let device = ifb.unwrap_or_else(|| device.to_owned());
        let gone = || Failure::Failed(format!("{device}: its qdisc is gone"));
        let instances = Instance::on(index_of(&device)?)?;
        if instances.is_empty() {
            return Err(gone());
        }
        Ok(Self { device, instances })
    }

    pub(super) fn set(&self, rate: Rate) -> Result<(), Failure> {
        Ok(kernel::change_rate(&self.device, &self.instances, rate)?)
    }
}

/// What is wanted in each direction.
fn ways(order: &Order) -> Vec<(Heading, Spec, LinkSettings)> {
    let way = |heading| Some((heading, order.spec(heading), order.link(heading)?));
    [Heading::Egress, Heading::Ingress].into_iter().filter_map(way).collect()
}
