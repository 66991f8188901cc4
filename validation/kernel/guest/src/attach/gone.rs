//! What others do to an attached device: rename it, remove the qdisc or the device, move it.

use anyhow::{Result, ensure};

use super::machine::Machine;
use super::{Path, shortlane, succeed};
use crate::command::run as shell;

pub(super) fn run() -> Result<()> {
    shell("ip link add w0 type veth peer name w1")?;
    shell("ethtool -K w0 gro on")?;
    shell("sysctl -w net.ipv4.ip_forward=1")?;
    let empty = Machine::now()?;
    renamed()?;
    qdisc_removed()?;
    device_removed(&empty)?;
    moved(&empty)?;
    namespace_gone(&empty)?;
    shell("sysctl -w net.ipv4.ip_forward=0")?;
    shell("ip link del w0")?;
    Ok(())
}

fn gro_of_w0() -> Result<bool> {
    Ok(shell("ethtool -k w0")?.contains("generic-receive-offload: on"))
}

fn renamed() -> Result<()> {
    let _path = Path::new()?;
    let before = Machine::now()?;
    succeed("attach v0 --rate 10mbit")?;
    shell("ip link set v0 name v0new")?;
    shell("ip link set w0 name w0new")?;
    let shown = succeed("show v0new")?.output;
    ensure!(shown.starts_with("v0new: fq-lanes"), "{shown}");
    succeed("change v0new --rate 20mbit")?;
    succeed("detach v0new")?;
    shell("ip link set v0new name v0")?;
    shell("ip link set w0new name w0")?;
    before.must_be_back()
}

fn qdisc_removed() -> Result<()> {
    let _path = Path::new()?;
    shell("tc qdisc add dev v0 root handle 5: tbf rate 50mbit burst 10kb latency 50ms")?;
    let before = Machine::now()?;
    for next in ["detach v0", "attach v0 --rate 20mbit --replace"] {
        succeed("attach v0 --rate 10mbit --replace")?;
        shell("tc qdisc del dev v0 root")?;
        ensure!(!gro_of_w0()?, "GRO is on while attached");
        let said = succeed(next)?.words;
        ensure!(said.contains("v0: put back"), "{next}: {said}");
        if next.starts_with("attach") {
            succeed("detach v0")?;
        }
        before.must_be_back()?;
    }
    // What somebody else put there stays, and the rest is put back.
    succeed("attach v0 --rate 10mbit --replace")?;
    shell("tc qdisc replace dev v0 root handle 9: pfifo limit 10")?;
    succeed("detach v0")?;
    ensure!(shell("tc qdisc show dev v0")?.contains("pfifo 9:"), "their qdisc is gone");
    ensure!(gro_of_w0()?, "GRO stays off");
    Ok(())
}

fn device_removed(empty: &Machine) -> Result<()> {
    let path = Path::new()?;
    succeed("attach v0 --rate 10mbit")?;
    drop(path);
    let said = succeed("detach v0")?.words;
    ensure!(said.contains("v0: put back"), "{said}");
    empty.must_be_back()
}

/// A device that goes to another namespace leaves its qdisc behind; the journal is here.
fn moved(empty: &Machine) -> Result<()> {
    let path = Path::new()?;
    succeed("attach v0 --rate 10mbit")?;
    shell("ip netns add elsewhere")?;
    shell("ip link set v0 netns elsewhere")?;
    let there = shell("ip netns exec elsewhere shortlane show")?;
    ensure!(there.is_empty(), "the qdisc has come along: {there}");
    succeed("detach v0")?;
    shell("ip netns del elsewhere")?;
    drop(path);
    empty.must_be_back()
}

/// With its namespace a device is gone, and the journal goes as soon as somebody comes across it.
fn namespace_gone(empty: &Machine) -> Result<()> {
    shell("ip netns add inner")?;
    shell("ip -n inner link add t0 type dummy")?;
    shell("ip -n inner link set t0 up")?;
    shell("ip netns exec inner shortlane attach t0 --rate 10mbit")?;
    shell("ip netns del inner")?;
    let said = shortlane("detach w0")?;
    ensure!(said.status == 1 && said.words.contains("not attached"), "{}", said.words);
    empty.must_be_back()
}
