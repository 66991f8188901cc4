//! The process by which rates of queues in the kernel follow the link, and one that brings them back
//! to their base if that process is killed or stopped.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::Following;
use engine::control::{Changes, Refusal};
use engine::follower::{Follower, Queues};
use engine::status::{EngineKind, Heading, Status};
use netdev::link;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{getppid, setsid};
use sched::{Nanos, Rate};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::daemon::{self, Errand, Log, command};
use super::engines::engine;
use super::goal::{self, Goal};
use super::in_kernel::Paced;
use super::order::Order;
use super::probe::Probe;
use super::{in_marks, index_of};
use crate::{Call, Failure, say};

/// How often a follower says that it is well.
const BEAT: Duration = Duration::from_millis(500);
/// Without that for so long it is killed.
const STALE: u16 = 10_000;
/// What it says, and what it says at its end in order.
const WELL: u8 = b'.';
const DONE: u8 = b'q';

/// What a follower is told.
#[derive(Serialize, Deserialize)]
pub(super) struct Follow {
    device: String,
    engine: EngineKind,
    egress: Option<String>,
    ingress: Option<String>,
    probe: IpAddr,
    is_beyond: bool,
    dry_run: bool,
}

impl Follow {
    pub(super) fn of(order: &Order, engine: EngineKind, probe: &Probe) -> Self {
        Self {
            device: order.device.clone(),
            engine,
            egress: order.follow(Heading::Egress),
            ingress: order.follow(Heading::Ingress),
            probe: probe.address,
            is_beyond: probe.is_beyond(),
            dry_run: order.dry_run,
        }
    }

    fn open(
        &self,
        call: &Call,
        log: impl Fn(&str) + Send + 'static,
    ) -> Result<Follower<InKernel>, Failure> {
        let bounds = |goal: &Option<String>| {
            let read = goal.as_deref().map(goal::read).transpose().map_err(Failure::Usage);
            read.map(|goal| goal.and_then(Goal::bounds))
        };
        let following = Following {
            egress: bounds(&self.egress)?,
            ingress: bounds(&self.ingress)?,
            probe: self.probe,
            is_beyond: self.is_beyond,
            dry_run: self.dry_run,
        };
        let place = Place { device: self.device.clone(), engine: self.engine };
        let ways = [(Heading::Egress, following.egress), (Heading::Ingress, following.ingress)];
        let base = |(heading, bounds): (_, Option<engine::Bounds>)| Some((heading, bounds?.base()));
        let bases = ways.into_iter().filter_map(base).collect();
        let guarded = Guard { since: place.following()?, place: place.clone(), bases };
        let guard = Guardian::start(Errand::Guard(guarded), call)?;
        let queues =
            InKernel { ifindex: index_of(&self.device)?, place, paced: BTreeMap::new(), guard };
        let name = self.device.clone();
        Ok(Follower::new(&self.device, &following, queues, move |line| {
            log(&format!("{name}: {line}"));
        })?)
    }

    /// Follows until a signal or a client ends it.
    pub(super) fn stay(&self, call: &Call) -> Result<(), Failure> {
        daemon::foreground(self.open(call, say)?, || ())
    }

    /// The same in the background.
    pub(super) fn serve(&self, call: &Call) -> Result<(), Failure> {
        let log = Log::open(&self.device);
        let inner = log.clone();
        daemon::background(self.open(call, move |line| inner.inform(line))?, &log)
    }

    pub(super) fn start(self, call: &Call) -> Result<(), Failure> {
        let device = self.device.clone();
        daemon::start(&device, &Errand::Follow(self), call)
    }
}

/// Queues of an engine in the kernel, on a device.
#[derive(Clone, Serialize, Deserialize)]
struct Place {
    device: String,
    engine: EngineKind,
}

impl Place {
    fn status(&self) -> Result<Vec<Status>, Failure> {
        engine(self.engine).show(Some(&self.device))
    }

    fn set(&self, heading: Heading, rate: Rate) -> Result<(), Failure> {
        match self.engine {
            EngineKind::Kernel => Paced::find(&self.device, heading)?.set(rate),
            _ => in_marks::set(&self.device, heading, rate),
        }
    }

    /// Which directions are to follow the link, and when they were attached, by which it is known
    /// whether they still are what they were.
    fn following(&self) -> Result<Vec<(Heading, Nanos)>, Failure> {
        let is_to = |way: &&Status| way.follows.is_some();
        let ways = self.status()?;
        Ok(ways.iter().filter(is_to).map(|way| (way.direction, way.attached_at)).collect())
    }
}

/// As a follower has them.
struct InKernel {
    ifindex: u32,
    place: Place,
    /// Qdiscs of ours that have been found: that takes longer than to set a rate.
    paced: BTreeMap<Heading, Paced>,
    guard: Guardian,
}

impl InKernel {
    /// Under the name that the device has now.
    fn place(&mut self) -> &Place {
        if let Some(name) = link::name_of(self.ifindex) {
            self.place.device = name;
        }
        &self.place
    }
}

