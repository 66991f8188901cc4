//! Commands that are killed at a system call, or whose call fails: at every one of them with
//! `make test-killed`, at some of them otherwise. Traffic passes all the same, and the next command
//! leaves the device as it was. So does another command that comes in between.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;

use super::path::{PATIENCE, Path, SHORTLANE};
use super::tracer::{Fault, trace};

const TICK: Duration = Duration::from_millis(20);
const ATTACH: &str = "attach t0 --rate 10mbit --engine userspace";
/// What a kill may leave where programs are filters (before Linux 6.6): between its making and the
/// first filter, or between the last filter and its removal, nothing tells whose a clsact is.
const EMPTY_CLSACT: &str = "qdisc clsact ffff: dev t0 parent ffff:fff1 \n";

/// A command, and one before it that nothing befalls.
struct Case {
    name: &'static str,
    before: Option<&'static str>,
    command: &'static str,
}

/// A case during which another command is given.
struct Race {
    case: Case,
    rival: &'static str,
    /// Whether only one of both may succeed.
    excludes: bool,
}

const ANOTHER: &str = "attach t0 --rate 20mbit --engine userspace";
const RACES: &[Race] = &[
    Race {
        case: Case { name: "attach, attach", before: None, command: ATTACH },
        rival: ANOTHER,
        excludes: true,
    },
    Race {
        case: Case { name: "attach, detach", before: None, command: ATTACH },
        rival: "detach t0",
        excludes: false,
    },
    Race {
        case: Case {
            name: "change, detach",
            before: Some(ATTACH),
            command: "change t0 --rate 20mbit",
        },
        rival: "detach t0",
        excludes: false,
    },
    Race {
        case: Case { name: "detach, attach", before: Some(ATTACH), command: "detach t0" },
        rival: ANOTHER,
        excludes: false,
    },
    Race {
        case: Case { name: "detach, detach", before: Some(ATTACH), command: "detach t0" },
        rival: "detach t0",
        excludes: false,
    },
];
/// How long a command is held up for its rival.
const HELD_UP: Duration = Duration::from_millis(500);

const CASES: &[Case] = &[
    Case { name: "attach", before: None, command: ATTACH },
    Case {
        name: "attach both directions",
        before: None,
        command: "attach t0 --rate 10mbit --ingress 20mbit --engine userspace",
    },
    Case { name: "change", before: Some(ATTACH), command: "change t0 --rate 20mbit" },
    Case { name: "show", before: Some(ATTACH), command: "show t0" },
    Case { name: "detach", before: Some(ATTACH), command: "detach t0" },
    Case { name: "doctor", before: Some(ATTACH), command: "doctor t0" },
];

/// How a kernel may fail a call, by its manual page.
fn failures(call: u64) -> &'static [Errno] {
    match call as libc::c_long {
        libc::SYS_mmap | libc::SYS_mprotect | libc::SYS_brk | libc::SYS_clone3 => &[Errno::ENOMEM],
        libc::SYS_bpf | libc::SYS_socket => &[Errno::EPERM, Errno::ENOMEM],
        libc::SYS_sendto | libc::SYS_sendmsg => &[Errno::EPERM, Errno::ENOBUFS],
        libc::SYS_openat => &[Errno::EPERM, Errno::EMFILE],
        libc::SYS_write | libc::SYS_rename | libc::SYS_mkdir => &[Errno::ENOSPC],
        libc::SYS_ioctl | libc::SYS_bind => &[Errno::EBUSY, Errno::EPERM],
        libc::SYS_unlink | libc::SYS_rmdir => &[Errno::EBUSY],
        libc::SYS_connect | libc::SYS_setsockopt | libc::SYS_getsockopt => &[Errno::EPERM],
        libc::SYS_read
        | libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_poll
        | libc::SYS_ppoll
        | libc::SYS_accept4
        | libc::SYS_futex => &[Errno::EINTR],
        _ => &[],
    }
}

/// One of so many calls, spread evenly.
fn step() -> usize {
    let step = env::var("KILLED_STEP").map(|step| step.parse().expect("KILLED_STEP is a number"));
    step.unwrap_or(60)
}

/// Runs the command of a case with a fault, or none; then traffic must pass, and `detach` bring back
/// the state `before`. Returns the calls that the command and its children made.
fn run(
    path: &Path,
    before: &str,
    case: &Case,
    fault: Option<(usize, Fault)>,
) -> Result<Vec<u64>, String> {
    run_beside(path, before, case, fault, None).map(|done| done.calls)
}

/// What came of a run.
struct Done {
    calls: Vec<u64>,
    succeeded: bool,
    /// Whether the rival did, if it came.
    rival: Option<bool>,
    /// Whether it came when `detach` had been asked for, since an engine waited.
    late: bool,
}

