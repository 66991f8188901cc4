//! Two endpoints and a network between them that loses, delays, duplicates and marks on command.

use std::collections::BTreeMap;

use tcp::{Config, Endpoint, Flags, Nanos, Segment};

pub(crate) const MS: Nanos = Nanos::from_millis(1);
pub(crate) const SECOND: Nanos = Nanos::from_secs(1);

/// The two ends.
pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

/// What the network does with a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Arrive,
    Lost,
    /// Arrives so much later than it would have.
    Late(Nanos),
    Twice,
    /// Marked "congestion experienced", if it is ECN-capable.
    Marked,
}

/// A segment on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) at: Nanos,
    pub(crate) from: usize,
    pub(crate) segment: Segment,
    /// How many segments this end has sent before, and how many with data.
    pub(crate) number: usize,
    pub(crate) data_number: usize,
    /// Of the sender, right after.
    pub(crate) cwnd: u32,
    pub(crate) pipe: u64,
    pub(crate) probes: u32,
}

impl Sent {
    /// Data or FIN.
    pub(crate) fn has_data(&self) -> bool {
        self.segment.len > 0 || self.segment.flags.has(Flags::FIN)
    }

    /// Number of the segment among those of this size, from 0.
    pub(crate) fn index(&self, mss: u32) -> u64 {
        (self.segment.seq - 1) / u64::from(mss)
    }
}

/// What is called with the number of an end.
type App = dyn FnMut(usize, &mut Endpoint);
type Ear = dyn FnMut(usize, &Segment);

pub(crate) struct Net {
    pub(crate) now: Nanos,
    pub(crate) config: [Config; 2],
    pub(crate) ends: [Endpoint; 2],
    /// One way.
    pub(crate) delay: Nanos,
    /// Of each direction, bits per second; `None` sends at once.
    pub(crate) rate: Option<u64>,
    /// With a rate: longest wait; whoever would wait longer is lost.
    pub(crate) queue_limit: Option<Nanos>,
    pub(crate) fate: Box<dyn FnMut(&Sent) -> Fate>,
    /// The application, which is asked after each segment that an end has received.
    pub(crate) app: Box<App>,
    /// Is told of each segment that an end is about to receive.
    pub(crate) ear: Box<Ear>,
    pub(crate) log: Vec<Sent>,
    free_at: [Nanos; 2],
    flying: BTreeMap<(Nanos, u64), (usize, Segment, bool)>,
    scheduled: u64,
    counts: [(usize, usize); 2],
}

impl Net {
    pub(crate) fn new(client: Config, server: Config, delay: Nanos) -> Self {
        assert_eq!((client.check(), server.check()), (Ok(()), Ok(())));
        Self {
            now: Nanos::ZERO,
            ends: [Endpoint::client(&client), Endpoint::server(&server)],
            config: [client, server],
            delay,
            rate: None,
            queue_limit: None,
            fate: Box::new(|_| Fate::Arrive),
            app: Box::new(|_, _| {}),
            ear: Box::new(|_, _| {}),
            log: Vec::new(),
            free_at: [Nanos::ZERO; 2],
            flying: BTreeMap::new(),
            scheduled: 0,
            counts: [(0, 0); 2],
        }
    }

    /// Both ends alike.
    pub(crate) fn of(config: Config, delay: Nanos) -> Self {
        Self::new(config.clone(), config, delay)
    }

    /// Both ends alike, and what the network does with each data segment of the client, by number.
    pub(crate) fn losing(config: Config, delay: Nanos, lost: &'static [usize]) -> Self {
        let mut net = Self::of(config, delay);
        net.fate = Box::new(move |sent| {
            let hit = sent.from == CLIENT && sent.has_data() && lost.contains(&sent.data_number);
            if hit { Fate::Lost } else { Fate::Arrive }
        });
        net
    }

    pub(crate) fn connect(&mut self) {
        self.ends[CLIENT].connect(&self.config[CLIENT], self.now);
        self.flush(CLIENT);
    }

    /// Connects and lets the handshake happen.
    pub(crate) fn open(&mut self) {
        self.connect();
        self.run_until(self.now + 2 * self.delay);
    }

    pub(crate) fn write(&mut self, end: usize, bytes: u64) {
        self.ends[end].write(bytes);
        self.flush(end);
    }

    pub(crate) fn close(&mut self, end: usize) {
        self.ends[end].close();
        self.flush(end);
    }

    /// The time of the next event.
    pub(crate) fn next(&self) -> Option<Nanos> {
        let arrival = self.flying.first_key_value().map(|(key, _)| key.0);
        let timers = self.ends.iter().filter_map(Endpoint::next_timer);
        arrival.into_iter().chain(timers).min()
    }

