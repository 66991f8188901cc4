//! Frame I/O of a bridge over `AF_XDP`.
//!
//! All frames lie in one piece of memory that the kernel knows (the UMEM). Each direction owns
//! half of its buffers, and goes round with them alone: it fills the ring of free buffers of the
//! interface that it receives from, takes frames out of that one's receive ring, puts them into the
//! transmit ring of the other interface, and takes them back from the ring of completions. So each
//! ring has one thread, and nothing is shared between the two.
//!
//! An interface has one pair of buffer rings and two sockets, one to receive and one to send, so
//! that each thread has descriptors of its own to poll.
//!
//! The system calls are made here and not by a crate: the crates there are own the memory of
//! frames, where here the engine does, and none shares it between two interfaces.

mod bpf;
mod checksum;
mod io;
mod ring;
mod shared;
mod socket;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use netdev::link::Link;
use netdev::offload;
use sched::Nanos;
use thiserror::Error;

use self::bpf::{FOREVER, Heartbeats, Mode, SocketMap};
use self::io::{Input, Output};
use self::socket::{BufferRings, Memory, RING, Socket};
use crate::datapath::buffers::Buffers;
use crate::datapath::clock;
use crate::io::packet_socket::promiscuous;
use crate::io::{BATCH, Half};

/// Bytes at the beginning of each buffer that the kernel leaves free (`XDP_PACKET_HEADROOM`).
const HEADROOM: u32 = 256;
/// Sizes of buffers that the kernel takes.
const CHUNKS: [u32; 2] = [2048, 4096];
/// Fewest buffers of a direction, for a queue of 4000 packets; 16 MB of memory.
const LEAST_BUFFERS: usize = 1 << 13;

/// The kernel lets go of the queue of a socket some time after that was closed: how often to look
/// whether it has.
const PATIENCE: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// Why `AF_XDP` cannot be had.
#[derive(Debug, Error)]
pub enum Unavailable {
    /// Frames arrive by several queues.
    #[error(
        "{interface} receives by {queues} queues, and AF_XDP is for one; `ethtool -L {interface} \
         combined 1` makes it one"
    )]
    Queues {
        /// The interface.
        interface: String,
        /// How many.
        queues: u32,
    },
    /// VLAN tags do not lie in the frames.
    #[error(
        "{interface} takes VLAN tags off what it receives, and AF_XDP does not see them; `ethtool -K \
         {interface} rxvlan off` leaves them on (of a veth, `txvlan off` at its peer as well)"
    )]
    Tags {
        /// The interface.
        interface: String,
    },
    /// A frame does not fit into a buffer.
    #[error("{interface} has an MTU of {mtu}; AF_XDP takes up to {most}")]
    Mtu {
        /// The interface.
        interface: String,
        /// Its MTU.
        mtu: u32,
        /// The largest.
        most: u32,
    },
    /// The system has refused something.
    #[error("{interface}: {doing}: {source}")]
    System {
        /// The interface.
        interface: String,
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

impl Unavailable {
    fn is_busy(&self) -> bool {
        matches!(self, Self::System { source, .. } if source.raw_os_error() == Some(libc::EBUSY))
    }
}

/// One of the two interfaces.
#[derive(Clone, Copy)]
pub(crate) struct Port<'a> {
    pub(crate) name: &'a str,
    pub(crate) link: &'a Link,
    /// Most bytes of a frame, headers included.
    pub(crate) largest_frame: u32,
}

/// Both directions of a bridge.
pub(crate) struct Bridge {
    /// From left to right, and back.
    pub(crate) halves: [Half; 2],
    /// How frames are exchanged with the interfaces.
    pub(crate) how: String,
}

