//! A frame of `top`, for 80 columns and 24 lines or more.

use std::time::Duration;

use engine::status::{EngineKind, Flow, Status};
use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};
use ratatui::style::{Color, Modifier, Style};
use ratatui::widgets::{Sparkline, Widget};
use sched::Rate;

use super::view::{View, Way};
use crate::attach::text::{below, bits, bytes, counts_long, duration, lane_name, place};

/// What a frame is made for; in less some of it is cut off.
pub(super) const LEAST_SIZE: Size = Size::new(80, 24);
/// Lines of the sparkline.
const SPARKLINE: u16 = 3;
/// Lanes that are shown.
const MOST_LANES: usize = 4;
/// Hosts that are shown.
const MOST_HOSTS: usize = 3;
const TITLE: Style = Style::new().add_modifier(Modifier::BOLD);
const FAINT: Style = Style::new().fg(Color::DarkGray);
const ALARM: Style = Style::new().fg(Color::Red);

/// A frame as text.
pub(super) fn plain(view: &View, size: Size) -> String {
    let area = Rect::new(0, 0, size.width, size.height);
    let mut buffer = Buffer::empty(area);
    draw(view, area, &mut buffer);
    let row = |y| (0..size.width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    let rows: Vec<String> = (0..size.height).map(row).collect();
    let last = rows.iter().rposition(|row| !row.trim().is_empty()).map_or(0, |last| last + 1);
    rows[..last].iter().map(|row| format!("{}\n", row.trim_end())).collect()
}

/// Draws a frame.
pub(super) fn draw(view: &View, area: Rect, buffer: &mut Buffer) {
    let mut page = Page { area, buffer, line: 0 };
    if let Some(way) = view.shown() {
        head(&mut page, way);
        page.sparkline(way);
        lanes(&mut page, way);
        counts(&mut page, way);
        flows(&mut page, way);
    }
    foot(&mut page, view);
}

/// Lines from top to bottom; what is beyond the frame is cut off.
struct Page<'a> {
    area: Rect,
    buffer: &'a mut Buffer,
    line: u16,
}

impl Page<'_> {
    fn left(&self) -> u16 {
        // The last line is the foot's.
        self.area.height.saturating_sub(1).saturating_sub(self.line)
    }

    fn write(&mut self, text: &str, style: Style) {
        if self.left() > 0 {
            let (x, y) = (self.area.x, self.area.y + self.line);
            self.buffer.set_stringn(x, y, text, self.area.width.into(), style);
        }
        self.line = self.line.saturating_add(1);
    }

    fn sparkline(&mut self, way: &Way) {
        if self.left() > SPARKLINE {
            let (x, y) = (self.area.x + 1, self.area.y + self.line);
            let width = self.area.width.saturating_sub(2);
            let skip = way.rates.len().saturating_sub(width.into());
            let rates: Vec<u64> = way.rates.iter().skip(skip).copied().collect();
            let most = rates.iter().copied().max().unwrap_or(0);
            let top = way.now.link.rate.limit().unwrap_or(0).max(most).max(1);
            let area = Rect::new(x, y, width, SPARKLINE);
            Sparkline::default().data(rates).max(top).render(area, self.buffer);
        }
        self.line = self.line.saturating_add(SPARKLINE);
    }
}

fn head(page: &mut Page<'_>, way: &Way) {
    let status = &way.now;
    let device = match &status.peer {
        Some(peer) => format!("{} {} (bridge with {peer})", status.device, status.direction.name()),
        None => format!("{} {}", status.device, status.direction.name()),
    };
    let uptime = Duration::from_secs(status.uptime.0 / 1_000_000_000);
    let engine = status.engine.name();
    let uptime = humantime::format_duration(uptime);
    page.write(&format!("{device}: {}, {engine} engine, up {uptime}", status.scheduler), TITLE);
    let rate = way.rate().map_or("-".into(), bits);
    let of = match status.link.rate.limit() {
        Some(most) => {
            let part = way.rate().map_or(0.0, |rate| rate as f64 * 100.0 / most as f64);
            format!(" of {} ({part:.0} %)", Rate(most))
        }
        None => ", unlimited".into(),
    };
    let limit = status.limit.as_deref().unwrap_or("none");
    page.write(
        &format!("rate {rate}{of}   overhead {}   limit {limit}", status.link.overhead),
        Style::new(),
    );
}

fn lanes(page: &mut Page<'_>, way: &Way) {
    let lanes = &way.now.lanes;
    page.write(
        &format!(
            "{:<8}{:>9}{:>14}{:>12}{:>12}{:>12}{:>12}",
            "lane", "share", "sent", "backlog", "", "sojourn p50", "p99"
        ),
        TITLE,
    );
    let all: u64 = (0..lanes.len()).map(|lane| way.sent_bytes(lane)).sum();
    for (at, lane) in lanes.iter().enumerate().take(MOST_LANES) {
        let share = match all {
            0 => "-".into(),
            all => format!("{:.1} %", way.sent_bytes(at) as f64 * 100.0 / all as f64),
        };
        let times = way.sojourn(at);
        page.write(
            &format!(
                "{:<8}{share:>9}{:>14}{:>12}{:>12}{:>12}{:>12}",
                lane_name(&way.now.scheduler, at, lanes.len()),
                format!("{}p", lane.sent_packets),
                format!("{}p", lane.backlog_packets),
                bytes(lane.backlog_bytes),
                below(times.quantile(0.5)),
                below(times.quantile(0.99)),
            ),
            Style::new(),
        );
    }
}

