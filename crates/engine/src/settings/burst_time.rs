//! How far a late shaper may catch up, unless told otherwise: what holds the rate where timers are
//! late is also the length of a burst after such a moment; from a token bucket, after idleness, too.

use sched::Nanos;

/// Where a queue is measured: a burst would show in what is measured, and a run whose timers were
/// late by more says so.
pub const MEASURED: Nanos = Nanos::from_millis(1);

/// Where a link is to be kept at its rate: what a timer is later than this is lost to the rate, and
/// on a virtual machine timers are milliseconds late.
pub const LIVE: Nanos = Nanos::from_millis(10);

/// The same for a qdisc that `tc` makes, which does not pace unless told to: half of it, with
/// which at most 1.5 % of the rate was lost where [`LIVE`] was found.
pub const TC: Nanos = Nanos::from_millis(5);