/// Takes hold of two interfaces, for queues of up to `packets` packets in each direction. Unless
/// `regardless`, not where VLAN tags would be lost.
///
/// # Errors
/// If an interface does not lend itself to it, or the system refuses.
pub(crate) fn open(
    ports: &[Port<'_>; 2],
    packets: usize,
    regardless: bool,
) -> Result<Bridge, Unavailable> {
    let chunk = check(ports)?;
    for port in ports {
        let takes = offload::takes_tags_off(port.name).map_err(port.refused("looking it up"))?;
        if takes && !regardless {
            return Err(Unavailable::Tags { interface: port.name.to_owned() });
        }
    }
    // Without a copy if both drivers can, else with one.
    let with = |flags| Opened::open(ports, chunk, packets, libc::XDP_USE_NEED_WAKEUP | flags);
    let mut opened = with(0).or_else(|_| with(libc::XDP_COPY));
    for _ in 0..PATIENCE {
        if !opened.as_ref().is_err_and(Unavailable::is_busy) {
            break;
        }
        thread::sleep(PAUSE);
        opened = with(0).or_else(|_| with(libc::XDP_COPY));
    }
    opened?.attach(ports)
}

/// What the interfaces say beforehand; returns the size of buffers.
fn check(ports: &[Port<'_>; 2]) -> Result<u32, Unavailable> {
    for port in ports {
        let interface = || port.name.to_owned();
        let queues = offload::receive_queues(port.name).map_err(port.refused("looking it up"))?;
        if let Some(queues) = queues.filter(|queues| *queues > 1) {
            return Err(Unavailable::Queues { interface: interface(), queues });
        }
        let most = CHUNKS[CHUNKS.len() - 1] - HEADROOM;
        if port.largest_frame > most {
            let most = most - (port.largest_frame - port.link.mtu);
            return Err(Unavailable::Mtu { interface: interface(), mtu: port.link.mtu, most });
        }
    }
    let largest = ports[0].largest_frame.max(ports[1].largest_frame);
    let fits = |chunk: &u32| largest <= chunk - HEADROOM;
    Ok(CHUNKS.into_iter().find(fits).unwrap_or(CHUNKS[CHUNKS.len() - 1]))
}

/// Sockets that are bound, with their rings; no frame reaches them yet.
struct Opened {
    buffers: [Buffers; 2],
    receivers: [Receiver; 2],
    senders: [Sender; 2],
}

struct Receiver {
    socket: OwnedFd,
    rings: BufferRings,
    frames: ring::Consumer<libc::xdp_desc>,
}

struct Sender {
    socket: OwnedFd,
    frames: ring::Producer<libc::xdp_desc>,
}

impl Opened {
    fn open(
        ports: &[Port<'_>; 2],
        chunk: u32,
        packets: usize,
        flags: u16,
    ) -> Result<Self, Unavailable> {
        // Those that wait to be filled, to be taken out, and to leave.
        let bound = (packets + 2 * RING as usize + BATCH).next_multiple_of(1024);
        let bound = bound.max(LEAST_BUFFERS);
        let memory = ports[0].refused("reserving memory for frames");
        let buffers = Buffers::pair(chunk as usize, HEADROOM as usize, bound).map_err(memory)?;
        let (address, length) = buffers[0].region();
        let memory = Memory { address: address.as_ptr(), length, chunk };

        let left = Receiver::open(&ports[0], Source::Own(memory, flags))?;
        let right = Receiver::open(&ports[1], Source::Shared(left.socket.as_fd()))?;
        let senders =
            [Sender::open(&ports[0], &left.socket)?, Sender::open(&ports[1], &right.socket)?];
        Ok(Self { buffers, receivers: [left, right], senders })
    }

    /// Lets frames in.
    fn attach(self, ports: &[Port<'_>; 2]) -> Result<Bridge, Unavailable> {
        let Self { buffers, receivers: [left, right], senders: [to_left, to_right] } = self;
        let maps = |error| ports[0].refused("making BPF maps")(error);
        let sockets = SocketMap::new().map_err(maps)?;
        let heartbeats = Arc::new(Heartbeats::new().map_err(maps)?);
        let copy = socket::is_zero_copy(left.socket.as_fd()).is_ok_and(|zero_copy| !zero_copy);

        let hold = |index: usize, receiver: &Receiver| {
            let port = &ports[index];
            // Frames that pass the engine by arrive nowhere unless a bridge lies beneath.
            let is_bridged = port.link.controller.is_some();
            heartbeats.beat(index as u32, if is_bridged { clock::now() } else { FOREVER });
            let naming = port.refused("naming the socket to the XDP program");
            sockets.set(index as u32, receiver.socket.as_fd()).map_err(naming)?;
            let attach =
                |mode| bpf::attach(port.link.index, index as u32, &sockets, &heartbeats, mode);
            let (link, mode) = attach(Mode::Native)
                .map(|link| (link, Mode::Native))
                .or_else(|_| attach(Mode::Generic).map(|link| (link, Mode::Generic)))
                .map_err(port.refused("attaching the XDP program"))?;
            let watch = promiscuous(port.link.index);
            Ok(([link, watch.map_err(port.refused("making it promiscuous"))?], mode))
        };
        let ((left_holds, left_mode), (right_holds, right_mode)) =
            (hold(0, &left)?, hold(1, &right)?);

        let [mut forth, mut back] = buffers;
        let (mut forth_in, left_completion) = left.input(&ports[0], 0, &heartbeats, left_holds);
        let (mut back_in, right_completion) = right.input(&ports[1], 1, &heartbeats, right_holds);
        // Frames are received from now on.
        forth_in.arm(&mut forth);
        back_in.arm(&mut back);
        let forth = Half {
            input: Box::new(forth_in),
            output: Box::new(to_right.output(right_completion)),
            buffers: Some(forth),
        };
        let back = Half {
            input: Box::new(back_in),
            output: Box::new(to_left.output(left_completion)),
            buffers: Some(back),
        };
        let mode = match (left_mode, right_mode) {
            (Mode::Native, Mode::Native) => "native",
            (Mode::Generic, Mode::Generic) => "generic",
            _ => "native and generic",
        };
        let how = format!("AF_XDP, {mode} mode, {}", if copy { "copied" } else { "zero-copy" });
        Ok(Bridge { halves: [forth, back], how })
    }
}

/// Where a socket has the memory of frames from.
enum Source<'a> {
    Own(Memory, u16),
    Shared(BorrowedFd<'a>),
}

impl Receiver {
    fn open(port: &Port<'_>, source: Source<'_>) -> Result<Self, Unavailable> {
        let refused = |doing| port.refused(doing);
        let socket = Socket::open().map_err(refused("opening an AF_XDP socket"))?;
        let (shared, flags) = match source {
            Source::Shared(other) => (Some(other), 0),
            Source::Own(memory, flags) => {
                socket.register(memory).map_err(refused("sharing memory with the kernel"))?;
                (None, flags)
            }
        };
        let rings = socket.buffer_rings().map_err(refused("making AF_XDP rings"))?;
        let frames = socket.receive_ring().map_err(refused("making AF_XDP rings"))?;
        let socket = socket
            .bind(port.link.index, shared, flags)
            .map_err(refused("binding an AF_XDP socket"))?;
        Ok(Self { socket, rings, frames })
    }

    /// The ring of completions is the other direction's.
    fn input(
        self,
        port: &Port<'_>,
        number: u32,
        heartbeats: &Arc<Heartbeats>,
        holds: [OwnedFd; 2],
    ) -> (Input, ring::Consumer<u64>) {
        let Self { socket, rings: BufferRings { fill, completion }, frames } = self;
        let input = Input {
            socket,
            port: number,
            heartbeats: Arc::clone(heartbeats),
            fill,
            frames,
            armed: 0,
            received: 0,
            told: 0,
            checked: Nanos::ZERO,
            is_bridged: port.link.controller.is_some(),
            is_beating: port.link.controller.is_some(),
            completes: port.link.software,
            _holds: holds,
        };
        (input, completion)
    }
}

impl Sender {
    fn open(port: &Port<'_>, receiver: &OwnedFd) -> Result<Self, Unavailable> {
        let refused = |doing| port.refused(doing);
        let socket = Socket::open().map_err(refused("opening an AF_XDP socket"))?;
        let frames = socket.transmit_ring().map_err(refused("making AF_XDP rings"))?;
        let socket = socket
            .bind(port.link.index, Some(receiver.as_fd()), 0)
            .map_err(refused("binding an AF_XDP socket"))?;
        Ok(Self { socket, frames })
    }

    fn output(self, completion: ring::Consumer<u64>) -> Output {
        let Self { socket, frames } = self;
        Output { socket, frames, completion }
    }
}

impl Port<'_> {
    fn refused(&self, doing: &'static str) -> impl FnOnce(std::io::Error) -> Unavailable {
        let interface = self.name.to_owned();
        move |source| Unavailable::System { interface, doing, source }
    }
}
