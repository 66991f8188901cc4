//! From a discipline's name and parameters to the parts and the configuration of the qdisc.

use std::mem::discriminant;
use std::sync::LazyLock;

use sched::interface::parts::{Accounting, Buffer, Parts, Service};
use sched::lanes::{Rule, miss_byte};
use sched::{Amount, Nanos, Params, Share, Spec, registry};

use super::error::KernelError;
use super::fq_lanes;
use super::nat::Nat;
use super::skeleton::fq_lanes::types::fql_parts;
use super::skeleton::types::{sl_accounting, sl_buffer, sl_config, sl_parts, sl_service};
use crate::settings::framing::{Cells, Framing};
use crate::settings::link::LinkSettings;
use crate::settings::overhead::Overhead;

/// The disciplines that the kernel engine has: those whose parts it has, and `fifo`.
pub static DISCIPLINES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let names = registry::ALL.iter().map(|info| info.name);
    names.filter(|name| Spec::named(name).is_ok_and(|spec| parts_of(&spec).is_ok())).collect()
});

const FIFO: &str = "fifo";

/// Slots that a lane has at least, so that a limit can be raised while the qdisc runs.
const LEAST_SLOTS: u64 = 1024;
const MOST_SLOTS: u64 = 1 << 22;
/// What a loop of BPF can go through, as it must when the qdisc is emptied.
const MOST_FLOWS: u64 = 1 << 23;
/// A limit in bytes comes with a slot for each so many of them; smaller packets (42 to 60 bytes of a
/// local sender) can run out of slots first, which is counted.
const LEAST_PACKET: u64 = 64;

/// The link that the qdisc paces for, on its device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shaping {
    /// What is set of the link.
    pub link: LinkSettings,
    /// Bytes that the device's packets have before the IP header.
    pub link_header: u8,
}

/// On a device whose packets begin with the IP header.
impl From<LinkSettings> for Shaping {
    fn from(link: LinkSettings) -> Self {
        Self { link, link_header: 0 }
    }
}

/// A discipline as the kernel engine builds it.
#[derive(Clone, Debug)]
pub struct Composition {
    pub(crate) parts: sl_parts,
    /// Those that only `fq-lanes` has.
    pub(crate) fq_lanes: Option<fql_parts>,
    pub(crate) config: sl_config,
    /// Whose addresses a program in front of the qdisc looks up.
    pub(crate) nat: Nat,
}

impl Composition {
    /// The program that it needs in front of the qdisc: one that marks, one that looks up clients as
    /// well, or none.
    pub(super) fn program(&self) -> Option<&'static str> {
        let own = self.fq_lanes?;
        match self.nat {
            Nat::Absent => (own.ecn != 0).then_some("shortlane_ecn"),
            Nat::Leaves | Nat::Arrives => Some("shortlane_ecn_nat"),
        }
    }

    /// Packets that a lane has slots for: what a limit can be raised to while the qdisc runs.
    #[must_use]
    pub fn slots(&self) -> u64 {
        u64::from(self.parts.ring_mask) + 1
    }

    /// Whether both are made of the same parts, and count flows in the same unit.
    pub(crate) fn has_parts_of(&self, other: &Self) -> bool {
        let parts = |of: &Self| {
            let sl_parts { accounting, service, buffer, .. } = of.parts;
            (accounting.0, service.0, buffer.0, of.config.threshold_in_bytes)
        };
        let fq_lanes = |of: &Self| of.fq_lanes.as_ref().map(fq_lanes::fixed);
        parts(self) == parts(other) && fq_lanes(self) == fq_lanes(other)
    }

    /// Entries of the flow table.
    #[must_use]
    pub fn flows(&self) -> u64 {
        self.parts.flows.into()
    }
}

