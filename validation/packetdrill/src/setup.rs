//! What a script asks of the host it runs on, as a configuration of the model; or why the model
//! cannot be that host.

use std::collections::BTreeSet;

use tcp::{Config, Congestion, Nanos, Pacing, Recovery, SlowStartExit};

use crate::look;
use crate::packet::{Ecn, Opt, Packet};
use crate::script::{Call, Kind, Script, integer};

/// What a script is played with.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    /// Of the host.
    pub config: Config,
    /// The host opens the connection.
    pub connects: bool,
    /// By how many bits the peer's windows are shifted.
    pub window_scale: u32,
    /// Both ends have timestamps in the script.
    pub timestamps: bool,
    /// What the host says that it takes in a segment.
    pub own_mss: u32,
    /// How far a time may be off,
    pub tolerance: Nanos,
    /// or by how much of the time since the last event, in tenths of a percent.
    pub permille: u64,
    /// One tick of timestamps, if they are to be checked.
    pub tick: Option<Nanos>,
}

/// Why a script does not apply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reason {
    /// The first line that asks for it.
    pub line: usize,
    /// What it asks for.
    pub what: String,
    /// It is only looked at: the packets can be played all the same.
    pub only_looked_at: bool,
}

/// Largest segment over Ethernet.
const MSS: u32 = 1460;

/// The setting of a script, and all reasons why it does not apply.
#[must_use]
pub fn setting(script: &Script) -> (Setting, Vec<Reason>) {
    let mut asked = Asked::new();
    for (name, value) in &script.options {
        asked.option(name, value);
    }
    for (line, text) in &script.commands {
        asked.line = *line;
        asked.command(text);
    }
    let mut named = BTreeSet::new();
    for event in &script.events {
        asked.line = event.line;
        match &event.kind {
            Kind::Arrives(packet) => asked.arrives(packet),
            Kind::Leaves(packet) => asked.leaves(packet),
            Kind::Call(call) => asked.call(call),
            Kind::Command(text) => asked.command(text),
            Kind::Unknown(what) => asked.refuse(what),
            Kind::Check(check) => {
                for name in check.names() {
                    if !look::is_known(name, &asked.setting) && !named.contains(name) {
                        asked.look(name);
                    }
                }
                named.extend(check.assigned());
            }
        }
    }
    asked.finish()
}

struct Asked {
    line: usize,
    setting: Setting,
    reasons: Vec<Reason>,
    sockets: u32,
    listens: bool,
    peer: Option<Peer>,
    ecn: i64,
    fq: bool,
    pacing: Pacing,
}

/// The options of the peer's SYN.
struct Peer {
    mss: u32,
    timestamps: bool,
    scale: Option<u32>,
}

impl Asked {
    fn new() -> Self {
        let config = Config { restart_after_idle: false, ..Config::linux() };
        let setting = Setting {
            config,
            connects: false,
            window_scale: 0,
            timestamps: true,
            own_mss: MSS,
            tolerance: Nanos::from_millis(4),
            permille: 125,
            tick: None,
        };
        Self {
            line: 0,
            setting,
            reasons: Vec::new(),
            sockets: 0,
            listens: false,
            peer: None,
            ecn: 0,
            fq: false,
            pacing: Pacing::LINUX,
        }
    }

    fn refuse(&mut self, what: &str) {
        let what = what.to_owned();
        self.reasons.push(Reason { line: self.line, what, only_looked_at: false });
    }

    fn look(&mut self, name: &str) {
        let what = format!("{name}, which the model does not have");
        self.reasons.push(Reason { line: self.line, what, only_looked_at: true });
    }

