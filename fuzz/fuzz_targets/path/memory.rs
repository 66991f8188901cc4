//! I/O in memory: frames come from a list, and what leaves is held against what came.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex, MutexGuard};

use engine::buffers::{Buffers, Offload};
use engine::io::{BATCH, FrameIo};

use crate::check;
use crate::script::{Answer, Arrival};

/// What both ends know.
pub(crate) struct Memory {
    coming: VecDeque<Arrival>,
    pub(crate) answers: VecDeque<Answer>,
    pub(crate) handed_out: u64,
    told: u64,
    pub(crate) taken: u64,
    pub(crate) marked: u64,
    /// By buffer: the frame in it, as it came.
    held: HashMap<u32, Came>,
}

/// A frame as it was handed out.
struct Came {
    bytes: Vec<u8>,
    offload: Offload,
}

#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<Memory>>);

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().expect("one thread")
    }
}

impl Memory {
    #[allow(clippy::new_ret_no_self, reason = "it is only ever shared")]
    pub(crate) fn new() -> Shared {
        Shared(Arc::new(Mutex::new(Self {
            coming: VecDeque::new(),
            answers: VecDeque::new(),
            handed_out: 0,
            told: 0,
            taken: 0,
            marked: 0,
            held: HashMap::new(),
        })))
    }

    pub(crate) fn arrive(&mut self, arrival: Arrival) {
        self.coming.push_back(arrival);
    }

    /// Whether all frames have been handed out.
    pub(crate) fn is_empty(&self) -> bool {
        self.coming.is_empty()
    }
}

/// Hands out the frames of the list.
pub(crate) struct Source {
    memory: Shared,
    socket: UnixDatagram,
}

impl Source {
    pub(crate) fn new(memory: Shared) -> Self {
        Self { memory, socket: UnixDatagram::unbound().expect("a socket") }
    }
}

impl FrameIo for Source {
    fn receive(&mut self, buffers: &mut Buffers, received: &mut Vec<u32>) -> io::Result<()> {
        let mut memory = self.memory.lock();
        for _ in 0..BATCH.min(memory.coming.len()) {
            let Some(buffer) = buffers.take() else { break };
            let arrival = memory.coming.pop_front().expect("as many as were counted");
            let came = put(buffers, buffer, &arrival);
            // A buffer that is free again held a frame that was dropped.
            memory.held.insert(buffer, came);
            memory.handed_out += 1;
            received.push(buffer);
        }
        Ok(())
    }

    fn send(&mut self, _: &mut Buffers, _: &[u32]) -> io::Result<usize> {
        unreachable!("nothing is sent to the input")
    }

    fn arrived(&mut self) -> io::Result<u64> {
        let mut memory = self.memory.lock();
        let total = memory.handed_out;
        Ok(total - std::mem::replace(&mut memory.told, total))
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Puts a frame into a buffer as a packet socket does, and returns it as it has to leave.
fn put(buffers: &mut Buffers, buffer: u32, arrival: &Arrival) -> Came {
    let offload = Offload(arrival.offload.unwrap_or_default());
    let [head, tail] = buffers.spaces(buffer);
    let room = head.len() + tail.len();
    let (first, rest) = arrival.bytes.split_at(arrival.bytes.len().min(head.len()));
    head[..first.len()].copy_from_slice(first);
    let rest = &rest[..rest.len().min(tail.len())];
    tail[..rest.len()].copy_from_slice(rest);
    let mut bytes = [first, rest].concat();
    // A frame is only ever cut off where the room ends.
    let cut = if bytes.len() < room { 0 } else { u32::from(arrival.cut) };
    buffers.received(buffer, arrival.bytes.len() as u32 + cut, offload);
    let mut offload = offload;
    if let Some(tag) = arrival.tag {
        let [high, low, tci_high, tci_low] = tag;
        let tag_type = u16::from_be_bytes([high, low]);
        buffers.insert_tag(buffer, tag_type, u16::from_be_bytes([tci_high, tci_low]));
        if bytes.len() >= 12 {
            bytes.splice(12..12, tag);
            // The checksum that is still to be made lies as much further back.
            if offload.0[0] & 1 != 0 {
                let start = u16::from_ne_bytes([offload.0[6], offload.0[7]]).wrapping_add(4);
                offload.0[6..8].copy_from_slice(&start.to_ne_bytes());
            }
        }
    }
    Came { bytes, offload }
}

/// Takes frames as it was told to, and checks them.
pub(crate) struct Sink {
    memory: Shared,
    socket: UnixDatagram,
}

impl Sink {
    pub(crate) fn new(memory: Shared) -> Self {
        Self { memory, socket: UnixDatagram::unbound().expect("a socket") }
    }
}

impl FrameIo for Sink {
    fn receive(&mut self, _: &mut Buffers, _: &mut Vec<u32>) -> io::Result<()> {
        unreachable!("nothing is received from the output")
    }

    fn send(&mut self, buffers: &mut Buffers, frames: &[u32]) -> io::Result<usize> {
        let mut memory = self.memory.lock();
        let count = match memory.answers.pop_front() {
            Some(Answer::Refuses(errno)) => return Err(io::Error::from_raw_os_error(errno)),
            Some(Answer::Takes(count)) => count.min(frames.len()),
            None => frames.len(),
        };
        for buffer in &frames[..count] {
            let came = memory.held.remove(buffer).expect("a frame that came and has not left");
            assert_eq!(buffers.offload(*buffer), came.offload, "what is left to do");
            let leaves = buffers.pieces(*buffer).concat();
            memory.marked += u64::from(check::is_same(&came.bytes, &leaves));
            memory.taken += 1;
            buffers.give(*buffer);
        }
        Ok(count)
    }

    fn arrived(&mut self) -> io::Result<u64> {
        Ok(0)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
