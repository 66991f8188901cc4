//! Flows and hosts of `fq-lanes` by name: what its qdisc tells of each (`bpf/fq_lanes/seen.h`).

use std::cmp::Reverse;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;

use account::Tally;
use frame::FlowKey;
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{MapCore, MapHandle};
use sched::{Nanos, Spec, standing_of_age};

use super::flows::{LATELY, Second, busiest_hosts, key};
use super::fq_lanes::NAME;
use super::memory::{Table, from_bytes, to_bytes};
use super::skeleton::fq_lanes::types::fql_seen;
use crate::status::{Flow, Seen, Standing};

/// What the qdiscs of a load tell of flows, by the map of the load that their maps are beside;
/// `None` if they tell nothing.
pub(super) fn table_beside(shared: u32) -> Option<MapHandle> {
    let options = ProgInfoQueryOptions::default().include_map_ids(true);
    let beside = ProgInfoIter::with_query_opts(options)
        .find(|program| program.map_ids.contains(&shared))?
        .map_ids;
    let mut maps = beside.iter().filter_map(|id| MapHandle::from_map_id(*id).ok());
    maps.find(|map| map.name() == "fql_seen" && map.value_size() as usize == size_of::<fql_seen>())
}

/// Who was seen lately by the qdisc of this number, of so many, which runs this discipline.
pub(super) fn seen(
    table: &MapHandle,
    (index, instances): (usize, usize),
    spec: &Spec,
    now: Nanos,
) -> Option<Seen> {
    if spec.info().name != NAME {
        return None;
    }
    let entries = table.max_entries() as usize;
    let each = entries / instances.max(1);
    let table = Table::<fql_seen>::open(table.as_fd(), entries).ok()?;
    let of_qdisc = table.iter().skip(index * each).take(each);
    let known: Vec<Known> = of_qdisc.filter_map(|entry| Known::of(&entry, now)).collect();
    Some(in_words(&known, spec, now))
}

fn in_words(known: &[Known], spec: &Spec, now: Nanos) -> Seen {
    let params = spec.params();
    let ages = params.word("without") != "ages";
    let words = |mut flows: Vec<&Known>, by: fn(&Known) -> u64| {
        flows.sort_by_key(|known| Reverse(by(known)));
        flows.iter().take(Seen::LISTED).map(|known| known.describe(ages, now)).collect()
    };
    Seen {
        busiest_hosts: match params.word("hosts") {
            "none" => Vec::new(),
            end => busiest_hosts(
                known
                    .iter()
                    .map(|flow| (flow.host(end == "destination"), flow.rate(now), flow.sent())),
            ),
        },
        biggest_flows: words(known.iter().collect(), |known| known.entry.sent_bytes),
        newest_flows: words(known.iter().collect(), |known| known.entry.since),
    }
}

/// A flow that was seen lately.
struct Known {
    name: FlowKey,
    entry: fql_seen,
}

impl Known {
    fn of(entry: &fql_seen, now: Nanos) -> Option<Self> {
        if entry.since == 0 || now.since(Nanos(entry.last.max(entry.since))) > LATELY {
            return None;
        }
        let name = key(&from_bytes(&to_bytes(&entry.key))?)?;
        Some(Self { name, entry: *entry })
    }

    /// Its client's address where that is translated, else the one that packets show.
    fn host(&self, of_destination: bool) -> String {
        match self.entry.client {
            0 => self.name.endpoints.name(of_destination),
            client => Ipv4Addr::from(client.to_ne_bytes()).to_string(),
        }
    }

    fn rate(&self, now: Nanos) -> u64 {
        let fql_seen { second, in_second, in_former, .. } = self.entry;
        Second::of(second, in_second, in_former).rate(now)
    }

    const fn sent(&self) -> Tally {
        Tally { packets: self.entry.sent_packets, bytes: self.entry.sent_bytes }
    }

