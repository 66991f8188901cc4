//! GRO and `gso_max_segs`: changed below a rate, kept above it or when asked to, restored.

use anyhow::{Context, Result, ensure};

use super::machine::Machine;
use super::{Path, succeed};
use crate::command::run as shell;

pub(super) fn run() -> Result<()> {
    let _path = Path::new()?;
    shell("ip link add w0 type veth peer name w1")?;
    let result = on_a_router();
    shell("sysctl -w net.ipv4.ip_forward=0")?;
    shell("ip link del w0")?;
    result
}

fn on_a_router() -> Result<()> {
    shell("ethtool -K w0 gro on")?;
    shell("ethtool -K w1 gro on")?;
    let host = Machine::now()?;
    succeed("attach v0 --rate 10mbit")?;
    expect("a host's GRO stays", 1, [true, true])?;
    succeed("detach v0")?;
    host.must_be_back()?;

    shell("sysctl -w net.ipv4.ip_forward=1")?;
    let router = Machine::now()?;
    for (attach, segments, gro) in [
        ("attach v0 --rate 10mbit", 1, false),
        ("attach v0 --rate 100mbit", 8, false),
        ("attach v0 --rate 524mbit", 43, false),
        ("attach v0 --rate 525mbit", 43, true),
        ("attach v0 --rate unlimited", 65_535, true),
        ("attach v0 --rate 10mbit --keep-offloads", 65_535, true),
    ] {
        succeed(attach)?;
        expect(attach, segments, [gro, gro])?;
        succeed("detach v0")?;
        router.must_be_back().context(attach)?;
    }
    changes_follow(&router)?;
    two_devices(&router)
}

/// As the rate changes so does what is switched; what was there first is what comes back.
fn changes_follow(router: &Machine) -> Result<()> {
    succeed("attach v0 --rate 1gbit")?;
    expect("1gbit", 82, [true, true])?;
    succeed("change v0 --rate 10mbit")?;
    expect("10mbit", 1, [false, false])?;
    succeed("attach v0 --rate 20mbit --replace")?;
    expect("20mbit", 1, [false, false])?;
    succeed("change v0 --rate unlimited")?;
    expect("unlimited", 65_535, [true, true])?;
    succeed("change v0 --rate 5mbit")?;
    expect("5mbit", 1, [false, false])?;
    succeed("detach v0")?;
    router.must_be_back()
}

/// What two devices want off comes back with the last one.
fn two_devices(router: &Machine) -> Result<()> {
    succeed("attach v0 --rate 10mbit")?;
    succeed("attach w0 --rate 10mbit")?;
    expect("both", 1, [false, false])?;
    succeed("detach v0")?;
    // w0 wants what it receives cut by others only.
    expect("only w0", 65_535, [true, false])?;
    succeed("attach v0 --rate 10mbit")?;
    succeed("detach w0")?;
    expect("only v0", 1, [false, false])?;
    succeed("detach v0")?;
    router.must_be_back()
}

/// Segments of super-packets of `v0`, and GRO of `w0` and `w1`.
fn expect(when: &str, segments: u32, gro: [bool; 2]) -> Result<()> {
    let link = shell("ip -d link show v0")?;
    ensure!(link.contains(&format!("gso_max_segs {segments} ")), "{when}: {link}");
    for (device, on) in [("w0", gro[0]), ("w1", gro[1])] {
        let features = shell(&format!("ethtool -k {device}"))?;
        let is_on = features.contains("generic-receive-offload: on");
        ensure!(is_on == on, "{when}: GRO of {device} is {is_on}");
    }
    Ok(())
}