/// The parts and the configuration of `spec` on a link of this shaping.
///
/// # Errors
/// If the discipline, or the value of a parameter, has no form in the kernel.
pub fn compose(spec: &Spec, shaping: &Shaping) -> Result<Composition, KernelError> {
    let params = spec.params();
    let (accounting, service, buffer) = parts_of(spec)?;
    refuse_what_is_missing(params)?;
    let limit = params.amount("limit");
    let slots = slots_for(params, limit)?;
    let is_fq_lanes = spec.info().name == fq_lanes::NAME;
    let bound = if params.has("flows") { params.number("flows") } else { 1 };
    let most = if is_fq_lanes { fq_lanes::MOST_FLOWS } else { MOST_FLOWS };
    if bound > most {
        return Err(refused(params, "flows", &format!("it takes {most} at most")));
    }
    let fq_lanes = is_fq_lanes.then(|| fq_lanes::parts(params, slots)).transpose()?;
    // While only queued flows are remembered there are no more of them than slots.
    let only_queued = !is_fq_lanes && accounting.0 == sl_accounting::SL_WHILE_QUEUED.0;
    let flows = if only_queued { bound.min(2 * slots) } else { bound };
    let parts = sl_parts {
        accounting,
        service,
        buffer,
        instances: 1,
        ring_mask: (slots - 1) as u32,
        bucket_mask: (flows.next_power_of_two() - 1) as u32,
        flows: flows as u32,
        ..sl_parts::default()
    };
    let config = configure(spec, shaping, accounting, flows as u32)?;
    Ok(Composition { parts, fq_lanes, config, nat: Nat::Absent })
}

fn parts_of(spec: &Spec) -> Result<(sl_accounting, sl_service, sl_buffer), KernelError> {
    let (info, params) = (spec.info(), spec.params());
    let missing = || KernelError::NotInKernel { discipline: info.name };
    let Parts { accounting, service, buffer } = match info.parts {
        Some(parts) => parts(params),
        // With an unlimited threshold, which `configure` sets, every packet is short; `fq-lanes` is
        // a program of its own.
        None if info.name == FIFO || info.name == fq_lanes::NAME => Parts {
            accounting: Accounting::WhileQueued,
            service: Service::Strict,
            buffer: Buffer::DropTail,
        },
        None => return Err(missing()),
    };
    let accounting = match accounting {
        Accounting::WhileQueued => sl_accounting::SL_WHILE_QUEUED,
        Accounting::EveryFlow => sl_accounting::SL_EVERY_FLOW,
        Accounting::Sampled => sl_accounting::SL_PER_PACKET,
        Accounting::SampleAndHold => sl_accounting::SL_PER_BYTE,
        Accounting::Retest | Accounting::Offset | Accounting::Mark => {
            let accepted = "it takes while-queued, every-flow, sampled or sample-and-hold";
            let choices = [("accounting", accepted), ("retest", "it takes no")];
            let choice = choices.into_iter().find(|(name, _)| params.has(name));
            return Err(choice.map_or_else(missing, |(name, takes)| refused(params, name, takes)));
        }
    };
    let service = match service {
        Service::Strict => sl_service::SL_STRICT,
        Service::Guaranteed => sl_service::SL_GUARANTEED,
        Service::Weighted if params.word("sharing") == "coin" => sl_service::SL_COIN,
        Service::Weighted => sl_service::SL_WEIGHTED,
        Service::Adapted => return Err(missing()),
    };
    let buffer = match buffer {
        Buffer::DropTail => sl_buffer::SL_DROP_TAIL,
        Buffer::Knockout => sl_buffer::SL_KNOCKOUT,
    };
    Ok((accounting, service, buffer))
}

pub(super) fn refused(params: &Params, parameter: &'static str, reason: &str) -> KernelError {
    let found = params.iter().find(|(def, _)| def.name == parameter);
    KernelError::Parameter {
        discipline: params.discipline(),
        parameter,
        found: found.map(|(_, value)| value).unwrap_or_default(),
        reason: reason.into(),
    }
}

