//! Kinds of qdisc for `tc`: registered until they are unregistered, whoever registered them.

use std::fs::{self, File};
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow, bail, ensure};
use engine::kernel::{KernelError, Kind, register, registered, unregister};
use nix::fcntl::{Flock, FlockArg};
use sched::Spec;

use super::bench::{Link, find, must_fail, sent, wait_until};
use super::census::Census;
use crate::command;
use crate::traffic::{Frames, Sender, Varying};

/// Where the engine keeps kinds.
const DIRECTORY: &str = "/sys/fs/bpf/shortlane";

pub(crate) fn run(_: &[String]) -> Result<()> {
    let _link = Link::new(1)?;
    let census = Census::now();
    let efd: Spec = "efd:threshold=7packets".parse()?;
    let name = register(&efd, 2)?;
    expect(&[Kind { name: name.clone(), scheduler: efd.to_string(), instances: 2, in_use: 0 }])?;
    refused(register(&efd, 2), "is registered already")?;
    refused(unregister("shortlane_sb"), "shortlane_efd are")?;
    command::run("tc qdisc add dev v0 root shortlane_efd limit 50")?;
    ensure!(registered()?[0].in_use == 1, "{:?}", registered()?);
    // What is in place goes on without its registration.
    unregister(&name)?;
    expect(&[])?;
    must_fail("tc qdisc replace dev v0 root handle 9: shortlane_efd")?;
    Sender::new("v0")?.send(&mut Frames::new(100, Varying::Ports(5)), 30)?;
    wait_until("packets leave", || Ok(sent(&find("v0")?.status()) >= 30))?;
    command::run("tc qdisc del dev v0 root")?;
    census.wait_for_return()?;
    after_a_kill()?;
    one_at_a_time(&name)?;
    census.wait_for_return()?;
    without_files()?;
    census.wait_for_return()
}

fn expect(kinds: &[Kind]) -> Result<()> {
    let found = registered()?;
    ensure!(found == kinds, "registered are {found:?}, not {kinds:?}");
    Ok(())
}

fn refused<T>(result: Result<T, KernelError>, why: &str) -> Result<()> {
    match result {
        Err(error) if error.to_string().contains(why) => {
            println!("register: {error}");
            Ok(())
        }
        Err(error) => bail!("'{why}' is expected, not {error}"),
        Ok(_) => bail!("it was accepted"),
    }
}

/// A process that is killed may leave the directory alone, which goes with whoever comes next.
fn after_a_kill() -> Result<()> {
    fs::create_dir(DIRECTORY)?;
    refused(unregister("shortlane_efd"), "shortlane_efd")?;
    ensure!(!Path::new(DIRECTORY).exists(), "{DIRECTORY} is still there");
    Ok(())
}

/// While somebody is at work with the kinds, others wait.
fn one_at_a_time(name: &str) -> Result<()> {
    register(&"efd".parse()?, 1)?;
    let at_work = Flock::lock(File::open(DIRECTORY)?, FlockArg::LockExclusive);
    let at_work = at_work.map_err(|(_, error)| error)?;
    thread::scope(|scope| {
        let waits = scope.spawn(|| unregister(name));
        thread::sleep(Duration::from_millis(500));
        ensure!(!waits.is_finished() && registered()?.len() == 1, "it did not wait");
        drop(at_work);
        let done = waits.join().map_err(|_| anyhow!("it panicked"))?;
        Ok(done?)
    })
}

/// Nothing can be kept where there is no BPF file system.
fn without_files() -> Result<()> {
    command::run("umount /sys/fs/bpf")?;
    let said = refused(register(&"efd".parse()?, 1), "is not a BPF file system");
    command::run("mount -t bpf bpf /sys/fs/bpf")?;
    said
}
