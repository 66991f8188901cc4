//! How far a long command is.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::say;

/// A bar with the time left on a terminal, a line for each tenth elsewhere.
pub(crate) struct ProgressLine {
    bar: Option<ProgressBar>,
    tenths: u64,
}

impl ProgressLine {
    pub(crate) fn new() -> Self {
        let bar = std::io::IsTerminal::is_terminal(&std::io::stderr()).then(|| {
            let bar = ProgressBar::new(0);
            let style = ProgressStyle::with_template("{bar:24} {percent} %, {eta} left  {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            bar.set_style(style);
            bar.enable_steady_tick(Duration::from_millis(500));
            bar
        });
        Self { bar, tenths: 0 }
    }

    pub(crate) fn show(&mut self, done: u64, of: u64, said: String) {
        match &self.bar {
            Some(bar) => {
                bar.set_length(of);
                bar.set_position(done);
                bar.set_message(said);
            }
            None => {
                let tenths = (u128::from(done) * 10 / u128::from(of.max(1))) as u64;
                if tenths > self.tenths {
                    self.tenths = tenths;
                    say(&format!("{} %: {said}", 10 * tenths));
                }
            }
        }
    }

    pub(crate) fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
