//! How much longer than at best a packet takes.

use units::Nanos;

use crate::least::Least;
use crate::meter::bits_per_second;

/// Probes that are remembered; a power of two.
pub const PROBES: usize = 128;
/// Probes by which the path is judged: all of them are late, or it is not.
pub(crate) const WINDOW: usize = 6;
/// The newest of them, which show first that a queue is gone.
pub(crate) const RECENT: usize = 2;
/// Without an answer for so long, and to so many probes, nothing is known.
const PATIENCE: Nanos = Nanos::from_secs(2);
const UNANSWERED: u32 = 4;
/// Between answers that are this far apart it is told what got through.
pub(crate) const ENOUGH: Nanos = Nanos::from_millis(50);
/// Over which what arrives is looked at.
const SPAN: Nanos = Nanos::from_millis(150);
/// No round trip takes longer: a clock has jumped.
pub(crate) const LONGEST: Nanos = Nanos::from_secs(60);
/// Extra delay that is none: what a queue of a few packets takes.
pub(crate) const SLACK: Nanos = Nanos::from_millis(10);

/// The answer to a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// When the probe left for the link.
    pub departed: Nanos,
    /// When its answer came from the link.
    pub returned: Nanos,
    /// Bytes that had left in front of it, if they are counted: with the answer the far end of the
    /// bottleneck has passed them on.
    pub bytes_before: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Probe {
    number: u32,
    departed: Option<Nanos>,
    echo: Option<Echo>,
}

/// What is known of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// No answer has come for so long that nothing is known.
    pub blind: bool,
    /// The least round-trip time of the last minute.
    pub baseline: Option<Nanos>,
    /// Extra delay above this is a queue.
    pub threshold: Nanos,
    /// The least extra delay of the window's probes, and when the first of these left. None as
    /// long as the window is not full.
    pub extra: Option<(Nanos, Nanos)>,
    /// The same for the newest probes.
    pub recent: Option<(Nanos, Nanos)>,
    /// The extra delay of the newest probe that tells one, and when it left.
    pub newest: Option<(Nanos, Nanos)>,
    /// The mean extra delay of the window's probes, as far as it is full.
    pub mean: Nanos,
    /// Bit/s that the path has passed on, by the latest answers.
    pub passed: Option<u64>,
    /// Over which that may be asked of what arrives, too.
    pub span: Nanos,
}

impl View {
    /// What is known by probes and, if it tells something, by the traffic itself. Where the probed
    /// host is a witness of the link, a queue takes one of its probes to be believed: what the
    /// traffic waits for may be far beyond. A host that is no witness, or is silent, has no say.
    #[must_use]
    pub fn beside(self, traffic: Option<Self>, is_witness: bool) -> Self {
        let Some(traffic) = traffic else { return self };
        if self.blind {
            return traffic;
        }
        let Some((_, since)) = traffic.queue() else {
            return if is_witness || self.queue().is_some() { self } else { traffic };
        };
        let is_late = |(extra, departed)| extra > self.threshold && departed >= since;
        if !is_witness || self.newest.is_some_and(is_late) { traffic } else { self }
    }

    /// The extra delay, if it is a queue: that of every probe of the window is above the threshold.
    #[must_use]
    pub fn queue(&self) -> Option<(Nanos, Nanos)> {
        self.extra.filter(|(extra, _)| *extra > self.threshold)
    }

    /// How long the queue is, as time. While it grows, the newest probe says so before the mean.
    #[must_use]
    pub fn length(&self) -> Nanos {
        self.newest.map_or(self.mean, |(extra, _)| extra.max(self.mean))
    }

    /// Whether there is no queue: the newest probes were fast.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.recent.is_some_and(|(extra, _)| extra.0 < self.threshold.0 / 2)
    }
}

/// Probes and their answers, as a delay.
#[derive(Clone, Debug)]
pub struct Path {
    probes: [Probe; PROBES],
    /// The number of the next one.
    next: u32,
    /// The number after that of the newest that was answered.
    answered: u32,
    /// When that was; or when the first probe departed.
    heard: Nanos,
    sighted: bool,
    least: Least,
    /// Smoothed difference between a round-trip time and the one before (RFC 3550's jitter).
    jitter: u64,
    before: Option<Nanos>,
}

impl Default for Path {
    fn default() -> Self {
        Self::new()
    }
}

impl Path {
    /// One of which nothing is known.
    #[must_use]
    pub fn new() -> Self {
        Self {
            probes: [Probe::default(); PROBES],
            next: 0,
            answered: 0,
            heard: Nanos::MAX,
            sighted: false,
            least: Least::default(),
            jitter: 0,
            before: None,
        }
    }

    /// A probe is about to be sent. Returns its number.
    pub fn send(&mut self) -> u32 {
        // After three years: nothing is known for the time of a probe.
        if self.next == u32::MAX {
            *self = Self::new();
        }
        let number = self.next;
        self.probes[number as usize % PROBES] = Probe { number, departed: None, echo: None };
        self.next += 1;
        number
    }