    fn option(&mut self, name: &str, value: &str) {
        let number: Option<u64> = value.parse().ok();
        match (name, number) {
            ("tolerance_usecs", Some(us)) => self.setting.tolerance = Nanos(us * 1000),
            ("tolerance_percent", _) if value.parse::<f64>().is_ok() => {
                self.setting.permille = (value.parse::<f64>().unwrap_or(0.0) * 10.0) as u64;
            }
            ("tcp_ts_tick_usecs", Some(us)) if us > 0 => self.setting.tick = Some(Nanos(us * 1000)),
            // Addresses make no difference here, nor does how large arriving packets count.
            ("mss" | "ip_version" | "local_ip" | "remote_ip" | "gateway_ip" | "netmask_ip", _) => {}
            _ => self.refuse(&format!("--{name}")),
        }
    }

    /// Shell commands, one a line or between semicolons.
    fn command(&mut self, text: &str) {
        let joined = text.replace("\\\n", " ");
        let lines = joined.lines().map(|line| line.split('#').next().unwrap_or_default());
        for text in lines.flat_map(|line| line.split(';')).map(str::trim) {
            let words: Vec<&str> = text.split_whitespace().collect();
            let Some(program) = words.first().map(|word| word.rsplit('/').next().unwrap_or(word))
            else {
                continue;
            };
            match program {
                "defaults.sh" | "ethtool" => {}
                name if name.starts_with("sysctl_restore") => {}
                "sysctl" | "set_sysctls.py" => {
                    let settings = words[1..].iter().filter(|word| !word.starts_with('-'));
                    settings.for_each(|setting| self.sysctl(setting));
                }
                "ip" if text.contains("tcp_metrics flush") => {}
                "tc" if text.contains("limit 0") => self.refuse("a local queue that drops all"),
                "tc" if text.ends_with("root fq") => self.fq = true,
                "tc" if text.ends_with("root pfifo") => self.fq = false,
                "echo" if text.contains("hystart_detect") => match words.get(1) {
                    Some(&"0") => self.setting.config.slow_start_exit = SlowStartExit::Loss,
                    Some(&"3") => {}
                    _ => self.refuse("half of HyStart"),
                },
                _ => self.refuse(&format!("the command `{text}`")),
            }
        }
    }

    fn sysctl(&mut self, text: &str) {
        // A value of several words, of which the first has the name, is that of a buffer.
        let Some((path, value)) = text.split_once('=') else { return };
        let name = path.rsplit(['/', '.']).next().unwrap_or(path);
        let number = integer(value.trim_matches('"'));
        let config = &mut self.setting.config;
        match (name, number) {
            ("tcp_ecn", Some(number)) => self.ecn = number,
            ("tcp_slow_start_after_idle", Some(n)) => config.restart_after_idle = n != 0,
            ("tcp_timestamps", Some(n)) => self.setting.timestamps = n != 0,
            ("tcp_sack", Some(0)) => config.recovery = Recovery::NewReno,
            ("tcp_early_retrans", Some(n)) => config.tail_loss_probe = n != 0,
            ("tcp_recovery", Some(n)) => config.rack = n & 1 != 0,
            ("tcp_reordering", Some(n)) if n > 0 => config.dup_threshold = n as u32,
            ("tcp_pacing_ss_ratio", Some(n)) => self.pacing.slow_start_percent = n as u32,
            ("tcp_pacing_ca_ratio", Some(n)) => self.pacing.avoidance_percent = n as u32,
            ("tcp_syn_retries" | "tcp_synack_retries", Some(n)) => config.syn_tries = n as u32 + 1,
            ("tcp_congestion_control", None) if value == "cubic" => {}
            ("tcp_congestion_control", None) if value == "reno" => {
                config.congestion = Congestion::Reno;
            }
            // Buffers that are larger than what is written, and how segments share frames.
            ("tcp_rmem" | "tcp_wmem" | "tcp_min_tso_segs" | "tcp_tso_win_divisor", _)
            | ("tcp_limit_output_bytes" | "tcp_no_metrics_save" | "tcp_autocorking", _)
            // What was asked for by default.
            | ("tcp_sack" | "tcp_frto" | "tcp_dsack" | "tcp_fack", _) => {}
            _ => self.refuse(&format!("the parameter {name}={value}")),
        }
    }

