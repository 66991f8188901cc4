//! What the core has no counterpart of: with a known key, flows that all meet in one chain of the
//! kernel's flow table.

use anyhow::{Context, Result, ensure};
use engine::kernel::testing::TestHooks;
use engine::kernel::{Instance, compose, load};
use frame::{Fingerprinter, LinkType};
use sched::Needs;

use super::device::Device;
use super::frames::{Door, Frame};
use super::plan::unshaped;

const KIND: &str = "slcrowd";
const KEY: u64 = 7;
/// Chains of the table, and entries of a full one.
const CHAINS: u64 = 64;
const FULL: u32 = 16;
const FLOWS: u32 = 40;

/// Two packets of each of more flows than a chain takes: those beyond are served as short and not
/// tracked, those in it are counted once, and none is left when all have gone.
pub(crate) fn run(device: &mut Device) -> Result<()> {
    let hooks = TestHooks { key_seed: KEY, seed: 1, only_slow_parser: false, recorded: true };
    let spec = format!("efd:flows={CHAINS},threshold=1packets").parse()?;
    let registered = load(KIND, &compose(&spec, &unshaped())?, 1, Some(hooks))?;
    device.attach(KIND)?;
    let crowd = crowd();
    let last = u64::from(FLOWS) * 2;
    for (n, frame) in crowd.iter().chain(&crowd).enumerate() {
        registered.let_out(0, n as u64, 0)?;
        ensure!(device.send(frame)?, "the qdisc did not see frame {n}");
    }
    let instance = Instance::find(device.ifindex)?.context("the qdisc is not found")?;
    let status = instance.status();
    ensure!(status.flows == u64::from(FULL), "{} flows in the chain", status.flows);
    let beyond = u64::from(FLOWS - FULL);
    ensure!(status.flows_untracked == beyond * 2, "{} untracked", status.flows_untracked);
    let long = status.lanes[1].backlog_packets;
    ensure!(long == u64::from(FULL), "{long} second packets were long");
    for n in last..last + 2 {
        registered.let_out(0, n, 60)?;
        ensure!(device.send(&crowd[0])?, "the qdisc did not see frame {n}");
    }
    let status = instance.status();
    let queued: u64 = status.lanes.iter().map(|lane| lane.backlog_packets).sum();
    ensure!((queued, status.flows) == (0, 0), "{queued} packets, {} flows stay", status.flows);
    device.detach()
}

/// UDP flows whose fingerprints lead to the same chain.
fn crowd() -> Vec<Frame> {
    let fingerprinter = Fingerprinter::from_seed(KEY);
    let with_port = |port: u32| {
        let mut bytes = vec![2, 0xaa, 0, 0, 0, 1, 2, 0xaa, 0, 0, 0, 2, 0x08, 0x00, 0x45, 0];
        bytes.resize(60, 0);
        bytes[16..18].copy_from_slice(&46u16.to_be_bytes());
        bytes[23] = 17;
        bytes[34..38].copy_from_slice(&port.to_be_bytes());
        Frame { door: Door::Device, bytes, super_packet: None }
    };
    let flow = |frame: &Frame| {
        fingerprinter.packet(LinkType::Ethernet, &frame.bytes, 60, Needs::NOTHING).packet.flow.get()
    };
    let crowded = (1u32..).map(with_port).filter(|frame| flow(frame) % CHAINS == 0);
    crowded.take(FLOWS as usize).collect()
}
