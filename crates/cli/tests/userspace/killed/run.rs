//! One run: a command, what befalls it, and what must be so afterwards.

use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use super::cases::{Case, Race};
use super::scene::{Kind, Scene};
use super::tracer::{Call, Fault, trace};
use crate::path::{PATIENCE, SHORTLANE};

const TICK: Duration = Duration::from_millis(20);
/// How long a command may take: an emulator on a busy machine needs a minute to load a qdisc.
const COMMAND: Duration = Duration::from_secs(300);
/// How long a command is held up for its rival, which may in turn wait for it.
const HELD_UP: Duration = Duration::from_millis(500);
/// The same in an emulator.
const HELD_UP_THERE: Duration = Duration::from_secs(20);

/// What came of a run.
struct Done {
    calls: Vec<Call>,
    succeeded: bool,
    /// Whether the rival did, if it came.
    rival: Option<bool>,
    /// Whether it came when the end had been asked for, since an engine waited.
    late: bool,
}

/// Runs the command of a case with a fault, or none; then traffic must pass, and what undoes it bring
/// back the state before. Returns the calls that the command and its children made.
pub(super) fn run(
    scene: &Scene,
    case: &Case,
    fault: Option<(usize, Fault)>,
) -> Result<Vec<Call>, String> {
    run_beside(scene, case, fault, None).map(|done| done.calls)
}

/// Runs a race, in which the rival comes before call number `at`. Returns whether it came.
pub(super) fn run_race(scene: &Scene, race: &Race, at: usize) -> Result<bool, String> {
    let fault = Some((at, Fault::Wait));
    let done = run_beside(scene, &race.case, fault, Some(race.rival))?;
    match done.rival {
        // When the first engine ends, there is room for another one.
        Some(true) if race.excludes && done.succeeded && !done.late => {
            Err("both succeed".to_owned())
        }
        came => Ok(came.is_some()),
    }
}

/// The same as [`run`], with a rival that comes while a call waits.
fn run_beside(
    scene: &Scene,
    case: &Case,
    fault: Option<(usize, Fault)>,
    rival: Option<&'static str>,
) -> Result<Done, String> {
    let path = &scene.path;
    if let Some(command) = case.before {
        path.succeed(command);
    }
    let (ended, end) = channel();
    let (came, coming) = channel();
    let meanwhile = || {
        let (ends, rival_ended) = channel();
        // A child of another thread is none that the tracer waits for.
        let rival = thread::spawn(move || {
            let mut command = Command::new(SHORTLANE);
            let words = rival.into_iter().flat_map(|rival| rival.split(' '));
            let output = command.args(words).output().expect("the rival starts");
            let _ = ends.send(());
            output.status.success()
        });
        let emulated = matches!(case.kind, Kind::Qdisc | Kind::Registry);
        let _ = rival_ended.recv_timeout(if emulated { HELD_UP_THERE } else { HELD_UP });
        came.send(rival).expect("somebody waits");
    };
    let traced = || {
        let mut command = Command::new(SHORTLANE);
        command.args(case.command.split(' ')).stdout(Stdio::null()).stderr(Stdio::null());
        let ended = |status| ended.send(status).expect("somebody waits");
        trace(&mut command, fault, meanwhile, ended)
    };
    thread::scope(|scope| {
        let tracer = scope.spawn(|| path.here.run(traced).expect("a thread"));
        let mut ended = None;
        let works = comes_true(COMMAND, || {
            ended = end.recv_timeout(TICK).ok();
            ended.is_some() || case.stays && scene.is_bridged()
        });
        let rival = coming.try_recv().ok().map(join);
        // What stays is in the way of others until it ends.
        let stays = case.stays && ended.is_none();
        let passes = stays || comes_true(PATIENCE, || scene.passes());
        // The fault may as well befall what the first one has to do.
        let said = [(); 2].map(|()| path.shortlane(case.undo).words);
        // What was about to start takes itself back.
        let leaves = comes_true(PATIENCE, || tracer.is_finished());
        if !leaves {
            path.shortlane(case.undo);
        }
        let calls = tracer.join().expect("the tracer ends").map_err(|errno| errno.to_string())?;
        // An engine waited, not the command that had started it.
        let late = coming.try_recv().ok().map(join);
        let is_late = late.is_some();
        if is_late {
            path.shortlane(case.undo);
        }
        let rival = rival.or(late);
        let is_killed = matches!(fault, Some((_, Fault::Kill)));
        let Some(status) = ended.or_else(|| end.try_recv().ok()).filter(|_| works) else {
            return Err("the command hangs".to_owned());
        };
        if rival == Some(Err(Hangs)) {
            Err("the rival hangs".to_owned())
        } else if !passes {
            Err("no traffic passes".to_owned())
        } else if !leaves {
            Err(format!("an engine outlives {said:?}"))
        } else if !comes_true(PATIENCE, || scene.is_as_before(is_killed)) {
            Err(format!("after {said:?}:\n{}", scene.difference()))
        } else if !comes_true(PATIENCE, || scene.passes()) {
            Err(format!("no traffic passes after {said:?}"))
        } else {
            let (succeeded, rival) = (status.success(), rival.and_then(Result::ok));
            Ok(Done { calls, succeeded, rival, late: is_late })
        }
    })
}

/// A command that does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hangs;

/// Whether a command succeeded.
fn join(command: thread::JoinHandle<bool>) -> Result<bool, Hangs> {
    if comes_true(COMMAND, || command.is_finished()) {
        command.join().map_err(|_| Hangs)
    } else {
        Err(Hangs)
    }
}

fn comes_true(within: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while !is_so() {
        if begin.elapsed() > within {
            return false;
        }
        thread::sleep(TICK);
    }
    true
}
