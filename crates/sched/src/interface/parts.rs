//! The three choices that a discipline with a short and a long lane is made of.

/// Whose packet is long, how the lanes share the link, who is dropped when the buffer is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Whose packet is long.
    pub accounting: Accounting,
    /// How the lanes share the link.
    pub service: Service,
    /// Who is dropped when the buffer is full.
    pub buffer: Buffer,
}

/// Whose packet is long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accounting {
    /// A flow is counted from its first packet on.
    EveryFlow,
    /// A flow is counted once one of its packets has been sampled.
    Sampled,
    /// The same, sampled by the byte (Estan and Varghese).
    SampleAndHold,
    /// A flow is long once it has been sampled twice.
    Retest,
    /// A flow is counted while one of its packets is queued (EFD).
    WhileQueued,
    /// The packet's byte offset in its flow says it.
    Offset,
    /// The packet's DSCP says it.
    Mark,
}

impl Accounting {
    /// All of them, as `lanes:accounting=` has them.
    pub const ALL: [Self; 7] = [
        Self::EveryFlow,
        Self::Sampled,
        Self::SampleAndHold,
        Self::Retest,
        Self::WhileQueued,
        Self::Offset,
        Self::Mark,
    ];
    /// Their words, in the same order.
    pub const WORDS: &[&'static str] =
        &["every-flow", "sampled", "sample-and-hold", "retest", "while-queued", "offset", "mark"];

    /// What lists say of it.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::EveryFlow => "every flow",
            Self::Sampled => "sampled per packet",
            Self::SampleAndHold => "sample-and-hold per byte",
            Self::Retest => "sampled twice",
            Self::WhileQueued => "while-queued",
            Self::Offset => "sequence offset",
            Self::Mark => "DSCP",
        }
    }
}

/// How the lanes share the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// The long lane is served when the short one is empty.
    Strict,
    /// The short lane has a share of the link while both have packets.
    Weighted,
    /// Strict, but for a share of the link and the buffer that the long lane has for sure.
    Guaranteed,
    /// Weighted, by a weight that follows the queue.
    Adapted,
}

impl Service {
    /// Those of `lanes:service=`.
    pub const ALL: [Self; 3] = [Self::Strict, Self::Weighted, Self::Guaranteed];
    /// Their words, in the same order.
    pub const WORDS: &[&'static str] = &["strict", "weighted", "guaranteed"];

    /// What lists say of it.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Weighted => "weighted",
            Self::Guaranteed => "strict, with low-share guaranteed",
            Self::Adapted => "weighted, adapted",
        }
    }
}

/// Who is dropped when the buffer is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Buffer {
    /// The arrival.
    DropTail,
    /// The tail of the long lane, for an arrival of the short one.
    Knockout,
}

impl Buffer {
    /// Both, as `buffer=` has them.
    pub const ALL: [Self; 2] = [Self::DropTail, Self::Knockout];
    /// Their words, in the same order.
    pub const WORDS: &[&'static str] = &["drop-tail", "knockout"];

    /// What lists say of it.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::DropTail => "drop-tail",
            Self::Knockout => "knockout",
        }
    }
}
