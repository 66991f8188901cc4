//! What of a link both its directions have in common, as options of the command line.

use clap::Args;
use engine::{LinkSettings, Overhead, burst_time};
use sched::{Nanos, Rate};
use serde::{Deserialize, Serialize};

use crate::quantity;

/// Options of the commands that put a queue in front of a link.
#[derive(Args, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct LinkOptions {
    /// Count these bytes for each packet beside its own: a kind of link (docsis, pppoe-ptm,
    /// ethernet and others of tc-cake) or a number, with ether-vlan, atm, ptm or mpu=N if needed:
    /// 44,atm,mpu=64
    #[arg(long, default_value = "0", allow_hyphen_values = true)]
    overhead: Overhead,
    /// Let a late shaper catch up this far: more holds the rate, less keeps bursts short
    #[arg(long, value_name = "TIME", default_value_t = burst_time::LIVE, allow_hyphen_values = true, value_parser = quantity::positive_time)]
    burst_time: Nanos,
}

impl LinkOptions {
    /// The link with this rate.
    pub(crate) const fn at(self, rate: Rate) -> LinkSettings {
        let Self { overhead, burst_time } = self;
        LinkSettings { rate, overhead, burst_time }
    }
}

/// A rate for people.
pub(crate) fn shown(rate: Rate) -> String {
    if rate.is_unlimited() { "unlimited".into() } else { rate.to_string() }
}

/// A rate above 0, or as fast as the device is.
pub(crate) fn rate(text: &str) -> Result<Rate, String> {
    match text {
        "unlimited" | "inf" => Ok(Rate::UNLIMITED),
        _ => quantity::rate(text).map_err(|accepted| format!("{accepted}, or unlimited")),
    }
}
