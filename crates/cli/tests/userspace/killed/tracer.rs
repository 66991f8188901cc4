//! Runs a command and all that it starts, and lets a fault befall one of their system calls.

use std::collections::{HashMap, HashSet};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// A call that a process is about to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// Its number in the kernel.
    pub(super) number: u64,
    /// The first three of its arguments.
    pub(super) arguments: [u64; 3],
}

/// What befalls a call, which is not made then, or not yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Its process is killed.
    Kill,
    /// It fails, if it is this call: processes side by side do not always make theirs in the same
    /// order, and what no kernel fails (a `close`) is not to fail here.
    Fail(u64, Errno),
    /// It is made later: something else happens first.
    Wait,
}

/// Runs it to the end of all that it started. `fault` is the number of a call, by all of them
/// together, and what befalls that; `meanwhile` happens where one waits. `ended` is told how the command
/// itself ended. Returns the calls.
#[expect(clippy::zombie_processes, reason = "it is waited for with all that it starts")]
pub(super) fn trace(
    command: &mut Command,
    fault: Option<(usize, Fault)>,
    mut meanwhile: impl FnMut(),
    ended: impl FnOnce(ExitStatus),
) -> nix::Result<Vec<Call>> {
    // SAFETY: it makes one system call, and allocates nothing, between fork and exec.
    unsafe { command.pre_exec(|| Ok(ptrace::traceme()?)) };
    let child = command.spawn().expect("the command starts");
    let leader = Pid::from_raw(child.id() as i32);
    waitpid(leader, Some(WaitPidFlag::__WALL))?;
    let follow = Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEEXEC;
    ptrace::setoptions(
        leader,
        follow | Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_EXITKILL,
    )?;
    ptrace::syscall(leader, None)?;

    let mut known = HashSet::from([leader]);
    let mut failing = HashMap::new();
    let (mut calls, mut ended) = (Vec::new(), Some(ended));
    loop {
        // Of this thread's children: another's are another's to wait for.
        let status = match waitpid(None, Some(WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD)) {
            Err(Errno::ECHILD) => return Ok(calls),
            status => status?,
        };
        let (pid, signal) = match status {
            WaitStatus::PtraceSyscall(pid) => {
                // A process that was killed by now has nothing to tell.
                let _ = at_call(pid, fault, &mut meanwhile, &mut calls, &mut failing);
                (pid, None)
            }
            WaitStatus::PtraceEvent(pid, ..) => (pid, None),
            WaitStatus::Stopped(pid, Signal::SIGSTOP) if known.insert(pid) => (pid, None),
            WaitStatus::Stopped(pid, signal) => (pid, Some(signal)),
            WaitStatus::Exited(pid, code) if pid == leader => {
                ended.take().into_iter().for_each(|ended| ended(ExitStatus::from_raw(code << 8)));
                continue;
            }
            WaitStatus::Signaled(pid, signal, _) if pid == leader => {
                let status = ExitStatus::from_raw(signal as i32);
                ended.take().into_iter().for_each(|ended| ended(status));
                continue;
            }
            _ => continue,
        };
        match ptrace::syscall(pid, signal) {
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(error) => return Err(error),
        }
    }
}

/// A process is about to make a call, or to come back from one.
fn at_call(
    pid: Pid,
    fault: Option<(usize, Fault)>,
    meanwhile: &mut impl FnMut(),
    calls: &mut Vec<Call>,
    failing: &mut HashMap<Pid, Errno>,
) -> nix::Result<()> {
    let mut registers = ptrace::getregs(pid)?;
    if ptrace::syscall_info(pid)?.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
        if let Some(errno) = failing.remove(&pid) {
            registers.rax = -i64::from(errno as i32) as u64;
            ptrace::setregs(pid, registers)?;
        }
        return Ok(());
    }
    let arguments = [registers.rdi, registers.rsi, registers.rdx];
    calls.push(Call { number: registers.orig_rax, arguments });
    match fault.filter(|(at, _)| *at + 1 == calls.len()) {
        Some((_, Fault::Kill)) => kill(pid, Signal::SIGKILL),
        Some((_, Fault::Fail(call, errno))) if call == registers.orig_rax => {
            registers.orig_rax = u64::MAX;
            failing.insert(pid, errno);
            ptrace::setregs(pid, registers)
        }
        Some((_, Fault::Wait)) => {
            meanwhile();
            Ok(())
        }
        _ => Ok(()),
    }
}
