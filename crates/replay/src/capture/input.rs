//! A window over a stream of bytes, as large as the longest record.

use std::io::{self, Read};

/// What is read at once.
const CHUNK: usize = 1 << 18;

/// Bytes of a stream: those read and not yet taken are in memory, no others.
pub(crate) struct Input<R> {
    reader: R,
    buffer: Vec<u8>,
    /// The window is `buffer[start..end]`.
    start: usize,
    end: usize,
    /// Bytes taken so far.
    taken: u64,
    /// Why there is no more, once there is no more.
    end_of_stream: Option<io::Result<()>>,
}

impl<R: Read> Input<R> {
    pub(crate) fn new(reader: R) -> Self {
        let buffer = vec![0; CHUNK];
        Self { reader, buffer, start: 0, end: 0, taken: 0, end_of_stream: None }
    }

    /// What is in memory.
    #[inline]
    pub(crate) fn window(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Has at least `length` bytes in memory, unless the stream ends before.
    #[inline]
    pub(crate) fn ensure(&mut self, length: usize) -> bool {
        self.end - self.start >= length || self.fill(length)
    }

    /// Passes over the first `length` bytes in memory.
    #[inline]
    pub(crate) fn take(&mut self, length: usize) {
        let length = length.min(self.end - self.start);
        self.start += length;
        self.taken += length as u64;
    }

    /// The place of the window in the stream.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// The error that ended the stream, if one did.
    pub(crate) fn error(&mut self) -> Option<io::Error> {
        self.end_of_stream.as_mut()?.as_mut().err().map(|e| std::mem::replace(e, e.kind().into()))
    }

    #[cold]
    fn fill(&mut self, length: usize) -> bool {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() < length {
            self.buffer.resize(length.next_multiple_of(CHUNK), 0);
        }
        while self.end < length && self.end_of_stream.is_none() {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.end_of_stream = Some(Ok(())),
                Ok(n) => self.end += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.end_of_stream = Some(Err(error)),
            }
        }
        self.end >= length
    }
}
