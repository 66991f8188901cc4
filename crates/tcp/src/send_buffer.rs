//! When the send buffer is full, and so what is written ends with a push (RFC 9293, section
//! 3.9.1.2).
//!
//! A sender that always has more to write fills its buffer, and writes again when a third of it is
//! free. As Linux sizes it, a buffer has room for twice the window and what packets take beside
//! their data, so a third is about a window, of ten segments at least. The buffer itself is not
//! modelled: only the flag, since a receiver acknowledges what is pushed at once.

/// Least segments that are written at a time.
const LEAST: u16 = 10;

/// How much of the send buffer is free.
#[derive(Clone, Debug)]
pub(crate) struct SendBuffer {
    /// Segments that still find room.
    room: u16,
}

impl SendBuffer {
    /// An empty one has three thirds to fill.
    pub(crate) fn new() -> Self {
        Self { room: 3 * LEAST }
    }

    /// Takes a segment in: is the buffer full with it? `window` is the sender's, in segments.
    #[inline]
    pub(crate) fn fills(&mut self, window: impl FnOnce() -> u32) -> bool {
        self.room -= 1;
        let fills = self.room == 0;
        if fills {
            self.room = window().min(u16::MAX.into()).max(LEAST.into()) as u16;
        }
        fills
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_filled_once_and_then_by_windows() {
        let mut buffer = SendBuffer::new();
        let mut pushed =
            (1..=100).filter(|&number| buffer.fills(|| if number < 60 { 4 } else { 25 }));
        assert_eq!(pushed.by_ref().collect::<Vec<_>>(), [30, 40, 50, 60, 85]);
    }
}