fn refuse_what_is_missing(params: &Params) -> Result<(), KernelError> {
    if params.has("hold-on-wire") && params.flag("hold-on-wire") {
        return Err(refused(
            params,
            "hold-on-wire",
            "a qdisc does not learn when a transmission ends; it takes no",
        ));
    }
    let sweeps = params.has("interval") && params.discipline() != fq_lanes::NAME;
    if sweeps && params.time("interval") != Nanos::MAX {
        return Err(refused(
            params,
            "interval",
            "going through the whole table would stall the link; it takes inf",
        ));
    }
    Ok(())
}

fn slots_for(params: &Params, limit: Amount) -> Result<u64, KernelError> {
    let packets = match limit {
        Amount::Packets(packets) => packets,
        Amount::Bytes(bytes) => bytes.div_ceil(LEAST_PACKET),
    };
    let slots = packets.checked_next_power_of_two().unwrap_or(u64::MAX).max(LEAST_SLOTS);
    if slots > MOST_SLOTS {
        let most = format!("it takes {MOST_SLOTS} packets at most, or as many times 64 bytes");
        return Err(refused(params, "limit", &most));
    }
    Ok(slots)
}

fn configure(
    spec: &Spec,
    shaping: &Shaping,
    accounting: sl_accounting,
    flow_bound: u32,
) -> Result<sl_config, KernelError> {
    let params = spec.params();
    let time = |name| if params.has(name) { params.time(name).0 } else { Nanos::MAX.0 };
    let flag = |name| !params.has(name) || params.flag(name);
    let Rule { unit, bound, one_more, inclusive } = rule(spec);
    let limit = params.amount("limit");
    let guaranteed = params.has("low-share")
        && (!params.has("service") || params.word("service") == "guaranteed");
    let low_share = if guaranteed { params.share("low-share") } else { Share::ZERO };
    let (draw, always) = if params.has("probability") {
        draw(params.share("probability"), accounting)
    } else {
        (0, true)
    };
    let weight = if params.has("weight") { params.share("weight") } else { Share::ONE };
    let Shaping { link, link_header } = *shaping;
    let framing = link.overhead.framing(link_header.into());
    let text = spec.to_string();
    let mut config = sl_config {
        rate: link.rate.limit().unwrap_or(0),
        burst: link.burst_time.0,
        limit: limit.value(),
        high_limit: limit.value() - limit.part(low_share),
        threshold: bound,
        idle: time("idle"),
        sweep: time("sweep"),
        target: time("target"),
        interval: time("interval"),
        draw,
        high_cap: if params.has("cap-high") { params.number("cap-high") } else { u64::MAX },
        coin: weight.as_draw().unwrap_or(u64::MAX),
        weight: weight.ppb(),
        low_share: low_share.ppb(),
        overhead: framing.overhead,
        mpu: framing.mpu.max(1),
        flow_bound,
        limit_in_bytes: u8::from(is_bytes(limit)),
        threshold_in_bytes: u8::from(is_bytes(unit)),
        inclusive: u8::from(inclusive),
        always: u8::from(always),
        count_sampled: u8::from(flag("count-sampled")),
        sampled_to: sampled_to(params),
        coin_always: u8::from(weight.as_draw().is_none()),
        has_threshold: params.has("threshold").into(),
        has_low_share: guaranteed.into(),
        boundary_adds: one_more as u8,
        cells: cells(framing.cells),
        link_header,
        ..sl_config::default()
    };
    let room = config.spec.len() - 1;
    if text.len() > room {
        return Err(refused(
            params,
            "limit",
            &format!("the text of all parameters takes more than {room} bytes"),
        ));
    }
    write_text(&mut config.spec, &text);
    write_text(&mut config.overhead_text, &link.overhead.to_string());
    Ok(config)
}

/// What is longer than there is room for is cut off; the last byte stays 0.
fn write_text(into: &mut [i8], text: &str) {
    let room = into.len() - 1;
    for (into, byte) in into[..room].iter_mut().zip(text.bytes()) {
        *into = byte as i8;
    }
}

/// `enum sl_cells` of the shared header.
const CELLS: [Cells; 3] = [Cells::None, Cells::Atm, Cells::Ptm];

fn cells(cells: Cells) -> u8 {
    CELLS.iter().position(|known| *known == cells).unwrap_or_default() as u8
}

