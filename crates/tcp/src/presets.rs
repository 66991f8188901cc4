//! Presets: the RFCs' recommendations and those of other implementations.

use units::Nanos;

use crate::config::{
    Config, Congestion, Growth, HyStartLaw, MAX_WINDOW, MILLISECOND, Recovery, ReduceFrom,
    RtoFloor, SECOND, SlowStartExit,
};

impl Default for Config {
    /// What the RFCs recommend today: Cubic, HyStart++, SACK, timestamps, PRR, initial window 10.
    fn default() -> Self {
        Self {
            mss: 1448,
            header_bytes: 52,
            initial_window: 10,
            initial_ssthresh: MAX_WINDOW,
            receive_window: 6 << 20,
            send_buffer: MAX_WINDOW,
            recovery: Recovery::Sack,
            congestion: Congestion::Cubic,
            growth: Growth::PerByte { limit: 8 },
            grow_by_delivered: false,
            reduce_from: ReduceFrom::Flight,
            cubic_friendly: true,
            cubic_fast_convergence: true,
            cubic_in_segments: false,
            slow_start_exit: SlowStartExit::HyStartPlusPlus,
            validate_window: true,
            restart_after_idle: true,
            dup_threshold: 3,
            limited_transmit: true,
            prr: true,
            rescue: true,
            ns3_recovery: false,
            impatient: false,
            reduce_on_every_timeout: false,
            rack: false,
            tail_loss_probe: false,
            timestamps: true,
            ecn: false,
            pacing: None,
            syn_timeout: SECOND,
            syn_tries: 7,
            trusted_syns: 1,
            initial_rto: SECOND,
            rto_after_syn_loss: Nanos::from_secs(3),
            min_rto: SECOND,
            restart_with_repair: false,
            rto_floor: RtoFloor::Total,
            max_rto: Nanos::from_secs(60),
            granularity: MILLISECOND,
            karn_backoff: true,
            data_tries: 15,
            ack_every: 2,
            ack_delay: Nanos::from_millis(200),
            quick_acks: 0,
            adaptive_acks: false,
        }
    }
}

impl Config {
    /// Near ns-2's `TCP/Newreno`: 1000-byte segments of 40 bytes more, initial window 2, first
    /// timeout 3 s, least 0.2 s, every segment acknowledged. `recovery: Sack` is near `TCP/Sack1`.
    #[must_use]
    pub fn ns2() -> Self {
        Self {
            mss: 1000,
            header_bytes: 40,
            initial_window: 2,
            recovery: Recovery::NewReno,
            congestion: Congestion::Reno,
            growth: Growth::PerAck,
            reduce_from: ReduceFrom::Window,
            slow_start_exit: SlowStartExit::Loss,
            validate_window: false,
            restart_after_idle: false,
            limited_transmit: false,
            prr: false,
            rescue: false,
            timestamps: false,
            syn_timeout: Nanos::from_secs(3),
            trusted_syns: u32::MAX,
            initial_rto: Nanos::from_secs(3),
            rto_after_syn_loss: Nanos::from_secs(3),
            min_rto: Nanos::from_millis(200),
            granularity: Nanos::from_millis(10),
            ack_every: 1,
            ..Self::default()
        }
    }

    /// Near the TCP of QualNet 4.5, by what is published of BSD's, on which it rests: Reno, 1460-byte
    /// segments, initial window 1, buffers of 16 KiB, least timeout 1 s by a clock of 500 ms,
    /// acknowledgments delayed by 200 ms, five SYNs, the first timeout 3 s.
    #[must_use]
    pub fn qualnet() -> Self {
        Self {
            mss: 1460,
            initial_window: 1,
            receive_window: 16 << 10,
            send_buffer: 16 << 10,
            recovery: Recovery::Reno,
            reduce_from: ReduceFrom::UsedWindow,
            reduce_on_every_timeout: true,
            restart_after_idle: true,
            syn_tries: 5,
            min_rto: SECOND,
            max_rto: Nanos::from_secs(64),
            granularity: Nanos::from_millis(500),
            data_tries: 12,
            ack_every: 2,
            ack_delay: Nanos::from_millis(200),
            ..Self::ns2()
        }
    }

    /// Near Linux: Cubic with HyStart, SACK, timestamps, RACK, PRR, least timeout 200 ms, quick
    /// acknowledgments at the start and 40 ms of delay afterwards. No undo.
    #[must_use]
    pub fn linux() -> Self {
        Self {
            growth: Growth::PerByte { limit: u32::MAX },
            grow_by_delivered: true,
            reduce_from: ReduceFrom::Window,
            cubic_in_segments: true,
            slow_start_exit: SlowStartExit::HyStart(HyStartLaw::LINUX),
            trusted_syns: 2,
            rack: true,
            tail_loss_probe: true,
            rescue: false,
            min_rto: Nanos::from_millis(200),
            restart_with_repair: true,
            rto_floor: RtoFloor::Variation,
            max_rto: Nanos::from_secs(120),
            ack_delay: Nanos::from_millis(40),
            quick_acks: 16,
            adaptive_acks: true,
            ..Self::default()
        }
    }

    /// ns-3.37 with its own defaults: `TcpCubic`, `TcpPrrRecovery`, SACK and timestamps,
    /// 536-byte segments, 128 KiB buffers, least timeout 1 s.
    #[must_use]
    pub fn ns3() -> Self {
        Self {
            mss: 536,
            receive_window: 128 << 10,
            send_buffer: 128 << 10,
            growth: Growth::PerByte { limit: u32::MAX },
            reduce_from: ReduceFrom::Window,
            cubic_friendly: false,
            cubic_in_segments: true,
            slow_start_exit: SlowStartExit::HyStart(HyStartLaw::NS3),
            validate_window: false,
            restart_after_idle: false,
            rescue: false,
            ns3_recovery: true,
            impatient: true,
            reduce_on_every_timeout: true,
            syn_timeout: Nanos::from_secs(3),
            syn_tries: 6,
            trusted_syns: u32::MAX,
            rto_after_syn_loss: SECOND,
            karn_backoff: false,
            data_tries: 6,
            quick_acks: 1,
            ..Self::default()
        }
    }

    /// The same with `TcpNewReno`; it has SACK too, unless `recovery` is set to `NewReno`.
    #[must_use]
    pub fn ns3_new_reno() -> Self {
        Self {
            congestion: Congestion::Reno,
            growth: Growth::PerAck,
            reduce_from: ReduceFrom::Pipe,
            slow_start_exit: SlowStartExit::Loss,
            ..Self::ns3()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_can_work() {
        for config in [
            Config::default(),
            Config::ns2(),
            Config::qualnet(),
            Config::linux(),
            Config::ns3(),
            Config::ns3_new_reno(),
        ] {
            assert_eq!(config.check(), Ok(()));
        }
    }
}
