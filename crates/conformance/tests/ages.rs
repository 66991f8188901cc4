//! What `fq-lanes` promises the flows of a host, held against an account that is kept from outside:
//! a tier's share over any interval, how long a flow waits, and who never grows old.
//!
//! The account knows what arrived and left, how many flows there are, and where the queue says that
//! a flow stands. It takes all flows for listed at all times: so it owes a tier too little, and
//! forgives too little, where some of them are idle, and is exact where none is.

use std::collections::BTreeMap;

use sched::{Drop, FlowId, HostId, Nanos, Packet, Qdisc, Spec};

/// Bytes of a turn.
const QUANTUM: u64 = 1514;
/// Ages at which tiers begin, from the second on.
const BOUNDS: [u64; 3] = [30_000, 150_000, 750_000];
const RATE: u64 = 10_000_000;

/// What there is to say of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    queued: u64,
    /// Bytes beyond its fair share, as of a reading of the clock.
    excess: u64,
    reading: u64,
    /// The most of that since nothing was queued at all.
    most_excess: u64,
    /// The list that it stands in, while it is backlogged.
    list: usize,
    /// The most and the least that the list had been behind, since it stands there.
    least_behind: i64,
    waits: Wait,
}

/// Since a flow's last packet, or since it became backlogged.
#[derive(Clone, Copy, Debug, Default)]
struct Wait {
    bytes: u64,
    /// Flows in its list, at most.
    members: u64,
    /// What its list is owed of what younger ones send, in millionths, at least.
    owed: u64,
}

impl Wait {
    const NONE: Self = Self { bytes: 0, members: 0, owed: 1_000_000 };

    /// How many bytes its host may send meanwhile, as the page of the discipline has it.
    fn bound(&self) -> u64 {
        2 * (self.members + 5) * QUANTUM * 1_000_000 / self.owed + 34 * QUANTUM
    }
}

/// What is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Promise {
    Share,
    Wait,
    Age,
}

/// A queue of one host's flows, and the account.
struct Watched {
    queue: Box<dyn Qdisc<Vec<(Packet, Drop)>>>,
    lost: Vec<(Packet, Drop)>,
    now: Nanos,
    flows: BTreeMap<u64, Flow>,
    /// Bytes that one more flow would have been served, in units of 2^-8.
    clock: u64,
    /// By list: what it was owed and not served.
    behind: [i64; 5],
    /// The one that it is held to.
    promise: Promise,
    /// How near it came to the bound, in thousandths of it, and the age of the oldest flow.
    nearest: u64,
    oldest: u64,
}

impl Watched {
    fn new(promise: Promise, flows: u64) -> Self {
        let spec: Spec = "fq-lanes:target=inf,limit=1gb".parse().expect("a spec");
        let flow = |number| (number, Flow { waits: Wait::NONE, ..Flow::default() });
        Self {
            queue: spec.build(1),
            lost: Vec::new(),
            now: Nanos::ZERO,
            flows: (1..=flows).map(flow).collect(),
            clock: 0,
            behind: [0; 5],
            promise,
            nearest: 0,
            oldest: 0,
        }
    }

    fn flow(&mut self, number: u64) -> &mut Flow {
        self.flows.get_mut(&number).expect("one of them")
    }

    fn enqueue(&mut self, number: u64, size: u32) {
        let (clock, behind) = (self.clock, self.behind);
        self.queue.enqueue(Packet::new(FlowId::new(number), size), self.now, &mut self.lost);
        let (list, _) = self.standing(number);
        let flow = self.flow(number);
        if flow.queued == 0 {
            flow.excess = flow.excess.saturating_sub((clock - flow.reading) / 256);
            flow.reading = clock;
            (flow.list, flow.least_behind) = (list, behind[list]);
            flow.waits = Wait::NONE;
        }
        flow.queued += 1;
        self.nobody_is_older_than_its_excess();
    }

    /// Sends a packet; returns its flow.
    fn dequeue(&mut self) -> Option<u64> {
        let Some(packet) = self.queue.dequeue(self.now, &mut self.lost).packet() else {
            self.flows.values_mut().for_each(|flow| flow.most_excess = flow.excess);
            return None;
        };
        let (number, size) = (packet.flow.get(), u64::from(packet.size));
        self.now += Nanos(size * 8_000_000_000 / RATE);
        // It stands where it stood when it was chosen until its turn comes again.
        let (served, _) = self.standing(number);
        self.move_flows();
        self.settle(served, size);
        self.clock += size * 256 / (self.flows.len() as u64 + 1);
        let clock = self.clock;
        let flow = self.flow(number);
        flow.queued -= 1;
        (flow.excess, flow.reading) = (flow.excess + size, clock);
        flow.most_excess = flow.most_excess.max(flow.excess);
        self.nobody_waits_too_long(number, size);
        self.nobody_is_older_than_its_excess();
        Some(number)
    }

