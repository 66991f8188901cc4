//! What an engine is told about a link and the queue in front of it.

pub mod burst_time;
pub mod framing;
pub(crate) mod link;
pub(crate) mod merge;
pub mod overhead;

use sched::edge::EdgeSpec;
use sched::{Info, Nanos, Rate, Spec};
use thiserror::Error;

use self::framing::Framing;
use self::link::LinkSettings;
use self::overhead::{ETHERNET_HEADER, Overhead};

/// A queue, and the link behind it.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// The discipline of the queue.
    pub spec: Spec,
    /// An edge in front of the queue, which writes into the DSCP of every packet whether it is
    /// one of a short flow.
    pub edge: Option<EdgeSpec>,
    /// What is set of the link. Frames count without checksum, as in `tc`.
    pub link: LinkSettings,
    /// Bytes that the interface's frames have before the IP header.
    pub link_header: u32,
    /// Propagation delay: a frame is released this long after its transmission has started.
    pub delay: Nanos,
    /// Seed of the discipline's random generator.
    pub seed: u64,
}

impl LinkConfig {
    /// A link without overhead and propagation delay, for measuring.
    #[must_use]
    pub fn new(spec: Spec, rate: Rate) -> Self {
        let burst_time = burst_time::MEASURED;
        Self::on(spec, LinkSettings { rate, overhead: Overhead::NONE, burst_time })
    }

    /// A link without propagation delay.
    #[must_use]
    pub fn on(spec: Spec, link: LinkSettings) -> Self {
        Self { spec, edge: None, link, link_header: ETHERNET_HEADER, delay: Nanos::ZERO, seed: 0 }
    }

    /// What a frame takes up on the link.
    #[must_use]
    pub fn framing(&self) -> Framing {
        self.link.overhead.framing(self.link_header)
    }

    /// Refuses what no engine can run in front of a live link.
    ///
    /// # Errors
    /// If its rate is 0, or the discipline needs what no live link tells.
    pub fn check(&self, to: &str) -> Result<(), SettingsError> {
        if self.link.rate == Rate(0) {
            return Err(SettingsError::RateZero { interface: to.to_owned() });
        }
        let Info { name: discipline, needs, .. } = self.spec.info();
        match needs.of_no_link() {
            Some(needed) => Err(SettingsError::Unsuitable { discipline, needed }),
            None => Ok(()),
        }
    }
}

/// Why a link cannot be as it is set.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// The rate is 0.
    #[error("{interface}: a link of rate 0 carries nothing; give a rate of 1bit or more, or inf")]
    RateZero {
        /// The interface that the link leads to.
        interface: String,
    },
    /// The discipline needs to know what a live link does not tell.
    #[error(
        "{discipline} needs {needed}, which no live link tells; choose another discipline here, \
         or run it in the simulator"
    )]
    Unsuitable {
        /// The discipline.
        discipline: &'static str,
        /// What it needs.
        needed: &'static str,
    },
}
