//! A path that is probed, without sockets and a clock.

use std::sync::Arc;

use autorate::{Path, View};
use frame::LinkType;
use sched::Nanos;

use crate::control::{pilot, prober};
use crate::datapath::follow::{Gauge, Note, Passing, Stamps};

/// What an engine knows of its probes, and what a pilot makes of their answers.
pub struct Probes {
    stamps: Arc<Stamps>,
    departing: Note,
    returning: Note,
    is_ipv4: bool,
    path: Path,
}

impl Probes {
    /// Of which each bears this token.
    #[must_use]
    pub fn new(token: [u8; 8], is_ipv4: bool) -> Self {
        let stamps = Arc::new(Stamps::new(token));
        let note = |passing| Note {
            gauge: Arc::new(Gauge::default()),
            stamps: Arc::clone(&stamps),
            passing,
            trips: None,
            link: LinkType::Ethernet,
        };
        let [departing, returning] = [Passing::Departing, Passing::Returning].map(note);
        Self { stamps, departing, returning, is_ipv4, path: Path::new() }
    }

    /// Sends the next one: its number, and its ICMP message.
    pub fn send(&mut self) -> (u32, Vec<u8>) {
        let number = self.path.send();
        self.stamps.clear(number);
        (number, prober::request(&self.stamps, self.is_ipv4, number).to_vec())
    }

    /// A frame leaves for the link.
    pub fn leaves(&self, frame: &[u8], now: Nanos) {
        self.departing.left(frame, frame.len() as u64, now);
    }

    /// A frame comes from the link.
    pub fn comes(&self, frame: &[u8], now: Nanos) {
        self.returning.came(frame, frame.len() as u64, now);
    }

    /// The raw socket has received this packet. The number of the probe that it says it answers.
    pub fn hear(&mut self, packet: &[u8], now: Nanos, late: bool) -> Option<u32> {
        let number = prober::answered(&self.stamps, self.is_ipv4, packet)?;
        if let Some(echo) = pilot::echo(&self.stamps, number, now, late, true) {
            self.path.answer(number, echo);
        }
        Some(number)
    }

    /// What is known of the path now.
    #[must_use]
    pub fn look(&mut self, now: Nanos) -> View {
        pilot::note_departures(&mut self.path, &self.stamps);
        self.path.look(now)
    }

    /// Whether probes have had no answer for so long that one should have come.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        self.path.is_unanswered()
    }
}
