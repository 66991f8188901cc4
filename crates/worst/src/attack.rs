//! Traffic that is to do harm: a few blocks of a scenario, each with a handful of numbers that are
//! drawn, changed and written as `[[traffic]]`.

use std::fmt::Write;

use units::Rate;

use crate::draw::Draw;

/// Most blocks of an attack: more are hard to read, and rarely worse.
const MOST_BLOCKS: usize = 4;
/// What all open-loop traffic of an attack offers at most, in sixteenths of the link. A link that
/// is offered several times its rate is bad under any discipline, which teaches nothing.
const MOST_OFFERED: u32 = 20;

const FLOWS: &[u32] = &[1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];
const SIXTEENTHS: &[u32] = &[1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20];
const SIZES: &[u32] = &[
    100, 200, 500, 1000, 1460, 2920, 5840, 10_000, 14_600, 29_200, 50_000, 100_000, 200_000,
    500_000, 1_000_000,
];
const PACKETS: &[u32] = &[64, 128, 256, 500, 1000, 1500];
const MILLIS: &[u32] = &[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 4000];
const STARTS: &[u32] = &[0, 100, 500, 1000, 2000, 3000, 5000, 8000];

/// What a block of traffic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Persistent,
    Transfers,
    Periodic,
    Cbr,
    OnOff,
    OpenLoop,
}

impl Kind {
    const TCP: &[Self] = &[Self::Persistent, Self::Transfers, Self::Periodic];
    const DATAGRAMS: &[Self] = &[Self::Cbr, Self::OnOff, Self::OpenLoop];
}

/// Which blocks may be drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Without TCP: arrivals do not depend on what the discipline does.
    pub(crate) open_loop: bool,
    /// From the victim's own host too, or from the other one alone.
    pub(crate) own_host: bool,
}

/// One block. Every kind has all numbers, and writes those that it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    kind: Kind,
    own_host: bool,
    flows: u32,
    sixteenths: u32,
    size: u32,
    packet: u32,
    on_ms: u32,
    off_ms: u32,
    start_ms: u32,
}

/// All traffic beside the victim's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attack(Vec<Block>);

impl Block {
    fn drawn(rules: Rules, draw: &mut Draw) -> Self {
        Self {
            kind: kind(rules, draw),
            own_host: rules.own_host && draw.below(2) == 0,
            flows: *draw.one_of(FLOWS),
            sixteenths: *draw.one_of(SIXTEENTHS),
            size: *draw.one_of(SIZES),
            packet: *draw.one_of(PACKETS),
            on_ms: *draw.one_of(MILLIS),
            off_ms: *draw.one_of(MILLIS),
            start_ms: *draw.one_of(STARTS),
        }
    }

    /// Changes one number.
    fn change(&mut self, rules: Rules, draw: &mut Draw) {
        match draw.below(9) {
            0 => self.kind = kind(rules, draw),
            1 => self.own_host = rules.own_host && !self.own_host,
            2 => self.flows = draw.beside(FLOWS, self.flows),
            3 => self.sixteenths = draw.beside(SIXTEENTHS, self.sixteenths),
            4 => self.size = draw.beside(SIZES, self.size),
            5 => self.packet = draw.beside(PACKETS, self.packet),
            6 => self.on_ms = draw.beside(MILLIS, self.on_ms),
            7 => self.off_ms = draw.beside(MILLIS, self.off_ms),
            _ => self.start_ms = draw.beside(STARTS, self.start_ms),
        }
    }

    /// Its share of the link, in sixteenths, if it does not adapt.
    fn offers(&self) -> u32 {
        let always = matches!(self.kind, Kind::Cbr | Kind::OpenLoop | Kind::Transfers);
        if always || self.kind == Kind::OnOff { self.sixteenths } else { 0 }
    }

    /// In words, to a reader who knows that there is a victim.
    fn words(&self) -> String {
        let Self { flows, packet, on_ms, off_ms, .. } = self;
        let (size, part) = (shown(self.size), f64::from(self.sixteenths) / 16.0);
        let what = match self.kind {
            Kind::Persistent => many(*flows, "download"),
            Kind::Transfers => format!("transfers of {size} at {part:.2} of the link"),
            Kind::Periodic => {
                let senders = many(*flows, "sender");
                format!("{senders} of {size} over TCP every {} ms", on_ms + off_ms)
            }
            Kind::Cbr => {
                let streams = many(*flows, "stream");
                format!("{streams} of {packet}-byte packets at {part:.2} of the link")
            }
            Kind::OnOff => {
                let streams = many(*flows, "stream");
                format!(
                    "{streams} of {packet}-byte packets at {part:.2} of the link on average, \
                     {on_ms} ms on and {off_ms} ms off"
                )
            }
            Kind::OpenLoop => {
                format!(
                    "datagram flows of {size} in {packet}-byte packets at {part:.2} of the link"
                )
            }
        };
        format!("{what}, to {} host", if self.own_host { "the victim's" } else { "another" })
    }

