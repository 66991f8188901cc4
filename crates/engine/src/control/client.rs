//! Asking the engine that holds an interface.

use std::io::{self, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use thiserror::Error;

use super::lock::{Peer, connect};
use super::protocol::{Answer, Changes, Request, hear, say};
use crate::status::Status;

/// How long an engine may take to answer, and to end.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why an engine could not be asked, or what it has refused.
#[derive(Debug, Error)]
pub enum ControlError {
    /// No engine holds the interface.
    #[error("no userspace engine holds the interface")]
    Nobody,
    /// A process that is not trusted holds the interface's name.
    #[error(
        "process {pid} of user {uid} holds the interface, neither root's nor your own; run as root \
         to end it, or as that user"
    )]
    Stranger {
        /// The process.
        pid: i32,
        /// Its user.
        uid: u32,
    },
    /// The engine does not answer.
    #[error(
        "the engine, process {pid}, does not answer (traffic passes it by meanwhile); `shortlane \
         detach` ends it"
    )]
    Silent {
        /// Its process.
        pid: i32,
    },
    /// The engine has refused.
    #[error("{text}")]
    Refused {
        /// Why.
        text: String,
        /// Whether what was asked for is at fault.
        usage: bool,
    },
    /// The engine said something else than an answer: it is of another version.
    #[error(
        "the engine, process {pid}, answers in another way ({found}): it is of another version; \
         `shortlane detach` ends it"
    )]
    Foreign {
        /// Its process.
        pid: i32,
        /// What is wrong with its answer.
        found: String,
    },
    /// The system has refused.
    #[error("asking the engine: {0}")]
    System(#[from] io::Error),
}

impl ControlError {
    /// Whether what was asked for is at fault, rather than what was found.
    #[must_use]
    pub const fn is_usage(&self) -> bool {
        matches!(self, Self::Refused { usage: true, .. })
    }
}

/// What the engine that holds an interface of this network namespace is and has counted, in each
/// of its directions.
///
/// # Errors
/// [`ControlError::Nobody`] if there is none; or why it does not tell.
pub fn status(ifindex: u32) -> Result<Vec<Status>, ControlError> {
    match Connection::open(ifindex)?.ask(&Request::Status)? {
        Answer::Status(status) => Ok(status),
        _ => Err(ControlError::System(io::ErrorKind::InvalidData.into())),
    }
}

/// Changes the engine that holds an interface while packets are queued; none is lost.
///
/// # Errors
/// [`ControlError::Nobody`] if there is none; or what it has refused: then nothing has changed.
pub fn change(ifindex: u32, changes: &Changes) -> Result<(), ControlError> {
    Connection::open(ifindex)?.ask(&Request::Change(changes.clone())).map(|_| ())
}

/// Ends the engine that holds an interface, and waits for its end. One that does not answer is
/// killed, which leaves the interface just as clean; tells whether that was so.
///
/// # Errors
/// [`ControlError::Nobody`] if there is none; or why it could not be ended.
pub fn stop(ifindex: u32) -> Result<bool, ControlError> {
    let mut connection = Connection::open(ifindex)?;
    let has_ended = match connection.ask(&Request::Stop) {
        Ok(_) => connection.ends()?,
        Err(ControlError::Silent { .. } | ControlError::Foreign { .. }) => false,
        Err(error) => return Err(error),
    };
    if has_ended {
        return Ok(false);
    }
    // It still holds the connection, so that its number is not another process's yet.
    kill(Pid::from_raw(connection.peer.pid), Signal::SIGKILL).map_err(io::Error::from)?;
    match connection.ends()? {
        true => Ok(true),
        false => Err(ControlError::Silent { pid: connection.peer.pid }),
    }
}

struct Connection {
    stream: BufReader<UnixStream>,
    peer: Peer,
}

impl Connection {
    fn open(ifindex: u32) -> Result<Self, ControlError> {
        let stream = connect(ifindex)?.ok_or(ControlError::Nobody)?;
        let peer = Peer::of(&stream)?;
        if !peer.is_trusted() {
            return Err(ControlError::Stranger { pid: peer.pid, uid: peer.uid });
        }
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream), peer })
    }

    fn ask(&mut self, request: &Request) -> Result<Answer, ControlError> {
        let pid = self.peer.pid;
        // An engine that refuses this peer answers before it reads the request.
        let asked = say(self.stream.get_mut(), request);
        let answer = hear(&mut self.stream).map_err(|error| asked.err().unwrap_or(error));
        match answer {
            Ok(Answer::Refused { text, usage }) => Err(ControlError::Refused { text, usage }),
            Ok(answer) => Ok(answer),
            Err(error) => Err(match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ControlError::Silent { pid },
                io::ErrorKind::InvalidData => {
                    ControlError::Foreign { pid, found: error.to_string() }
                }
                // It was just ending.
                io::ErrorKind::UnexpectedEof
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::BrokenPipe => ControlError::Nobody,
                _ => ControlError::System(error),
            }),
        }
    }

    /// Waits for the engine to close the connection, which it does last of all.
    fn ends(&mut self) -> io::Result<bool> {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => Ok(true),
            Err(error) => match error.kind() {
                io::ErrorKind::ConnectionReset => Ok(true),
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Ok(false),
                _ => Err(error),
            },
        }
    }
}
