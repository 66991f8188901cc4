//! `shortlane top`: what is attached to a device, live.

mod draw;
mod view;
mod web;

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use sched::Nanos;

#[cfg(feature = "harness")]
pub(crate) use self::web::harness as web_harness;

use self::view::View;
use crate::signals::stop_flag;
use crate::{Failure, attach, print, quantity};

/// The options of `shortlane top`.
#[derive(Args)]
pub(crate) struct Options {
    /// Watch this device
    device: String,
    /// Refresh at this interval [default: 1s, with --web 250ms]
    #[arg(long, value_name = "TIME", value_parser = interval)]
    interval: Option<Nanos>,
    /// Print one frame as plain text and exit
    #[arg(long)]
    once: bool,
    /// Serve a web page instead, at 127.0.0.1:9751 or this address; other machines need its token
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = web::ADDRESS,
          conflicts_with = "once", value_parser = web::address)]
    web: Option<SocketAddr>,
}

const INTERVAL: Duration = Duration::from_secs(1);
const LEAST_INTERVAL: Nanos = Nanos::from_millis(50);

fn interval(text: &str) -> Result<Nanos, String> {
    quantity::time(text)
        .ok()
        .filter(|time| *time >= LEAST_INTERVAL)
        .ok_or_else(|| "it takes a time from 50ms on, such as 1s".into())
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let interval = options.interval.map(|time| Duration::from_nanos(time.0));
    if let Some(listen) = options.web {
        let interval = interval.unwrap_or(web::LEAST_INTERVAL);
        if interval < web::LEAST_INTERVAL {
            let text = "--interval: with --web it takes a time from 250ms on";
            return Err(Failure::Usage(text.into()));
        }
        return web::run(&options.device, listen, interval);
    }
    let interval = interval.unwrap_or(INTERVAL);
    let mut view = View::new(attach::attached(Some(&options.device))?);
    if options.once {
        thread::sleep(interval);
        look(&mut view, &options.device)?;
        return print(&draw::plain(&view, draw::LEAST_SIZE));
    }
    if !io::stdout().is_terminal() {
        let text = "standard output is not a terminal; `--once` prints a frame as plain text";
        return Err(Failure::Usage(text.into()));
    }
    let stop = stop_flag()?;
    let failed = |error: io::Error| Failure::Failed(format!("using the terminal: {error}"));
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let ended = watch(&mut terminal, &mut view, options, interval, &stop);
    // First the terminal, or what is said next would vanish with the frame.
    ratatui::try_restore().map_err(failed)?;
    ended?.map_err(failed)
}

/// Looks again. A device that was attached and no longer is has not been misused.
fn look(view: &mut View, device: &str) -> Result<(), Failure> {
    let statuses = attach::attached(Some(device)).map_err(|failure| {
        Failure::Failed(format!("nothing is attached to {device} any more: {}", failure.text()))
    })?;
    view.update(statuses);
    Ok(())
}

/// Draws until the user quits. The inner error is the terminal's.
fn watch(
    terminal: &mut DefaultTerminal,
    view: &mut View,
    options: &Options,
    interval: Duration,
    stop: &AtomicBool,
) -> Result<io::Result<()>, Failure> {
    let mut next = Instant::now() + interval;
    while !stop.load(Ordering::Relaxed) {
        let draw = terminal.draw(|frame| draw::draw(view, frame.area(), frame.buffer_mut()));
        if let Err(error) = draw {
            return Ok(Err(error));
        }
        // A signal is looked for now and then.
        let wait = next.saturating_duration_since(Instant::now()).min(Duration::from_millis(200));
        match key(wait) {
            Ok(Some(Key::End)) => break,
            Ok(Some(Key::Pause)) => view.pause(),
            Ok(Some(Key::Direction)) => view.turn(),
            Ok(None) => {}
            Err(error) => return Ok(Err(error)),
        }
        if Instant::now() >= next {
            next = Instant::now() + interval;
            look(view, &options.device)?;
        }
    }
    Ok(Ok(()))
}

enum Key {
    End,
    Pause,
    Direction,
}

/// The next key within this time.
fn key(wait: Duration) -> io::Result<Option<Key>> {
    if !event::poll(wait)? {
        return Ok(None);
    }
    let Event::Key(key) = event::read()? else { return Ok(None) };
    if key.kind == KeyEventKind::Release {
        return Ok(None);
    }
    Ok(match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Key::End),
        KeyCode::Char('q') | KeyCode::Esc => Some(Key::End),
        KeyCode::Char('p' | ' ') => Some(Key::Pause),
        KeyCode::Char('d') | KeyCode::Tab => Some(Key::Direction),
        _ => None,
    })
}
