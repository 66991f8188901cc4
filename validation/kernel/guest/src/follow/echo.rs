//! Small packets that go there and back: what somebody waits for beside transfers.

use std::net::UdpSocket;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::line::{ADDRESS, BEYOND, END};
use crate::namespace::{self, HERE};
use crate::traffic::Running;

/// How often one is sent.
const INTERVAL: Duration = Duration::from_millis(10);
const PORT: u16 = 7;

/// Packets under way, from `begin` on.
pub(super) struct Echo {
    sending: Running<Vec<Duration>>,
    receiving: Running<Vec<(usize, Duration)>>,
    answering: Running<()>,
}

/// When each was sent, and how long it took; none if it was lost.
pub(super) struct Echoes(Vec<(Duration, Option<f64>)>);

impl Echo {
    pub(super) fn start(begin: Instant) -> Result<Self> {
        let answers = namespace::run(BEYOND, || UdpSocket::bind((END, PORT)))??;
        let socket = namespace::run(HERE, || UdpSocket::bind((ADDRESS, 0)))??;
        socket.connect((END, PORT))?;
        for each in [&answers, &socket] {
            each.set_read_timeout(Some(Duration::from_millis(50)))?;
        }
        let back = socket.try_clone()?;
        let answering = Running::start(BEYOND, move |stop| {
            let mut packet = [0; 8];
            while !stop.load(Ordering::Relaxed) {
                if let Ok((8, from)) = answers.recv_from(&mut packet) {
                    let _ = answers.send_to(&packet, from);
                }
            }
            Ok(())
        });
        let receiving = Running::start(HERE, move |stop| {
            let (mut came, mut packet) = (Vec::new(), [0; 8]);
            while !stop.load(Ordering::Relaxed) {
                if let Ok(8) = back.recv(&mut packet) {
                    came.push((u64::from_ne_bytes(packet) as usize, begin.elapsed()));
                }
            }
            Ok(came)
        });
        let sending = Running::start(HERE, move |stop| {
            let mut sent = Vec::new();
            let first = begin.elapsed();
            while !stop.load(Ordering::Relaxed) {
                let due = first + INTERVAL * sent.len() as u32;
                thread::sleep(due.saturating_sub(begin.elapsed()));
                sent.push(begin.elapsed());
                let _ = socket.send(&(sent.len() as u64 - 1).to_ne_bytes());
            }
            Ok(sent)
        });
        Ok(Self { sending, receiving, answering })
    }

    /// Those that were sent until now; the last get a second to come back.
    pub(super) fn finish(self) -> Result<Echoes> {
        let sent = self.sending.finish()?;
        thread::sleep(Duration::from_secs(1));
        let came = self.receiving.finish()?;
        self.answering.finish()?;
        let mut echoes: Vec<_> = sent.into_iter().map(|at| (at, None)).collect();
        for (number, at) in came {
            if let Some((sent, took)) = echoes.get_mut(number) {
                *took = Some((at - *sent).as_secs_f64() * 1e3);
            }
        }
        Ok(Echoes(echoes))
    }
}

impl Echoes {
    fn least(&self) -> f64 {
        self.0.iter().filter_map(|(_, ms)| *ms).fold(f64::MAX, f64::min)
    }

    /// Extra delays in ms of those that were sent in a span of time, in order of length. One that
    /// was lost is infinitely late.
    pub(super) fn extra(&self, from: Duration, to: Duration) -> Vec<f64> {
        let least = self.least();
        let within = self.0.iter().filter(|(sent, _)| (from..to).contains(sent));
        let mut extra: Vec<f64> =
            within.map(|(_, ms)| ms.map_or(f64::INFINITY, |ms| ms - least)).collect();
        extra.sort_by(f64::total_cmp);
        extra
    }

    /// How many ms after `from` they are back within 30 ms of the fastest, for at least 200 ms, of
    /// those that were sent until `to`.
    pub(super) fn late_for(&self, from: Duration, to: Duration) -> f64 {
        let least = self.least();
        let within = self.0.iter().filter(|(sent, _)| (from..to).contains(sent));
        let late: Vec<(Duration, f64)> = within
            .map(|(sent, ms)| (*sent, ms.unwrap_or(f64::INFINITY)))
            .filter(|(_, ms)| *ms >= least + 30.0)
            .collect();
        let gap = late.windows(2).position(|two| two[1].0 - two[0].0 > Duration::from_millis(200));
        let last = gap.map_or(late.last(), |at| late.get(at));
        last.map_or(0.0, |(sent, ms)| {
            let back = if ms.is_finite() { *ms } else { 0.0 };
            (*sent - from).as_secs_f64() * 1e3 + back
        })
    }
}

/// Of values in order.
pub(super) fn quantile(sorted: &[f64], part: f64) -> f64 {
    let at = (sorted.len().saturating_sub(1) as f64 * part) as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}
