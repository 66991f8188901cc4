//! What runs inside the virtual machines of the kernel bench.
//!
//! `kernel-guest TEST [ARGUMENT...]` runs one test and exits with 0 if it passed; `kernel-guest
//! list` names them. `docs/kernel-bench.md` says how a machine is started with it.

#[cfg(feature = "kernel")]
mod attach;
#[cfg(feature = "kernel")]
mod cake_first_drop;
#[cfg(feature = "kernel")]
mod command;
#[cfg(feature = "kernel")]
mod faults;
#[cfg(feature = "kernel")]
mod follow;
#[cfg(feature = "kernel")]
mod instructions;
#[cfg(feature = "kernel")]
mod lab;
#[cfg(feature = "kernel")]
mod namespace;
#[cfg(feature = "kernel")]
mod proof;
#[cfg(feature = "kernel")]
mod smoke;
#[cfg(feature = "kernel")]
mod traffic;

use std::process::ExitCode;

/// A test: its name, what it shows, and the test with its arguments.
type Test = (&'static str, &'static str, fn(&[String]) -> anyhow::Result<()>);

#[cfg(feature = "kernel")]
const TESTS: &[Test] = &[
    ("smoke", "a qdisc is loaded, found, changed and gone again", smoke::run),
    ("instructions", "what a packet costs, beside the kernel's own qdiscs", instructions::run),
    ("proof", "departures and drops in the order of crate sched", proof::run),
    ("proof-marks", "marks in the classes that crate sched says", proof::marks::run),
    ("framing", "what a frame takes on the link, beside CAKE", proof::framing::run),
    ("live", "flow entries, order, conservation and rate under live TCP", proof::live::run),
    ("probes", "what a BPF qdisc cannot do", proof::probes::run),
    ("attach", "the command shortlane: what it does, refuses and leaves behind", attach::run),
    (
        "marks",
        "marks by the command: queues made and joined, faults around them",
        attach::marks::run,
    ),
    ("ecn", "marks by ECN in front of the qdisc, and drops without them", attach::ecn::run),
    ("nat", "clients behind NAT share the link, through the qdisc", attach::nat::run),
    ("queues", "a qdisc for each transmit queue, with one rate", attach::queues::run),
    ("pacing", "the rate that is held, by burst-time", attach::pacing::run),
    ("leak", "a thousand attachments leave nothing behind", faults::leak::run),
    ("change", "parameters change under load, no packet is lost", faults::change::run),
    ("misuse", "what must be refused is refused", faults::misuse::run),
    ("removal", "the interface or its namespace goes away or changes", faults::removal::run),
    ("unload", "the qdisc and its kind come and go under full traffic", faults::unload::run),
    ("memory", "queues beyond memory are refused", faults::memory::run),
    ("register", "kinds of qdisc for tc come and go", faults::register::run),
    ("killed", "kill -9 at any time leaves a qdisc at work, or nothing", faults::killed::run),
    ("flood", "what floods leave to flows that were there before", faults::flood::run),
    ("mq", "several qdiscs below mq, on several processors at once", faults::mq::run),
    ("cake-first-drop", "what fresh queues of CAKE drop", cake_first_drop::run),
    ("follow", "measures rates that follow a link, beside cake-autorate", follow::run),
    ("lab", "the command's lab through this kernel's qdiscs, and ours", lab::run),
    ("bench", "short fetches beside downloads, in less time than fq_codel takes", lab::bench),
    ("suite", "files after RFC 7928, as the simulator predicts them", lab::suite),
];
#[cfg(not(feature = "kernel"))]
const TESTS: &[Test] = &[];

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let name = words.next().unwrap_or_default();
    if name == "list" {
        TESTS.iter().for_each(|(name, shows, _)| println!("{name:<12} {shows}"));
        return ExitCode::SUCCESS;
    }
    let Some((name, _, test)) = TESTS.iter().find(|test| test.0 == name) else {
        let names: Vec<&str> = TESTS.iter().map(|test| test.0).collect();
        eprintln!("kernel-guest: no test '{name}'; there are {}", names.join(", "));
        return ExitCode::from(2);
    };
    match test(&words.collect::<Vec<_>>()) {
        Ok(()) => {
            println!("{name}: passed");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{name}: FAILED: {error:#}");
            ExitCode::FAILURE
        }
    }
}
