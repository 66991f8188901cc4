//! Sees what leaves a device, behind its queue, and what comes: probes and their answers, and some of the
//! TCP traffic.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessageOwned, LinkAddr, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use sched::{Nanos, Rate};

use super::counter::Counter;
use crate::datapath::clock;
use crate::datapath::follow::{LONGEST, Note, PAYLOAD, TOKEN_FROM_END};
use crate::io::packet_socket::{bind, open, set_value};

/// How soon it sees that it is to end.
const SEEN_WITHIN: u16 = 50;
/// A packet that waited here longer came before the clock was set.
const LATEST: Nanos = Nanos::from_secs(1);
/// Of a packet that leaves (`PACKET_OUTGOING`).
const OUTGOING: u8 = 4;

/// Packets of TCP that are looked at in a second, about, so that it costs the same at any rate.
const LOOKED_AT: u64 = 8_000;
const BITS: u64 = 8 * 1_500;
/// How far what is known to be sent may be behind.
const OLD: Nanos = Nanos::from_millis(2);

/// A packet socket that is given little of what passes.
pub(super) struct Tap {
    socket: OwnedFd,
}

impl Tap {
    /// For a link that carries so much at most.
    pub(super) fn open(ifindex: u32, token: [u8; 8], most: Rate) -> io::Result<Self> {
        let socket = open()?;
        let one_in = (most.0 / BITS / LOOKED_AT).clamp(1, 1 << 16).next_power_of_two();
        let program = filter(token, one_in as u32);
        let program =
            libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
        set_value(&socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        bind(&socket, ifindex, libc::ETH_P_ALL as u16)?;
        Ok(Self { socket })
    }

    /// Notes what passes, until `halt` is set.
    pub(super) fn run(
        &self,
        halt: &AtomicBool,
        sent: Option<&Counter>,
        departing: &Note,
        returning: &Note,
    ) -> io::Result<()> {
        let mut looked = Nanos::ZERO;
        while !halt.load(Ordering::Relaxed) {
            let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
            // EINTR is as good as a wake-up.
            let _ = poll(&mut fds, PollTimeout::from(SEEN_WITHIN));
            let mut packet = [0; LONGEST];
            while let Some((length, leaves, at)) = self.receive(&mut packet)? {
                let frame = &packet[..length.min(LONGEST)];
                if leaves {
                    if at.since(looked) >= OLD {
                        looked = at;
                        // That the queue is gone is seen elsewhere.
                        let _ = sent.map(Counter::look);
                    }
                    departing.left(frame, 0, at);
                } else {
                    returning.came(frame, 0, at);
                }
            }
        }
        Ok(())
    }

    /// The length of a packet, whether it leaves, and when it passed.
    fn receive(&self, packet: &mut [u8]) -> io::Result<Option<(usize, bool, Nanos)>> {
        let mut space = nix::cmsg_space!(TimeSpec);
        let mut pieces = [IoSliceMut::new(packet)];
        let fd = self.socket.as_raw_fd();
        let received =
            recvmsg::<LinkAddr>(fd, &mut pieces, Some(&mut space), MsgFlags::MSG_DONTWAIT);
        let received = match received.map_err(io::Error::from) {
            Ok(received) => received,
            // A device that is down says so once.
            Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => return Ok(None),
            Err(error) => {
                let is_none =
                    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
                return if is_none { Ok(None) } else { Err(error) };
            }
        };
        let stamp = received.cmsgs()?.find_map(|message| match message {
            ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp),
            _ => None,
        });
        let [now, by_the_wall, _] = closest(|| [clock::now(), wall_clock(), clock::now()]);
        let ago = stamp.map_or(Nanos::ZERO, |stamp| waited(nanos(stamp), by_the_wall));
        let leaves = received.address.is_some_and(|from| from.pkttype() == OUTGOING);
        Ok(Some((received.bytes, leaves, now - ago)))
    }
}

/// Of a few readings of a clock between two of another, the one that took least. A thread that is
/// kept from its processor between two clocks would else take a round trip for shorter than it was,
/// and what is shortest is what all others are held against.
fn closest(mut read: impl FnMut() -> [Nanos; 3]) -> [Nanos; 3] {
    const READINGS: usize = 4;
    const CLOSE: Nanos = Nanos(20_000);
    let took = |[before, _, after]: [Nanos; 3]| after.since(before);
    let mut best = read();
    for _ in 1..READINGS {
        if took(best) <= CLOSE {
            break;
        }
        let next = read();
        if took(next) < took(best) {
            best = next;
        }
    }
    best
}

/// The time of day; the beginning of all if there is none.
fn wall_clock() -> Nanos {
    clock_gettime(ClockId::CLOCK_REALTIME).map_or(Nanos::ZERO, nanos)
}

/// Times before 1970 are 1970.
fn nanos(time: TimeSpec) -> Nanos {
    Nanos(u64::try_from(time.tv_sec() * 1_000_000_000 + time.tv_nsec()).unwrap_or(0))
}