/// The same, with a rival that comes while a call waits.
fn run_beside(
    path: &Path,
    before: &str,
    case: &Case,
    fault: Option<(usize, Fault)>,
    rival: Option<&'static str>,
) -> Result<Done, String> {
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
        // It may in turn wait for who is held up here.
        let _ = rival_ended.recv_timeout(HELD_UP);
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
        let ended = end.recv_timeout(PATIENCE);
        let rival = coming.try_recv().ok().map(join);
        let passes = comes_true(PATIENCE, || path.reaches());
        // The fault may as well befall what the first one has to do.
        let said = [(); 2].map(|()| path.shortlane("detach t0").words);
        // What was about to start takes itself back.
        let leaves = comes_true(PATIENCE, || tracer.is_finished());
        if !leaves {
            path.shortlane("detach t0");
        }
        let calls = tracer.join().expect("the tracer ends").map_err(|errno| errno.to_string())?;
        // An engine waited, not the command that had started it.
        let late = coming.try_recv().ok().map(join);
        let is_late = late.is_some();
        if is_late {
            path.shortlane("detach t0");
        }
        let rival = rival.or(late);
        let Ok(status) = ended else { return Err("the command hangs".to_owned()) };
        if rival == Some(Err(Hangs)) {
            Err("the rival hangs".to_owned())
        } else if !passes {
            Err("no traffic passes".to_owned())
        } else if !leaves {
            Err(format!("an engine outlives {said:?}"))
        } else if !comes_true(PATIENCE, || is_as_before(path, before, fault)) {
            Err(format!("after {said:?}:\n{}\ninstead of\n{before}", path.state()))
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
    if comes_true(PATIENCE, || command.is_finished()) {
        command.join().map_err(|_| Hangs)
    } else {
        Err(Hangs)
    }
}

/// Runs a race, in which the rival comes before call number `at`. Returns whether it came.
fn run_race(path: &Path, before: &str, race: &Race, at: usize) -> Result<bool, String> {
    let fault = Some((at, Fault::Wait));
    let done = run_beside(path, before, &race.case, fault, Some(race.rival))?;
    match done.rival {
        // When the first engine ends, there is room for another one.
        Some(true) if race.excludes && done.succeeded && !done.late => {
            Err("both succeed".to_owned())
        }
        came => Ok(came.is_some()),
    }
}

/// Whether the state is `before` again. An empty clsact, where one may be left, goes.
fn is_as_before(path: &Path, before: &str, fault: Option<(usize, Fault)>) -> bool {
    let state = path.state();
    let is_killed = matches!(fault, Some((_, Fault::Kill)));
    if is_killed && !has_tcx() && state.replacen(EMPTY_CLSACT, "", 1) == before {
        path.shell("tc qdisc del dev t0 clsact 2>/dev/null");
    }
    path.state() == before
}

/// Linux 6.6 and later.
fn has_tcx() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("/proc");
    let number = |part: Option<&str>| part.and_then(|part| part.parse::<u32>().ok());
    let mut parts = release.split(['.', '-']).map(str::trim);
    (number(parts.next()), number(parts.next())) >= (Some(6), Some(6))
}

fn comes_true(within: Duration, is_so: impl Fn() -> bool) -> bool {
    let begin = Instant::now();
    while !is_so() {
        if begin.elapsed() > within {
            return false;
        }
        thread::sleep(TICK);
    }
    true
}

#[test]
fn a_fault_at_any_call_leaves_traffic_flowing_and_nothing_behind() {
    let Some(path) = Path::new() else { return };
    let (before, step) = (path.state(), step());
    let mut wrong = Vec::new();
    println!("case: calls, of which killed and failed");
    for case in CASES {
        let calls = run(&path, &before, case, None).expect("without a fault nothing is left");
        let mut tried = BTreeMap::from([("killed", 0), ("failed", 0)]);
        for (at, call) in calls.iter().enumerate() {
            let failures = failures(*call).iter().map(|errno| Fault::Fail(*call, *errno));
            for (kind, fault) in std::iter::once(Fault::Kill).chain(failures).enumerate() {
                // What starts a process or thread is always tried: there are few.
                let starts = *call as libc::c_long == libc::SYS_clone3;
                if !starts && (at + 7 * kind) % step != 0 {
                    continue;
                }
                *tried.get_mut(if kind == 0 { "killed" } else { "failed" }).expect("a kind") += 1;
                if let Err(why) = run(&path, &before, case, Some((at, fault))) {
                    println!("{}: call {at} ({call}), {fault:?}: {why}", case.name);
                    wrong.push((case.name, at, fault));
                }
            }
        }
        println!("{}: {}, {}, {}", case.name, calls.len(), tried["killed"], tried["failed"]);
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn two_commands_at_once_leave_traffic_flowing_and_nothing_behind() {
    let Some(path) = Path::new() else { return };
    let before = path.state();
    let mut wrong = Vec::new();
    println!("race: calls, places tried, rivals that came");
    for race in RACES {
        let calls = run(&path, &before, &race.case, None).expect("alone nothing is left");
        // At three places of a short command at least.
        let step = (4 * step() - 3).min(calls.len() / 3);
        let places: Vec<_> = (step / 2..calls.len()).step_by(step).collect();
        let mut came = 0;
        for at in &places {
            match run_race(&path, &before, race, *at) {
                Ok(rival) => came += usize::from(rival),
                Err(why) => {
                    println!("{}: call {at} ({}): {why}", race.case.name, calls[*at]);
                    wrong.push((race.case.name, *at));
                }
            }
        }
        println!("{}: {}, {}, {came}", race.case.name, calls.len(), places.len());
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
