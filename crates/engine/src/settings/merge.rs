//! A running discipline with other parameters.

use sched::{ParamError, Spec, SpecError};
use thiserror::Error;

/// Why a running discipline cannot become another one.
#[derive(Debug, Error)]
pub enum SpecChangeError {
    /// It is another discipline.
    #[error("{found} cannot take the place of {running} while it runs; attach it anew")]
    Other {
        /// What was asked for.
        found: String,
        /// What runs.
        running: String,
    },
    /// A parameter cannot change while packets are queued.
    #[error("{0}; attach it anew, with --replace")]
    NotLive(ParamError),
    /// A value is not accepted, or does not go with the others.
    #[error("{0}")]
    Spec(#[from] SpecError),
}

/// `running` with the parameters that `wanted` was given: those that it was not given stay.
#[cfg(any(feature = "kernel", test))]
pub(crate) fn merged(running: &Spec, wanted: &Spec) -> Result<Spec, SpecChangeError> {
    if running.info() != wanted.info() {
        let (found, running) = (wanted.to_string(), running.to_string());
        return Err(SpecChangeError::Other { found, running });
    }
    let merged = overlaid(running, wanted)?;
    merged.params().check_live(running.params()).map_err(SpecChangeError::NotLive)?;
    Ok(merged)
}

/// The same where a running queue can be handed to another discipline.
pub(crate) fn overlaid(running: &Spec, wanted: &Spec) -> Result<Spec, SpecError> {
    if running.info() != wanted.info() {
        return Ok(wanted.clone());
    }
    let mut merged = running.clone();
    for (def, value) in wanted.params().iter() {
        if wanted.params().is_given(def.name) {
            merged = merged.with(def.name, &value)?;
        }
    }
    merged.check()?;
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(running: &str, wanted: &str) -> Result<String, String> {
        let (running, wanted) = (running.parse().unwrap(), wanted.parse().unwrap());
        merged(&running, &wanted).map(|spec| spec.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_named_stays() {
        let merged = change("efd:threshold=7packets,limit=100packets", "efd:limit=200packets");
        assert_eq!(merged.unwrap(), "efd:limit=200packets,threshold=7packets");
    }

    #[test]
    fn what_cannot_change_is_refused_by_name() {
        let error = change("efd", "fifo").unwrap_err();
        assert_eq!(error, "fifo cannot take the place of efd while it runs; attach it anew");
        let error = change("run2c", "run2c:flows=10").unwrap_err();
        assert!(error.contains("flows") && error.contains("--replace"), "{error}");
    }
}
