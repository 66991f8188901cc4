//! What the answers to probes tell, told simply: every probe with its own times.

use autorate::View;
use sched::Nanos;

/// As many as are remembered.
const REMEMBERED: usize = 128;
/// A round trip that takes longer is a clock that has jumped.
const LONGEST: Nanos = Nanos::from_secs(60);
/// So many probes without an answer are too many.
const UNANSWERED: usize = 4;
/// No frame of a probe is longer.
const LONGEST_FRAME: usize = 128;

#[derive(Default)]
struct Probe {
    message: Vec<u8>,
    departed: Option<Nanos>,
    returned: Option<Nanos>,
    is_answered: bool,
}

/// All probes, by number.
#[derive(Default)]
pub(crate) struct Model {
    probes: Vec<Probe>,
    /// The number after the newest that was answered.
    answered: usize,
    /// What those took that count, in the order of their answers.
    times: Vec<Nanos>,
}

impl Model {
    /// How many were sent.
    pub(crate) fn sent(&self) -> u32 {
        self.probes.len() as u32
    }

    pub(crate) fn send(&mut self, number: u32, message: Vec<u8>) {
        assert_eq!(number, self.sent(), "numbers are given in order");
        self.probes.push(Probe { message, ..Probe::default() });
    }

    pub(crate) fn message(&self, number: u32) -> Option<&[u8]> {
        Some(&self.probes.get(number as usize)?.message)
    }

    /// Those that are remembered.
    fn probe(&mut self, number: u32) -> Option<&mut Probe> {
        let first = self.probes.len().saturating_sub(REMEMBERED);
        self.probes[first..].get_mut((number as usize).checked_sub(first)?)
    }

    pub(crate) fn leave(&mut self, number: u32, at: Nanos) {
        if let Some(probe) = self.probe(number) {
            probe.departed = Some(at);
        }
    }

    /// An answer to it was seen to pass.
    pub(crate) fn come(&mut self, number: u32, at: Nanos) {
        if let Some(probe) = self.probe(number) {
            probe.returned = Some(at);
        }
    }

    /// An answer to it was read, at this time if that says anything.
    pub(crate) fn hear(&mut self, number: u32, at: Option<Nanos>) {
        let Some(probe) = self.probe(number) else { return };
        let Some((departed, returned)) = probe.departed.zip(probe.returned.or(at)) else { return };
        if probe.is_answered || returned < departed || returned - departed > LONGEST {
            return;
        }
        probe.is_answered = true;
        self.times.push(returned - departed);
        self.answered = self.answered.max(number as usize + 1);
    }

    pub(crate) fn is_unanswered(&self) -> bool {
        self.probes.len() - self.answered >= UNANSWERED
    }

    /// The least round-trip time is that of an answer that counts, and not more than the latest.
    pub(crate) fn check(&self, view: &View) {
        assert!(!self.times.is_empty() || view.blind, "seen without an answer");
        let Some(baseline) = view.baseline else {
            return assert!(self.times.is_empty(), "an answer that is not known");
        };
        assert!(self.times.contains(&baseline), "{baseline} is nobody's round trip");
        assert!(self.times.last().is_some_and(|latest| baseline <= *latest));
        let extras = [view.extra, view.recent, view.newest];
        assert!(extras.iter().flatten().all(|(extra, _)| *extra <= LONGEST));
    }
}

/// The number that a frame or packet bears behind the token.
pub(crate) fn marked(packet: &[u8], token: &[u8; 8]) -> Option<u32> {
    let payload = packet.get(packet.len().checked_sub(16)?..)?;
    // The frame has a header of Ethernet.
    let has_room = packet.len() >= 24 - 14 && packet.len() + 14 <= LONGEST_FRAME;
    let is_marked = has_room && payload.starts_with(token);
    is_marked.then(|| u32::from_be_bytes([payload[8], payload[9], payload[10], payload[11]]))
}

/// The number that the echo reply in a packet answers.
pub(crate) fn answered(packet: &[u8], token: &[u8; 8], is_ipv4: bool) -> Option<u32> {
    let heard = if is_ipv4 { packet } else { packet.get(40..)? };
    let kind = heard.get(heard.len().checked_sub(32)?)?;
    let is_reply = *kind == if is_ipv4 { 0 } else { 129 };
    let fits = is_reply && heard.len() <= LONGEST_FRAME;
    let payload = &heard[heard.len() - 16..];
    let is_ours = fits && payload.starts_with(token);
    is_ours.then(|| u32::from_be_bytes([payload[8], payload[9], payload[10], payload[11]]))
}
