//! `shortlane attach`, `change`, `detach` and `show`: a discipline on a device of this machine.

pub(crate) mod apply;
pub(crate) mod daemon;
mod engines;
#[cfg(feature = "kernel")]
mod follower;
mod goal;
pub(crate) mod hosts;
#[cfg(feature = "kernel")]
mod in_kernel;
#[cfg(feature = "kernel")]
mod in_marks;
#[cfg(feature = "kernel")]
mod in_place;
mod in_userspace;
pub(crate) mod link;
#[cfg(not(feature = "kernel"))]
mod missing;
mod order;
#[cfg_attr(not(feature = "kernel"), allow(dead_code, reason = "it takes an engine to read it"))]
mod probe;
pub(crate) mod text;

use clap::{Args, ValueEnum};
use engine::Overhead;
use engine::control::Changes;
use engine::status::{EngineKind, Status};
use sched::{Nanos, Rate, Spec};
use serde_json::json;

use self::engines::{by_lookup, first_that_can};
use self::goal::Goal;
use self::link::LinkOptions;
#[cfg(not(feature = "kernel"))]
pub(crate) use self::missing::{MISSING, missing};
use self::order::Order;
use self::probe::Named;
use crate::{Call, Failure, config, print, quantity, say};

/// The options of `shortlane attach`.
#[derive(Args, Clone)]
pub(crate) struct AttachOptions {
    /// Attach to this device, towards the link, such as eth0; without one, to every device of the
    /// configuration file
    #[arg(required_unless_present = "config")]
    device: Option<String>,
    /// Send at this rate, a little below what the link carries; unlimited: at the device's pace;
    /// auto:FLOOR..BASE..CEILING: follow the link, from BASE on
    #[arg(long, allow_hyphen_values = true, value_parser = goal::read)]
    rate: Option<Goal>,
    /// Receive at this rate, a little below what the link carries, or follow the link, as for --rate
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = goal::read)]
    ingress: Option<Goal>,
    /// Ping this address to follow the link: a host beyond the link that answers [default: the
    /// resolver of this machine, if the device leads to it through a router, or that router]
    #[arg(long, value_name = "ADDRESS")]
    probe: Option<Named>,
    /// Stay at BASE, and tell what following the link would do
    #[arg(long)]
    dry_run: bool,
    /// Run this discipline, such as efd:threshold=30packets [default: fq-lanes]
    #[arg(long, value_name = "SPEC")]
    scheduler: Option<String>,
    /// Choose where the discipline runs
    #[arg(long, value_enum, default_value_t = Choice::Auto)]
    engine: Choice,
    #[command(flatten)]
    link: LinkOptions,
    /// Put these queues of the kernel behind the marks [default: cake, or prio without cake]
    #[arg(long, value_enum)]
    queues: Option<Queues>,
    /// Mark packets for queues that exist already: cake, or the classes for short and for long
    /// flows, such as 1:10,1:20
    #[arg(long, value_name = "CAKE|SHORT,LONG", value_parser = join, conflicts_with = "queues")]
    join: Option<Join>,
    /// Replace a configured root qdisc, or an attached discipline
    #[arg(long)]
    replace: bool,
    /// Leave GRO and gso_max_segs as they are, at the cost of delay (kernel engine)
    #[arg(long)]
    keep_offloads: bool,
    /// Put a qdisc into each transmit queue of the device, all of them at one rate: for rates that one
    /// processor cannot send at (kernel engine)
    #[arg(long)]
    per_queue: bool,
    /// Stay until a signal, then restore the device (for systemd)
    #[arg(long)]
    foreground: bool,
    /// Read options that are not given here from this file, which has a table for each device, with
    /// these options as keys
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = config::DEFAULT)]
    config: Option<std::path::PathBuf>,
}

/// The options of `shortlane change`.
#[derive(Args)]
pub(crate) struct ChangeOptions {
    /// Change the discipline of this device
    device: String,
    /// Send at this rate
    #[arg(long, allow_hyphen_values = true, value_parser = link::rate)]
    rate: Option<Rate>,
    /// Receive at this rate
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = link::rate)]
    ingress: Option<Rate>,
    /// Set these parameters of the discipline, such as efd:threshold=30packets; the others stay
    #[arg(long, value_name = "SPEC")]
    scheduler: Option<String>,
    /// Count this many bytes more for each packet
    #[arg(long, allow_hyphen_values = true)]
    overhead: Option<Overhead>,
    /// Let a late shaper catch up this far
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = quantity::positive_time)]
    burst_time: Option<Nanos>,
}

/// The options of `shortlane detach`.
#[derive(Args)]
pub(crate) struct DetachOptions {
    /// Detach from this device
    device: String,
}

/// The options of `shortlane show`.
#[derive(Args)]
pub(crate) struct ShowOptions {
    /// Show only this device
    device: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Choice {
    /// Take the first of kernel, marks and userspace that supports these options
    Auto,
    /// Run a qdisc inside the kernel
    Kernel,
    /// Mark packets of long flows, in front of the kernel's own queues
    Marks,
    /// Hold packets in a process
    Userspace,
}

impl Choice {
    /// `None`: the first that can do what is asked.
    const fn kind(self) -> Option<EngineKind> {
        match self {
            Self::Auto => None,
            Self::Kernel => Some(EngineKind::Kernel),
            Self::Marks => Some(EngineKind::Marks),
            Self::Userspace => Some(EngineKind::Userspace),
        }
    }
}

/// The kernel's own queues behind marks.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Queues {
    /// Make a CAKE with diffserv3; long flows go to Bulk
    Cake,
    /// Make a tbf with a prio of two fq_codel
    Prio,
    /// Make an htb with two fq_codel
    Htb,
}