    /// The list of a flow and its age, by the queue.
    fn standing(&self, number: u64) -> (usize, u64) {
        let told = self.queue.standing(FlowId::new(number), self.now);
        told.map_or((0, 0), |told| (usize::from(told.tier), told.excess_bytes))
    }

    /// Flows that stand in another list than before.
    fn move_flows(&mut self) {
        for number in 1..=self.flows.len() as u64 {
            let (list, behind) = (self.standing(number).0, self.behind);
            let flow = self.flow(number);
            if flow.queued > 0 && flow.list != list {
                (flow.list, flow.least_behind) = (list, behind[list]);
            }
        }
    }

    /// Flows of a list that have something queued.
    fn backlogged(&self, list: usize) -> u64 {
        self.flows.values().filter(|flow| flow.queued > 0 && flow.list == list).count() as u64
    }

    /// What a list of so many is owed of `bytes` that younger ones send.
    fn owed(&self, members: u64, bytes: u64) -> u64 {
        let part = bytes * members / (2 * (self.flows.len() as u64 + 1));
        part.max(bytes / 32)
    }

    /// **Share**: while a flow stands in a list, backlogged, the list is served what it is owed, to
    /// within eight quanta, which is the most that is kept for it.
    fn settle(&mut self, served: usize, size: u64) {
        for list in 1..self.behind.len() {
            if list == served {
                self.behind[list] -= size as i64;
            } else if list > served {
                let owed = self.owed(self.backlogged(list), size) as i64;
                self.behind[list] += owed;
            }
        }
        let behind = self.behind;
        let bound = 8 * QUANTUM as i64;
        if self.promise != Promise::Share {
            return;
        }
        for (number, flow) in self.flows.iter_mut().filter(|(_, flow)| flow.queued > 0) {
            if flow.list > 0 {
                flow.least_behind = flow.least_behind.min(behind[flow.list]);
                let short = behind[flow.list] - flow.least_behind;
                self.nearest = self.nearest.max((1000 * short / bound) as u64);
                assert!(short <= bound, "list {} of flow {number}: {short} bytes short", flow.list);
            }
        }
    }

    /// **Starvation**: between two packets of a backlogged flow its host sends no more than the page
    /// says.
    fn nobody_waits_too_long(&mut self, sent: u64, size: u64) {
        if self.promise != Promise::Wait {
            return;
        }
        let members: Vec<_> = (0..self.behind.len()).map(|list| self.backlogged(list)).collect();
        let owed: Vec<_> = members.iter().map(|members| self.owed(*members, 1_000_000)).collect();
        for (number, flow) in self.flows.iter_mut().filter(|(_, flow)| flow.queued > 0) {
            let waits = &mut flow.waits;
            waits.bytes += size;
            waits.members = waits.members.max(members[flow.list]);
            waits.owed = waits.owed.min(owed[flow.list]);
            let (waited, bound) = (waits.bytes, waits.bound());
            self.nearest = self.nearest.max(1000 * waited / bound);
            assert!(
                waited <= bound,
                "flow {number} waited for {waited} bytes of {bound}: {flow:?}"
            );
            if *number == sent {
                *waits = Wait::NONE;
            }
        }
    }

    /// **Ages**: a flow is no older than what it was served beyond its fair share, and stands in no
    /// older tier than the most of that makes it.
    fn nobody_is_older_than_its_excess(&mut self) {
        for (number, flow) in &self.flows {
            let mut excess = flow.excess;
            if flow.queued == 0 {
                excess = excess.saturating_sub((self.clock - flow.reading) / 256);
            }
            let (list, age) = self.standing(*number);
            self.oldest = self.oldest.max(age);
            if self.promise != Promise::Age {
                continue;
            }
            assert!(age <= excess, "flow {number} is {age} bytes old, and had {excess} too many");
            let oldest = 1 + BOUNDS.iter().filter(|bound| flow.most_excess >= **bound).count();
            assert!(list <= oldest, "flow {number} stands in tier {list}: {flow:?}");
        }
    }
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % bound
    }
}

/// Who is there.
#[derive(Clone, Copy, Debug)]
struct Crowd {
    /// Flows that are never idle: one that is old already, then others, one after the other.
    greedy: u64,
    /// Flows that send a packet whenever others have sent three times their fair share.
    lean: u64,
    /// Flows with bursts of random lengths, and pauses after each.
    others: u64,
}

