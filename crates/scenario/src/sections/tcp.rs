//! Keys of TCP.

use sched::Nanos;

use super::{count, key, optional};
use crate::key::{Section, Takes};

const TIMER: Takes =
    Takes::Time { min: Nanos(1_000), max: Nanos::from_secs(3600), unlimited: false };
const DELAY: Takes = Takes::Time { min: Nanos(0), max: Nanos::from_secs(3600), unlimited: false };
const WINDOW: Takes = Takes::Bytes { min: 1, max: 1 << 30 };

/// What a key is without being given.
const PRESET: &str = "of the preset";

pub(crate) static TCP: Section = Section {
    title: "[tcp]",
    about: "TCP at all ends. [Simulation](sim.md#tcp) has the presets, and what the model leaves out.",
    keys: &[&[
        key(
            "preset",
            Takes::Word(&["rfc", "ns2", "qualnet", "linux", "ns3", "ns3-newreno"]),
            "rfc",
            "Where all other values come from.",
        ),
        optional(
            "congestion",
            Takes::Word(&["reno", "cubic", "bbr"]),
            PRESET,
            "Congestion control: RFC 5681, RFC 9438, or BBR version 1, which takes SACK, and has RACK and its own pacing.",
        ),
        optional(
            "recovery",
            Takes::Word(&["reno", "newreno", "sack"]),
            PRESET,
            "Loss recovery: RFC 5681, RFC 6582, RFC 6675.",
        ),
        optional("mss", Takes::Bytes { min: 1, max: 65_000 }, PRESET, "Most data in a segment."),
        optional(
            "header",
            Takes::Bytes { min: 20, max: 200 },
            "40b; 52b with timestamps",
            "IP and TCP headers of every segment.",
        ),
        optional("initial-window", count(1024), PRESET, "In segments."),
        optional("initial-ssthresh", WINDOW, PRESET, "First slow start threshold."),
        optional("window", WINDOW, PRESET, "What the receiver advertises."),
        optional("send-buffer", WINDOW, PRESET, "Most bytes sent and not acknowledged."),
        optional(
            "ack-every",
            count(1024),
            PRESET,
            "Segments for each acknowledgment; 1: none is delayed.",
        ),
        optional("ack-delay", DELAY, PRESET, "Longest delay of an acknowledgment."),
        optional(
            "quick-acks",
            Takes::Count { min: 0, max: 1024 },
            PRESET,
            "First segments that are acknowledged at once.",
        ),
        optional(
            "syn-timeout",
            TIMER,
            PRESET,
            "First timeout of the handshake; each further one is twice as long.",
        ),
        optional("syn-tries", count(100), PRESET, "SYNs before giving up."),
        optional("initial-rto", TIMER, PRESET, "Timeout before the first measured round trip."),
        optional("min-rto", TIMER, PRESET, "Least timeout."),
        optional("max-rto", TIMER, PRESET, "Longest timeout, with backoff."),
        optional("granularity", DELAY, PRESET, "Clock granularity of timeouts (RFC 6298)."),
        optional("data-tries", count(100), PRESET, "Timeouts of the same data before giving up."),
        optional(
            "dup-threshold",
            count(1024),
            PRESET,
            "Duplicate acknowledgments that mean a loss.",
        ),
        optional("limited-transmit", Takes::Flag, PRESET, "RFC 3042."),
        optional("prr", Takes::Flag, PRESET, "Proportional rate reduction, RFC 6937."),
        optional("rack", Takes::Flag, PRESET, "Losses by time, RFC 8985, section 6; with SACK."),
        optional("tail-loss-probe", Takes::Flag, PRESET, "RFC 8985, section 7."),
        optional(
            "slow-start",
            Takes::Word(&["loss", "hystart", "hystart++"]),
            PRESET,
            "What ends the first slow start: a loss alone, HyStart as in Linux, RFC 9406.",
        ),
        optional("timestamps", Takes::Flag, PRESET, "RFC 7323."),
        optional("ecn", Takes::Flag, PRESET, "RFC 3168."),
        optional(
            "pacing",
            Takes::Flag,
            PRESET,
            "As Linux: 200 % of window per round trip in slow start, then 120 %.",
        ),
    ]],
};