fn counts(page: &mut Page<'_>, way: &Way) {
    let status = &way.now;
    let mut reasons: Vec<&str> = status.drops.iter().map(|drop| drop.reason.as_str()).collect();
    reasons.sort_unstable();
    reasons.dedup();
    let of = |reason: &str, status: &Status| {
        let drops = status.drops.iter().filter(|drop| drop.reason == reason);
        drops.map(|drop| drop.packets).sum::<u64>()
    };
    let said: Vec<String> = reasons
        .iter()
        .map(|reason| (reason, of(reason, status), way.grown(|status| of(reason, status))))
        .filter(|(_, packets, _)| *packets > 0)
        .map(|(reason, packets, grown)| format!("{reason} {}", with_growth(packets, grown)))
        .collect();
    let dropping = way.grown(Status::dropped_packets) > 0;
    let said = if said.is_empty() { "none".into() } else { said.join(", ") };
    page.write(&format!("dropped {said}"), if dropping { ALARM } else { Style::new() });
    let grown = |counter: fn(&Status) -> u64| with_growth(counter(status), way.grown(counter));
    let bound = status.flow_bound.map_or(String::new(), |bound| format!(" of {bound}"));
    let mut said = format!("flows {}{bound}", status.flows);
    if counts_long(status) {
        let (long, short) = (grown(|status| status.demoted), grown(|status| status.promoted));
        said += &format!(", became long {long}, short again {short}");
    }
    said += &format!(", marked {}", grown(|status| status.marked));
    page.write(&said, Style::new());
}

fn flows(page: &mut Page<'_>, way: &Way) {
    let Some(seen) = &way.now.seen else {
        page.write("inside the kernel, fq-lanes alone tells single flows", FAINT);
        return;
    };
    if !seen.busiest_hosts.is_empty() {
        let hosts = seen.busiest_hosts.iter().take(MOST_HOSTS);
        let names: Vec<String> =
            hosts.map(|host| format!("{} {}", host.host, bits(host.arriving_bps))).collect();
        page.write(&format!("hosts: {}", names.join(", ")), Style::new());
    }
    // Two titles; the rest goes to flows, more to the biggest.
    let room = usize::from(page.left().saturating_sub(2));
    let newest = seen.newest_flows.len().min(room / 2);
    let biggest = seen.biggest_flows.len().min(room - newest);
    let place = |flow: &Flow| place(&way.now, flow);
    let by_marks = way.now.engine == EngineKind::Marks;
    let title = if by_marks { "long flows" } else { "biggest flows" };
    table(page, title, &seen.biggest_flows[..biggest], place);
    if !by_marks {
        table(page, "newest flows", &seen.newest_flows[..newest], place);
    }
}

fn table(page: &mut Page<'_>, title: &str, flows: &[Flow], place: impl Fn(&Flow) -> String) {
    let ages = flows.iter().any(|flow| flow.standing.is_some());
    let age = if ages { "excess" } else { "age" };
    page.write(
        &format!("{title:<42}{:>8}{:>9}{:>7}{:>5}{age:>8}", "lane", "now", "sent", "drop"),
        TITLE,
    );
    for flow in flows {
        let place = place(flow);
        // Of flows that age, what that is reckoned by says more than how long they are there.
        let age = match &flow.standing {
            Some(standing) => bytes(standing.excess_bytes),
            None => duration(flow.age),
        };
        page.write(
            &format!(
                "{:<42.42}{place:>8}{:>9}{:>7}{:>5}{age:>8}",
                flow.flow,
                bits(flow.arriving_bps),
                bytes(flow.sent.bytes),
                flow.dropped_packets,
            ),
            Style::new(),
        );
    }
}

fn foot(page: &mut Page<'_>, view: &View) {
    let paused = if view.paused { "   PAUSED" } else { "" };
    let direction = match view.place() {
        (_, 0 | 1) => String::new(),
        (number, all) => format!("   d other direction ({number} of {all})"),
    };
    let (x, y) = (page.area.x, page.area.bottom().saturating_sub(1));
    if page.area.height > 0 {
        let text = format!("q quit   p pause{direction}{paused}");
        page.buffer.set_stringn(x, y, &text, page.area.width.into(), FAINT);
    }
}

fn with_growth(value: u64, grown: u64) -> String {
    if grown > 0 { format!("{value} (+{grown})") } else { value.to_string() }
}

#[cfg(test)]
pub(super) mod tests;
