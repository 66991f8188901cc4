//! TCX programs of others (Linux 6.6), which the kernel runs before all filters, marks among them.

use std::ffi::c_char;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr;

use anyhow::{Context, Result, ensure};
use libbpf_rs::libbpf_sys;
use netdev::clsact::Point;
use netdev::tcx;
use nix::net::if_::if_nametoindex;

use super::super::machine::Machine;
use super::super::{FAR, Path, shortlane, succeed};
use super::{MANY, Packets, drained, fault, flow, passes, told_apart};

const ATTACH: &str = "attach v0 --rate 10mbit --engine marks --queues cake";
/// `TCX_NEXT`: the next program decides.
const NEXT: i32 = -1;
/// `TCX_PASS`: the packet passes, and nobody else is asked.
const PASS: i32 = 0;

pub(super) fn run(path: &Path) -> Result<()> {
    let Some(before) = program(NEXT)? else {
        println!("this kernel has no TCX");
        return Ok(());
    };
    let theirs = Machine::now()?;
    // One that was there and one that comes later are both asked, and marks behind them.
    succeed(ATTACH)?;
    let after = program(NEXT)?;
    told_apart("v0", |packets| flow(FAR, packets), || Packets::of_tins("v0"))?;
    passes(path)?;
    ensure!(fault("v0")?.is_empty(), "{}", fault("v0")?);
    // Behind one that lets packets pass by itself nothing is marked, and `doctor` names it.
    let ending = program(PASS)?;
    let marked = Packets::of_tins("v0")?.long;
    flow(FAR, MANY)?;
    passes(path)?;
    drained("v0")?;
    let now = Packets::of_tins("v0")?.long;
    ensure!(now == marked, "{} were marked behind a program that ends the way", now - marked);
    let said = shortlane("doctor v0")?.output;
    ensure!(said.contains("theirs"), "doctor does not name their program: {said}");
    // It goes, and they are marked again; what is left of theirs stays when marks go.
    drop(ending);
    told_apart("v0", |packets| flow(FAR, packets), || Packets::of_tins("v0"))?;
    succeed("detach v0")?;
    drop(after);
    theirs.must_be_back().context("their program stays")?;
    drop(before);
    Ok(())
}

/// A program that says this of every packet that `v0` sends, in front of all that are there, until
/// dropped; `None` if this kernel has no TCX.
fn program(verdict: i32) -> Result<Option<OwnedFd>> {
    let device = if_nametoindex("v0")?;
    let program = load(verdict).context("loading a program of two instructions")?;
    match tcx::link(device, &program, Point::Egress) {
        Ok(link) => Ok(Some(link)),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// `return verdict;`
fn load(verdict: i32) -> io::Result<OwnedFd> {
    const SET: u8 = 0xb7; // BPF_ALU64 | BPF_MOV | BPF_K, to register 0
    const EXIT: u8 = 0x95; // BPF_JMP | BPF_EXIT
    let instruction =
        |code, imm| libbpf_sys::bpf_insn { code, imm, ..libbpf_sys::bpf_insn::default() };
    let instructions = [instruction(SET, verdict), instruction(EXIT, 0)];
    // SAFETY: names and instructions outlive the call, and there are as many as it is told.
    let fd = unsafe {
        libbpf_sys::bpf_prog_load(
            libbpf_sys::BPF_PROG_TYPE_SCHED_CLS,
            c"theirs".as_ptr().cast::<c_char>(),
            c"GPL".as_ptr().cast::<c_char>(),
            instructions.as_ptr(),
            instructions.len() as libbpf_sys::size_t,
            ptr::null_mut(),
        )
    };
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(-fd));
    }
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
