//! Plays a script: events at their times, and between them whatever timers are due.

use std::collections::{BTreeMap, VecDeque};

use tcp::{Endpoint, Flags, Nanos, SackBlocks, Segment};

use crate::check::{Broken, Values};
use crate::look;
use crate::packet::{Ecn, Letters, Opt, Packet};
use crate::script::{Call, Event, Kind, Script, Time};
use crate::setup::Setting;

/// How often the timers may be due between two events; more is a loop.
const TIMERS: u32 = 100_000;

/// Where a script and the model part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The line.
    pub line: usize,
    /// What the script expects there.
    pub expected: String,
    /// What happened.
    pub found: String,
}

/// Plays a script; checks that ask for what nobody knows are left out. The error is the first
/// line that differs.
pub fn play(script: &Script, setting: &Setting) -> Result<(), Difference> {
    let mut player = Player::new(setting);
    for event in &script.events {
        player.event(event)?;
    }
    player.settle(Nanos::MAX)
}

/// What was expected and what was found.
type Parted = (String, String);

struct Player<'a> {
    setting: &'a Setting,
    host: Endpoint,
    now: Nanos,
    /// The time of the last event by the script; `None` if it had a range, or none.
    last: Option<Nanos>,
    /// What the host has sent and the script has not yet asked for.
    sent: VecDeque<(Nanos, Segment)>,
    /// When what was sent and not acknowledged was sent, by its first number; `None` if twice.
    times: BTreeMap<u64, (u64, Option<Nanos>)>,
    acked: u64,
    read: u64,
    /// Reads that have not returned: when they must, their lines and bytes.
    reads: Vec<(Nanos, usize, u64)>,
    closed: bool,
    /// The descriptor of the connection: the listening one may be closed before it.
    connection: Option<String>,
    values: Values,
    /// The host's first timestamp, and the script's for it.
    first_timestamp: Option<(Nanos, u64)>,
}

impl<'a> Player<'a> {
    fn new(setting: &'a Setting) -> Self {
        let make = if setting.connects { Endpoint::client } else { Endpoint::server };
        Self {
            setting,
            host: make(&setting.config),
            now: Nanos::ZERO,
            last: Some(Nanos::ZERO),
            sent: VecDeque::new(),
            times: BTreeMap::new(),
            acked: 0,
            read: 0,
            reads: Vec::new(),
            closed: false,
            connection: None,
            values: look::constants(),
            first_timestamp: None,
        }
    }

    fn event(&mut self, event: &Event) -> Result<(), Difference> {
        let base = self.last.unwrap_or(self.now);
        let (from, to) = match event.time {
            Time::Any => (self.now, Nanos::from_secs(3600)),
            Time::At(at) => (at, at),
            Time::After(gap) => (base + gap, base + gap),
            Time::Between(from, to) => (from, to),
            Time::BetweenAfter(from, to) => (base + from, base + to),
        };
        self.settle(from)?;
        let result = if let Kind::Leaves(packet) = &event.kind {
            let gap = from.since(base).0 / 1000 * self.setting.permille;
            let tolerance = self.setting.tolerance.max(Nanos(gap));
            self.leaves(packet, (from, to), tolerance)
        } else {
            self.run_until(from, false);
            self.now = self.now.max(from);
            match &event.kind {
                Kind::Arrives(packet) => {
                    self.arrives(packet);
                    Ok(())
                }
                Kind::Call(call) => self.call(call, event),
                Kind::Check(check) => self.check(check),
                Kind::Leaves(_) | Kind::Command(_) | Kind::Unknown(_) => Ok(()),
            }
        };
        let exact = matches!(event.time, Time::At(_) | Time::After(_));
        self.last = exact.then_some(from);
        result.map_err(|(expected, found)| Difference { line: event.line, expected, found })
    }

    /// Lets the host's timers be due, up to a time and with it or not; or until it has sent
    /// something, if `wait`.
    fn run_until(&mut self, until: Nanos, wait: bool) {
        for _ in 0..TIMERS {
            let due =
                self.host.next_timer().filter(|&at| if wait { at <= until } else { at < until });
            let Some(at) = due else { return };
            if wait && !self.sent.is_empty() {
                return;
            }
            self.now = self.now.max(at);
            self.host.on_timer(&self.setting.config, self.now);
            self.flush();
        }
    }

    fn flush(&mut self) {
        while let Some(segment) = self.host.poll_transmit(&self.setting.config, self.now) {
            self.note(&segment);
            self.sent.push_back((self.now, segment));
        }
    }

    /// Remembers when a segment was sent that takes sequence numbers.
    fn note(&mut self, segment: &Segment) {
        let (start, end) = (segment.seq, segment.end());
        if end > start {
            let again = segment.is_retransmission();
            if again {
                let old = self.times.range_mut(start..end);
                old.for_each(|(_, (_, at))| *at = None);
            }
            self.times.insert(start, (end, (!again).then_some(self.now)));
        }
    }

