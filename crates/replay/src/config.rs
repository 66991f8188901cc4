//! The configuration of a replay.

use sched::{Amount, Nanos, Needs, Rate, Spec};

/// What a replay does with a capture.
#[derive(Clone, Debug)]
pub struct Config {
    /// The disciplines, side by side on the same packets. Their limits are their own.
    pub schedulers: Vec<Spec>,
    /// Rate of the link.
    pub rate: Rate,
    /// The limit of the disciplines that were given none: for the report.
    pub limit: Amount,
    /// Feeds fingerprints and disciplines.
    pub seed: u64,
    /// A flow that is silent for longer has ended.
    pub idle: Nanos,
}

/// A configuration that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl Config {
    /// Finds out whether this can be run.
    ///
    /// # Errors
    /// Says what was found and what is accepted.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.schedulers.is_empty() {
            return Err(ConfigError("no scheduler is named; it takes at least one".into()));
        }
        for (index, spec) in self.schedulers.iter().enumerate() {
            let name = spec.to_string();
            if self.schedulers[..index].iter().any(|other| other.to_string() == name) {
                let error = format!("the scheduler {name} is named twice; each is run once");
                return Err(ConfigError(error));
            }
            if spec.info().needs.flow_size {
                return Err(ConfigError(format!(
                    "{} cannot run on a capture: it needs the size of every flow before it ends, \
                     which is known only once the capture has been read",
                    spec.info().name
                )));
            }
        }
        Ok(())
    }

    /// What has to be read from packets, so that every discipline has what it needs.
    pub(crate) fn needs(&self) -> Needs {
        let needs = self.schedulers.iter().map(|spec| spec.info().needs);
        needs.fold(Needs::NOTHING, |all, one| Needs {
            flow_size: all.flow_size || one.flow_size,
            offset: all.offset || one.offset,
            hosts: all.hosts || one.hosts,
        })
    }
}