/// How long a packet has waited here, by the wall clock; no time if that has been set meanwhile.
fn waited(stamp: Nanos, by_the_wall: Nanos) -> Nanos {
    let ago = by_the_wall.0.checked_sub(stamp.0).map(Nanos);
    ago.filter(|ago| *ago <= LATEST).unwrap_or(Nanos::ZERO)
}

/// Passes what ends as a probe does, and of TCP the headers of one packet in so many, a power of two.
fn filter(token: [u8; 8], one_in: u32) -> [libc::sock_filter; 22] {
    use libc::{
        BPF_ABS, BPF_ALU, BPF_AND, BPF_B, BPF_H, BPF_IND, BPF_JEQ, BPF_JGE, BPF_JGT, BPF_JMP,
        BPF_K, BPF_LD, BPF_LEN, BPF_MISC, BPF_RET, BPF_SUB, BPF_TAX, BPF_W, SKF_AD_OFF,
        SKF_AD_PROTOCOL, SKF_AD_RANDOM, SKF_NET_OFF,
    };
    const TCP: u32 = 6;
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let is = |value: u32, jt, jf| step(BPF_JMP | BPF_JEQ | BPF_K, jt, jf, value);
    let about = |what: i32| (SKF_AD_OFF + what).cast_unsigned();
    let of_ip = |at: i32| step(BPF_LD | BPF_B | BPF_ABS, 0, 0, (SKF_NET_OFF + at).cast_unsigned());
    let [high, low] = [0, 4]
        .map(|at| u32::from_be_bytes([token[at], token[at + 1], token[at + 2], token[at + 3]]));
    [
        step(BPF_LD | BPF_W | BPF_LEN, 0, 0, 0),
        step(BPF_JMP | BPF_JGT | BPF_K, 8, 0, LONGEST as u32),
        step(BPF_JMP | BPF_JGE | BPF_K, 0, 7, PAYLOAD as u32),
        step(BPF_ALU | BPF_SUB | BPF_K, 0, 0, TOKEN_FROM_END as u32),
        step(BPF_MISC | BPF_TAX, 0, 0, 0),
        step(BPF_LD | BPF_W | BPF_IND, 0, 0, 0),
        is(high, 0, 3),
        step(BPF_LD | BPF_W | BPF_IND, 0, 0, 4),
        is(low, 0, 1),
        step(BPF_RET | BPF_K, 0, 0, u32::MAX),
        step(BPF_LD | BPF_W | BPF_ABS, 0, 0, about(SKF_AD_RANDOM)),
        step(BPF_ALU | BPF_AND | BPF_K, 0, 0, one_in - 1),
        is(0, 0, 8),
        step(BPF_LD | BPF_H | BPF_ABS, 0, 0, about(SKF_AD_PROTOCOL)),
        is(libc::ETH_P_IP as u32, 0, 2),
        of_ip(9),
        is(TCP, 3, 4),
        is(libc::ETH_P_IPV6 as u32, 0, 3),
        of_ip(6),
        is(TCP, 0, 1),
        step(BPF_RET | BPF_K, 0, 0, LONGEST as u32),
        step(BPF_RET | BPF_K, 0, 0, 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_clock_that_is_set_makes_no_packet_wait() {
        let stamp = nanos(TimeSpec::new(1_000, 999_000_000));
        let ago = |seconds, more| waited(stamp, nanos(TimeSpec::new(seconds, more)));
        assert_eq!(ago(1_000, 999_000_000), Nanos::ZERO);
        assert_eq!(ago(1_001, 2_000_000), Nanos::from_millis(3));
        // A step of less than a second cannot be told from waiting.
        assert_eq!(ago(1_001, 999_000_000), LATEST);
        assert_eq!(ago(1_001, 999_000_001), Nanos::ZERO);
        // Set forwards by an hour, backwards by a nanosecond and by an hour, and before 1970.
        for (seconds, more) in [(4_600, 0), (1_000, 998_999_999), (-2_600, 0), (-1, 0)] {
            assert_eq!(ago(seconds, more), Nanos::ZERO, "{seconds} {more}");
        }
    }

    #[test]
    fn two_clocks_are_read_close_to_each_other() {
        let us = |us: u64| Nanos(us * 1_000);
        let reading = |number: u64, took| [us(number), us(100 + number), us(number + took)];
        // What each of four readings takes, and which one counts.
        for (take, chosen) in [
            ([1, 1, 1, 1], 0),
            ([20_000, 2, 1, 1], 1),
            ([20_000, 300, 40, 30_000], 2),
            ([9_000, 9_000, 9_000, 9_000], 0),
        ] {
            let mut number = 0;
            let read = closest(|| {
                number += 1;
                reading(number - 1, take[number as usize - 1])
            });
            assert_eq!(read, reading(chosen, take[chosen as usize]), "{take:?}");
        }
    }
}
