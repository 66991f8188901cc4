//! Draws a workload: which flow starts when, how large, between whom. Every purpose has its own
//! stream of random numbers from the seed, so that every scheduler sees the same workload. Nothing
//! is drawn before it is asked for: memory does not grow with simulated time.

use sched::Nanos;
use sim::sources::WebIndex;
use workload::{Page, PageLaw, Random, Requests, SizeLaw, Transfer, TransferList};

use crate::traffic::{Arrivals, Kind, Pick, Stream, Traffic};

/// A flow of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// When it starts.
    pub start: Nanos,
    /// Application bytes.
    pub size_bytes: u64,
    /// Its place in `Traffic::from`.
    pub from: usize,
    /// Its place in `Traffic::to`.
    pub to: usize,
}

/// Flows in the order of their starts.
pub type Flows = Box<dyn Iterator<Item = Planned> + Send>;

/// The finite flows of some traffic; none for streams and flows without end.
#[must_use]
pub fn flows(traffic: &Traffic, seed: u64) -> Flows {
    let random = |purpose: &str| Random::of(seed, &format!("{}/{purpose}", traffic.name));
    let (start, stop) = (traffic.start, traffic.stop);
    let ends = |pick| Ends::new(traffic, pick, random("ends"));
    match &traffic.kind {
        Kind::Transfers { arrivals, pick, .. } | Kind::OpenLoop { arrivals, pick, .. } => {
            let mut ends = ends(*pick);
            let arrivals = arrivals_of(arrivals, start, stop, &random);
            Box::new(arrivals.map(move |transfer| ends.planned(transfer)))
        }
        Kind::Periodic { flows, every, spread, size_bytes, .. } => {
            let mut ends = ends(Pick::InTurn);
            let rounds = (start.0..stop.0).step_by(every.0 as usize);
            let (flows, within, size_bytes) = (*flows, spread.0, *size_bytes);
            let mut spread = random("spread");
            Box::new(rounds.flat_map(move |round| {
                let mut starts: Vec<_> =
                    (0..flows).map(|_| Nanos(round + spread.below(within))).collect();
                starts.sort_unstable();
                let transfer = |start| ends.planned(Transfer { start, size_bytes });
                starts.into_iter().map(transfer).collect::<Vec<_>>()
            }))
        }
        _ => Box::new(std::iter::empty()),
    }
}

/// Of transfers by a law, so many at a time are spread evenly over it.
const STRATA: f64 = 50_000.0;

fn arrivals_of(
    arrivals: &Arrivals,
    start: Nanos,
    stop: Nanos,
    random: &dyn Fn(&str) -> Random,
) -> Box<dyn Iterator<Item = Transfer> + Send> {
    match arrivals {
        Arrivals::Listed(list) => {
            let shift = move |t: Transfer| Transfer { start: start + t.start, ..t };
            let transfers = list.transfers().to_vec().into_iter().map(shift);
            Box::new(transfers.take_while(move |transfer| transfer.start < stop))
        }
        Arrivals::Drawn { per_second, sizes, stratified: true } => {
            Box::new(stratified(sizes.clone(), *per_second, start, stop, random("transfers")))
        }
        Arrivals::Drawn { per_second, sizes, stratified: false } => {
            let (mean_ns, law) = (1e9 / per_second, sizes.clone());
            let (mut gaps, mut sizes) = (random("starts"), random("sizes"));
            let mut at = start.0 as f64;
            let transfers = std::iter::from_fn(move || {
                at -= mean_ns * libm::log1p(-gaps.unit());
                Some(Transfer { start: Nanos(at as u64), size_bytes: law.sample(&mut sizes) })
            });
            Box::new(transfers.take_while(move |transfer| transfer.start < stop))
        }
    }
}

/// Transfers of one part of the time after another; each part has the mean number, and its sizes
/// are spread evenly over the law.
fn stratified(
    law: SizeLaw,
    per_second: f64,
    start: Nanos,
    stop: Nanos,
    mut random: Random,
) -> impl Iterator<Item = Transfer> + Send {
    let span = (stop - start).0;
    let part = ((STRATA / per_second * 1e9) as u64).clamp(1, span);
    let parts =
        (0..span.div_ceil(part)).map(move |index| (index * part, span.min((index + 1) * part)));
    parts.flat_map(move |(begin, end)| {
        let number_until = |ns: u64| libm::round(per_second * ns as f64 / 1e9) as u64;
        let n = number_until(end) - number_until(begin);
        let list = TransferList::stratified(&law, n, Nanos(end - begin), &mut random);
        let shift = move |t: &Transfer| Transfer { start: start + Nanos(begin) + t.start, ..*t };
        list.transfers().iter().map(shift).collect::<Vec<_>>()
    })
}

/// Picks the ends of flows.
struct Ends {
    pick: Pick,
    from: u64,
    to: u64,
    turn: u64,
    random: Random,
}