    /// The host must send this.
    fn leaves(
        &mut self,
        packet: &Packet,
        at: (Nanos, Nanos),
        tolerance: Nanos,
    ) -> Result<(), Parted> {
        let mut data = 0;
        let mut first: Option<(Nanos, Segment)> = None;
        let mut flags = Letters::default();
        loop {
            if self.sent.is_empty() {
                self.run_until(at.1 + tolerance, true);
            }
            let Some((when, segment)) = self.sent.pop_front() else {
                let text = if first.is_none() { "nothing" } else { "no more of it" };
                let until = show(at.1 + tolerance);
                return Err((packet.text.clone(), format!("{text} by {until}")));
            };
            let (first_at, start) = *first.get_or_insert((when, segment));
            let fits = segment.seq == packet.seq + data
                && segment.len <= packet.len - data as u32
                && (packet.flags.ack && Some(segment.ack) == packet.ack
                    || !packet.flags.ack && !segment.flags.has(Flags::ACK));
            if !fits {
                return Err((packet.text.clone(), written(&segment)));
            }
            data += u64::from(segment.len);
            let these = letters(&segment);
            flags = Letters { fin: flags.fin || these.fin, cwr: flags.cwr || these.cwr, ..these };
            if data < packet.len.into() {
                continue;
            }
            if flags != packet.flags || !self.matches_headers(packet, &start) {
                return Err((packet.text.clone(), written(&segment)));
            }
            if first_at + tolerance < at.0 || first_at > at.1 + tolerance {
                let expected = format!("{} at {}", packet.text, show(at.0));
                return Err((expected, format!("the same at {}", show(first_at))));
            }
            return Ok(());
        }
    }

    /// Options and ECN.
    fn matches_headers(&mut self, packet: &Packet, segment: &Segment) -> bool {
        match packet.ecn {
            Some(Ecn::None) if segment.is_ect() => return false,
            Some(Ecn::Ect0 | Ecn::Ect) if !segment.is_ect() => return false,
            Some(Ecn::Ce) => return false,
            _ => {}
        }
        let Some(options) = &packet.options else { return true };
        let blocks = segment.sack.as_slice().iter();
        let blocks: Vec<(u64, u64)> = blocks
            .map(|&(a, b)| (segment.ack + u64::from(a), segment.ack + u64::from(b)))
            .collect();
        if blocks != packet.sack() {
            return false;
        }
        if packet.is_syn()
            && options.contains(&Opt::SackOk) != segment.flags.has(Flags::SACK_PERMITTED)
        {
            return false;
        }
        match packet.timestamps() {
            Some((value, echo))
                if self.setting.timestamps || self.setting.connects && packet.is_syn() =>
            {
                let (at, first) = *self.first_timestamp.get_or_insert((segment.timestamp, value));
                let in_time = self.setting.tick.is_none_or(|tick| {
                    let ticks = segment.timestamp.since(at).0 / tick.0;
                    let most = self.setting.tolerance.0.div_ceil(tick.0);
                    (first + ticks).abs_diff(value) <= most
                });
                in_time && segment.echo == Nanos::from_millis(echo)
            }
            Some(_) => false,
            None => !self.setting.timestamps,
        }
    }

    /// The peer sends this. Linux measures a round trip by its own record of when it sent; the
    /// model does by the timestamp that comes back, so the peer sends one back, in scripts
    /// without timestamps too.
    fn arrives(&mut self, packet: &Packet) {
        let ack = packet.ack.unwrap_or(0);
        let scale = if packet.is_syn() { 0 } else { self.setting.window_scale };
        let echo = self.echo(ack);
        let known = echo.is_some() || ack <= self.acked;
        let flags = Flags::NONE
            .with_if(packet.flags.syn, Flags::SYN)
            .with_if(packet.flags.fin, Flags::FIN)
            .with_if(packet.flags.ack, Flags::ACK)
            .with_if(packet.flags.ece, Flags::ECE)
            .with_if(packet.flags.cwr, Flags::CWR)
            .with_if(packet.options().any(|option| *option == Opt::SackOk), Flags::SACK_PERMITTED)
            .with_if(packet.is_syn() || known, Flags::TIMESTAMPS);
        let timestamp = match packet.timestamps() {
            Some((value, _)) if self.setting.timestamps => Nanos::from_millis(value),
            _ => self.now,
        };
        let blocks = packet.sack().iter().filter_map(|&(start, end)| {
            // What lies below the acknowledgment was received twice, which the model does not note.
            let start = u32::try_from(start.checked_sub(ack)?).ok()?;
            Some((start, u32::try_from(end.checked_sub(ack)?).ok()?))
        });
        let segment = Segment {
            seq: packet.seq,
            ack,
            timestamp,
            echo: echo.unwrap_or(self.now),
            len: packet.len,
            window: packet.window.unwrap_or(65_535).saturating_mul(1 << scale),
            sack: blocks.collect::<SackBlocks>(),
            flags,
        };
        let ce = packet.ecn == Some(Ecn::Ce);
        self.host.on_segment(&self.setting.config, &segment, ce, self.now);
        self.flush();
    }

