//! What a script may look at: the names of Linux's `tcp_info` that the model has a value for.

use tcp::{Endpoint, Nanos, Phase};

use crate::check::Values;
use crate::setup::Setting;

/// States of congestion control, and the threshold of a connection that has seen no loss.
const CONSTANTS: [(&str, i64); 6] = [
    ("TCP_CA_Open", 0),
    ("TCP_CA_Disorder", 1),
    ("TCP_CA_CWR", 2),
    ("TCP_CA_Recovery", 3),
    ("TCP_CA_Loss", 4),
    ("TCP_INFINITE_SSTHRESH", INFINITE),
];

const INFINITE: i64 = 0x7fff_ffff;

/// The constants by name.
#[must_use]
pub fn constants() -> Values {
    CONSTANTS.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

/// Whether a name has a value.
#[must_use]
pub fn is_known(name: &str, setting: &Setting) -> bool {
    let host = Endpoint::server(&setting.config);
    let of_host = values(&host, setting);
    of_host.iter().chain(&CONSTANTS).any(|(known, _)| *known == name)
}

/// What Linux would tell of this connection; windows are in segments.
#[must_use]
pub fn values(host: &Endpoint, setting: &Setting) -> [(&'static str, i64); 11] {
    let mss = u64::from(setting.config.mss);
    let out = host.outstanding();
    let threshold = host.slow_start_threshold();
    let infinite = threshold == setting.config.initial_ssthresh;
    let state = match host.phase() {
        Phase::Open if out.sacked == 0 => 0,
        Phase::Open => 1,
        Phase::Cwr => 2,
        Phase::Recovery => 3,
        Phase::Loss => 4,
    };
    let micros = |time: Option<Nanos>| time.map_or(0, |time| (time.0 / 1000) as i64);
    let whole = |bytes: u32| i64::from(bytes) / mss as i64;
    let segments = |bytes: u64| bytes.div_ceil(mss) as i64;
    [
        ("tcpi_advmss", i64::from(setting.own_mss)),
        ("tcpi_ca_state", state),
        ("tcpi_lost", segments(out.lost)),
        ("tcpi_min_rtt", micros(host.min_rtt())),
        ("tcpi_retrans", segments(out.sent_again)),
        ("tcpi_rtt", micros(host.srtt())),
        ("tcpi_sacked", segments(out.sacked)),
        ("tcpi_snd_cwnd", whole(host.congestion_window())),
        ("tcpi_snd_mss", mss as i64),
        ("tcpi_snd_ssthresh", if infinite { INFINITE } else { whole(threshold) }),
        ("tcpi_unacked", segments(out.all)),
    ]
}
