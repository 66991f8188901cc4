//! Completion times on an idle network, the reference of slowdown.

mod curve;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sim::{FlowReport, LinkId, Network, NodeId};

use self::curve::Curve;
use crate::job::Built;
use crate::scenario::Scenario;
use crate::traffic::{Arrivals, Kind};

/// Times on an idle network, by traffic, ends and size, measured when they are first asked for.
/// They depend on no scheduler: where one is under test, an empty FIFO stands.
pub(crate) struct IdleTimes<'a> {
    scenario: &'a Scenario,
    network: Network,
    /// By link: links of the same number are alike in all but name and ends.
    classes: Vec<usize>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// `None` where there are none.
    of_ends: HashMap<(usize, NodeId, NodeId), Option<Arc<Curve>>>,
    /// By traffic, and the classes of the links there and back: ends whose ways are alike share a
    /// curve.
    of_ways: OfWays,
}

type OfWays = HashMap<(usize, [Vec<usize>; 2]), Arc<Curve>>;

/// With more pairs of ends than this there are no idle times.
const MOST_PAIRS: usize = 20_000;

/// The largest transfer that is measured; what lies beyond goes on as it ends.
const LARGEST: u64 = 4 << 20;

impl<'a> IdleTimes<'a> {
    /// For a network that was built without a scheduler.
    pub(crate) fn new(scenario: &'a Scenario, built: Built) -> Self {
        let classes = curve::classes(built.network.links());
        Self { scenario, network: built.network, classes, known: Mutex::default() }
    }

    /// What the transfer would have taken on an idle network.
    pub(crate) fn of(&self, traffic: usize, report: &FlowReport) -> Option<u64> {
        let (from, to) = report.label.ends();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Known { of_ends, of_ways } = &mut *known;
        let curve = of_ends
            .entry((traffic, from, to))
            .or_insert_with(|| self.find(traffic, from, to, of_ways));
        curve.as_ref()?.time(report.bytes)
    }

    fn find(
        &self,
        number: usize,
        from: NodeId,
        to: NodeId,
        of_ways: &mut OfWays,
    ) -> Option<Arc<Curve>> {
        let traffic = &self.scenario.traffic[number];
        if traffic.from.len().saturating_mul(traffic.to.len()) > MOST_PAIRS {
            return None;
        }
        let largest = largest(&traffic.kind)?;
        let ways = [self.network.path(from, to).ok()?, self.network.path(to, from).ok()?];
        let class = |link: &LinkId| self.classes[link.index()];
        let signature = ways.each_ref().map(|way| way.iter().map(class).collect());
        let signature = (number, signature);
        if let Some(curve) = of_ways.get(&signature) {
            return Some(curve.clone());
        }
        let curve = Curve::of(traffic, &self.network, &ways, largest).ok()?;
        of_ways.insert(signature, curve.clone());
        Some(curve)
    }
}

/// The largest transfer to measure; `None` for what is no transfer.
fn largest(kind: &Kind) -> Option<u64> {
    let largest = match kind {
        Kind::Transfers { arrivals, .. } | Kind::OpenLoop { arrivals, .. } => match arrivals {
            Arrivals::Drawn { sizes, .. } => sizes.quantile(1.0),
            Arrivals::Listed(list) => list.transfers().iter().map(|t| t.size_bytes).max()?,
        },
        Kind::Periodic { size_bytes, .. } => *size_bytes,
        Kind::Web { sizes, .. } => sizes.quantile(1.0),
        _ => return None,
    };
    Some(largest.min(LARGEST))
}