impl Ends {
    fn new(traffic: &Traffic, pick: Pick, random: Random) -> Self {
        let (from, to) = (traffic.from.len() as u64, traffic.to.len() as u64);
        Self { pick, from, to, turn: 0, random }
    }

    fn next(&mut self) -> (usize, usize) {
        let (from, to) = match self.pick {
            Pick::Random => (self.random.below(self.from), self.random.below(self.to)),
            Pick::Paired => [self.random.below(self.from)].map(|place| (place, place))[0],
            Pick::InTurn => {
                let turn = self.turn;
                self.turn += 1;
                (turn % self.from, turn % self.to)
            }
        };
        (from as usize, to as usize)
    }

    fn planned(&mut self, Transfer { start, size_bytes }: Transfer) -> Planned {
        let (from, to) = self.next();
        Planned { start, size_bytes, from, to }
    }
}

/// A user who opens pages.
#[derive(Clone, Debug)]
pub struct Visitor {
    /// What the numbers of its objects in results begin with.
    pub index: u64,
    /// Its place in `Traffic::to`.
    pub to: usize,
    /// When it opens its first page.
    pub start: Nanos,
    /// Its pages, more than there is time for.
    pub pages: Vec<Page>,
}

/// No page takes less time than this, thinking included.
const LEAST_PAGE: Nanos = Nanos::from_millis(1);

/// The users of a web, and the pages that they open: those of the simulator, as far as they get.
#[must_use]
pub fn visitors(traffic: &Traffic, seed: u64) -> Vec<Visitor> {
    let Kind::Web { users, think, objects, gap, sizes, .. } = &traffic.kind else {
        return Vec::new();
    };
    let law = PageLaw { objects, sizes, gap, think };
    let mut random = Random::of(seed, &traffic.name);
    let visitor = |session| {
        let mut random = Random::new(random.below(u64::MAX));
        let to = random.below(traffic.to.len() as u64) as usize;
        let start = traffic.start + Nanos(think.sample(&mut random));
        let mut at = start;
        let pages = std::iter::from_fn(|| {
            let page = (at < traffic.stop).then(|| law.draw(traffic.from.len(), &mut random))?;
            let known = page.objects.last().map_or(Nanos::ZERO, |object| object.known);
            at += (known + page.think).max(LEAST_PAGE);
            Some(page)
        });
        let pages = pages.collect();
        Visitor { index: WebIndex { session, page: 0, object: 0 }.into(), to, start, pages }
    };
    (0..*users).map(visitor).collect()
}

/// What the number of an object has beyond its visitor's.
#[must_use]
pub fn object_index(page: u32, object: u32) -> u64 {
    WebIndex { session: 0, page, object }.into()
}

/// The ends of a flow of traffic that has a number of them: their places in `Traffic::from` and
/// `Traffic::to`.
#[must_use]
pub fn ends_of(traffic: &Traffic, flow: u64) -> (usize, usize) {
    let mut flow = flow as usize;
    if let Kind::Persistent { flows, .. } = &traffic.kind {
        flow %= traffic.from.len().max(traffic.to.len()).min(*flows as usize).max(1);
    }
    (flow % traffic.from.len(), flow % traffic.to.len())
}

/// When the requests of a connection are due.
#[must_use]
pub fn due(traffic: &Traffic, requests: Requests, flow: u64, seed: u64) -> Vec<Nanos> {
    let seed = Random::of(seed, &format!("{}/{flow}", traffic.name)).below(u64::MAX);
    let times = requests.times(traffic.stop - traffic.start, seed);
    times.into_iter().map(|time| traffic.start + time).collect()
}

/// When the first packet of constant-rate stream number `flow` of some traffic leaves: a stream alone
/// starts at once; several are spread over an interval.
#[must_use]
pub fn first(stream: &Stream, traffic: &Traffic, flow: u64, seed: u64) -> Nanos {
    let phase = match stream.flows {
        1 => 0,
        _ => Random::of(seed, &format!("{}/{flow}", traffic.name)).below(stream.cbr().interval().0),
    };
    traffic.start + Nanos(phase)
}