    fn describe(&self, ages: bool, now: Nanos) -> Flow {
        let entry = &self.entry;
        let dropped = Tally { packets: entry.dropped_packets.into(), bytes: entry.dropped_bytes };
        let idle = now.since(Nanos(entry.last.max(entry.since)));
        let standing = ages.then(|| standing_of_age(entry.age, idle));
        let mut arrived = self.sent();
        arrived += dropped;
        Flow {
            flow: self.name.to_string(),
            lane: standing.map(|standing| standing.lane.0),
            standing: standing.map(|standing| Standing {
                lane: standing.lane.0,
                tier: standing.tier,
                excess_bytes: standing.excess_bytes,
            }),
            arrived,
            sent: self.sent(),
            dropped_packets: dropped.packets,
            marked_packets: 0,
            arriving_bps: self.rate(now),
            age: now.since(Nanos(entry.since)),
            idle,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Nanos = Nanos(100 << 30);

    /// An entry of a TCP flow to 10.0.0.`to`, whose latest packet left so long ago.
    fn entry(to: u8, sent_bytes: u64, ago: Nanos) -> fql_seen {
        let mut entry = fql_seen {
            since: NOW.0 - ago.0 - 9,
            last: NOW.0 - ago.0,
            sent_bytes,
            sent_packets: 2,
            dropped_bytes: 50,
            dropped_packets: 1,
            second: ((NOW.0 - ago.0) >> 30) as u32,
            in_former: 1 << 20,
            age: 200_000,
            ..fql_seen::default()
        };
        entry.key.protocol = 1 << 16 | 6;
        entry.key.ends[..8].copy_from_slice(&[10, 0, 1, 1, 10, 0, 0, to]);
        entry
    }

    fn told(entries: &[fql_seen], spec: &str) -> Seen {
        let known: Vec<Known> = entries.iter().filter_map(|it| Known::of(it, NOW)).collect();
        in_words(&known, &spec.parse().unwrap(), NOW)
    }

    #[test]
    fn a_flow_is_told_with_what_left_and_what_was_dropped() {
        let seen = told(&[entry(2, 500, Nanos::ZERO)], "fq-lanes");
        let [flow] = &seen.biggest_flows[..] else { panic!("{seen:?}") };
        assert_eq!(flow.flow, "10.0.1.1:0 > 10.0.0.2:0 tcp");
        assert_eq!((flow.arrived.bytes, flow.sent.bytes, flow.dropped_packets), (550, 500, 1));
        assert_eq!((flow.arrived.packets, flow.sent.packets), (3, 2));
        assert_eq!((flow.lane, flow.age, flow.idle), (Some(1), Nanos(9), Nanos::ZERO));
        assert_eq!(flow.standing.map(|standing| standing.tier), Some(3));
        assert_eq!(seen.newest_flows, seen.biggest_flows);
        assert_eq!(
            told(&[entry(2, 5, Nanos::ZERO)], "fq-lanes:without=ages").biggest_flows[0].standing,
            None
        );
    }

    #[test]
    fn who_was_not_seen_lately_is_not_told() {
        let seen = told(&[entry(2, 5, LATELY + Nanos(1)), fql_seen::default()], "fq-lanes");
        assert_eq!(seen, Seen::default());
    }

    #[test]
    fn hosts_are_those_of_one_end_or_the_clients_behind_nat() {
        let behind =
            fql_seen { client: u32::from_ne_bytes([192, 168, 0, 7]), ..entry(2, 9, Nanos::ZERO) };
        let all = [
            entry(2, 10, Nanos::ZERO),
            entry(3, 20, Nanos::ZERO),
            entry(3, 30, Nanos::ZERO),
            behind,
        ];
        let hosts = |spec| {
            let hosts = told(&all, spec).busiest_hosts;
            hosts
                .into_iter()
                .map(|host| (host.host, host.flows, host.sent.bytes))
                .collect::<Vec<_>>()
        };
        let expected = [("10.0.0.3", 2, 50), ("10.0.0.2", 1, 10), ("192.168.0.7", 1, 9)];
        assert_eq!(
            hosts("fq-lanes"),
            expected.map(|(host, flows, sent)| (host.to_owned(), flows, sent))
        );
        let source = [("10.0.1.1".to_owned(), 3, 60), ("192.168.0.7".to_owned(), 1, 9)];
        assert_eq!(hosts("fq-lanes:hosts=source"), source);
        assert!(hosts("fq-lanes:hosts=none").is_empty());
    }
}