fn refusal(failure: Failure) -> Refusal {
    match failure {
        Failure::Usage(text) => Refusal { text, usage: true },
        Failure::Failed(text) => Refusal { text, usage: false },
    }
}

impl Queues for InKernel {
    fn status(&mut self) -> Result<Vec<Status>, Refusal> {
        self.place().status().map_err(refusal)
    }

    fn change(&mut self, changes: &Changes) -> Result<(), Refusal> {
        let Place { device, engine: kind } = self.place();
        engine(*kind).change(device, changes).map(|_| ()).map_err(refusal)
    }

    fn set(&mut self, heading: Heading, rate: Rate) -> Result<(), Refusal> {
        let place = self.place().clone();
        if place.engine != EngineKind::Kernel {
            return place.set(heading, rate).map_err(refusal);
        }
        let paced = match self.paced.remove(&heading) {
            Some(paced) => paced,
            None => Paced::find(&place.device, heading).map_err(refusal)?,
        };
        paced.set(rate).map_err(refusal)?;
        // What did not work is looked for again.
        self.paced.insert(heading, paced);
        Ok(())
    }

    fn tick(&mut self) {
        self.guard.beat();
    }
}

/// The guard, from the follower's side.
struct Guardian {
    command: Command,
    errand: String,
    child: Child,
    /// Open as long as there is one.
    stdin: Option<ChildStdin>,
    beaten: Instant,
}

impl Guardian {
    fn start(errand: Errand, call: &Call) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::Failed(format!("starting the guard: {error}"));
        let Errand::Guard(Guard { place, .. }) = &errand else {
            return Err(Failure::Failed("this is no guard".into()));
        };
        let mut command = command(&place.device, call).map_err(failed)?;
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let errand = errand.line()?;
        let (child, stdin) = spawn(&mut command, &errand).map_err(failed)?;
        Ok(Self { command, errand, child, stdin, beaten: Instant::now() })
    }

    /// Tells it that all is well. One that has been killed is replaced.
    fn beat(&mut self) {
        if self.beaten.elapsed() < BEAT {
            return;
        }
        self.beaten = Instant::now();
        let told = self.stdin.as_mut().map(|stdin| stdin.write_all(&[WELL]));
        if told.is_none_or(|told| told.is_err()) {
            self.end();
            if let Ok((child, stdin)) = spawn(&mut self.command, &self.errand) {
                (self.child, self.stdin) = (child, stdin);
            }
        }
    }

    fn end(&mut self) {
        if let Some(mut stdin) = self.stdin.take() {
            // If it has ended already it is not to be told.
            let _ = stdin.write_all(&[DONE]);
        }
        let _ = self.child.wait();
    }
}

fn spawn(command: &mut Command, errand: &str) -> io::Result<(Child, Option<ChildStdin>)> {
    let mut child = command.spawn()?;
    let mut stdin = child.stdin.take();
    // If it has ended, the next beat sees so.
    let _ = stdin.as_mut().map(|stdin| stdin.write_all(errand.as_bytes()));
    Ok((child, stdin))
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.end();
    }
}

/// What a guard is told.
#[derive(Serialize, Deserialize)]
pub(super) struct Guard {
    place: Place,
    bases: Vec<(Heading, Rate)>,
    since: Vec<(Heading, Nanos)>,
}

impl Guard {
    /// Listens to the follower at the other end of standard input, until it ends.
    pub(super) fn serve(&self) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::Failed(format!("listening to it: {error}"));
        // What ends the follower is not to end this as well.
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::default()).map_err(failed)?;
        }
        let _ = setsid();
        let _ = std::env::set_current_dir("/");
        let log = Log::open(&self.place.device);
        let follower = getppid();
        let mut why = "was killed";
        loop {
            let stdin = io::stdin();
            let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
            // EINTR is as good as a beat.
            if poll(&mut fds, PollTimeout::from(STALE)) == Ok(0) && getppid() == follower {
                why = "did not answer and was killed";
                // It may hold what other commands wait for.
                let _ = kill(follower, Signal::SIGKILL);
            }
            let mut said = [0; 64];
            match daemon::read_unbuffered(&mut said) {
                Ok(0) => break,
                Ok(length) if said[..length].contains(&DONE) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
        self.set_bases(&log, why);
        Ok(())
    }

    /// If it is what the follower was for.
    fn set_bases(&self, log: &Log, why: &str) {
        let now = self.place.following().unwrap_or_default();
        for (heading, base) in &self.bases {
            let is_same = |way: &&(Heading, Nanos)| way.0 == *heading && now.contains(way);
            if self.since.iter().any(|way| is_same(&way)) {
                let set = self.place.set(*heading, *base);
                let failed = set.err().map(|failure| format!(": {}", failure.text()));
                log.inform(&format!(
                    "{}: the process that followed the link {why}: {} at its base, {base}{}",
                    self.place.device,
                    heading.name(),
                    failed.unwrap_or_default()
                ));
            }
        }
    }
}
