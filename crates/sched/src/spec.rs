//! A discipline by name, with its parameters: `efd:threshold=20packets,limit=300packets`.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use crate::interface::{Amount, Info, ParamError, Params, Qdisc, Rate, Sink};
use crate::registry;

/// A discipline and a value for each of its parameters, ready to be built any number of times.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    info: &'static Info,
    params: Params,
}

impl Spec {
    /// The named discipline with its defaults.
    ///
    /// # Errors
    /// If no discipline has this name.
    pub fn named(name: &str) -> Result<Self, SpecError> {
        let info = registry::find(name).ok_or_else(|| SpecError::UnknownName {
            found: name.to_string(),
            accepted: registry::ALL.iter().map(|info| info.name).collect(),
        })?;
        Ok(Self { info, params: info.defaults() })
    }

    /// The same discipline with one parameter set.
    ///
    /// # Errors
    /// If the parameter or its value is not accepted.
    pub fn with(mut self, name: &str, value: &str) -> Result<Self, SpecError> {
        self.params.set(name, value)?;
        Ok(self)
    }

    /// Gives a parameter that the user has not set, and that the discipline has, another default;
    /// `limit` for all disciplines of an experiment comes in this way. Then all is known, and
    /// checked as [`Spec::check`] does.
    ///
    /// # Errors
    /// If the value is not accepted, or values do not go together.
    pub fn with_default(mut self, name: &str, value: &str) -> Result<Self, SpecError> {
        if self.params.has(name) && !self.params.is_given(name) {
            self.params.set_default(name, value)?;
        }
        self.check()?;
        Ok(self)
    }

    /// Checks that the parameters go together: thresholds lie below the limit, say. A spec is
    /// built without this as well, and then does what its numbers say.
    ///
    /// # Errors
    /// Names two parameters that contradict each other.
    pub fn check(&self) -> Result<(), SpecError> {
        Ok((self.info.check)(&self.params)?)
    }

    /// The same discipline in front of a link of this rate, for those that reckon with it
    /// (`rate`), unless the user has given one.
    #[must_use]
    pub fn on_link(mut self, rate: Rate) -> Self {
        if self.params.has("rate") && !self.params.is_given("rate") {
            let rate = rate.max(Rate(1)).to_string();
            let set = self.params.set_default("rate", &rate);
            debug_assert!(set.is_ok(), "{rate} is a rate");
        }
        self
    }

    /// The same discipline with the limit that [`limit_for`] has for this rate, unless the user has
    /// given one or the discipline's own default is larger. As one that was given: it is shown, and
    /// stays if the rate changes.
    #[must_use]
    pub fn with_limit_for(mut self, rate: Rate) -> Self {
        if !self.params.has("limit") || self.params.is_given("limit") {
            return self;
        }
        let limit = limit_for(rate);
        let holds = |own: Amount| own.bytes().map_or(own.value(), |bytes| bytes / PACKET_BYTES);
        if holds(self.params.amount("limit")) < limit.value() {
            let set = self.params.set("limit", &limit.to_string());
            debug_assert!(set.is_ok(), "{limit} is a limit");
        }
        self
    }

    /// What the discipline is.
    #[must_use]
    pub const fn info(&self) -> &'static Info {
        self.info
    }

    /// Its parameters.
    #[must_use]
    pub const fn params(&self) -> &Params {
        &self.params
    }

    /// A new, empty instance for sinks of type `S`. The seed feeds its random generator, where
    /// it has one.
    #[must_use]
    pub fn build<S: Sink + 'static>(&self, seed: u64) -> Box<dyn Qdisc<S>> {
        registry::build(self.info, &self.params, seed)
    }
}

/// Of a packet as limits reckon with it.
const PACKET_BYTES: u64 = 1500;

/// What a queue in front of a link of this rate holds where nobody has said it: 300 packets, or as
/// many of 1500 bytes as the link sends in 100 ms if these are more, but no more than 65536.
///
/// 300 packets are the EFD paper's, and 100 ms of up to 36 Mbit/s. On a faster link they would be
/// less than a window of TCP over a long round trip, 3.6 ms at 1 Gbit/s, and flows could not keep
/// it busy; 100 ms are the round trip that CoDel and CAKE reckon with. The bound on all is one on
/// memory, 98 MB of packets. Without a rate, 300 packets.
#[must_use]
pub const fn limit_for(rate: Rate) -> Amount {
    const LEAST: u64 = 300;
    const MOST: u64 = 1 << 16;
    let packets = if rate.is_unlimited() { 0 } else { rate.0 / 10 / (8 * PACKET_BYTES) };
    Amount::Packets(if packets < LEAST {
        LEAST
    } else if packets > MOST {
        MOST
    } else {
        packets
    })
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut spec = Self::named(name)?;
        spec.params.read(rest)?;
        Ok(spec)
    }
}

/// The name and the parameters that were given.
impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info.name)?;
        if self.params.iter().any(|(def, _)| self.params.is_given(def.name)) {
            f.write_str(":")?;
        }
        self.params.fmt_given(f)
    }
}

/// Why a spec was refused: what was found, and what is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpecError {
    /// No discipline has this name.
    UnknownName {
        /// The name that was given.
        found: String,
        /// The names there are.
        accepted: Vec<&'static str>,
    },
    /// A parameter was refused.
    Param(ParamError),
}

impl From<ParamError> for SpecError {
    fn from(error: ParamError) -> Self {
        Self::Param(error)
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownName { found, accepted } => {
                write!(f, "no discipline is named '{found}'; there are {}", accepted.join(", "))
            }
            Self::Param(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for SpecError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_follows_from_the_rate_between_its_bounds() {
        for (rate, packets) in [
            (1, 300),
            (10_000_000, 300),
            (36_000_000, 300),
            (36_120_000, 301),
            (100_000_000, 833),
            (1_000_000_000, 8333),
            (10_000_000_000, 65_536),
            (u64::MAX - 1, 65_536),
            (u64::MAX, 300),
        ] {
            assert_eq!(limit_for(Rate(rate)), Amount::Packets(packets), "{rate}");
        }
    }

    #[test]
    fn a_limit_that_is_given_or_larger_stays() {
        let on =
            |spec: &str, rate| spec.parse::<Spec>().unwrap().with_limit_for(Rate(rate)).to_string();
        assert_eq!(on("efd", 10_000_000), "efd");
        assert_eq!(on("efd", 1_000_000_000), "efd:limit=8333packets");
        assert_eq!(on("efd:limit=300packets", 1_000_000_000), "efd:limit=300packets");
        assert_eq!(on("efd:threshold=9kb", 120_000_000), "efd:limit=1000packets,threshold=9kb");
        assert_eq!(on("fq-codel", 1_000_000_000), "fq-codel");
        assert_eq!(on("fq-codel", 2_000_000_000), "fq-codel:limit=16666packets");
        assert_eq!(on("cake", 10_000_000_000), "cake");
        assert_eq!(on("efd", u64::MAX), "efd");
        // Its own is 4 MiB, 2796 packets of 1500 bytes.
        assert_eq!(on("fq-lanes", 335_000_000), "fq-lanes");
        assert_eq!(on("fq-lanes", 1_000_000_000), "fq-lanes:limit=8333packets");
        assert_eq!(on("fq-lanes", 10_000_000_000), "fq-lanes:limit=65536packets");
        assert_eq!(on("fq-lanes", u64::MAX), "fq-lanes");
    }
}
