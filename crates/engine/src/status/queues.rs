//! Several queues of a device as one.

use std::cmp::Reverse;

use sched::Nanos;

use super::{Flow, Histogram, Host, LaneCounters, Qdisc, Seen, Status, TcStats};

impl Status {
    /// Adds what the qdisc of another transmit queue of the same device has counted. Of what is a
    /// most the sum is a bound.
    pub(crate) fn add(&mut self, other: &Self) {
        for (lane, more) in self.lanes.iter_mut().zip(&other.lanes) {
            lane.add(more);
        }
        self.attached_at = self.attached_at.min(other.attached_at);
        self.marked += other.marked;
        self.most_packets += other.most_packets;
        self.flows += other.flows;
        self.most_flows += other.most_flows;
        self.flow_bound = self.flow_bound.zip(other.flow_bound).map(|(one, more)| one + more);
        self.flows_created += other.flows_created;
        self.flows_removed += other.flows_removed;
        self.demoted += other.demoted;
        self.promoted += other.promoted;
        self.flows_untracked += other.flows_untracked;
        self.fragments += other.fragments;
        self.not_ip += other.not_ip;
        self.super_packets += other.super_packets;
        self.paced += other.paced;
        if let (Some(seen), Some(more)) = (&mut self.seen, &other.seen) {
            seen.add(more);
        }
        if let (Some(qdisc), Some(more)) = (&mut self.qdisc, &other.qdisc) {
            qdisc.add(more);
        }
    }
}

impl Seen {
    /// Of both, as far as each lists them.
    fn add(&mut self, other: &Self) {
        for more in &other.busiest_hosts {
            match self.busiest_hosts.iter_mut().find(|host| host.host == more.host) {
                Some(host) => host.add(more),
                None => self.busiest_hosts.push(more.clone()),
            }
        }
        self.busiest_hosts = Self::busiest(self.busiest_hosts.drain(..));
        add_flows(&mut self.biggest_flows, &other.biggest_flows, |flow| flow.sent.bytes);
        add_flows(&mut self.newest_flows, &other.newest_flows, |flow| !flow.age.0);
    }
}

/// The greatest of both; a flow may have gone from one queue to the other.
fn add_flows(flows: &mut Vec<Flow>, more: &[Flow], by: fn(&Flow) -> u64) {
    for more in more {
        match flows.iter_mut().find(|flow| flow.flow == more.flow) {
            Some(flow) => flow.add(more),
            None => flows.push(more.clone()),
        }
    }
    flows.sort_by_key(|flow| Reverse(by(flow)));
    flows.truncate(Seen::LISTED);
}

impl Flow {
    fn add(&mut self, other: &Self) {
        if other.idle < self.idle {
            (self.lane, self.standing, self.idle) = (other.lane, other.standing, other.idle);
        }
        self.arrived += other.arrived;
        self.sent += other.sent;
        self.dropped_packets += other.dropped_packets;
        self.marked_packets += other.marked_packets;
        self.arriving_bps += other.arriving_bps;
        self.age = self.age.max(other.age);
    }
}

impl Host {
    fn add(&mut self, other: &Self) {
        self.flows += other.flows;
        self.arriving_bps += other.arriving_bps;
        self.sent += other.sent;
    }
}

impl LaneCounters {
    fn add(&mut self, other: &Self) {
        self.enqueued_packets += other.enqueued_packets;
        self.sent_packets += other.sent_packets;
        self.sent_bytes += other.sent_bytes;
        self.full += other.full;
        self.pushed_out += other.pushed_out;
        self.congested += other.congested;
        self.backlog_packets += other.backlog_packets;
        self.backlog_segments += other.backlog_segments;
        self.backlog_bytes += other.backlog_bytes;
        self.sojourn.add(&other.sojourn);
    }
}

impl Histogram {
    fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count += more);
        self.sum = Nanos(self.sum.0.wrapping_add(other.sum.0));
    }
}

