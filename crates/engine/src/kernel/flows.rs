//! Flows as programs in the kernel tell of them: their names, and the rate of their last second.

use std::collections::BTreeMap;

use account::Tally;
use frame::{Endpoints, FlowKey, Selector};
use sched::Nanos;

use super::skeleton::marks::types::flow_key;
use crate::status::{Host, Seen};

/// Without a packet for this long, a flow is not told any more.
pub(super) const LATELY: Nanos = Nanos::from_secs(30);
/// Bits of a second of the programs', in ns: `SL_MARKS_SECOND`, `FQL_SECOND`.
const SECOND: u32 = 30;

/// The second that a flow's latest packet was counted in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Second {
    number: u32,
    /// Bytes in it, and in the one before.
    bytes: [u32; 2],
}

impl Second {
    pub(super) const fn of(number: u32, bytes: u32, former: u32) -> Self {
        Self { number, bytes: [bytes, former] }
    }

    /// The rate of the last whole second, in bit/s.
    pub(super) fn rate(self, now: Nanos) -> u64 {
        let [bytes, former] = self.bytes;
        let bytes = match ((now.0 >> SECOND) as u32).wrapping_sub(self.number) {
            0 => former,
            1 => bytes,
            _ => 0,
        };
        (u64::from(bytes) * 8 * 1_000_000_000) >> SECOND
    }
}

/// The busiest of the hosts that flows are of, by each flow's host, its rate, and what was sent of it.
pub(super) fn busiest_hosts(flows: impl Iterator<Item = (String, u64, Tally)>) -> Vec<Host> {
    let mut hosts = BTreeMap::<String, Host>::new();
    for (name, arriving_bps, sent) in flows {
        let host = hosts.entry(name).or_default();
        host.flows += 1;
        host.arriving_bps += arriving_bps;
        host.sent += sent;
    }
    Seen::busiest(hosts.into_iter().map(|(name, host)| Host { host: name, ..host }))
}

/// A key as the programs' parser leaves it (`headers.h`); `None` if it is none.
pub(super) fn key(key: &flow_key) -> Option<FlowKey> {
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
        let second = Second::of(7, 1 << 27, 1 << 20);
        assert_eq!(second.rate(at(7)), ((1 << 20) * 8_000_000_000) >> SECOND);
        assert_eq!(second.rate(at(8)), 1_000_000_000);
        assert_eq!(second.rate(at(9)), 0);
    }
}
