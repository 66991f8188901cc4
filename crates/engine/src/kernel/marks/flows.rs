//! Long flows and their hosts by name: what the program has counted of each flow since it became long.

use std::cmp::Reverse;

use account::Tally;
use frame::FlowKey;
use libbpf_rs::{MapCore, MapFlags};
use sched::Nanos;

use super::program::{Placed, bpf};
use crate::kernel::error::KernelError;
use crate::kernel::flows::{LATELY, Second, busiest_hosts, key};
use crate::kernel::memory::from_bytes;
use crate::kernel::skeleton::marks::types::{flow_key, sl_marks_flow};
use crate::status::{Flow, Seen};

/// The lane of long flows.
const LONG: u8 = 1;

/// The long flows that were seen lately, and their hosts at this end if the queues share among hosts.
pub(super) fn seen(
    placed: &Placed,
    hosts_at_destination: Option<bool>,
    now: Nanos,
) -> Result<Seen, KernelError> {
    const READING: &str = "reading the flows of the program";
    let (names, flows) = (placed.map("sl_marks_names")?, placed.map("sl_marked")?);
    let mut found = Vec::new();
    for id in names.keys() {
        let look =
            |map: &libbpf_rs::MapHandle| map.lookup(&id, MapFlags::ANY).map_err(bpf(READING));
        // Either may have been evicted meanwhile.
        let (Some(name), Some(flow)) = (look(names)?, look(flows)?) else { continue };
        let parsed = from_bytes::<flow_key>(&name).zip(from_bytes::<sl_marks_flow>(&flow));
        found.extend(parsed.and_then(|(name, flow)| {
            let key = key(&name)?;
            Some((key, describe(&key, &flow, now)?))
        }));
    }
    let busiest_hosts = hosts_at_destination.map_or_else(Vec::new, |at_destination| {
        busiest_hosts(found.iter().map(|(key, flow): &(FlowKey, Flow)| {
            (key.endpoints.name(at_destination), flow.arriving_bps, flow.sent)
        }))
    });
    found.sort_by_key(|(_, flow)| Reverse(flow.arrived.bytes));
    found.truncate(Seen::LISTED);
    let biggest_flows = found.into_iter().map(|(_, flow)| flow).collect();
    Ok(Seen { busiest_hosts, biggest_flows, ..Seen::default() })
}

fn describe(key: &FlowKey, flow: &sl_marks_flow, now: Nanos) -> Option<Flow> {
    let idle = now.since(Nanos(flow.last));
    if flow.is_long == 0 || idle > LATELY {
        return None;
    }
    let arrived = Tally { packets: flow.packets.into(), bytes: flow.bytes };
    Some(Flow {
        flow: key.to_string(),
        lane: Some(LONG),
        standing: None,
        arrived,
        sent: arrived,
        dropped_packets: 0,
        marked_packets: 0,
        arriving_bps: Second::of(flow.second, flow.in_second, flow.in_former).rate(now),
        age: now.since(Nanos(flow.since)),
        idle,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_short_or_silent_is_not_told() {
        let name = key(&flow_key::default()).unwrap();
        let flow = sl_marks_flow { is_long: 1, last: 5, since: 1, ..sl_marks_flow::default() };
        assert_eq!(describe(&name, &flow, Nanos(6)).map(|flow| flow.age), Some(Nanos(5)));
        assert_eq!(describe(&name, &flow, Nanos(6) + LATELY), None);
        assert_eq!(describe(&name, &sl_marks_flow { is_long: 0, ..flow }, Nanos(6)), None);
    }
}
