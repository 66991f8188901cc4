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
    refused("attach v0 --rate 10mbit --scheduler las", 2, &["las: the kernel engine has efd"])?;
    refused("attach v0 --rate 10mbit --scheduler efd:limit=9999999packets", 2, &["at most"])?;
    refused("attach v0 --rate 10mbit --engine userspace", 2, &["not built yet"])?;
    refused("change v0 --rate 10mbit", 1, &["v0 is not attached", "noqueue"])?;
    refused("detach v0", 1, &["v0 is not attached", "noqueue"])?;
    refused("detach nosuch0", 2, &["'nosuch0'"])?;
    refused("show v0", 1, &["v0 is not attached", "noqueue"])?;
    before.must_be_back()?;
    attached()?;
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

fn on_a_device_that_is_down() -> Result<()> {
    shell("ip link set v0 down")?;
    let before = Machine::now()?;
    let said = succeed("attach v0 --rate 10mbit")?.words;
    ensure!(said.contains("v0 is down"), "{said}");
    shell("ip link set v0 up")?;
    ensure!(root_kind("v0")? == "shortlane", "{}", root_kind("v0")?);
    shell("ping -c 2 -W 5 10.9.0.2")?;
    shell("ip link set v0 down")?;
    succeed("detach v0")?;
    before.must_be_back()
}
