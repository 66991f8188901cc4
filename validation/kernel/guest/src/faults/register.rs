//! Kinds of qdisc for `tc`: registered until they are unregistered, whoever registered them.

use anyhow::{Result, bail, ensure};
use engine::kernel::{KernelError, Kind, register, registered, unregister};
use sched::Spec;

use super::bench::{Link, find, must_fail, sent, wait_until};
use super::census::Census;
use crate::command;
use crate::traffic::{Frames, Sender, Varying};

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

/// Nothing can be kept where there is no BPF file system.
fn without_files() -> Result<()> {
    command::run("umount /sys/fs/bpf")?;
    let said = refused(register(&"efd".parse()?, 1), "is not a BPF file system");
    command::run("mount -t bpf bpf /sys/fs/bpf")?;
    said
}