    fn arrives(&mut self, packet: &Packet) {
        if packet.flags.rst {
            self.refuse("RST");
        }
        if packet.is_syn() && packet.len > 0 {
            self.refuse("data on a SYN (fast open)");
        }
        if packet.sack().len() > 3 {
            self.refuse("a fourth SACK block");
        }
        if packet.window == Some(0) {
            self.refuse("zero windows");
        }
        if packet.is_syn() && self.peer.is_none() {
            let mut peer = Peer { mss: 536, timestamps: false, scale: None };
            for option in packet.options() {
                match *option {
                    Opt::Mss(mss) => peer.mss = mss,
                    Opt::Timestamps { .. } => peer.timestamps = true,
                    Opt::WindowScale(scale) => peer.scale = Some(scale),
                    Opt::Sack(_) | Opt::SackOk | Opt::Padding => {}
                }
            }
            self.peer = Some(peer);
        }
    }

    fn leaves(&mut self, packet: &Packet) {
        if packet.flags.rst {
            self.refuse("RST");
        }
        if packet.window.is_some() {
            self.refuse("the window that the host advertises");
        }
        if packet.is_syn() && packet.len > 0 {
            self.refuse("data on a SYN (fast open)");
        }
        if packet.ecn == Some(Ecn::Ect1) {
            self.refuse("ECT(1)");
        }
    }

    fn call(&mut self, call: &Call) {
        let option = call.argument(2);
        match call.name.as_str() {
            "socket" => {
                self.sockets += 1;
                if self.sockets > 1 {
                    self.refuse("several sockets");
                }
            }
            "listen" => self.listens = true,
            "connect" => self.setting.connects = true,
            "bind" | "accept" | "close" | "fcntl" => {}
            "shutdown" if ["SHUT_WR", "SHUT_RD", "SHUT_RDWR"].contains(&call.argument(1)) => {}
            "read" | "recv" | "recvfrom" if call.result.is_some_and(|n| n >= 0) => {}
            "write" => {}
            "send" | "sendto" if call.argument(3) == "0" => {}
            "send" | "sendto" => self.refuse(&format!("send() with {}", call.argument(3))),
            "setsockopt" => match (option, call.option_value()) {
                ("SO_REUSEADDR" | "SO_SNDBUF" | "SO_RCVBUF" | "TCP_NODELAY", _) => {}
                // Scripts write them to see that SACK survives.
                ("IP_TOS" | "IP_MTU_DISCOVER", _) => {}
                ("TCP_MAXSEG", Some(mss)) if mss > 0 => self.setting.own_mss = mss as u32,
                _ => self.refuse(&format!("the socket option {option}")),
            },
            "getsockopt" => match option {
                "SO_ERROR" | "TCP_MAXSEG" => {}
                _ => self.refuse(&format!("the socket option {option}")),
            },
            name => self.refuse(&format!("the call {name}()")),
        }
    }

    fn finish(mut self) -> (Setting, Vec<Reason>) {
        self.line = 0;
        if self.listens == self.setting.connects {
            self.refuse("no connection");
        }
        let Some(peer) = self.peer.take() else {
            self.refuse("a peer that never answers");
            return (self.setting, self.reasons);
        };
        if !(0..=2).contains(&self.ecn) {
            self.refuse("AccECN");
        }
        let setting = &mut self.setting;
        // What carries 2: agree if asked.
        setting.config.ecn = self.ecn == 1 || (self.ecn == 2 && !setting.connects);
        setting.timestamps &= peer.timestamps;
        setting.window_scale = peer.scale.unwrap_or(0);
        let mss = setting.own_mss.min(peer.mss);
        setting.config.mss = mss - if setting.timestamps { 12 } else { 0 };
        setting.config.pacing = self.fq.then_some(self.pacing);
        if let Err(error) = setting.config.check() {
            self.refuse(&error.to_string());
        }
        (self.setting, self.reasons)
    }
}
