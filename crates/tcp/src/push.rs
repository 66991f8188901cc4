//! What is pushed beside the end of a write: what fills the send buffer (RFC 9293, section
//! 3.9.1.2).
//!
//! Who always has more to write fills the buffer, and writes again when a third of it is free. As
//! Linux sizes it, it has room for twice the window and what packets take beside their data, so a
//! third is about a window, and ten segments at least. A receiver acknowledges at once what is
//! pushed.

/// Least segments that are written at a time.
const LEAST: u16 = 10;

/// When the send buffer is full next.
#[derive(Clone, Debug)]
pub(crate) struct Push {
    /// Segments that still find room.
    room: u16,
}

impl Push {
    /// An empty buffer has three thirds to fill.
    pub(crate) fn new() -> Self {
        Self { room: 3 * LEAST }
    }

    /// Whether the next segment fills the buffer. `window` is the sender's, in segments.
    #[inline]
    pub(crate) fn is_due(&mut self, window: impl FnOnce() -> u32) -> bool {
        self.room -= 1;
        let is_due = self.room == 0;
        if is_due {
            self.room = window().min(u16::MAX.into()).max(LEAST.into()) as u16;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_is_filled_once_and_then_by_windows() {
        let mut push = Push::new();
        let is_pushed = |number: &u32| push.is_due(|| if *number < 60 { 4 } else { 25 });
        assert_eq!((1..=100).filter(is_pushed).collect::<Vec<_>>(), [30, 40, 50, 60, 85]);
    }
}