impl Qdisc {
    fn add(&mut self, other: &Self) {
        self.no_slots += other.no_slots;
        self.flushed += other.flushed;
        self.lost += other.lost;
        self.queues = self.queues.map(|queues| queues + 1);
        let (tc, more) = (&mut self.tc, &other.tc);
        *tc = TcStats {
            bytes: tc.bytes + more.bytes,
            packets: tc.packets + more.packets,
            drops: tc.drops.wrapping_add(more.drops),
            overlimits: tc.overlimits.wrapping_add(more.overlimits),
            requeues: tc.requeues.wrapping_add(more.requeues),
            backlog: tc.backlog.wrapping_add(more.backlog),
            qlen: tc.qlen.wrapping_add(more.qlen),
        };
    }
}

#[cfg(test)]
mod tests {
    use account::Tally;

    use super::*;

    /// What two queues have counted is the sum of both, in every number.
    #[test]
    fn all_that_is_counted_is_added() {
        let mut lane = LaneCounters { sent_packets: 1, full: 2, ..LaneCounters::default() };
        lane.sojourn.count(Nanos(5000));
        let tc = TcStats { bytes: 7, packets: 3, drops: 1, ..TcStats::default() };
        let qdisc = Qdisc { queues: Some(1), tc, flushed: 4, ..Qdisc::default() };
        let one = Status {
            lanes: vec![lane],
            flows: 5,
            flow_bound: Some(100),
            attached_at: Nanos(9),
            qdisc: Some(qdisc),
            ..Status::default()
        };
        let mut both = one.clone();
        both.add(&Status { attached_at: Nanos(3), ..one.clone() });
        let counted = |status: &Status| {
            let (lane, qdisc) = (&status.lanes[0], status.qdisc.clone().unwrap_or_default());
            let times = (lane.sojourn.packets(), lane.sojourn.sum.0);
            let tc = (qdisc.tc.bytes, qdisc.tc.packets, u64::from(qdisc.tc.drops));
            let all = [lane.sent_packets, lane.full, status.flows, qdisc.flushed, times.0, times.1];
            (all, tc, qdisc.queues, status.flow_bound)
        };
        let (all, tc, queues, bound) = counted(&one);
        let twice = (all.map(|n| 2 * n), (2 * tc.0, 2 * tc.1, 2 * tc.2), Some(2), Some(200));
        assert_eq!((queues, bound), (Some(1), Some(100)));
        assert_eq!(counted(&both), twice);
        assert_eq!(both.attached_at, Nanos(3));
    }

    #[test]
    fn a_flow_and_a_host_in_both_queues_are_told_once() {
        let tally = |packets| Tally { packets, bytes: 100 * packets };
        let flow = |name: &str, packets, idle| Flow {
            flow: name.into(),
            lane: Some(packets as u8),
            standing: None,
            arrived: tally(packets + 1),
            sent: tally(packets),
            dropped_packets: 1,
            marked_packets: 0,
            arriving_bps: 10 * packets,
            age: Nanos(idle + 5),
            idle: Nanos(idle),
        };
        let host = |name: &str, flows| Host { host: name.into(), flows, ..Host::default() };
        let seen = |flows: [Flow; 2], hosts: [Host; 2]| Seen {
            busiest_hosts: hosts.into(),
            biggest_flows: flows.clone().into(),
            newest_flows: flows.into(),
        };
        let mut one = seen([flow("a", 3, 7), flow("b", 2, 1)], [host("x", 1), host("y", 2)]);
        one.add(&seen([flow("c", 4, 20), flow("b", 6, 0)], [host("y", 3), host("z", 4)]));
        let names = |flows: &[Flow]| flows.iter().map(|flow| flow.flow.clone()).collect::<String>();
        assert_eq!(
            (names(&one.biggest_flows), names(&one.newest_flows)),
            ("bca".into(), "bac".into())
        );
        let both = Flow {
            arrived: tally(10),
            dropped_packets: 2,
            arriving_bps: 80,
            age: Nanos(6),
            ..flow("b", 6, 0)
        };
        assert_eq!(one.biggest_flows[0], Flow { sent: tally(8), ..both });
        let flows = one.busiest_hosts.iter().find(|host| host.host == "y").map(|host| host.flows);
        assert_eq!((flows, one.busiest_hosts.len()), (Some(5), 3));
    }
}