/// Queues that are there: of CAKE, or two classes.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "kernel"), allow(dead_code, reason = "it takes an engine to read it"))]
struct Join(Option<(u32, u32)>);

fn join(text: &str) -> Result<Join, String> {
    if text == "cake" {
        return Ok(Join(None));
    }
    let class = |text: &str| {
        let (major, minor) = text.split_once(':')?;
        let part =
            |text| u32::from_str_radix(text, 16).ok().filter(|part| (1..=0xffff).contains(part));
        Some(part(major)? << 16 | part(minor)?)
    };
    let classes = text.split_once(',').and_then(|(short, long)| class(short).zip(class(long)));
    classes.filter(|(short, long)| short != long).map(|classes| Join(Some(classes))).ok_or_else(
        || {
            "cake, or two classes as tc writes them: that for short flows, and that for long ones, \
         such as 1:10,1:20"
                .into()
        },
    )
}

/// What runs, in the kernel and in userspace, if nothing else is asked for.
const DEFAULT: &str = "fq-lanes";

pub(crate) fn attach(options: AttachOptions, call: &Call) -> Result<(), Failure> {
    let Some(file) = &options.config else { return attach_one(options, call) };
    let all = config::attachments(
        file,
        options.device.as_deref(),
        call.words.get(2..).unwrap_or_default(),
    )?;
    if options.foreground && all.len() > 1 {
        let text = "--foreground is for one device; name it";
        return Err(Failure::Usage(text.into()));
    }
    // One that fails does not keep the others from working.
    crate::all(all.into_iter().map(|options| attach_one(options, call)))
}

fn attach_one(options: AttachOptions, call: &Call) -> Result<(), Failure> {
    let (order, engine) = Order::of(options)?;
    attach_as_told(&order, engine, call)
}

fn attach_as_told(order: &Order, engine: Option<EngineKind>, call: &Call) -> Result<(), Failure> {
    match engine {
        Some(kind) => engines::engine(kind).attach(order, None, call),
        None => {
            let (engine, since) = first_that_can(order)?;
            engine.attach(order, since.as_deref(), call)
        }
    }
}

/// A process in the background, which [`attach`] has started.
pub(crate) fn serve_engine(call: &Call) -> Result<(), Failure> {
    in_userspace::process::serve(call)
}

pub(crate) fn change(options: &ChangeOptions) -> Result<(), Failure> {
    let ChangeOptions { device, rate, ingress, scheduler, overhead, burst_time } = options;
    let changes = Changes {
        rate: *rate,
        ingress_rate: *ingress,
        scheduler: scheduler.clone(),
        overhead: *overhead,
        burst_time: *burst_time,
    };
    if changes == Changes::default() {
        let text = "nothing to change; it takes --rate, --ingress, --scheduler, --overhead or \
                    --burst-time";
        return Err(Failure::Usage(text.into()));
    }
    // Refused before an engine is asked.
    scheduler.as_deref().map(str::parse::<Spec>).transpose()?;
    change_as_told(device, &changes)
}

fn change_as_told(device: &str, changes: &Changes) -> Result<(), Failure> {
    for (_, engine) in by_lookup() {
        if engine.change(device, changes)? {
            break;
        }
    }
    Ok(())
}

pub(crate) fn detach(options: &DetachOptions) -> Result<(), Failure> {
    detach_from(&options.device)
}

fn detach_from(device: &str) -> Result<(), Failure> {
    for (_, engine) in by_lookup() {
        if engine.detach(device)? {
            break;
        }
    }
    Ok(())
}

pub(crate) fn show(options: &ShowOptions) -> Result<(), Failure> {
    let shown = attached(options.device.as_deref())?;
    if options.json {
        return print(&format!("{:#}\n", json!({ "attached": shown })));
    }
    if shown.is_empty() {
        say("nothing is attached in this network namespace");
    }
    let texts: Vec<String> = shown.iter().map(text::describe).collect();
    print(&texts.join("\n"))
}

/// What is attached to a device, or to any in this network namespace, by whatever engine.
pub(crate) fn attached(device: Option<&str>) -> Result<Vec<Status>, Failure> {
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    for (_, engine) in by_lookup() {
        match engine.show(device) {
            Ok(more) => {
                // A process that has a rate follow the link tells that of what it follows for.
                let is_told = |status: &Status| {
                    let same = |told: &Status| {
                        (told.ifindex, told.engine) == (status.ifindex, status.engine)
                    };
                    found.iter().any(same)
                };
                let more: Vec<_> = more.into_iter().filter(|more| !is_told(more)).collect();
                found.extend(more);
            }
            Err(failure) => failures.push(failure),
        }
        if device.is_some() && !found.is_empty() {
            // A device has one.
            break;
        }
    }
    // A process that does not answer hides no queue of the kernel's.
    match failures.into_iter().next() {
        Some(failure) if found.is_empty() => return Err(failure),
        Some(failure) => say(&format!("shortlane: {}", failure.text())),
        None => {}
    }
    found.sort_by_key(|status| (status.ifindex, status.direction));
    Ok(found)
}

/// The index of a device of this network namespace.
pub(crate) fn index_of(device: &str) -> Result<u32, Failure> {
    netdev::link::index_of(device).map_err(|_| {
        let there = netdev::link::all().unwrap_or_default();
        let there: Vec<String> = there.into_iter().map(|(_, name)| name).collect();
        let there = there.join(", ");
        Failure::Usage(format!(
            "there is no device '{device}' in this network namespace; there are {there}"
        ))
    })
}