    /// Whether so many probes have had no answer that one should have come.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        self.next.saturating_sub(self.answered) >= UNANSWERED
    }

    /// Probes that have not been said to have departed, nor answered.
    pub fn awaited(&self) -> impl Iterator<Item = u32> + '_ {
        let held = self.next.min(PROBES as u32);
        let numbers = (1..=held).map(|back| self.next - back);
        numbers.filter(|number| self.probe(*number).is_some_and(|probe| probe.departed.is_none()))
    }

    fn probe(&self, number: u32) -> Option<&Probe> {
        let probe = &self.probes[number as usize % PROBES];
        (probe.number == number && number < self.next).then_some(probe)
    }

    /// A probe has left for the link.
    pub fn depart(&mut self, number: u32, at: Nanos) {
        if self.probe(number).is_some_and(|probe| probe.departed.is_none()) {
            self.probes[number as usize % PROBES].departed = Some(at);
            self.heard = if self.heard == Nanos::MAX { at } else { self.heard };
        }
    }

    /// An answer has come. One that was answered before, is forgotten or was never sent counts for
    /// nothing; nor does one that came before its probe left: in no time at all, it would be the
    /// least of the next minute.
    pub fn answer(&mut self, number: u32, echo: Echo) {
        let time = echo.returned - echo.departed;
        let is_trip = echo.departed <= echo.returned && time <= LONGEST;
        if !is_trip || self.probe(number).is_none_or(|probe| probe.echo.is_some()) {
            return;
        }
        let probe = &mut self.probes[number as usize % PROBES];
        probe.departed = Some(echo.departed);
        probe.echo = Some(echo);
        self.answered = self.answered.max(number + 1);
        self.heard = echo.returned;
        self.sighted = true;
        self.least.keep(time, echo.returned);
        let difference = self.before.map_or(0, |before| before.0.abs_diff(time.0));
        self.jitter = self.jitter - self.jitter / 16 + difference / 16;
        self.before = Some(time);
    }

    /// What is known now.
    #[must_use]
    pub fn look(&self, now: Nanos) -> View {
        let silent = now.since(self.heard) > PATIENCE && self.is_unanswered();
        let least = self.least.get();
        let threshold = Nanos(SLACK.0 + 2 * self.jitter);
        let mut view = View {
            blind: silent || !self.sighted,
            baseline: least,
            threshold,
            extra: None,
            recent: None,
            newest: None,
            mean: Nanos::ZERO,
            passed: None,
            span: SPAN,
        };
        let Some(baseline) = least.filter(|_| !view.blind) else { return view };
        let mut found = 0;
        let mut sum = 0;
        let mut extra = (Nanos::MAX, Nanos::MAX);
        for probe in self.departed() {
            let (Some(time), Some(departed)) =
                (self.time(probe, now, baseline + threshold), probe.departed)
            else {
                continue;
            };
            found += 1;
            let more = time - baseline;
            sum += more.0;
            extra = (extra.0.min(more), extra.1.min(departed));
            if found == 1 {
                view.newest = Some(extra);
            }
            if found == RECENT {
                view.recent = Some(extra);
            }
            if found == WINDOW {
                view.extra = Some(extra);
                view.mean = Nanos(sum / WINDOW as u64);
                break;
            }
        }
        view.passed = self.passed();
        view
    }

    /// Probes that have departed, the newest first.
    fn departed(&self) -> impl Iterator<Item = &Probe> {
        let numbers = (1..=self.next.min(PROBES as u32)).map(|back| self.next - back);
        numbers.filter_map(|number| self.probe(number)).filter(|probe| probe.departed.is_some())
    }

    /// How long a probe took, or has taken so long; none if it is lost, or may still be in time.
    fn time(&self, probe: &Probe, now: Nanos, in_time: Nanos) -> Option<Nanos> {
        match (probe.echo, probe.departed?) {
            (Some(echo), departed) => Some(echo.returned - departed),
            // One that was sent later has been answered.
            (None, _) if probe.number < self.answered => None,
            (None, departed) => Some((now - departed).min(LONGEST)).filter(|age| *age > in_time),
        }
    }

    /// What got through between an answer and the newest one.
    fn passed(&self) -> Option<u64> {
        let mut echoes = self.departed().filter_map(|probe| probe.echo);
        let newest = echoes.next()?;
        let mut passed = None;
        for echo in echoes {
            let time = newest.returned - echo.returned;
            let bytes = newest.bytes_before?.checked_sub(echo.bytes_before?)?;
            passed = bits_per_second(bytes, time).or(passed);
            if time >= ENOUGH + Nanos(6 * self.jitter) {
                break;
            }
        }
        passed
    }
}

#[cfg(test)]
mod tests;
