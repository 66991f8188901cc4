//! Putting parts together.

use alloc::boxed::Box;

use crate::interface::parts::{Accounting, Buffer, Parts, Service};
use crate::interface::{Discipline, Info, Nanos, Param, Params, Qdisc, Share, Sink, Takes, shared};

use super::lifetime::Lifetime;
use super::mark::Mark;
use super::offset::Offset;
use super::params::{
    BOUNDARY, BUFFER, CAP_HIGH, COUNT_SAMPLED, EARLY_KEEP, HOLD_ON_WIRE, INTERVAL, KEEP, LOW_SHARE,
    PROBABILITY, SAMPLED_TO, SEGMENT, SHARING, THRESHOLD, WEIGHT,
};
use super::sampler::{EveryFlow, PerByte, PerPacket, Retest};
use super::service::{Guaranteed, Strict, Weighted};
use super::while_queued::WhileQueued;
use super::{Lanes, accounting, service};

/// A discipline that is its parts, and nothing beside them.
pub(crate) trait Named {
    /// Name, summary, source, parameters. The parts, and what follows from them, are filled in.
    const INFO: Info;

    /// The parts.
    fn parts(params: &Params) -> Parts;
}

impl<N: Named> Discipline for N {
    const INFO: Info = Info {
        parts: Some(N::parts),
        least_lanes: 2,
        keeps_order: |params| keeps_order(N::parts(params), params),
        work_conserving: |params| !N::parts(params).service.has_weight() || is_uncapped(params),
        ..N::INFO
    };

    fn build<S: Sink + 'static>(params: &Params, seed: u64) -> Box<dyn Qdisc<S>> {
        build(N::parts(params), params, seed)
    }
}

impl Service {
    const fn has_weight(self) -> bool {
        matches!(self, Self::Weighted | Self::Adapted)
    }
}

/// Whether no flow has packets in both lanes that could overtake each other.
pub(super) fn keeps_order(parts: Parts, params: &Params) -> bool {
    let by_packet = matches!(parts.accounting, Accounting::Offset | Accounting::Mark);
    let promotes = params.find(INTERVAL).is_some_and(|interval| interval != Nanos::MAX);
    let shares = parts.service.has_weight() && params.get(WEIGHT) != Share::ONE;
    !(by_packet || promotes || shares)
}

/// Whether the short lane may take the whole link.
pub(super) fn is_uncapped(params: &Params) -> bool {
    params.get(CAP_HIGH).is_unlimited()
}

fn build<S: Sink + 'static>(parts: Parts, params: &Params, seed: u64) -> Box<dyn Qdisc<S>> {
    match parts.accounting {
        Accounting::EveryFlow => serve(Lifetime::new(EveryFlow, params), parts, params, seed),
        Accounting::Sampled => {
            serve(Lifetime::new(PerPacket::new(params, seed), params), parts, params, seed)
        }
        Accounting::SampleAndHold => {
            serve(Lifetime::new(PerByte::new(params, seed), params), parts, params, seed)
        }
        Accounting::Retest => {
            serve(Lifetime::new(Retest::new(params, seed), params), parts, params, seed)
        }
        Accounting::WhileQueued => serve(WhileQueued::new(params), parts, params, seed),
        Accounting::Offset => serve(Offset::new(params), parts, params, seed),
        Accounting::Mark => serve(Mark::new(params), parts, params, seed),
    }
}

fn serve<S: Sink + 'static>(
    accounting: impl accounting::Accounting,
    parts: Parts,
    params: &Params,
    seed: u64,
) -> Box<dyn Qdisc<S>> {
    fn boxed<S: Sink + 'static>(
        accounting: impl accounting::Accounting,
        service: impl service::Service,
        buffer: Buffer,
        params: &Params,
    ) -> Box<dyn Qdisc<S>> {
        Box::new(Lanes::new(accounting, service, buffer, params))
    }
    match parts.service {
        Service::Strict => boxed(accounting, Strict, parts.buffer, params),
        Service::Guaranteed => boxed(accounting, Guaranteed::new(params), parts.buffer, params),
        Service::Weighted | Service::Adapted => {
            boxed(accounting, Weighted::new(params, seed), parts.buffer, params)
        }
    }
}

const ACCOUNTING: Param<&'static str> = Param {
    name: "accounting",
    kind: Takes::words(Accounting::WORDS),
    default: "while-queued",
    effect: "which packets are long",
    source: "ours",
    live: false,
};

const SERVICE: Param<&'static str> = Param {
    name: "service",
    kind: Takes::words(Service::WORDS),
    default: "strict",
    effect: "how the lanes share the link",
    source: "ours",
    live: false,
};

/// Any combination of parts: `lanes:accounting=sampled,service=strict,buffer=knockout`.
pub(crate) struct Composed;

impl Named for Composed {
    const INFO: Info = Info {
        name: "lanes",
        summary: "any combination of accounting, service and buffer, by naming the three parts",
        source: "flow scheduler paper, section 2 (the parts); EFD paper (while-queued)",
        params: &[
            shared::LIMIT.any(),
            ACCOUNTING.any(),
            SERVICE.any(),
            BUFFER.with_default("knockout", "ours").any(),
            THRESHOLD.any(),
            BOUNDARY.any(),
            PROBABILITY.any(),
            SAMPLED_TO.with_default("rule", "ours").any(),
            COUNT_SAMPLED.any(),
            WEIGHT.any(),
            SHARING.any(),
            CAP_HIGH.any(),
            LOW_SHARE.any(),
            HOLD_ON_WIRE.any(),
            SEGMENT.any(),
            shared::SHORT_DSCP.any(),
            shared::IDLE.any(),
            shared::SWEEP.any(),
            INTERVAL.any(),
            KEEP.any(),
            EARLY_KEEP.any(),
            shared::FLOWS.any(),
        ],
        ..Info::PLAIN
    };

    fn parts(params: &Params) -> Parts {
        Parts {
            accounting: chosen(params.get(ACCOUNTING), Accounting::WORDS, &Accounting::ALL),
            service: chosen(params.get(SERVICE), Service::WORDS, &Service::ALL),
            buffer: buffer(params),
        }
    }
}

/// The buffer that the parameter names.
pub(super) fn buffer(params: &Params) -> Buffer {
    chosen(params.get(BUFFER), Buffer::WORDS, &Buffer::ALL)
}

/// The part with this word.
fn chosen<T: Copy>(word: &str, words: &[&str], parts: &[T]) -> T {
    let at = words.iter().position(|known| *known == word);
    parts[at.expect("one of the choices")]
}
