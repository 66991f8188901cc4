//! The control thread of an engine.

use std::io::{self, BufReader};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use netdev::link::name_of;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use sched::{Nanos, Rate};

use super::lock::{Lock, Peer};
use super::pilot::Pilot;
use super::protocol::{Answer, Changes, Request, hear, say};
use crate::datapath::clock;
use crate::status::Status;

/// How often the flags are looked at.
const PERIOD: Nanos = Nanos::from_millis(50);
/// How long a client may take to say what it wants, and a direction to answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// An interface that an engine holds.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) name: String,
    pub(crate) ifindex: u32,
    pub(crate) lock: Lock,
}

impl Port {
    /// What it is called now.
    pub(crate) fn name(&self) -> String {
        name_of(self.ifindex).unwrap_or_else(|| self.name.clone())
    }
}

/// Directions, whatever carries them out. Each has a place, by which the pilot knows it.
pub(crate) trait Steered {
    /// Whether it is over once no rate follows the link any more.
    const ENDS_UNSTEERED: bool = false;

    /// What each direction of a port is and has counted, with its place.
    fn status(&mut self, ports: &[Port], port: usize) -> Result<Vec<(usize, Status)>, Refusal>;

    /// Changes the directions of a port: all of it, or nothing. `is_set` is told of each that has
    /// another rate by hand.
    fn change(
        &mut self,
        ports: &[Port],
        port: usize,
        changes: &Changes,
        is_set: &mut dyn FnMut(usize, Rate),
    ) -> Result<(), Refusal>;

    /// Gives a direction the rate that the link can be seen to carry.
    fn set(&mut self, way: usize, rate: Rate) -> Result<(), Refusal>;

    /// Brings what the pilot goes by up to date; tells whether there still is something to steer.
    fn look(&mut self) -> bool {
        true
    }
}

/// Answers on the control sockets of an engine.
pub(crate) struct Server<S> {
    pub(crate) ports: Vec<Port>,
    pub(crate) steered: S,
    /// Has rates follow the link, if they are to.
    pub(crate) pilot: Option<Pilot>,
    /// Clients that wait for the end.
    waiting: Vec<UnixStream>,
}

/// Why a change is refused, and whether what was asked for is at fault.
#[derive(Debug)]
pub struct Refusal {
    /// Why.
    pub text: String,
    /// Whether what was asked for is at fault.
    pub usage: bool,
}

pub(super) fn usage(text: impl ToString) -> Refusal {
    Refusal { text: text.to_string(), usage: true }
}

impl<S: Steered> Server<S> {
    pub(crate) fn new(ports: Vec<Port>, steered: S, pilot: Option<Pilot>) -> Self {
        Self { ports, steered, pilot, waiting: Vec::new() }
    }

    /// Answers until one of the flags is set, and sets `stop` if a client asks for it. Whoever
    /// asked hears of the end when the server is dropped.
    pub(crate) fn serve(&mut self, stop: &AtomicBool, halt: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) && !halt.load(Ordering::Relaxed) {
            let mut fds: Vec<PollFd<'_>> = self
                .ports
                .iter()
                .map(|port| PollFd::new(port.lock.listener.as_fd(), PollFlags::POLLIN))
                .collect();
            let mut wait = PERIOD;
            if let Some(pilot) = &self.pilot {
                fds.push(PollFd::new(pilot.fd(), PollFlags::POLLIN));
                wait = wait.min(pilot.next_tick() - clock::now());
            }
            // EINTR is as good as a wake-up.
            let _ = poll(&mut fds, PollTimeout::from((wait.0 / 1_000_000) as u16 + 1));
            if !self.steer() {
                return;
            }
            for port in 0..self.ports.len() {
                while let Ok((stream, _)) = self.ports[port].lock.listener.accept() {
                    // A client that does not listen has itself to blame.
                    let _ = self.attend(port, stream, stop);
                }
            }
        }
    }

    /// Sets the rates that the link can be seen to carry; tells whether there are any.
    fn steer(&mut self) -> bool {
        let Some(pilot) = &mut self.pilot else { return true };
        if clock::now() >= pilot.next_tick() && !self.steered.look() {
            return false;
        }
        for (at, rate) in pilot.turn() {
            if let Err(refusal) = self.steered.set(at, rate) {
                pilot.failed(&refusal.text);
            }
        }
        !S::ENDS_UNSTEERED || pilot.steers()
    }

    /// Answers one request.
    fn attend(&mut self, port: usize, mut stream: UnixStream, stop: &AtomicBool) -> io::Result<()> {
        // It does not come with the listener's being non-blocking.
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let peer = Peer::of(&stream)?;
        if !peer.is_trusted() {
            let text = "the engine answers only root and its own user".to_owned();
            return say(&mut stream, &Answer::Refused { text, usage: false });
        }
        let request = hear(&mut BufReader::new(&stream));
        let answer = match request {
            Ok(Request::Status) => self.status(port).map_or_else(refused, Answer::Status),
            Ok(Request::Change(changes)) => {
                self.change(port, &changes).map_or_else(refused, |()| Answer::Done)
            }
            Ok(Request::Stop) => {
                stop.store(true, Ordering::Relaxed);
                self.waiting.push(stream.try_clone()?);
                Answer::Done
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let text = format!("no request of version {}: {error}", env!("CARGO_PKG_VERSION"));
                Answer::Refused { text, usage: false }
            }
            Err(error) => return Err(error),
        };
        say(&mut stream, &answer)
    }

    fn status(&mut self, port: usize) -> Result<Vec<Status>, Refusal> {
        let pilot = &self.pilot;
        let with_auto = |(at, status)| Status {
            auto: pilot.as_ref().and_then(|pilot| pilot.describe(at)),
            ..status
        };
        let found = self.steered.status(&self.ports, port)?;
        let mut found: Vec<Status> = found.into_iter().map(with_auto).collect();
        found.sort_by_key(|status| status.direction);
        Ok(found)
    }

    fn change(&mut self, port: usize, changes: &Changes) -> Result<(), Refusal> {
        let pilot = &mut self.pilot;
        self.steered.change(&self.ports, port, changes, &mut |at, rate| {
            // What is set by hand stays.
            if let Some(pilot) = pilot {
                pilot.dismiss(at, rate);
            }
        })
    }
}

fn refused(Refusal { text, usage }: Refusal) -> Answer {
    Answer::Refused { text, usage }
}