    fn write(&self, number: usize, rate: Rate, out: &mut String) {
        let host = if self.own_host { 1 } else { 2 };
        let Self { flows, size, packet, on_ms, off_ms, start_ms, .. } = self;
        let all = rate.0 * u64::from(self.sixteenths) / 16;
        let each = (all / u64::from(*flows)).max(1);
        let numbers = match self.kind {
            Kind::Persistent => format!("kind = \"persistent\"\nflows = {flows}\n"),
            Kind::Transfers => format!(
                "kind = \"transfers\"\nrate = \"{all}bit\"\nsizes = \"fixed:size={size}b\"\n"
            ),
            Kind::Periodic => format!(
                "kind = \"periodic\"\nflows = {flows}\nevery = \"{}ms\"\nsize = \"{size}b\"\n",
                on_ms + off_ms
            ),
            Kind::Cbr => format!(
                "kind = \"cbr\"\nflows = {flows}\nrate = \"{each}bit\"\npacket = \"{packet}b\"\n"
            ),
            // At its rate on average: bursts are as much faster as they are shorter.
            Kind::OnOff => format!(
                "kind = \"on-off\"\nflows = {flows}\nrate = \"{}bit\"\non = \"fixed:time={on_ms}ms\"\n\
                 off = \"fixed:time={off_ms}ms\"\npacket = \"{packet}b\"\n",
                each * u64::from(on_ms + off_ms) / u64::from(*on_ms)
            ),
            Kind::OpenLoop => format!(
                "kind = \"open-loop\"\nrate = \"{all}bit\"\nsizes = \"fixed:size={size}b\"\n\
                 packet = \"{packet}b\"\n"
            ),
        };
        let _ = write!(
            out,
            "\n[[traffic]]\nname = \"attack-{number}\"\n{numbers}from = \"left{host}\"\n\
             to = \"right{host}\"\nstart = \"{start_ms}ms\"\nrows = false\n"
        );
    }
}

fn many(count: u32, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn shown(bytes: u32) -> String {
    if bytes < 1000 {
        return format!("{bytes} bytes");
    }
    format!("{} kB", f64::from(bytes) / 1e3)
}

fn kind(rules: Rules, draw: &mut Draw) -> Kind {
    let closed = !rules.open_loop && draw.below(2) == 0;
    *draw.one_of(if closed { Kind::TCP } else { Kind::DATAGRAMS })
}

impl Attack {
    pub(crate) fn drawn(rules: Rules, draw: &mut Draw) -> Self {
        let blocks = 1 + draw.below(2);
        Self((0..blocks).map(|_| Block::drawn(rules, draw)).collect()).bounded()
    }

    /// A child: one to three changes.
    #[must_use]
    pub(crate) fn changed(&self, rules: Rules, draw: &mut Draw) -> Self {
        let mut blocks = self.0.clone();
        for _ in 0..=draw.below(3) {
            match draw.below(8) {
                0 if blocks.len() < MOST_BLOCKS => blocks.push(Block::drawn(rules, draw)),
                1 if blocks.len() > 1 => drop(blocks.remove(draw.below(blocks.len()))),
                _ => {
                    let at = draw.below(blocks.len());
                    blocks[at].change(rules, draw);
                }
            }
        }
        Self(blocks).bounded()
    }

    /// Blocks of one and of the other.
    #[must_use]
    pub(crate) fn crossed(&self, other: &Self, draw: &mut Draw) -> Self {
        let mut blocks: Vec<Block> = self.0.iter().chain(&other.0).cloned().collect();
        while blocks.len() > 1 + self.0.len().max(other.0.len()) / 2 {
            blocks.remove(draw.below(blocks.len()));
        }
        Self(blocks).bounded()
    }

    /// The attacks that are left if any one block goes.
    pub(crate) fn simpler(&self) -> Vec<Self> {
        let without = |at| {
            let mut blocks = self.0.clone();
            blocks.remove(at);
            Self(blocks)
        };
        if self.0.len() < 2 { Vec::new() } else { (0..self.0.len()).map(without).collect() }
    }

    /// Takes rate from the greediest until the whole is within bounds.
    fn bounded(mut self) -> Self {
        self.0.truncate(MOST_BLOCKS);
        while self.0.iter().map(Block::offers).sum::<u32>() > MOST_OFFERED {
            let greediest = self.0.iter_mut().max_by_key(|block| block.offers());
            greediest.expect("something offers too much").sixteenths -= 1;
        }
        self
    }

    /// Offered without regard to the link, as a part of its rate.
    pub(crate) fn offered(&self) -> f64 {
        f64::from(self.0.iter().map(Block::offers).sum::<u32>()) / 16.0
    }

    /// Each block in words.
    pub(crate) fn words(&self) -> Vec<String> {
        self.0.iter().map(Block::words).collect()
    }

    /// As `[[traffic]]` of a scenario.
    pub(crate) fn write(&self, rate: Rate, out: &mut String) {
        for (number, block) in self.0.iter().enumerate() {
            block.write(number + 1, rate, out);
        }
    }
}
