//! What an input says: a link, and what happens on it.
//!
//! Nine bytes configure the link: two for the discipline (`conformance::label`), limit, rate, delay, overhead, edge, observer, burst
//! time. Then come operations, each a byte whose low three bits are its kind:
//!
//! | kind | meaning | what follows |
//! |---|---|---|
//! | 0 to 3 | a frame arrives | length (2 bytes, little endian), what its bits 3 to 5 announce, and its bytes |
//! | 4, 5 | time passes: 16 bits of us shifted by bits 3 to 7 | 2 bytes |
//! | 6 | how the output answers next: takes so many, or refuses | 1 byte |
//! | 7 | another limit and rate | 2 bytes |
//!
//! A frame's bit 3 announces a virtio-net header (10 bytes), bit 4 a VLAN tag that the kernel has
//! stripped (4 bytes), bit 5 that the frame was longer than what is here, by 2 bytes' worth.

use std::sync::LazyLock;

use conformance::label;
use engine::framing::{Cells, Framing};
use engine::{LinkConfig, LinkSettings, Overhead, Rate};
use sched::{Info, Nanos, Spec, registry};

/// Bits per second: from less than a packet a second to more than any link.
const RATES: [u64; 8] =
    [1, 8_000, 1_000_000, 20_000_000, 100_000_000, 1_000_000_000, 10_000_000_000, u64::MAX];
const EDGE: &str = "edge";

/// The disciplines that a live link can have.
static LIVE: LazyLock<Vec<&'static Info>> = LazyLock::new(|| {
    let all = registry::ALL.iter().copied();
    all.filter(|info| !info.needs.flow_size && !info.needs.offset).collect()
});

pub(crate) struct Script {
    pub(crate) config: LinkConfig,
    pub(crate) observer: u8,
    pub(crate) operations: Vec<Operation>,
}

pub(crate) enum Operation {
    Arrive(Arrival),
    Answer(Answer),
    Pass(Nanos),
    Change(LinkConfig),
}

/// A frame as the kernel hands it over.
#[derive(Clone)]
pub(crate) struct Arrival {
    pub(crate) bytes: Vec<u8>,
    /// Bytes that the kernel says it had beyond those.
    pub(crate) cut: u16,
    pub(crate) offload: Option<[u8; 10]>,
    pub(crate) tag: Option<[u8; 4]>,
}

/// What the output says to the next call.
#[derive(Clone, Copy)]
pub(crate) enum Answer {
    Takes(usize),
    Refuses(i32),
}

impl Script {
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (head, mut rest) = bytes.split_first_chunk::<9>()?;
        let [low, high, limit, rate, delay, overhead, edge, observer, burst] = *head;
        let scheduler = u16::from_le_bytes([low, high]);
        let spec = spec(scheduler, limit)?;
        let link = LinkSettings {
            rate: self::rate(rate),
            overhead: Overhead::on_frames(Framing {
                overhead: i32::from(overhead as i8),
                mpu: if edge & 2 != 0 { 84 } else { 0 },
                cells: match edge >> 2 & 3 {
                    2 => Cells::Atm,
                    3 => Cells::Ptm,
                    _ => Cells::None,
                },
            }),
            burst_time: Nanos(u64::from(burst) * 10_000),
        };
        let config = LinkConfig {
            edge: (edge & 1 != 0).then(|| EDGE.parse().ok()).flatten(),
            delay: Nanos(u64::from(delay) * 100_000),
            ..LinkConfig::on(spec, link)
        };
        let mut operations = Vec::new();
        let mut last = config.clone();
        while let Some(operation) = operation(&mut rest, scheduler, &last) {
            if let Operation::Change(config) = &operation {
                last = config.clone();
            }
            operations.push(operation);
        }
        Some(Self { config, observer, operations })
    }

    /// The configuration at the end.
    pub(crate) fn last(&self) -> &LinkConfig {
        let changes = self.operations.iter().rev();
        let last = changes.filter_map(|operation| match operation {
            Operation::Change(config) => Some(config),
            _ => None,
        });
        last.take(1).next().unwrap_or(&self.config)
    }
}

fn operation(rest: &mut &[u8], scheduler: u16, last: &LinkConfig) -> Option<Operation> {
    let [kind] = *take::<1>(rest)?;
    Some(match kind & 7 {
        0..=3 => {
            let length = usize::from(u16::from_le_bytes(*take(rest)?));
            let offload = if kind & 8 != 0 { Some(*take(rest)?) } else { None };
            let tag = if kind & 16 != 0 { Some(*take(rest)?) } else { None };
            let cut = if kind & 32 != 0 { u16::from_le_bytes(*take(rest)?) } else { 0 };
            let (bytes, remaining) = rest.split_at(length.min(rest.len()));
            *rest = remaining;
            Operation::Arrive(Arrival { bytes: bytes.to_vec(), cut, offload, tag })
        }
        4 | 5 => {
            let time = u64::from(u16::from_le_bytes(*take(rest)?)) << (kind >> 3);
            Operation::Pass(Nanos(time * 1000))
        }
        6 => {
            let [answer] = *take(rest)?;
            Operation::Answer(match answer {
                255 => Answer::Refuses(libc::ENOBUFS),
                254 => Answer::Refuses(libc::EMSGSIZE),
                number => Answer::Takes(usize::from(number)),
            })
        }
        _ => {
            let [limit, rate] = *take(rest)?;
            let spec = spec(scheduler, limit)?;
            let link = LinkSettings { rate: self::rate(rate), ..last.link };
            Operation::Change(LinkConfig { spec, link, ..last.clone() })
        }
    })
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (taken, remaining) = rest.split_first_chunk()?;
    *rest = remaining;
    Some(taken)
}

fn rate(choice: u8) -> Rate {
    Rate(RATES[usize::from(choice) % RATES.len()])
}

/// A discipline that a live link can have, with a small limit where that goes with the rest.
fn spec(scheduler: u16, limit: u8) -> Option<Spec> {
    let spec = Spec::named(label::find(scheduler, &LIVE).name).ok()?;
    let limited = spec.clone().with("limit", &format!("{}packets", u16::from(limit) + 1));
    Some(limited.ok().filter(|spec| spec.check().is_ok()).unwrap_or(spec))
}