/// The packets of constant-rate stream number `flow` of some traffic, by time and size.
pub(crate) fn steady(
    stream: &Stream,
    traffic: &Traffic,
    flow: u64,
    seed: u64,
) -> impl Iterator<Item = (Nanos, u32)> + Send + use<> {
    let (cbr, stop) = (stream.cbr(), traffic.stop);
    let first = first(stream, traffic, flow, seed);
    let times = (0..).map(move |index| first + cbr.time(index));
    times.take_while(move |time| *time < stop).map(move |time| (time, cbr.packet_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Overrides, Scenario};

    /// The first traffic of a dumbbell of three pairs.
    fn traffic(more: &str) -> Traffic {
        let text = format!(
            "[scenario]\ntitle = \"t\"\nduration = \"1000s\"\n[schedulers]\nrun = [\"fifo\"]\n\
             [topology]\nkind = \"dumbbell\"\npairs = 3\naccess = {{ rate = \"1gbit\" }}\n\
             bottleneck = {{ rate = \"100mbit\" }}\n[[traffic]]\n{more}"
        );
        let scenario = Scenario::parse(&text, "t.toml", None, &Overrides::default());
        scenario.unwrap_or_else(|error| panic!("{error}")).traffic.remove(0)
    }

    const TRANSFERS: &str =
        "kind = \"transfers\"\narrivals = 100\nsizes = \"exponential:mean=10kb\"\n";

    #[test]
    fn transfers_come_in_order_at_their_rate_with_their_mean() {
        for stratified in ["true", "false"] {
            let traffic =
                traffic(&format!("{TRANSFERS}stratified = {stratified}\nstart = \"10s\"\n"));
            let drawn: Vec<Planned> = flows(&traffic, 1).collect();
            assert!(drawn.is_sorted_by_key(|flow| flow.start));
            let span = 10_000_000_000..1_000_000_000_000;
            assert!(drawn.iter().all(|flow| span.contains(&flow.start.0)));
            let n = drawn.len() as f64;
            // Of a Poisson number, 4 standard deviations.
            assert!((n - 99_000.0).abs() < 4.0 * 99_000.0_f64.sqrt(), "{stratified}: {n}");
            let mean = drawn.iter().map(|flow| flow.size_bytes as f64).sum::<f64>() / n;
            assert!((mean / 10_240.0 - 1.0).abs() < 4.0 / n.sqrt(), "{stratified}: {mean}");
            assert!(stratified == "false" || n == 99_000.0);
            let pairs: std::collections::BTreeSet<_> =
                drawn.iter().map(|flow| (flow.from, flow.to)).collect();
            assert_eq!(pairs.len(), 9);
        }
    }

    #[test]
    fn a_workload_depends_on_seed_and_name_alone() {
        let drawn =
            |traffic: &Traffic, seed| -> Vec<Planned> { flows(traffic, seed).take(100).collect() };
        let one = traffic(TRANSFERS);
        assert_eq!(drawn(&one, 1), drawn(&one, 1));
        assert_ne!(drawn(&one, 1), drawn(&one, 2));
        let other = traffic(&format!("{TRANSFERS}name = \"other\"\n"));
        assert_ne!(drawn(&one, 1), drawn(&other, 1));
        // How ends are picked changes no start and no size.
        let paired = traffic(&format!("{TRANSFERS}pick = \"paired\"\n"));
        for (a, b) in drawn(&one, 1).iter().zip(drawn(&paired, 1)) {
            assert_eq!((a.start, a.size_bytes), (b.start, b.size_bytes));
            assert_eq!(b.from, b.to);
        }
    }

    #[test]
    fn rounds_are_periodic_and_take_ends_in_turn() {
        let traffic = traffic(
            "kind = \"periodic\"\nflows = 4\nevery = \"25s\"\nspread = \"1s\"\nsize = \"10kb\"\n",
        );
        let drawn: Vec<Planned> = flows(&traffic, 1).collect();
        assert_eq!(drawn.len(), 40 * 4);
        for (at, flow) in drawn.iter().enumerate() {
            assert_eq!(flow.start.0 / 25_000_000_000, at as u64 / 4);
            assert!(flow.start.0 % 25_000_000_000 < 1_000_000_000);
            assert_eq!((flow.from, flow.to, flow.size_bytes), (at % 3, at % 3, 10_240));
        }
    }

    /// Times of a stream's packets.
    fn times(traffic: &Traffic, flow: u64) -> Vec<u64> {
        let Kind::Cbr(stream) = &traffic.kind else { panic!("it is a constant-rate stream") };
        steady(stream, traffic, flow, 1).map(|(time, _)| time.0).collect()
    }

    #[test]
    fn a_stream_has_its_rate() {
        let cbr =
            traffic("kind = \"cbr\"\nrate = \"120kbit\"\npacket = \"1500b\"\nstop = \"10s\"\n");
        assert_eq!(times(&cbr, 0), (0..100).map(|at| at * 100_000_000).collect::<Vec<u64>>());
    }

    #[test]
    fn several_streams_are_out_of_phase() {
        let cbr = traffic("kind = \"cbr\"\nflows = 3\nrate = \"120kbit\"\nstop = \"1s\"\n");
        let phases = [0, 1, 2].map(|flow| times(&cbr, flow)[0]);
        assert!(phases.iter().all(|ns| *ns < 100_000_000));
        assert!(phases[0] != phases[1] && phases[1] != phases[2], "{phases:?}");
    }
}
