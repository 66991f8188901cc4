//! The commands by marks in front of the kernel's own queues.

use engine::LinkChanges;
use engine::control::Changes;
use engine::kernel::{KernelError, marks};
use engine::status::{EngineKind, Heading, Status};
use sched::Rate;

use super::engines::Engine;
use super::goal::Goal;
use super::in_place::{
    at, attach_both, does, follower_lacks, follower_probe, make_way_for, note_fixed,
};
use super::order::Order;
use super::{Join, Queues};
use crate::{Call, Failure, say};

/// Marks on packets of long flows, in front of the kernel's own queues.
pub(super) struct Marks;

impl Queues {
    const fn of_engine(self) -> marks::Queues {
        match self {
            Self::Cake => marks::Queues::Cake,
            Self::Prio => marks::Queues::Prio,
            Self::Htb => marks::Queues::Htb,
        }
    }
}

impl Engine for Marks {
    fn obstacle(&self, order: &Order) -> Result<Option<String>, Failure> {
        if let Some(lacking) = follower_lacks(order) {
            return Ok(Some(lacking));
        }
        // A discipline that is asked for by its name is to run.
        if order.is_named {
            return Ok(Some("marks take no discipline".into()));
        }
        if rates(order).any(Rate::is_unlimited) {
            return Ok(Some("marks take a rate".into()));
        }
        Ok(marks::can(None).err().map(|error| error.to_string()))
    }

    fn holder(&self, order: &Order) -> Result<Option<String>, Failure> {
        Ok(held(&order.device)?.map(|marks| format!("{marks} already")))
    }

    fn attach(&self, order: &Order, since: Option<&str>, call: &Call) -> Result<(), Failure> {
        let device = &order.device;
        if rates(order).any(Rate::is_unlimited) {
            return Err(Failure::Usage(format!(
                "{device}: marks take a rate; --engine kernel and userspace take unlimited"
            )));
        }
        let probe = follower_probe(order)?;
        if order.join.is_none() {
            // What would be refused is not to cost what is there.
            marks::can(order.queues.map(Queues::of_engine))?;
        }
        make_way_for(order, EngineKind::Marks)?;
        if let Some(since) = since {
            say(&format!(
                "{device}: marks in front of the kernel's own queues, since {since}; --engine \
                 userspace would run a discipline in a process"
            ));
        }
        attach_both(order, EngineKind::Marks, probe.as_ref(), call, |heading| {
            let rate = order.rate(heading);
            let joins = order.join.is_some() && heading == Heading::Egress;
            if rate.is_none() && !joins {
                return Ok(None);
            }
            let wanted = marks::Order {
                device,
                link: order.options.at(rate.unwrap_or_default()),
                queues: order.queues.map(Queues::of_engine),
                join: order.join.map(|Join(classes)| marks::Join { classes }),
                threshold: None,
                replace: order.replace,
            };
            let notes = match heading {
                Heading::Egress => marks::attach(&wanted)?,
                Heading::Ingress => marks::attach_ingress(&wanted)?,
            };
            let at = at(order, heading).map_or_else(String::new, |at| format!(", at {at}"));
            let marks = held(device)?.unwrap_or_default();
            Ok(Some((notes, format!("{marks} for what it {}{at}", does(heading)))))
        })
    }

    fn change(&self, device: &str, changes: &Changes) -> Result<bool, Failure> {
        if held(device)?.is_none() {
            return Ok(false);
        }
        if changes.scheduler.is_some() {
            return Err(Failure::Usage(format!(
                "{device} has marks, which take no --scheduler; `shortlane attach {device} \
                 --replace` attaches one"
            )));
        }
        let links = [changes.link(Heading::Egress), changes.link(Heading::Ingress)];
        if links.iter().any(|link| link.rate.is_some_and(Rate::is_unlimited)) {
            return Err(Failure::Usage(format!("{device} has marks, which take a rate")));
        }
        let [sent, received] = links;
        marks::change(device, sent, received)?;
        note_fixed(device, changes)?;
        Ok(true)
    }

    /// Queues that are somebody's count and burst as they do.
    fn changes(&self, wanted: &Order, runs: &Status) -> LinkChanges {
        let rate = wanted.goal(runs.direction).and_then(Goal::fixed);
        let rate = rate.filter(|rate| *rate != runs.link.rate);
        match wanted.join {
            Some(_) => LinkChanges { rate, ..LinkChanges::default() },
            None => runs.link.changes_to(wanted.options.at(rate.unwrap_or(runs.link.rate))),
        }
    }

    /// The queues behind marks that are wanted, if others are there.
    fn other_than(&self, wanted: &Order, runs: &Status) -> Result<Option<String>, Failure> {
        let asked = match (wanted.join, wanted.queues.map(Queues::of_engine)) {
            _ if wanted.is_named => wanted.discipline(runs.direction).to_string(),
            (Some(_), _) => "marks:joined=".to_owned(),
            (None, Some(queues)) => format!("marks:queues={},", queues.name()),
            (None, None) => "marks:queues=".to_owned(),
        };
        let is_other = !runs.scheduler.starts_with(&asked);
        Ok(is_other.then(|| asked.trim_end_matches([',', '=']).to_owned()))
    }

    /// The kernel engine does so: one journal tells what both have changed.
    fn detach(&self, _: &str) -> Result<bool, Failure> {
        Ok(false)
    }

    fn show(&self, device: Option<&str>) -> Result<Vec<Status>, Failure> {
        match marks::show(device) {
            Err(KernelError::NoPermission { .. } | KernelError::Journal { .. }) => Ok(Vec::new()),
            shown => Ok(shown?),
        }
    }
}

/// Another rate for a direction, and nothing else.
pub(super) fn set(device: &str, heading: Heading, rate: Rate) -> Result<(), Failure> {
    let (none, link) =
        (LinkChanges::default(), LinkChanges { rate: Some(rate), ..LinkChanges::default() });
    let (sent, received) = match heading {
        Heading::Egress => (link, none),
        Heading::Ingress => (none, link),
    };
    Ok(marks::change(device, sent, received)?)
}

fn rates(order: &Order) -> impl Iterator<Item = Rate> {
    [Heading::Egress, Heading::Ingress].into_iter().filter_map(|heading| order.rate(heading))
}

/// What of marks is on a device, in words.
pub(super) fn held(device: &str) -> Result<Option<String>, Failure> {
    match marks::holder(device) {
        // An ordinary user has attached none.
        Err(KernelError::Journal { .. }) => Ok(None),
        held => Ok(held?),
    }
}
