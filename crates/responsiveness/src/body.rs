//! Bodies: as many zeros as are wanted.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};

const CHUNK: usize = 16 << 10;
static ZEROS: [u8; CHUNK] = [0; CHUNK];

/// A body of this many bytes.
pub(crate) struct Zeros(pub(crate) u64);

/// What the draft asks of a large object at least, and some: nobody receives it whole.
pub(crate) const LARGE: u64 = 64 << 30;

impl Body for Zeros {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let length = self.0.min(CHUNK as u64);
        self.0 -= length;
        let frame = || Ok(Frame::data(Bytes::from_static(&ZEROS[..length as usize])));
        Poll::Ready((length > 0).then(frame))
    }

    fn is_end_stream(&self) -> bool {
        self.0 == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0)
    }
}
