//! Counters of an endpoint.

/// Counters of one endpoint, as sender unless said otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stats {
    /// Segments of any kind.
    pub segments_sent: u64,
    /// Segments with data or FIN, retransmissions among them.
    pub data_segments: u64,
    /// Bytes sent again, for whatever reason.
    pub bytes_retransmitted: u64,
    /// Segments sent again, for whatever reason; SYNs are not among them.
    pub retransmissions: u32,
    /// Of these, segments sent again because a retransmission timeout had declared them lost.
    pub retransmissions_after_timeout: u32,
    /// Of these, rescue retransmissions (RFC 6675) and tail loss probes that repeated data.
    pub rescue_retransmissions: u32,
    /// Expiries of the retransmission timer for data or FIN.
    pub timeouts: u32,
    /// Expiries of the timer for SYN or SYN-ACK.
    pub syn_timeouts: u32,
    /// Entries into fast recovery: duplicate or selective acknowledgments said that data was lost.
    pub fast_retransmits: u32,
    /// Window reductions because of ECN echo.
    pub ecn_reductions: u32,
    /// Tail loss probes.
    pub tail_probes: u32,
    /// As receiver: segments of which nothing was new. The peer sent them for nothing, or the
    /// network duplicated them.
    pub duplicates_received: u32,
    /// As receiver: segments that left a gap.
    pub out_of_order_received: u32,
    /// Segments that were refused: they acknowledged what was never sent, or lay beyond the window.
    pub refused: u32,
}
