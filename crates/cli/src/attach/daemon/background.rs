//! The userspace engine as a process of its own.

use std::env;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::sync::Arc;

use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout, setsid};
use serde::{Deserialize, Serialize};
use signal_hook::consts::SIGTERM;
use signal_hook::low_level::raise;

use super::{Stays, run};
use crate::attach::follower;
use crate::attach::in_userspace::process;
use crate::{Call, Failure, say};

/// What the process in the background says on its standard output when it works.
const READY: &str = "ready\n";

/// What a process in the background is told: a line on its standard input.
#[derive(Serialize, Deserialize)]
pub(crate) enum Errand {
    /// Run the userspace engine.
    Engine(process::Task),
    /// Have rates of queues in the kernel follow the link.
    Follow(follower::Follow),
    /// See to it that these are at their base if that one cannot.
    Guard(follower::Guard),
}

impl Errand {
    pub(crate) fn line(&self) -> Result<String, Failure> {
        let text = serde_json::to_string(self);
        text.map(|text| text + "\n").map_err(|error| Failure::Failed(error.to_string()))
    }

    fn read() -> Result<Self, Failure> {
        let alone = |error: &dyn std::fmt::Display| {
            Failure::Usage(format!("this is for `shortlane attach` alone: {error}"))
        };
        let (mut line, mut byte) = (Vec::new(), [0]);
        // What comes behind the line is for somebody else.
        while line.last() != Some(&b'\n') {
            match read_unbuffered(&mut byte) {
                Ok(0) => break,
                Ok(_) => line.push(byte[0]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(alone(&error)),
            }
        }
        serde_json::from_slice(&line).map_err(|error| alone(&error))
    }
}

/// Reads from standard input what is there.
pub(crate) fn read_unbuffered(into: &mut [u8]) -> io::Result<usize> {
    nix::unistd::read(io::stdin(), into).map_err(io::Error::from)
}

/// The process in the background.
pub(crate) fn serve(call: &Call) -> Result<(), Failure> {
    match Errand::read()? {
        Errand::Engine(task) => task.serve(),
        Errand::Follow(follow) => follow.serve(call),
        Errand::Guard(guard) => guard.serve(),
    }
}

/// This program, as a process in the background for a device.
pub(crate) fn command(device: &str, call: &Call) -> io::Result<Command> {
    Ok(match &call.agent {
        Some(program) => {
            let mut command = Command::new(&program.path);
            command.args(&program.arguments).arg("engine");
            command
        }
        None => {
            let mut command = Command::new(env::current_exe()?);
            command.args(["engine", device]);
            command
        }
    })
}

/// Starts this program in the background on an errand for a device, and waits until it works.
pub(crate) fn start(device: &str, errand: &Errand, call: &Call) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::Failed(format!("starting the engine: {error}"));
    let errand = errand.line()?;
    let mut command = command(device, call).map_err(failed)?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // If it has ended already it has said why.
        let _ = stdin.write_all(errand.as_bytes());
    }
    // It closes both when it works, or when it ends.
    let said = read_all(child.stderr.take()).map_err(failed)?;
    let is_ready = read_all(child.stdout.take()).map_err(failed)? == READY;
    let said = said.trim_end();
    if is_ready {
        said.lines().for_each(say);
        return Ok(());
    }
    let status = child.wait().map_err(failed)?;
    let why = said.strip_prefix("shortlane: ").unwrap_or(said).to_owned();
    let why = if why.is_empty() { format!("the engine has ended: {status}") } else { why };
    Err(if status.code() == Some(2) { Failure::Usage(why) } else { Failure::Failed(why) })
}

fn read_all(from: Option<impl Read>) -> io::Result<String> {
    let mut text = String::new();
    from.map_or(Ok(0), |mut from| from.read_to_string(&mut text))?;
    Ok(text)
}

/// The other end of [`start`]: runs an engine in the background.
pub(crate) fn background(engine: impl Stays, log: &Log) -> Result<(), Failure> {
    // Opened before there is anything to say: the reader waits until the standard streams are closed.
    let nothing = File::options().read(true).write(true).open("/dev/null");
    let nothing = nothing.map_err(|error| Failure::Failed(format!("/dev/null: {error}")))?;
    // It is the leader of its process group only if it was started by hand, and stays then.
    let _ = setsid();
    // No file system is kept busy.
    let _ = env::set_current_dir("/");
    let ended = run(engine, || {
        let mut out = io::stdout();
        // A command that was killed has attached nothing.
        if out.write_all(READY.as_bytes()).and_then(|()| out.flush()).is_err() {
            let _ = raise(SIGTERM);
        }
        close_standard_streams(&nothing);
    });
    match ended {
        Ok(()) => Ok(()),
        Err(failure) => {
            log.write(failure.text());
            Err(failure)
        }
    }
}

fn close_standard_streams(nothing: &File) {
    // Both files are open, so that these cannot fail.
    let _ = dup2_stdin(nothing);
    let _ = dup2_stdout(nothing);
    let _ = dup2_stderr(nothing);
}

/// The system's log, which a process in the background has instead of standard error. If it is
/// full, or there is none, so be it.
#[derive(Clone)]
pub(crate) struct Log {
    socket: Option<Arc<UnixDatagram>>,
    device: String,
}

impl Log {
    pub(crate) fn open(device: &str) -> Self {
        let open = || {
            let socket = UnixDatagram::unbound()?;
            socket.set_nonblocking(true)?;
            socket.connect("/dev/log")?;
            Ok(socket)
        };
        let socket: io::Result<UnixDatagram> = open();
        Self { socket: socket.ok().map(Arc::new), device: device.to_owned() }
    }

    /// Why the engine has ended.
    fn write(&self, text: &str) {
        self.say(3, &format!("{}: {text}", self.device));
    }

    /// What is good to know.
    pub(crate) fn inform(&self, text: &str) {
        self.say(6, text);
    }

    /// With a severity of RFC 3164; the facility is 3, system daemons.
    fn say(&self, severity: u8, text: &str) {
        let (priority, pid) = (3 << 3 | severity, std::process::id());
        let line = format!("<{priority}>shortlane[{pid}]: {text}");
        let _ = self.socket.as_ref().map(|socket| socket.send(line.as_bytes()));
    }
}
