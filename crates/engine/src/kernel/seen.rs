//! Flows and hosts of `fq-lanes` by name: what its qdisc tells of each (`bpf/fq_lanes/seen.h`).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;

use account::Tally;
use frame::FlowKey;
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{MapCore, MapHandle};
use sched::{Nanos, Spec, standing_of_age};

use super::flows::{LATELY, Second, key};
use super::fq_lanes::NAME;
use super::memory::{Table, from_bytes, to_bytes};
use super::skeleton::fq_lanes::types::fql_seen;
use crate::status::{Flow, Host, Seen, Standing};

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
            end => hosts(known, end == "destination", now),
        },
        biggest_flows: words(known.iter().collect(), |known| known.entry.sent_bytes),
        newest_flows: words(known.iter().collect(), |known| known.entry.since),
    }
}

fn hosts(known: &[Known], of_destination: bool, now: Nanos) -> Vec<Host> {
    let mut hosts = BTreeMap::<String, Host>::new();
    for flow in known {
        let host = hosts.entry(flow.host(of_destination)).or_default();
        host.flows += 1;
        host.arriving_bps += flow.rate(now);
        host.sent += flow.sent();
    }
    Seen::busiest(hosts.into_iter().map(|(name, host)| Host { host: name, ..host }))
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
