//! What is refused, with what was found and what to do, leaves everything as it was.

use anyhow::{Result, ensure};

use super::machine::Machine;
use super::{Path, refused, root_kind, succeed};
use crate::command::run as shell;

pub(super) fn run() -> Result<()> {
    let _path = Path::new()?;
    let before = Machine::now()?;
    refused("attach nosuch0 --rate 10mbit", 2, &["'nosuch0'", "there are lo, v0"])?;
    refused("attach lo --rate 10mbit", 2, &["loopback"])?;
    refused("attach v0 --rate 0mbit", 2, &["above 0"])?;
    refused("attach v0 --rate 99999999999gbit", 2, &["not accepted"])?;
    let in_kernel = "attach v0 --rate 10mbit --engine kernel --scheduler";
    refused(&format!("{in_kernel} las"), 2, &["las: the kernel engine has fifo, efd"])?;
    refused(&format!("{in_kernel} efd:limit=9999999packets"), 2, &["at most"])?;
    refused("change v0 --rate 10mbit", 1, &["v0 is not attached", "noqueue"])?;
    refused("detach v0", 1, &["v0 is not attached", "noqueue"])?;
    refused("detach nosuch0", 2, &["'nosuch0'"])?;
    refused("show v0", 1, &["v0 is not attached", "noqueue"])?;
    before.must_be_back()?;
    attached()?;
    before.must_be_back()?;
    by_the_other_engine()?;
    before.must_be_back()?;
    on_a_device_that_is_down()
}

fn attached() -> Result<()> {
    succeed("attach v0 --rate 10mbit")?;
    let handle = shell("tc qdisc show dev v0")?;
    refused(
        "attach v0 --rate 5mbit",
        1,
        &["v0 has shortlane 8001: already", "change", "--replace"],
    )?;
    ensure!(shell("tc qdisc show dev v0")? == handle, "it was replaced");
    succeed("attach v0 --rate 5mbit --scheduler sb-sh --replace")?;
    ensure!(shell("tc qdisc show dev v0")? != handle, "it was not replaced");
    succeed("detach v0").map(|_| ())
}

/// What the kernel engine has not, the userspace engine takes, in this kernel as well.
fn by_the_other_engine() -> Result<()> {
    let said = succeed("attach v0 --rate 10mbit --ingress 10mbit --scheduler las")?.words;
    ensure!(said.contains("the userspace engine, since las"), "{said}");
    ensure!(said.contains(", and marks take no discipline"), "{said}");
    shell("ping -c 3 -i 0.2 -W 5 10.9.0.2")?;
    refused("attach v0 --rate 5mbit", 1, &["userspace engine already", "--replace"])?;
    let shown = succeed("show v0")?.output;
    ensure!(shown.contains("v0: las") && shown.contains("v0 ingress: las"), "{shown}");
    succeed("detach v0").map(|_| ())
}

fn on_a_device_that_is_down() -> Result<()> {
    let before = Machine::now()?;
    shell("ip link set v0 down")?;
    let said = succeed("attach v0 --rate 10mbit")?.words;
    ensure!(said.contains("v0 is down"), "{said}");
    shell("ip link set v0 up")?;
    ensure!(root_kind("v0")? == "shortlane", "{}", root_kind("v0")?);
    shell("ping -c 2 -W 5 10.9.0.2")?;
    shell("ip link set v0 down")?;
    succeed("detach v0")?;
    // Only then the kernel puts its default there.
    shell("ip link set v0 up")?;
    before.must_be_back()
}