/// What a configuration says that a packet takes on the link.
pub(super) fn framing_of(config: &sl_config) -> Framing {
    let cells = CELLS.get(usize::from(config.cells)).copied().unwrap_or_default();
    // One byte is what every packet takes.
    let mpu = if config.mpu > 1 { config.mpu } else { 0 };
    Framing { overhead: config.overhead, mpu, cells }
}

/// As it was given, or as numbers if `tc` was given others.
pub(super) fn overhead_of(config: &sl_config) -> Overhead {
    let given = text_of(&config.overhead_text).parse().ok();
    given.unwrap_or_else(|| Overhead::on_frames(framing_of(config)))
}

/// The text in a field of the shared header.
pub(super) fn text_of(field: &[i8]) -> String {
    let bytes: Vec<u8> = field.iter().map(|byte| *byte as u8).collect();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn is_bytes(amount: Amount) -> bool {
    discriminant(&amount) == discriminant(&Amount::Bytes(0))
}

/// What the count of a flow is compared with. All packets of `fifo` are short.
fn rule(spec: &Spec) -> Rule {
    if spec.info().parts.is_none() {
        let unit = Amount::UNLIMITED;
        return Rule { unit, bound: unit.value(), one_more: 0, inclusive: false };
    }
    Rule::from_params(spec.params())
}

/// What a draw is compared with, and whether every packet is a hit.
fn draw(probability: Share, accounting: sl_accounting) -> (u64, bool) {
    let chance = if accounting.0 == sl_accounting::SL_PER_BYTE.0 {
        miss_byte(probability)
    } else {
        probability.as_draw()
    };
    (chance.unwrap_or(0), chance.is_none())
}

fn sampled_to(params: &Params) -> u8 {
    const HIGH: u8 = 0;
    const LOW: u8 = 1;
    const BY_RULE: u8 = 2;
    match params.has("sampled-to").then(|| params.word("sampled-to")) {
        Some("high") => HIGH,
        Some("low") => LOW,
        _ => BY_RULE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unshaped(spec: &str) -> Result<Composition, KernelError> {
        compose(&spec.parse().unwrap(), &Shaping::default())
    }

    #[test]
    fn every_discipline_that_is_named_has_a_composition() {
        for name in DISCIPLINES.iter() {
            let composition = unshaped(name).unwrap();
            assert!(composition.slots() >= 1024, "{name}");
            assert!(composition.flows() >= 1, "{name}");
        }
    }

    #[test]
    fn others_are_refused_by_name() {
        let error = unshaped("las").unwrap_err().to_string();
        assert!(error.starts_with("las: the kernel engine has fifo, efd, run2c"), "{error}");
        let error = unshaped("efd:hold-on-wire=yes").unwrap_err().to_string();
        assert!(error.starts_with("efd: hold-on-wire=yes is not for"), "{error}");
        let error = unshaped("sb-sh:interval=5s").unwrap_err().to_string();
        assert!(error.contains("it takes inf"), "{error}");
        let error = unshaped("lanes:accounting=offset").unwrap_err().to_string();
        assert!(error.contains("it takes while-queued"), "{error}");
        let error = unshaped("sift:retest=yes").unwrap_err().to_string();
        assert!(error.starts_with("sift: retest=yes is not for"), "{error}");
        let error = unshaped("auto").unwrap_err().to_string();
        assert!(error.starts_with("auto: the kernel engine has"), "{error}");
    }

    #[test]
    fn a_limit_beyond_the_largest_ring_is_refused() {
        let error = unshaped("efd:limit=4200000packets").unwrap_err().to_string();
        assert!(error.contains("4194304 packets at most"), "{error}");
        let error = unshaped("run2c:flows=10000000").unwrap_err().to_string();
        assert!(error.contains("8388608 at most"), "{error}");
        assert_eq!(unshaped("efd:limit=5000packets").unwrap().slots(), 8192);
        assert_eq!(unshaped("efd:limit=1mb").unwrap().slots(), 16384);
    }
}
