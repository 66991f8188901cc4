//! Keys of TCP.

use sched::Nanos;

use super::{key, optional};
use crate::key::{Section, Takes};

const TIMER: Takes =
    Takes::Time { min: Nanos(1_000_000), max: Nanos::from_secs(3600), unlimited: false };

/// What a key is without being given.
const PRESET: &str = "the preset's";

pub(crate) static TCP: Section = Section {
    title: "[tcp]",
    about: "TCP at all ends. [Simulation](sim.md#tcp) has the presets and what the model leaves out.",
    keys: &[&[
        key("preset", Takes::Word(&["ns2"]), "ns2", "Where all other values come from."),
        optional("window", Takes::Bytes { min: 1, max: 1 << 40 }, PRESET, "x"),
        optional("initial-rto", TIMER, PRESET, "Timeout of the handshake, and before the first measured round trip."),
    ]],
};