impl Crowd {
    /// Thousands of departures.
    fn run(self, promise: Promise, seed: u64) -> Watched {
        let flows = self.greedy + self.lean + self.others;
        let (mut random, mut watched) = (Random(seed), Watched::new(promise, flows));
        // What each has still to send, and the clock at which those that pause come back.
        let mut left = vec![0; flows as usize + 1];
        let mut again = vec![0; flows as usize + 1];
        for step in 0..5000 {
            for number in 1..=flows {
                let index = number as usize;
                let queued = watched.flows[&number].queued;
                if number <= self.greedy {
                    let begin = if number == 1 { 0 } else { 700 + 7 * number };
                    if queued < 2 && step >= begin {
                        let size = 1514 - random.below(4) / 3 * random.below(1400);
                        watched.enqueue(number, size as u32);
                    }
                } else if queued == 0 && left[index] == 0 && watched.clock >= again[index] {
                    if number <= self.greedy + self.lean {
                        watched.enqueue(number, 100 + random.below(1400) as u32);
                        again[index] = watched.clock + 3 * QUANTUM * 256;
                    } else {
                        let most = 2 << random.below(10);
                        left[index] = 1 + random.below(most);
                    }
                }
                while left[index] > 0 && watched.flows[&number].queued < 2 {
                    left[index] -= 1;
                    watched.enqueue(number, 1514);
                    if left[index] == 0 {
                        again[index] = watched.clock + random.below(1 << 28);
                    }
                }
            }
            watched.dequeue();
            for lean in (1..=self.lean).map(|lean| self.greedy + lean) {
                let (tier, age) = watched.standing(lean);
                let is_young = promise != Promise::Age || tier <= 1 && age < QUANTUM;
                assert!(is_young, "a lean flow is {age} bytes old, in tier {tier}");
            }
        }
        watched
    }
}

/// Holds many runs to a promise; prints how near they came to breaking it.
fn holds(promise: Promise) {
    let crowds = [(1, 0, 1), (1, 1, 3), (2, 2, 8), (41, 0, 0), (6, 3, 30)];
    let (mut nearest, mut oldest) = (0, 0);
    for seed in 0..3 {
        for (greedy, lean, others) in crowds {
            let watched = Crowd { greedy, lean, others }.run(promise, seed);
            nearest = nearest.max(watched.nearest);
            oldest = oldest.max(watched.oldest);
        }
    }
    println!("{promise:?}: {nearest} thousandths of the bound");
    assert!(oldest >= BOUNDS[2], "nobody was older than {oldest} bytes: nothing was tried");
}

#[test]
fn each_tier_has_its_share_of_any_interval() {
    holds(Promise::Share);
}

#[test]
fn a_backlogged_flow_waits_no_longer_than_the_page_says() {
    holds(Promise::Wait);
}

#[test]
fn nobody_is_older_than_what_it_had_beyond_its_share() {
    holds(Promise::Age);
}

/// The bytes that new flows of a host send, and those of its old flow, while a flood of new flows is
/// sent to the host, and others have a download each. The table has room for all flows: those that
/// find none are of another host.
fn flooded_beside(hosts: u32) -> (u64, u64) {
    let spec: Spec = "fq-lanes:target=inf,limit=1gb,flows=32768".parse().expect("a spec");
    let (mut queue, mut lost, mut now) = (spec.build::<Vec<_>>(1), Vec::new(), Nanos::ZERO);
    let packet = |host: u32, flow: u64, size: u32| {
        Packet::new(FlowId::new(flow), size).with_hosts(HostId(0), HostId(host))
    };
    let old = packet(1, 1, 1500);
    for _ in 0..600 {
        queue.enqueue(old, now, &mut lost);
        queue.dequeue(now, &mut lost);
    }
    for host in 1..=hosts {
        (0..3).for_each(|_| queue.enqueue(packet(host, host.into(), 1500), now, &mut lost));
    }
    let (mut of_new, mut of_old) = (0, 0);
    for new in 0..20_000 {
        queue.enqueue(packet(1, 1_000_000 + new, 1500), now, &mut lost);
        let Some(packet) = queue.dequeue(now, &mut lost).packet() else { continue };
        now += Nanos(u64::from(packet.size) * 8_000_000_000 / RATE);
        let size = u64::from(packet.size);
        match packet.flow {
            flow if flow == old.flow => of_old += size,
            _ if packet.destination == old.destination => of_new += size,
            _ => {}
        }
        if packet.flow.get() <= hosts.into() {
            queue.enqueue(packet, now, &mut lost);
        }
    }
    (of_new, of_old)
}

/// What its new flows send ahead of the turns of hosts is held against what its tiers are owed, too.
#[test]
fn a_host_that_floods_itself_leaves_its_old_flow_a_32nd() {
    for hosts in [1, 2, 4, 10, 40] {
        let (of_new, of_old) = flooded_beside(hosts);
        println!("{hosts} hosts: {of_old} bytes of the old flow, {of_new} of new ones");
        assert!(of_old + 8 * QUANTUM >= of_new / 32, "{hosts} hosts: {of_old} for {of_new} bytes");
    }
}
