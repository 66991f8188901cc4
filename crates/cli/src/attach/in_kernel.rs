//! The commands by the kernel engine.

use engine::kernel::{self, Changes, KernelError, Order, Shaping};
use sched::Spec;
use sched::params::text::Rate;
use serde_json::json;

use super::{AttachOptions, ChangeOptions, ShowOptions, text};
use crate::{Failure, print, say};

impl From<KernelError> for Failure {
    fn from(error: KernelError) -> Self {
        let text = error.to_string();
        if error.is_usage() { Self::Usage(text) } else { Self::Failed(text) }
    }
}

pub(super) fn attach(options: &AttachOptions, spec: &Spec) -> Result<(), Failure> {
    let notes = kernel::attach(&Order {
        device: &options.device,
        spec,
        shaping: Shaping {
            rate: options.rate.0,
            overhead: options.overhead,
            burst: options.burst_time,
            ..Shaping::default()
        },
        replace: options.replace,
        keep_offloads: options.keep_offloads,
    })?;
    tell(&notes);
    let rate = options.rate.0.map_or_else(|| "the device's pace".into(), |r| Rate(r).to_string());
    say(&format!("{}: {spec} at {rate}; `shortlane show` tells how it goes", options.device));
    Ok(())
}

pub(super) fn change(options: &ChangeOptions, spec: Option<Spec>) -> Result<(), Failure> {
    let changes = Changes {
        rate: options.rate.map(|rate| rate.0),
        spec,
        overhead: options.overhead,
        burst: options.burst_time,
    };
    tell(&kernel::change(&options.device, &changes)?);
    Ok(())
}

pub(super) fn detach(device: &str) -> Result<(), Failure> {
    tell(&kernel::detach(device)?);
    Ok(())
}

pub(super) fn show(options: &ShowOptions) -> Result<(), Failure> {
    let shown = kernel::show(options.device.as_deref())?;
    if options.json {
        return print(&format!("{:#}\n", json!({ "attached": shown })));
    }
    if shown.is_empty() {
        say("nothing is attached in this network namespace");
    }
    let texts: Vec<String> = shown.iter().map(text::describe).collect();
    print(&texts.join("\n"))
}

/// What else was changed, and what could not be put back.
fn tell(notes: &[String]) {
    notes.iter().for_each(|note| say(note));
}
