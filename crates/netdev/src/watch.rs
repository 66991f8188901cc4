//! Interfaces that an engine needs: are they still there, and up?

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::link::Links;

/// `RTMGRP_LINK`: what happens to interfaces.
const LINKS: u32 = 1;
/// How often the flag is looked at.
const PERIOD_MS: u16 = 50;

/// An interface that is looked after.
pub struct Watched {
    /// Its index.
    pub index: u32,
    /// What it is called in messages.
    pub name: String,
    /// Whether its being down is the end as well.
    pub up: bool,
}

/// Looks after interfaces of one network namespace.
pub struct Watch {
    events: Socket,
    links: Links,
    watched: Vec<Watched>,
}

impl Watch {
    /// Those of the calling thread's namespace.
    ///
    /// # Errors
    /// If the system refuses a netlink socket.
    pub fn new(watched: Vec<Watched>) -> io::Result<Self> {
        let mut events = Socket::new(NETLINK_ROUTE)?;
        events.bind(&SocketAddr::new(0, LINKS))?;
        events.set_non_blocking(true)?;
        let links = Links::open().map_err(crate::link::LinkError::into_system)?;
        Ok(Self { events, links, watched })
    }

    /// Until the flag is set. If something is no longer as the engine needs it, says what, and
    /// sets the flag.
    pub fn run(mut self, halt: &AtomicBool) -> Option<String> {
        while !halt.load(Ordering::Relaxed) {
            if let Some(fault) = self.watched.iter().find_map(|one| fault(&mut self.links, one)) {
                halt.store(true, Ordering::Relaxed);
                return Some(fault);
            }
            while !self.wait() && !halt.load(Ordering::Relaxed) {}
        }
        None
    }

    /// Whether something has happened, and what does not matter.
    fn wait(&self) -> bool {
        // SAFETY: the socket is open as long as `self` lives.
        let fd = unsafe { BorrowedFd::borrow_raw(self.events.as_raw_fd()) };
        let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
        // EINTR is as good as the end of the period.
        if !poll(&mut fds, PollTimeout::from(PERIOD_MS)).is_ok_and(|ready| ready > 0) {
            return false;
        }
        // An overflow is an error, which tells that something has happened.
        while self.events.recv_from_full().is_ok() {}
        true
    }
}

/// What is wrong with an interface.
fn fault(links: &mut Links, watched: &Watched) -> Option<String> {
    let name = &watched.name;
    match links.at(watched.index) {
        Ok(link) if watched.up && !link.up => Some(format!("{name}: somebody has switched it off")),
        Ok(_) => None,
        Err(error) if error.is_gone() => Some(format!(
            "{name}: the interface was removed, or moved to another network namespace"
        )),
        // Not its fault.
        Err(_) => None,
    }
}
