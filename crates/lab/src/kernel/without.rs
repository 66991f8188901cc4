//! In a program that was built without the kernel engine.

use std::io;

use sched::{Rate, Spec};

const REFUSAL: &str = "this program was built without the kernel engine";

fn refused() -> io::Result<()> {
    Err(io::Error::other(REFUSAL))
}

pub(crate) fn can(spec: &Spec) -> Result<(), String> {
    Err(format!("{spec}: {REFUSAL}"))
}

pub(super) fn put(_: &str, _: &Spec, _: Rate) -> io::Result<()> {
    refused()
}

pub(super) fn change(_: &str, _: Rate) -> io::Result<()> {
    refused()
}

pub(super) fn can_mark(_: &str) -> io::Result<()> {
    refused()
}

pub(super) fn put_marks(_: &str, _: &str, _: Rate) -> io::Result<()> {
    refused()
}

pub(super) fn change_marks(_: &str, _: Rate) -> io::Result<()> {
    refused()
}

pub(super) fn take_marks_off(_: &str) -> io::Result<()> {
    refused()
}
