//! What a BPF qdisc cannot do, tried out: a row each for the table in `docs/kernel-engine.md`.
//!
//! A kernel that can do what is taken for impossible fails the test, so that the table is looked
//! at again.

use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use engine::kernel::{Shaping, compose, load};
use libbpf_rs::{MapCore, MapFlags, ObjectBuilder, OpenObject, PrintLevel, set_print};

use super::device::{Device, run_command};
use super::frames::{Door, Frame};

/// The compiled probe of this number.
macro_rules! object {
    ($n:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/probe", $n, ".bpf.o"))
    };
}

/// What is tried, whether it is known to work, and the object that tries it.
const PROBES: [(&str, bool, &[u8]); 10] = [
    ("a qdisc that drops everything (the control)", true, object!(0)),
    ("ECN mark by a store to the packet", false, object!(1)),
    ("ECN mark by `bpf_skb_ecn_set_ce()`", false, object!(2)),
    ("ECN mark by `bpf_skb_store_bytes()`", false, object!(3)),
    ("ECN mark by `bpf_dynptr_write()`", false, object!(4)),
    ("conntrack entry by `bpf_skb_ct_lookup()`", false, object!(5)),
    ("conntrack entry that the packet points to, read", false, object!(6)),
    ("splitting a super-packet by `__skb_gso_segment()`", false, object!(7)),
    ("a `.change` operation, for `tc qdisc change`", false, object!(8)),
    ("a `.dump` operation, for options in `tc qdisc show`", false, object!(9)),
];

const PARENTS: [(&str, &str, Option<&str>); 3] = [
    ("a place under htb", "htb default 1", Some("htb rate 1mbit")),
    ("a place under tbf", "tbf rate 1mbit burst 10k latency 50ms", None),
    ("a place under prio", "prio", None),
];

/// An error says why not.
type Outcome = Result<(), String>;

pub(crate) fn run(_: &[String]) -> Result<()> {
    // Where it is a module, its types are known only once it is there.
    let _ = run_command("modprobe nf_conntrack");
    let mut device = Device::new(0)?;
    let mut surprises = Vec::new();
    let mut row = |what: &str, expected: bool, outcome: Outcome| {
        let (word, reason) = match &outcome {
            Ok(()) => ("yes", ""),
            Err(reason) => ("no", reason.as_str()),
        };
        println!("| {what} | {word} | {reason} |");
        if outcome.is_ok() != expected {
            surprises.push(what.to_owned());
        }
    };
    for (what, expected, object) in PROBES {
        row(what, expected, try_object(object, &mut device).context(what)?);
    }
    for (what, parent, class) in PARENTS {
        row(what, false, try_parent(&mut device, parent, class).context(what)?);
    }
    ensure!(surprises.is_empty(), "not as in the table: {}", surprises.join("; "));
    Ok(())
}

static SAID: Mutex<String> = Mutex::new(String::new());

/// Loads and registers it, and sends a packet through it.
fn try_object(object: &[u8], device: &mut Device) -> Result<Outcome> {
    const KIND: &str = "slprobe";
    SAID.lock().unwrap_or_else(PoisonError::into_inner).clear();
    set_print(Some((PrintLevel::Info, |_, text| {
        SAID.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
    })));
    // A copy, since the included bytes need not be aligned.
    let loaded = ObjectBuilder::default().open_memory(object).and_then(OpenObject::load);
    let mut loaded = match loaded {
        Ok(loaded) => loaded,
        Err(error) => return Ok(Err(why(&error))),
    };
    let operations = loaded.maps_mut().find(|map| map.name() == "probe_ops");
    let link = operations.context("no operations in it")?.attach_struct_ops();
    set_print(None);
    let _link = match link {
        Ok(link) => link,
        Err(error) => return Ok(Err(why(&error))),
    };
    device.attach(KIND)?;
    device.send(&packet())?;
    device.detach()?;
    let data = loaded.maps().find(|map| map.name().to_string_lossy().ends_with(".data"));
    let data = data.context("no data in it")?;
    let bytes = data.lookup(&0u32.to_ne_bytes(), MapFlags::ANY)?.context("no data")?;
    let result = i32::from_ne_bytes(bytes[..4].try_into()?);
    Ok(if result < 0 { Err(format!("loads, but the call returns {result}")) } else { Ok(()) })
}

/// What the verifier says last, before it counts instructions; what libbpf says without one.
fn why(error: &libbpf_rs::Error) -> String {
    let said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    let lines: Vec<&str> = said.lines().collect();
    let counted = lines.iter().position(|line| line.starts_with("processed "));
    let verdict = counted.and_then(|at| lines[..at].last().copied());
    let refused = lines.iter().find(|line| line.contains("not allowed"));
    let telling = ["struct_ops", "extern (", "failed to relocate"];
    let libbpf = lines.iter().rev().find(|line| telling.iter().any(|part| line.contains(part)));
    let found = refused.copied().or(verdict).or(libbpf.copied());
    found.map_or_else(|| format!("{error:#}"), |line| line.trim().to_owned())
}

/// A UDP packet.
fn packet() -> Frame {
    let mut bytes = vec![2, 0xaa, 0, 0, 0, 1, 2, 0xaa, 0, 0, 0, 2, 0x08, 0x00, 0x45, 0x02];
    bytes.resize(60, 0);
    bytes[16..18].copy_from_slice(&46u16.to_be_bytes());
    bytes[23] = 17;
    Frame { door: Door::Device, bytes, super_packet: None }
}

fn try_parent(device: &mut Device, parent: &str, class: Option<&str>) -> Result<Outcome> {
    const KIND: &str = "slchild";
    let name = device.name().to_owned();
    let shaping = Shaping::default();
    let _registered = load(KIND, &compose(&"efd".parse()?, &shaping)?, 2, None)?;
    run_command(&format!("tc qdisc add dev {name} root handle 1: {parent}"))?;
    if let Some(class) = class {
        run_command(&format!("tc class add dev {name} parent 1: classid 1:1 {class}"))?;
    }
    let outcome = run_command(&format!("tc qdisc add dev {name} parent 1:1 {KIND}"));
    device.detach()?;
    Ok(outcome.map(|_| ()).map_err(|error| {
        let text = format!("{error:#}");
        text.rsplit("Error: ").next().unwrap_or_default().trim().to_owned()
    }))
}