    /// When the first of what this acknowledges was sent; `None` if that was twice (Karn).
    fn echo(&mut self, ack: u64) -> Option<Nanos> {
        let mut echo = None;
        while let Some(entry) = self.times.first_entry() {
            let (end, at) = *entry.get();
            if end > ack {
                break;
            }
            echo = echo.or(at);
            entry.remove();
        }
        self.acked = self.acked.max(ack);
        echo
    }

    /// Reads that had to return before `now`.
    fn settle(&mut self, now: Nanos) -> Result<(), Difference> {
        while let Some(at) = self.reads.iter().position(|(until, ..)| *until < now) {
            let (_, line, bytes) = self.reads.remove(at);
            let arrived = self.host.received() - self.read;
            if arrived < bytes {
                let expected = format!("{bytes} bytes to read");
                return Err(Difference { line, expected, found: format!("{arrived}") });
            }
            self.read += bytes;
        }
        Ok(())
    }

    fn call(&mut self, call: &Call, event: &Event) -> Result<(), Parted> {
        let expected = format!("{}() = {}", call.name, call.result.unwrap_or(0));
        let parted = |found: String| Err((expected.clone(), found));
        match call.name.as_str() {
            "connect" => self.host.connect(&self.setting.config, self.now),
            "accept" => self.connection = call.result.map(|descriptor| descriptor.to_string()),
            "write" | "send" | "sendto" => match (call.result, call.error.as_deref()) {
                (Some(bytes @ 1..), _) if self.closed => {
                    return parted(format!("{bytes} after close()"));
                }
                (Some(bytes @ 1..), _) => self.host.write(bytes.unsigned_abs()),
                (_, Some("EPIPE")) if !self.closed => return parted("an open connection".into()),
                _ => {}
            },
            "shutdown" if call.argument(1) == "SHUT_RD" => {}
            "close" if self.connection.as_deref().is_some_and(|it| it != call.argument(0)) => {}
            "close" | "shutdown" => {
                self.closed = true;
                self.host.close();
            }
            "read" | "recv" | "recvfrom" => {
                let until = self.now + event.lasts + self.setting.tolerance;
                self.reads.push((until, event.line, call.result.unwrap_or(0).unsigned_abs()));
            }
            "getsockopt" if call.argument(2) == "TCP_MAXSEG" => {
                let mss = i64::from(self.setting.config.mss);
                if call.option_value() != Some(mss) {
                    return parted(format!("a segment of {mss}"));
                }
            }
            _ => {}
        }
        self.flush();
        Ok(())
    }

    fn check(&mut self, check: &crate::check::Check) -> Result<(), Parted> {
        let seen = look::values(&self.host, self.setting);
        self.values.extend(seen.map(|(name, value)| (name.to_owned(), value)));
        match check.run(&mut self.values) {
            Ok(()) | Err(Broken::NoValue(_)) => Ok(()),
            Err(Broken::False(expected, found)) => Err((expected, found)),
        }
    }
}

fn letters(segment: &Segment) -> Letters {
    let has = |flag| segment.flags.has(flag);
    Letters {
        syn: has(Flags::SYN),
        fin: has(Flags::FIN),
        rst: false,
        ack: has(Flags::ACK),
        ece: has(Flags::ECE),
        cwr: has(Flags::CWR),
    }
}

/// A segment as a script would write it.
fn written(segment: &Segment) -> String {
    let end = segment.seq + u64::from(segment.len);
    let mut text = format!("{} {}:{end}({})", letters(segment), segment.seq, segment.len);
    if segment.flags.has(Flags::ACK) {
        text.push_str(&format!(" ack {}", segment.ack));
    }
    if !segment.sack.is_empty() {
        let blocks = segment.sack.as_slice().iter();
        let blocks = blocks.map(|&(a, b)| (segment.ack + u64::from(a), segment.ack + u64::from(b)));
        let blocks: Vec<String> = blocks.map(|(a, b)| format!("{a}:{b}")).collect();
        text.push_str(&format!(" <sack {}>", blocks.join(" ")));
    }
    text
}

/// Seconds with six digits.
fn show(time: Nanos) -> String {
    format!("{:.6} s", time.0 as f64 / 1e9)
}
