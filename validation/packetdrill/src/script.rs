//! What a script consists of.

use tcp::Nanos;

use crate::check::Check;
use crate::packet::Packet;

/// A script.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// `--name=value` at its head.
    pub options: Vec<(String, String)>,
    /// Shell commands without a time: at the head and at the end.
    pub commands: Vec<(usize, String)>,
    /// What happens, in order.
    pub events: Vec<Event>,
}

/// A line with a time.
#[derive(Clone, Debug)]
pub struct Event {
    /// Where it stands, from 1.
    pub line: usize,
    /// When it happens, or must have happened.
    pub time: Time,
    /// How long it takes: a call that blocks.
    pub lasts: Nanos,
    /// What.
    pub kind: Kind,
}

/// When an event is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Time {
    /// Whenever.
    Any,
    /// So long after the start.
    At(Nanos),
    /// So long after the event before.
    After(Nanos),
    /// Not earlier and not later than so long after the start.
    Between(Nanos, Nanos),
    /// Not earlier and not later than so long after the event before.
    BetweenAfter(Nanos, Nanos),
}

/// What happens.
#[derive(Clone, Debug)]
pub enum Kind {
    /// The peer sends this.
    Arrives(Packet),
    /// The host must send this.
    Leaves(Packet),
    /// The application makes a system call.
    Call(Call),
    /// A shell command.
    Command(String),
    /// Assertions on the state of the connection.
    Check(Check),
    /// What the harness has no words for.
    Unknown(String),
}

/// A system call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// Its arguments, as they are written.
    pub arguments: Vec<String>,
    /// What it returns; `None` for `...`.
    pub result: Option<i64>,
    /// Its error by name.
    pub error: Option<String>,
}

impl Call {
    /// An argument as it is written, empty if there is none.
    #[must_use]
    pub fn argument(&self, index: usize) -> &str {
        self.arguments.get(index).map_or("", String::as_str)
    }

    /// The number within the brackets of an option's value.
    #[must_use]
    pub fn option_value(&self) -> Option<i64> {
        let inner = self.argument(3).strip_prefix('[')?.strip_suffix(']')?;
        integer(inner.trim())
    }
}

/// A whole number, decimal or hexadecimal.
#[must_use]
pub fn integer(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
