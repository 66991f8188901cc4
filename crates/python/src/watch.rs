//! What goes on between a run and the Python that waits for it: progress out, Ctrl-C in.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// How often Python is asked.
const OFTEN: Duration = Duration::from_millis(100);

/// Tells progress and looks for signals, a few times a second. Whatever Python raises ends the
/// run.
pub(crate) struct Watch<'a> {
    callback: Option<&'a Py<PyAny>>,
    stop: &'a AtomicBool,
    last: Instant,
    raised: Option<PyErr>,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(callback: Option<&'a Py<PyAny>>, stop: &'a AtomicBool) -> Self {
        Self { callback, stop, last: Instant::now(), raised: None }
    }

    /// To be called often; `progress` gives a part between 0 and 1, and a few words.
    pub(crate) fn look(&mut self, progress: impl FnOnce() -> (f64, String)) {
        if self.raised.is_some() || self.last.elapsed() < OFTEN {
            return;
        }
        self.last = Instant::now();
        self.ask(Some(progress()));
    }

    /// Tells that it is whole, if it is, and gives what Python has raised.
    pub(crate) fn end(mut self, whole: Option<String>) -> PyResult<()> {
        if self.raised.is_none() {
            self.ask(whole.map(|text| (1.0, text)));
        }
        self.raised.map_or(Ok(()), Err)
    }

    fn ask(&mut self, progress: Option<(f64, String)>) {
        let asked = Python::attach(|py| {
            py.check_signals()?;
            match (self.callback, progress) {
                (Some(callback), Some(progress)) => callback.call1(py, progress).map(drop),
                _ => Ok(()),
            }
        });
        if let Err(error) = asked {
            self.raised = Some(error);
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}
