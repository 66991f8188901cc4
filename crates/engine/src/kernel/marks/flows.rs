//! Long flows by name: what the program has counted of each since it became long.

use std::cmp::Reverse;

use account::Tally;
use frame::{Endpoints, FlowKey, Selector};
use libbpf_rs::{MapCore, MapFlags};
use sched::Nanos;

use super::program::{Placed, bpf};
use crate::kernel::error::KernelError;
use crate::kernel::memory::from_bytes;
use crate::kernel::skeleton::marks::types::{flow_key, sl_marks_flow};
use crate::status::{Flow, Seen};

/// Flows that are told.
const MOST: usize = 24;
/// Without a packet for this long, a flow is not told any more.
const LATELY: Nanos = Nanos::from_secs(30);
/// Bits of a second of the program's, in ns.
const SECOND: u32 = 30;
/// The lane of long flows.
const LONG: u8 = 1;

/// The long flows that were seen lately.
pub(super) fn seen(placed: &Placed, now: Nanos) -> Result<Seen, KernelError> {
    const READING: &str = "reading the flows of the program";
    let (names, flows) = (placed.map("sl_marks_names")?, placed.map("sl_marked")?);
    let mut found = Vec::new();
    for id in names.keys() {
        let look =
            |map: &libbpf_rs::MapHandle| map.lookup(&id, MapFlags::ANY).map_err(bpf(READING));
        // Either may have been evicted meanwhile.
        let (Some(name), Some(flow)) = (look(names)?, look(flows)?) else { continue };
        let parsed = from_bytes::<flow_key>(&name).zip(from_bytes::<sl_marks_flow>(&flow));
        found.extend(parsed.and_then(|(name, flow)| describe(&name, &flow, now)));
    }
    found.sort_by_key(|flow: &Flow| Reverse(flow.arrived.bytes));
    found.truncate(MOST);
    Ok(Seen { biggest_flows: found, ..Seen::default() })
}

fn describe(name: &flow_key, flow: &sl_marks_flow, now: Nanos) -> Option<Flow> {
    let idle = now.since(Nanos(flow.last));
    if flow.is_long == 0 || idle > LATELY {
        return None;
    }
    let arrived = Tally { packets: flow.packets.into(), bytes: flow.bytes };
    Some(Flow {
        flow: key(name)?.to_string(),
        lane: Some(LONG),
        standing: None,
        arrived,
        sent: arrived,
        dropped_packets: 0,
        marked_packets: 0,
        arriving_bps: arriving(flow, now),
        age: now.since(Nanos(flow.since)),
        idle,
    })
}

/// The rate of the last whole second of the program's, in bit/s.
fn arriving(flow: &sl_marks_flow, now: Nanos) -> u64 {
    let second = (now.0 >> SECOND) as u32;
    let bytes = match second.wrapping_sub(flow.second) {
        0 => flow.in_former,
        1 => flow.in_second,
        _ => 0,
    };
    (u64::from(bytes) * 8 * 1_000_000_000) >> SECOND
}

/// A key as the program's parser leaves it (`headers.h`); `None` if it is none.
fn key(key: &flow_key) -> Option<FlowKey> {
    let endpoints = match key.kind {
        0 => Endpoints::V4(end(key, 0), end(key, 4)),
        1 => Endpoints::V6(end(key, 0), end(key, 16)),
        2 => Endpoints::Mac(end(key, 0), end(key, 6)),
        _ => return None,
    };
    let selector = match key.protocol >> 16 {
        0 => Selector::None,
        1 => Selector::Ports((key.selector >> 16) as u16, key.selector as u16),
        2 => Selector::Id(key.selector),
        3 => Selector::Fragment,
        _ => return None,
    };
    Some(FlowKey { endpoints, selector, protocol: key.protocol as u16, vlans: key.vlans })
}

fn end<const N: usize>(key: &flow_key, at: usize) -> [u8; N] {
    std::array::from_fn(|byte| key.ends[at + byte])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str, kind: u32, ends: &[u8], protocol: u32, selector: u32) {
        let mut raw = flow_key { kind, protocol, selector, ..flow_key::default() };
        raw.ends[..ends.len()].copy_from_slice(ends);
        assert_eq!(key(&raw).map(|key| key.to_string()).as_deref(), Some(text));
    }

    #[test]
    fn every_kind_of_key_has_a_name() {
        named(
            "10.0.0.1:443 > 10.0.0.2:50000 tcp",
            0,
            &[10, 0, 0, 1, 10, 0, 0, 2],
            1 << 16 | 6,
            443 << 16 | 50_000,
        );
        let mut six = [0; 32];
        (six[15], six[31]) = (1, 2);
        named("[::1]:53 > [::2]:5353 udp", 1, &six, 1 << 16 | 17, 53 << 16 | 5353);
        named("10.0.0.1 > 10.0.0.2 icmp 0x7", 0, &[10, 0, 0, 1, 10, 0, 0, 2], 2 << 16 | 1, 7);
        assert_eq!(key(&flow_key { kind: 3, ..flow_key::default() }), None);
    }

    #[test]
    fn the_rate_is_that_of_the_last_whole_second() {
        let at = |second: u64| Nanos((second << SECOND) + 5);
        let flow = sl_marks_flow {
            second: 7,
            in_second: 1 << 27,
            in_former: 1 << 20,
            ..sl_marks_flow::default()
        };
        assert_eq!(arriving(&flow, at(7)), ((1 << 20) * 8_000_000_000) >> SECOND);
        assert_eq!(arriving(&flow, at(8)), 1_000_000_000);
        assert_eq!(arriving(&flow, at(9)), 0);
    }

    #[test]
    fn who_is_short_or_silent_is_not_told() {
        let name = flow_key::default();
        let flow = sl_marks_flow { is_long: 1, last: 5, since: 1, ..sl_marks_flow::default() };
        assert_eq!(describe(&name, &flow, Nanos(6)).map(|flow| flow.age), Some(Nanos(5)));
        assert_eq!(describe(&name, &flow, Nanos(6) + LATELY), None);
        assert_eq!(describe(&name, &sl_marks_flow { is_long: 0, ..flow }, Nanos(6)), None);
    }
}