    /// Does the next thing; `false` if nothing will ever happen.
    pub(crate) fn step(&mut self) -> bool {
        let Some(next) = self.next() else { return false };
        self.now = self.now.max(next);
        match self.flying.first_key_value() {
            Some((key, _)) if key.0 <= self.now => {
                let (_, (to, segment, ce)) = self.flying.pop_first().unwrap();
                (self.ear)(to, &segment);
                self.ends[to].on_segment(&self.config[to], &segment, ce, self.now);
                (self.app)(to, &mut self.ends[to]);
                self.flush(to);
            }
            _ => {
                for end in [CLIENT, SERVER] {
                    self.ends[end].on_timer(&self.config[end], self.now);
                    self.flush(end);
                }
            }
        }
        true
    }

    /// Up to and including `until`.
    pub(crate) fn run_until(&mut self, until: Nanos) {
        while self.next().is_some_and(|next| next <= until) {
            self.step();
        }
        self.now = self.now.max(until);
    }

    /// Until nothing more will happen, `steps` at most; the time of the last event.
    pub(crate) fn run(&mut self, steps: usize) -> Nanos {
        for _ in 0..steps {
            if !self.step() {
                return self.now;
            }
        }
        panic!("no end after {steps} steps, at {}: {:?}", self.now, self.ends);
    }

    /// Until `done`, `steps` at most.
    pub(crate) fn run_while(&mut self, steps: usize, mut busy: impl FnMut(&Self) -> bool) {
        for _ in 0..steps {
            if !busy(self) || !self.step() {
                return;
            }
        }
        panic!("no end after {steps} steps, at {}: {:?}", self.now, self.ends);
    }

    pub(crate) fn flush(&mut self, from: usize) {
        while let Some(segment) = self.ends[from].poll_transmit(&self.config[from], self.now) {
            self.transmit(from, segment);
        }
    }

    fn transmit(&mut self, from: usize, segment: Segment) {
        let (number, data_number) = self.counts[from];
        let end = &self.ends[from];
        let (cwnd, pipe) = (end.congestion_window(), end.in_flight());
        let probes = end.stats().tail_probes;
        let sent = Sent { at: self.now, from, segment, number, data_number, cwnd, pipe, probes };
        self.counts[from] = (number + 1, data_number + usize::from(sent.has_data()));
        self.log.push(sent);
        let fate = (self.fate)(&sent);
        let mut start = self.now;
        if let Some(rate) = self.rate {
            let bits = u64::from(self.config[from].header_bytes + segment.len) * 8;
            let wait = self.free_at[from].since(self.now);
            if self.queue_limit.is_some_and(|limit| wait > limit) {
                return;
            }
            start += wait + bits * SECOND / rate;
            self.free_at[from] = start;
        }
        let arrival = start + self.delay;
        match fate {
            Fate::Arrive => self.fly(arrival, from, segment, false),
            Fate::Lost => {}
            Fate::Late(by) => self.fly(arrival + by, from, segment, false),
            Fate::Twice => {
                self.fly(arrival, from, segment, false);
                self.fly(arrival, from, segment, false);
            }
            Fate::Marked => self.fly(arrival, from, segment, segment.is_ect()),
        }
    }

    fn fly(&mut self, arrival: Nanos, from: usize, segment: Segment, ce: bool) {
        self.scheduled += 1;
        self.flying.insert((arrival, self.scheduled), (1 - from, segment, ce));
    }

    /// What this end has sent since segment `since` of the log.
    pub(crate) fn sent_by(&self, from: usize) -> impl Iterator<Item = &Sent> {
        self.log.iter().filter(move |sent| sent.from == from)
    }

    /// Times in milliseconds and numbers of the data segments that this end has sent.
    pub(crate) fn data(&self, from: usize) -> Vec<(u64, u64)> {
        let mss = self.config[from].mss;
        self.sent_by(from)
            .filter(|sent| sent.has_data())
            .map(|sent| (sent.at.0 / MS.0, sent.index(mss)))
            .collect()
    }

    /// The same of those sent again.
    pub(crate) fn again(&self, from: usize) -> Vec<(u64, u64)> {
        let mss = self.config[from].mss;
        self.sent_by(from)
            .filter(|sent| sent.has_data() && sent.segment.is_retransmission())
            .map(|sent| (sent.at.0 / MS.0, sent.index(mss)))
            .collect()
    }

    /// How many data segments this end has sent at each time, in milliseconds.
    pub(crate) fn bursts(&self, from: usize) -> Vec<(u64, usize)> {
        let mut bursts: Vec<(u64, usize)> = Vec::new();
        for (at, _) in self.data(from) {
            match bursts.last_mut() {
                Some(last) if last.0 == at => last.1 += 1,
                _ => bursts.push((at, 1)),
            }
        }
        bursts
    }
}
