//! CAKE in one list of packets: queues are numbers, bulk queues are counted when they are asked for.

use sched::{Amount, Ecn, Nanos, Packet, Params};

use super::{Model, cost};
use crate::run::Step;

const WAYS: usize = 8;
const MTU: u128 = 1514;

/// The model of `cake`.
pub struct Cake {
    /// Who is told apart: flows, sources, destinations.
    isolation: (bool, bool, bool),
    limit: Amount,
    tins: Vec<Tin>,
    /// Of all tins, those of the first one first.
    queues: Vec<Queue>,
    /// The hosts that places stand for, of sources and of destinations.
    hosts: [Vec<u32>; 2],
    /// Where the rate is not known: the tin whose turn it is.
    turn: usize,
    is_shaped: bool,
    /// Packets in order of arrival, with their queues and times.
    packets: Vec<(usize, Packet, u128)>,
    marks: bool,
    losses: Vec<u64>,
}

#[derive(Clone, Default)]
struct Tin {
    /// What the rate is divided by.
    part: u128,
    rate: u128,
    /// In units of 2^-16 bytes, as deficits are.
    quantum: u128,
    target: u128,
    interval: u128,
    spared: u128,
    /// Queues in line: sparse, bulk, decaying.
    lines: [Vec<usize>; 3],
    due: u128,
    deficit: i128,
}

#[derive(Clone, Copy, Default)]
struct Queue {
    tag: u64,
    hosts: [usize; 2],
    deficit: i128,
    /// In which line it stands.
    line: Option<usize>,
    /// Whether it is one of its hosts' bulk queues.
    is_bulk: bool,
    count: u128,
    next: u128,
    late: bool,
    /// BLUE's probability in units of 2^-20, and when it moved.
    blue: u32,
    moved: u128,
}

const SPARSE: usize = 0;
const BULK: usize = 1;
const DECAYING: usize = 2;

