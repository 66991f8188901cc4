//! The kernel's state of a connection: `TCP_INFO`.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use serde::{Deserialize, Serialize};

/// The sender's side of a connection, from `TCP_INFO` at its end.
///
/// A field that the running kernel's `struct tcp_info` does not reach is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpInfo {
    /// Segments retransmitted in all (`tcpi_total_retrans`).
    pub retransmissions: Option<u32>,
    /// Segments that arrived a second time, as the receiver said (RFC 2883; `tcpi_dsack_dups`).
    pub duplicates: Option<u32>,
    /// Retransmission timeouts in all (`tcpi_total_rto`, Linux 6.7).
    pub timeouts: Option<u16>,
    /// Congestion window, in segments.
    pub cwnd: Option<u32>,
    /// Slow start threshold, in segments; `0x7fffffff` before the first loss.
    pub ssthresh: Option<u32>,
    /// Maximum segment size, in bytes.
    pub mss: Option<u32>,
    /// Smoothed RTT.
    pub rtt_us: Option<u32>,
    /// Least RTT seen.
    pub min_rtt_us: Option<u32>,
    /// Bytes the peer has acknowledged; SYN and FIN count one each.
    pub bytes_acked: Option<u64>,
    /// Bytes sent, retransmissions included.
    pub bytes_sent: Option<u64>,
    /// Segments with data sent, retransmissions included.
    pub data_segments: Option<u32>,
}

/// Enough for every `struct tcp_info` so far; the kernel fills what it has.
const LARGEST: usize = 512;

impl TcpInfo {
    /// Asks the kernel. Also works on a connection that has ended, as long as it is open here.
    pub(crate) fn of(socket: &impl AsFd) -> io::Result<Self> {
        let mut bytes = [0u8; LARGEST];
        let mut length = LARGEST as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes to `bytes`, and both outlive the call.
        let status = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                bytes.as_mut_ptr().cast(),
                &mut length,
            )
        };
        if status != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self::parse(&bytes[..(length as usize).min(LARGEST)]))
    }

    /// Offsets are those of `struct tcp_info` (uapi/linux/tcp.h), which only grows at its end.
    fn parse(bytes: &[u8]) -> Self {
        Self {
            mss: u32_at(bytes, 16),
            rtt_us: u32_at(bytes, 68),
            ssthresh: u32_at(bytes, 76),
            cwnd: u32_at(bytes, 80),
            retransmissions: u32_at(bytes, 100),
            bytes_acked: field(bytes, 120).map(u64::from_ne_bytes),
            min_rtt_us: u32_at(bytes, 148),
            data_segments: u32_at(bytes, 156),
            bytes_sent: field(bytes, 200).map(u64::from_ne_bytes),
            duplicates: u32_at(bytes, 216),
            timeouts: field(bytes, 240).map(u16::from_ne_bytes),
        }
    }
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    field(bytes, at).map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::TcpInfo;

    /// `struct tcp_info` with the words at `at` set.
    fn raw(length: usize, words: &[(usize, u32)]) -> Vec<u8> {
        let mut bytes = vec![0; length];
        for (at, value) in words {
            bytes[*at..*at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn fields_are_where_the_kernel_has_them() {
        let words = [(16, 1448), (68, 20_100), (76, 11), (80, 12), (100, 3), (148, 20_000)];
        let mut bytes = raw(248, &[&words[..], &[(216, 1)]].concat());
        bytes[120..128].copy_from_slice(&30_001u64.to_ne_bytes());
        bytes[156..160].copy_from_slice(&24u32.to_ne_bytes());
        bytes[200..208].copy_from_slice(&34_000u64.to_ne_bytes());
        bytes[240..242].copy_from_slice(&2u16.to_ne_bytes());
        let expected = TcpInfo {
            retransmissions: Some(3),
            duplicates: Some(1),
            timeouts: Some(2),
            cwnd: Some(12),
            ssthresh: Some(11),
            mss: Some(1448),
            rtt_us: Some(20_100),
            min_rtt_us: Some(20_000),
            bytes_acked: Some(30_001),
            bytes_sent: Some(34_000),
            data_segments: Some(24),
        };
        assert_eq!(TcpInfo::parse(&bytes), expected);
    }

    #[test]
    fn an_older_kernel_has_fewer_fields() {
        let six_one = TcpInfo::parse(&raw(240, &[(100, 7)]));
        assert_eq!((six_one.retransmissions, six_one.timeouts), (Some(7), None));
        let cut_inside = TcpInfo::parse(&raw(102, &[(80, 10)]));
        assert_eq!((cut_inside.cwnd, cut_inside.retransmissions), (Some(10), None));
        assert_eq!(TcpInfo::parse(&[]), TcpInfo::default());
    }
}
