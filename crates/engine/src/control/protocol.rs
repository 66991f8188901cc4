//! What is said on the control socket.

use std::io::{self, BufRead, Read, Write};

use sched::{Nanos, Rate};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::settings::link::LinkChanges;
use crate::settings::overhead::Overhead;
use crate::status::{Heading, Status};

/// Longest line: a status with two directions and their flows takes some 40 KB.
const LONGEST: u64 = 1 << 20;

/// What is to be changed; what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Changes {
    /// Another rate for what leaves the device.
    pub rate: Option<Rate>,
    /// Another rate for what comes in by it.
    pub ingress_rate: Option<Rate>,
    /// Other parameters of the discipline: those that are not named stay.
    pub scheduler: Option<String>,
    /// What a packet takes on the link beside its own bytes.
    pub overhead: Option<Overhead>,
    /// How far a late pacer may catch up.
    pub burst_time: Option<Nanos>,
}

impl Changes {
    /// Those of the link in one direction.
    #[must_use]
    pub const fn link(&self, heading: Heading) -> LinkChanges {
        let Self { rate, ingress_rate, overhead, burst_time, .. } = *self;
        let rate = match heading {
            Heading::Egress => rate,
            Heading::Ingress => ingress_rate,
        };
        LinkChanges { rate, overhead, burst_time }
    }
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "request", content = "with")]
pub(super) enum Request {
    /// Tell what you are and have counted.
    Status,
    /// Change while packets are queued.
    Change(Changes),
    /// Leave the interface as it was, and end. The connection is closed when that is done.
    Stop,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "answer", content = "with")]
pub(super) enum Answer {
    /// One for each direction.
    Status(Vec<Status>),
    /// It is done, or, for a stop, begun.
    Done,
    /// Nothing has changed.
    Refused {
        /// Why.
        text: String,
        /// Whether what was asked for is at fault.
        usage: bool,
    },
}

/// Writes a line.
pub(super) fn say(to: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// Reads a line. An end in its place, an endless line and a line of another sort are errors.
pub(super) fn hear<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<T> {
    let mut line = Vec::new();
    from.take(LONGEST).read_until(b'\n', &mut line)?;
    if line.last() != Some(&b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_slice(&line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