impl Cake {
    /// An empty queue.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        let places = params.number("sets") as usize * WAYS;
        let isolation = match params.word("isolation") {
            "triple-isolate" => (true, true, true),
            "dual-srchost" => (true, true, false),
            "dual-dsthost" => (true, false, true),
            "flows" => (true, false, false),
            "hosts" => (false, true, true),
            "srchost" => (false, true, false),
            "dsthost" => (false, false, true),
            _ => (false, false, false),
        };
        let parts: &[u128] = if params.word("tins") == "diffserv3" { &[1, 16, 4] } else { &[1] };
        let places = places * parts.len();
        let tin = |part: &u128| Tin { part: *part, ..Tin::default() };
        let mut cake = Self {
            isolation,
            limit: Amount::UNLIMITED,
            tins: parts.iter().map(tin).collect(),
            queues: vec![Queue::default(); places],
            hosts: [vec![0; places], vec![0; places]],
            turn: 0,
            is_shaped: false,
            packets: Vec::new(),
            marks: false,
            losses: Vec::new(),
        };
        cake.change(params);
        cake
    }

    fn tin_of(&self, packet: &Packet) -> usize {
        let is_in = |codes: &[u8]| self.tins.len() > 1 && codes.contains(&packet.dscp);
        if is_in(&[1, 8]) { 1 } else { 2 * usize::from(is_in(&[4, 44, 46, 48, 56])) }
    }

    fn tin_at(&self, place: usize) -> &Tin {
        &self.tins[place / (self.queues.len() / self.tins.len())]
    }

    /// The tin that is served, of those with queues in line for a turn.
    fn chosen_tin(&mut self, now: u128) -> usize {
        let count = self.tins.len();
        let waits = |tin: &Tin| !tin.lines[SPARSE].is_empty() || !tin.lines[BULK].is_empty();
        if self.is_shaped || count == 1 {
            let waiting = || (0..count).filter(|tin| waits(&self.tins[*tin]));
            let due = waiting().filter(|tin| self.tins[*tin].due <= now).max();
            let next = || waiting().rev().min_by_key(|tin| self.tins[*tin].due);
            return due.or_else(next).expect("packets are in queues in line");
        }
        loop {
            let tin = &mut self.tins[self.turn];
            if tin.deficit >= 0 && waits(tin) {
                return self.turn;
            }
            tin.deficit += if tin.deficit <= 0 { (1024 / tin.part) as i128 } else { 0 };
            self.turn = (self.turn + 1) % count;
        }
    }

    /// The places of a set of a tin, beginning with the one that a number names.
    fn set_of(&self, tin: usize, number: u64) -> Vec<usize> {
        let places = self.queues.len() / self.tins.len();
        let home = (number & 0xffff_ffff) as usize % places;
        let first = tin * places + home / WAYS * WAYS;
        (0..WAYS).map(|i| first + (home + i) % WAYS).collect()
    }

    /// Bulk queues of the host at a place of one side.
    fn bulk_at(&self, side: usize, place: usize) -> usize {
        self.queues.iter().filter(|queue| queue.is_bulk && queue.hosts[side] == place).count()
    }

    fn queue_of(&mut self, tin: usize, packet: &Packet) -> usize {
        let (flows, sources, destinations) = self.isolation;
        let hosts = [packet.source.0, packet.destination.0];
        let tag = match (flows, sources, destinations) {
            (true, ..) => packet.flow.get(),
            (_, true, true) => u64::from(hosts[0] ^ hosts[1]),
            (_, true, false) => u64::from(hosts[0]),
            (_, false, true) => u64::from(hosts[1]),
            _ => return self.set_of(tin, 0)[0],
        };
        let set = self.set_of(tin, tag);
        let found = set.iter().copied().find(|place| self.queues[*place].tag == tag);
        if let Some(place) = found.filter(|place| self.queues[*place].line.is_some()) {
            return place;
        }
        let idle = || set.iter().copied().find(|place| self.queues[*place].line.is_none());
        let place = found.or_else(idle).unwrap_or(set[0]);
        // It counts nowhere while its hosts are looked up.
        let was_bulk = std::mem::replace(&mut self.queues[place].is_bulk, false);
        self.queues[place].tag = tag;
        for (side, host) in hosts.into_iter().enumerate() {
            let set = self.set_of(tin, u64::from(host));
            let own = set.iter().copied().find(|place| self.hosts[side][*place] == host);
            let free = || set.iter().copied().find(|place| self.bulk_at(side, *place) == 0);
            let at = own.or_else(free).unwrap_or(set[0]);
            self.hosts[side][at] = host;
            self.queues[place].hosts[side] = at;
        }
        self.queues[place].is_bulk = was_bulk;
        place
    }

    /// What a packet of so many bytes costs its tin.
    fn charge(&mut self, tin: usize, bytes: u128, now: u128) {
        let is_shaped = self.is_shaped;
        let tin = &mut self.tins[tin];
        if !is_shaped {
            tin.deficit -= bytes as i128;
            return;
        }
        let takes = bytes * 8_000_000_000 / tin.rate;
        tin.due = if tin.due < now { tin.due + takes } else { tin.due.max(now + takes) };
    }

    fn turn(&self, place: usize) -> i128 {
        let (flows, sources, destinations) = self.isolation;
        let load = |side: usize, counts: bool| {
            if flows && counts { self.bulk_at(side, self.queues[place].hosts[side]) } else { 0 }
        };
        let load = load(0, sources).max(load(1, destinations)).max(1);
        (self.tin_at(place).quantum / load as u128) as i128
    }

    fn put_in(&mut self, place: usize, line: Option<usize>) {
        let places = self.queues.len() / self.tins.len();
        let lines = &mut self.tins[place / places].lines;
        lines.iter_mut().for_each(|line| line.retain(|other| *other != place));
        if let Some(line) = line {
            lines[line].push(place);
        }
        self.queues[place].line = line;
    }

    fn bytes(&self, place: usize) -> u64 {
        let of_queue = self.packets.iter().filter(|(queue, ..)| *queue == place);
        of_queue.map(|(_, packet, _)| u64::from(packet.size)).sum()
    }

    fn is_empty(&self, place: usize) -> bool {
        !self.packets.iter().any(|(queue, ..)| *queue == place)
    }

    fn take_head(&mut self, place: usize) -> Option<(Packet, u128)> {
        let index = self.packets.iter().position(|(queue, ..)| *queue == place)?;
        let (_, packet, arrived) = self.packets.remove(index);
        Some((packet, arrived))
    }

    fn used(&self) -> u64 {
        self.packets.iter().map(|(_, packet, _)| cost(self.limit, packet)).sum()
    }

    /// The largest whole number of nanoseconds whose square, `count` times, is at most that of the
    /// interval.
    fn spacing(&self, place: usize, count: u128) -> u128 {
        let interval = self.tin_at(place).interval;
        let (mut low, mut high) = (0, interval + 1);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if middle * middle * count.max(1) <= interval * interval {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    /// What COBALT does with a packet: whether it drops and whether it marks.
    fn judge(
        &mut self,
        place: usize,
        waited: u128,
        capable: bool,
        diced: bool,
        now: u128,
    ) -> (bool, bool) {
        let mut queue = self.queues[place];
        let Tin { target, spared, interval, .. } = *self.tin_at(place);
        let late = waited > target && waited > spared;
        let due = |queue: &Queue| queue.count > 0 && now >= queue.next;
        let signal = due(&queue) && late;
        if late && !queue.late {
            queue.next = now + self.spacing(place, queue.count);
        }
        if late && queue.count == 0 {
            queue.count = 1;
        }
        queue.late = late;
        if signal {
            queue.count += 1;
            queue.next += self.spacing(place, queue.count);
        }
        while !late && due(&queue) {
            queue.count -= 1;
            queue.next += self.spacing(place, queue.count);
        }
        let drops = signal && !capable || queue.blue > 0 && diced;
        if queue.count == 0 {
            queue.next = now + interval;
        } else if !drops {
            queue.next = queue.next.max(now);
        }
        self.queues[place] = queue;
        (drops, signal && capable)
    }
}

impl Model for Cake {
    fn enqueue(&mut self, packet: Packet, now: Nanos, _said: &Step) -> Vec<u64> {
        let (limit, now) = (self.limit.value(), u128::from(now.0));
        if cost(self.limit, &packet) > limit || self.used() > limit {
            return vec![packet.id];
        }
        let tin = self.tin_of(&packet);
        if !self
            .packets
            .iter()
            .any(|(place, ..)| std::ptr::eq(self.tin_at(*place), &self.tins[tin]))
        {
            self.tins[tin].due = self.tins[tin].due.max(now);
        }
        let place = self.queue_of(tin, &packet);
        self.packets.push((place, packet, now));
        match self.queues[place].line {
            None | Some(DECAYING) => {
                self.put_in(place, Some(SPARSE));
                self.queues[place].deficit = self.turn(place);
            }
            Some(BULK) => self.queues[place].is_bulk = true,
            Some(_) => {}
        }
        let mut lost = Vec::new();
        while self.used() > limit {
            let longest = (0..self.queues.len()).rev().max_by_key(|place| self.bytes(*place));
            let longest = longest.expect("there are queues");
            let (head, _) = self.take_head(longest).expect("the longest has packets");
            let target = self.tin_at(longest).target;
            let queue = &mut self.queues[longest];
            if now - queue.moved > target {
                (queue.blue, queue.moved) = ((queue.blue + 4096).min(1 << 20), now);
            }
            (queue.late, queue.next, queue.count) = (true, now, queue.count.max(1));
            lost.push(head.id);
        }
        lost
    }

    fn dequeue(&mut self, now: Nanos, said: &Step) -> Option<u64> {
        self.losses.clear();
        self.marks = false;
        let now = u128::from(now.0);
        if self.packets.is_empty() {
            return None;
        }
        let (mut tin, mut is_first) = (self.chosen_tin(now), true);
        loop {
            let lines = &self.tins[tin].lines;
            let decaying = lines[DECAYING].first().copied().filter(|_| is_first);
            is_first = false;
            let mut in_line = lines[..DECAYING].iter().filter_map(|line| line.first().copied());
            let place = decaying.or_else(|| in_line.next())?;
            if self.queues[place].deficit <= 0 {
                self.put_in(place, Some(BULK));
                if !self.is_empty(place) {
                    self.queues[place].is_bulk = true;
                }
                self.queues[place].deficit += self.turn(place);
                continue;
            }
            while let Some((packet, arrived)) = self.take_head(place) {
                let is_last = self.is_empty(place);
                // The dice are the discipline's.
                let diced = !is_last && said.dropped().any(|(lost, _)| lost.id == packet.id);
                let capable = packet.ecn() != Ecn::NotEct;
                let (drops, marks) = self.judge(place, now - arrived, capable, diced, now);
                if drops && !is_last {
                    self.losses.push(packet.id);
                    continue;
                }
                self.queues[place].deficit -= i128::from(packet.size) << 16;
                self.charge(tin, packet.size.into(), now);
                self.marks = marks;
                return Some(packet.id);
            }
            let spacing = self.spacing(place, self.queues[place].count.saturating_sub(1));
            let target = self.tins[tin].target;
            let queue = &mut self.queues[place];
            if queue.blue > 0 && now - queue.moved > target {
                (queue.blue, queue.moved) = (queue.blue.saturating_sub(256), now);
            }
            if queue.count > 0 && now >= queue.next {
                queue.count -= 1;
                queue.next += spacing;
            }
            (queue.late, queue.is_bulk) = (false, false);
            let is_at_rest = queue.blue == 0 && queue.count == 0 && now >= queue.next;
            self.put_in(place, (!is_at_rest).then_some(DECAYING));
            tin = self.chosen_tin(now);
        }
    }

    fn marks(&self) -> bool {
        self.marks
    }

    fn losses(&self) -> &[u64] {
        &self.losses
    }

    fn change(&mut self, params: &Params) {
        let (rtt, rate) = (params.time("rtt"), params.number("rate"));
        self.is_shaped = rate < u64::MAX;
        let mut derived = MTU * 10_240;
        if self.is_shaped {
            let bytes = u128::from(rate) / 8;
            derived = derived.min((4 * (bytes * u128::from(rtt.0) / 1_000_000_000)).max(4 << 20));
        }
        self.limit = match params.amount("limit") {
            Amount::UNLIMITED => Amount::Bytes(derived as u64),
            limit => limit,
        };
        for tin in &mut self.tins {
            tin.rate = (u128::from(rate) / tin.part).max(1);
            let (mut quantum, mut mtu_time) = (MTU, 0);
            if self.is_shaped {
                quantum = MTU.min((tin.rate / 8 / 4096).max(300));
                mtu_time = MTU * 8_000_000_000 / tin.rate;
            }
            tin.quantum = quantum << 16;
            let wanted = u128::from(rtt.0) / 20;
            (tin.target, tin.interval, tin.spared) = if rtt == Nanos::MAX {
                (u128::MAX, 0, u128::MAX)
            } else {
                let target = wanted.max(mtu_time * 3 / 2);
                let interval = (u128::from(rtt.0) + target - wanted).max(2 * target);
                (target, interval, 4 * mtu_time)
            };
        }
    }

    fn flows(&self) -> usize {
        0
    }
}
