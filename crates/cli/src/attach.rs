//! `shortlane attach`, `change`, `detach` and `show`: a discipline on a device of this machine.

pub(crate) mod apply;
pub(crate) mod daemon;
mod goal;
pub(crate) mod hosts;
#[cfg(feature = "kernel")]
mod in_kernel;
#[cfg(feature = "kernel")]
mod in_marks;
#[cfg(feature = "kernel")]
mod in_userspace;
pub(crate) mod text;

use std::net::IpAddr;

use clap::{Args, ValueEnum};
use engine::control::{self, Changes, ControlError};
#[cfg(feature = "kernel")]
use engine::status::EngineKind;
use engine::{Following, Overhead, burst_time};
use netdev::link;
use sched::{Nanos, Rate, Spec};
use serde_json::json;

use self::goal::Goal;
#[cfg(feature = "kernel")]
use self::{in_kernel as kernel_side, in_marks as marks_side, in_userspace as userspace_side};
use crate::{Call, Failure, config, print, quantity, say};

/// Puts a discipline on a device.
///
/// It paces for the link's rate, so that the queue is here and not in a modem. It stays until
/// `shortlane detach`, which leaves the device as it was.
#[derive(Args, Clone)]
pub(crate) struct AttachOptions {
    /// The device towards the link, such as eth0; without one, every device of the configuration
    #[arg(required_unless_present = "config")]
    device: Option<String>,
    /// Send at this rate, a little below what the link really carries; unlimited: the device sets
    /// the pace; auto:FLOOR..BASE..CEILING: follow the link, from the base on, with --probe
    #[arg(long, allow_hyphen_values = true, value_parser = goal::read)]
    rate: Option<Goal>,
    /// Receive at this rate, a little below what the link really carries, or follow it, too
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = goal::read)]
    ingress: Option<Goal>,
    /// Ask this host for its delay, for rates that follow the link: an address beyond the link that
    /// answers pings, such as the provider's resolver
    #[arg(long, value_name = "ADDRESS")]
    probe: Option<IpAddr>,
    /// Run this discipline, such as efd:threshold=30packets [default: fq-lanes]
    #[arg(long, value_name = "SPEC")]
    scheduler: Option<String>,
    /// Choose where the discipline runs
    #[arg(long, value_enum, default_value_t = Engine::Auto)]
    engine: Engine,
    /// Count these bytes for each packet beside its own: the kind of link (docsis, pppoe-ptm,
    /// ethernet and others of tc-cake) or a number, and ether-vlan, atm, ptm, mpu=N beside it:
    /// 44,atm,mpu=64
    #[arg(long, default_value = "0", allow_hyphen_values = true)]
    overhead: Overhead,
    /// Let a late shaper catch up this far: more holds the rate, less keeps bursts short
    #[arg(long, value_name = "TIME", default_value_t = burst_time::LIVE, allow_hyphen_values = true, value_parser = quantity::positive_time)]
    burst_time: Nanos,
    /// Put these queues of the kernel behind marks [default: cake, or prio without cake]
    #[arg(long, value_enum)]
    queues: Option<Queues>,
    /// Only mark packets, for queues that are there: cake, or the classes for short flows and for
    /// long ones, such as 1:10,1:20
    #[arg(long, value_name = "CAKE|SHORT,LONG", value_parser = join, conflicts_with = "queues")]
    join: Option<Join>,
    /// Replace a configured root qdisc, or what is attached
    #[arg(long)]
    replace: bool,
    /// Leave GRO and gso_max_segs as they are, at the cost of delay (kernel engine)
    #[arg(long)]
    keep_offloads: bool,
    /// Stay until a signal, then restore the device: for systemd
    #[arg(long)]
    foreground: bool,
    /// Read options that are not given here from this file: a table for each device, with these
    /// options as keys
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = config::DEFAULT)]
    config: Option<std::path::PathBuf>,
}

/// Changes an attached discipline while packets are queued, without losing one.
///
/// What is not given stays as it is.
#[derive(Args)]
pub(crate) struct ChangeOptions {
    /// The device
    device: String,
    /// Send at this rate
    #[arg(long, allow_hyphen_values = true, value_parser = link_rate)]
    rate: Option<Rate>,
    /// Receive at this rate
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = link_rate)]
    ingress: Option<Rate>,
    /// Set these parameters of the discipline, such as efd:threshold=30packets; the others stay
    #[arg(long, value_name = "SPEC")]
    scheduler: Option<String>,
    /// Count these bytes for each packet beside its own
    #[arg(long, allow_hyphen_values = true)]
    overhead: Option<Overhead>,
    /// Let a late shaper catch up this far
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = quantity::positive_time)]
    burst_time: Option<Nanos>,
}

/// Takes the discipline off a device, and leaves the device as it was before.
///
/// Also after a command that was killed, and after somebody else removed the qdisc.
#[derive(Args)]
pub(crate) struct DetachOptions {
    /// The device
    device: String,
}

/// What is attached: the discipline, its counters, its lanes, how long packets waited.
#[derive(Args)]
pub(crate) struct ShowOptions {
    /// Show only this device
    device: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// The first of kernel, marks and userspace that can do what is asked
    Auto,
    /// A qdisc inside the kernel
    Kernel,
    /// Marks on packets of long flows, in front of the kernel's own queues
    Marks,
    /// A process that holds the packets
    Userspace,
}

/// The kernel's own queues behind marks.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Queues {
    /// CAKE with diffserv3: long flows go to Bulk
    Cake,
    /// A tbf with a prio of two fq_codel
    Prio,
    /// An htb with two fq_codel
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

/// A rate above 0, or as fast as the device is.
pub(crate) fn link_rate(text: &str) -> Result<Rate, String> {
    match text {
        "unlimited" | "inf" => Ok(Rate::UNLIMITED),
        _ => quantity::rate(text).map_err(|accepted| format!("{accepted}, or unlimited")),
    }
}

/// What to do once something is attached.
#[cfg(feature = "kernel")]
const NEXT: &str =
    "`shortlane show` tells how it goes, `shortlane test HOST` how long packets wait under load";

/// How fast a link is, in words.
#[cfg_attr(not(feature = "kernel"), allow(dead_code, reason = "it takes an engine to be told"))]
fn pace(rate: Rate) -> String {
    rate.limit().map_or_else(|| "the device's pace".into(), |_| rate.to_string())
}

/// What is to be attached to one device, checked as far as that needs no device.
#[cfg_attr(not(feature = "kernel"), allow(dead_code, reason = "it takes an engine to read it"))]
struct Order {
    device: String,
    rate: Option<Rate>,
    ingress: Option<Rate>,
    /// Rates that follow the link, if they do; those above are then their bases.
    following: Option<Following>,
    spec: Spec,
    queues: Option<Queues>,
    join: Option<Join>,
    overhead: Overhead,
    burst_time: Nanos,
    replace: bool,
    keep_offloads: bool,
    foreground: bool,
}

#[cfg_attr(not(feature = "kernel"), allow(dead_code, reason = "it takes an engine to read it"))]
impl Order {
    /// The discipline for what the device sends at this rate.
    fn leaving(&self, rate: Rate) -> Spec {
        hosts::leaving(&self.spec, &self.device).with_limit_for(rate)
    }

    /// The discipline for what the device receives at this rate.
    fn arriving(&self, rate: Rate) -> Spec {
        hosts::arriving(&self.spec, &self.device).with_limit_for(rate)
    }
}

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
    let AttachOptions { device, rate, ingress, probe, engine, queues, join, .. } = options;
    let following = goal::following(rate, ingress, probe)?;
    let [most, most_ingress] = [rate, ingress].map(|goal| goal.map(Goal::most));
    let [rate, ingress] = [rate, ingress].map(|goal| goal.map(Goal::rate));
    let spec: Spec = options.scheduler.as_deref().unwrap_or(DEFAULT).parse()?;
    for rate in [most, most_ingress].into_iter().flatten() {
        spec.clone().with_limit_for(rate).check()?;
    }
    let device = device.unwrap_or_default();
    let for_marks = queues.is_some() || join.is_some();
    let engine = match engine {
        Engine::Auto if for_marks => Engine::Marks,
        Engine::Kernel | Engine::Userspace if for_marks => {
            let text = "--queues and --join are for --engine marks";
            return Err(Failure::Usage(text.into()));
        }
        Engine::Marks if options.scheduler.is_some() => {
            let text = "--scheduler is for the engines kernel and userspace; --queues says what is \
                        behind marks";
            return Err(Failure::Usage(text.into()));
        }
        engine => engine,
    };
    if following.is_some() && !matches!(engine, Engine::Auto | Engine::Userspace) {
        return Err(Failure::Usage(goal::UNFOLLOWED.into()));
    }
    if rate.is_none() && ingress.is_none() && join.is_none() {
        let text = format!("{device}: it takes --rate, --ingress, or both");
        return Err(Failure::Usage(text));
    }
    let order = Order {
        device,
        rate,
        ingress,
        following,
        spec,
        queues,
        join,
        overhead: options.overhead,
        burst_time: options.burst_time,
        replace: options.replace,
        keep_offloads: options.keep_offloads,
        foreground: options.foreground,
    };
    match engine {
        Engine::Userspace => userspace_side::attach(&order, None, call),
        Engine::Kernel => kernel_side::attach(&order),
        Engine::Marks => marks_side::attach(&order, None),
        Engine::Auto => match obstacle(&order)? {
            None => kernel_side::attach(&order),
            // A discipline that is asked for by its name is to run.
            Some(obstacle)
                if options.scheduler.is_none()
                    && order.following.is_none()
                    && marks_side::can(&order) =>
            {
                marks_side::attach(&order, Some(&obstacle))
            }
            Some(obstacle) => userspace_side::attach(&order, Some(&obstacle), call),
        },
    }
}

/// Why the kernel engine cannot do this, for others to do it.
fn obstacle(order: &Order) -> Result<Option<String>, Failure> {
    match order.following {
        Some(_) => Ok(Some("a rate is to follow the link".into())),
        None => kernel_side::obstacle(order),
    }
}

/// Refuses a device to which something of ours is attached, and names what; with `--replace` that
/// is detached. The kernel engine replaces what is its own by itself, one direction at a time.
#[cfg(feature = "kernel")]
fn make_way_for(order: &Order, kind: EngineKind) -> Result<(), Failure> {
    let device = &order.device;
    let ifindex = index_of(device)?;
    let held = match control::status(ifindex) {
        Err(ControlError::Nobody) => None,
        Ok(status) => status
            .iter()
            .find_map(|way| way.process.as_ref())
            .map(|process| format!("a userspace engine already, process {}", process.pid)),
        Err(ControlError::Silent { pid }) if order.replace => Some(format!("process {pid}")),
        Err(error) => return Err(about(device, &error)),
    };
    let held = match held {
        None => marks_side::holder(device)?.map(|marks| format!("{marks} already")),
        held => held,
    };
    let held = match (held, kind) {
        (None, EngineKind::Userspace | EngineKind::Marks) => {
            kernel_side::holder(device)?.map(|qdisc| format!("{qdisc} already"))
        }
        (held, _) => held,
    };
    match held {
        Some(held) if !order.replace => Err(Failure::Failed(format!(
            "{device} has {held}; `shortlane change {device}` changes it as it runs, --replace \
             puts a new one in its place"
        ))),
        Some(_) => detach(&DetachOptions { device: device.clone() }),
        None => Ok(()),
    }
}

/// The userspace engine in the background, which [`attach`] has started.
pub(crate) fn serve_engine() -> Result<(), Failure> {
    userspace_side::serve()
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
    let spec = scheduler.as_ref().map(|text| text.parse::<Spec>()).transpose()?;
    match control::change(index_of(device)?, &changes) {
        Err(ControlError::Nobody) if marks_side::holder(device)?.is_some() => {
            marks_side::change(device, &changes)
        }
        Err(ControlError::Nobody) => kernel_side::change(device, &changes, spec),
        changed => changed.map_err(|error| about(device, &error)),
    }
}

pub(crate) fn detach(options: &DetachOptions) -> Result<(), Failure> {
    let device = &options.device;
    // One that is gone may have left something to be put back.
    let Ok(ifindex) = link::index_of(device) else { return kernel_side::detach(device) };
    match control::stop(ifindex) {
        Err(ControlError::Nobody) => match userspace_side::tidy_up(device)? {
            // Somebody else's qdisc may be there.
            true => Ok(()),
            false => kernel_side::detach(device),
        },
        Ok(false) => Ok(()),
        Ok(true) => {
            say(&format!("{device}: the engine did not answer and was killed"));
            userspace_side::tidy_up(device).map(|_| ())
        }
        Err(error) => Err(about(device, &error)),
    }
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

/// What is attached to a device, or to any in this network namespace, by either engine.
pub(crate) fn attached(device: Option<&str>) -> Result<Vec<engine::status::Status>, Failure> {
    if let Some(device) = device {
        return match control::status(index_of(device)?) {
            Err(ControlError::Nobody) => match marks_side::show(Some(device))? {
                none if none.is_empty() => kernel_side::show(Some(device)),
                marks => Ok(marks),
            },
            found => found.map_err(|error| about(device, &error)),
        };
    }
    let mut found = Vec::new();
    for (ifindex, device) in link::all().map_err(|error| Failure::Failed(error.to_string()))? {
        match control::status(ifindex) {
            // A bridge's direction is the egress of one interface, which is enough.
            Ok(status) => found.extend(status.into_iter().filter(|way| {
                way.peer.is_none() || way.direction == engine::status::Heading::Egress
            })),
            Err(ControlError::Nobody) => {}
            Err(error) => say(&format!("shortlane: {}", about(&device, &error).text())),
        }
    }
    let in_kernel = marks_side::show(None).and_then(|marks| Ok((marks, kernel_side::show(None)?)));
    match in_kernel {
        Ok((marks, qdiscs)) => found.extend(marks.into_iter().chain(qdiscs)),
        Err(failure) if found.is_empty() => return Err(failure),
        Err(failure) => say(&format!("shortlane: {}", failure.text())),
    }
    found.sort_by_key(|status| (status.ifindex, status.direction));
    Ok(found)
}

/// The index of a device of this network namespace.
pub(crate) fn index_of(device: &str) -> Result<u32, Failure> {
    link::index_of(device).map_err(|_| {
        let there = link::all().unwrap_or_default();
        let there: Vec<String> = there.into_iter().map(|(_, name)| name).collect();
        let there = there.join(", ");
        Failure::Usage(format!(
            "there is no device '{device}' in this network namespace; there are {there}"
        ))
    })
}

fn about(device: &str, error: &ControlError) -> Failure {
    let text = format!("{device}: {error}");
    if error.is_usage() { Failure::Usage(text) } else { Failure::Failed(text) }
}

/// What a program without engines is built without, and what gets it.
#[cfg(not(feature = "kernel"))]
pub(crate) const MISSING: [&str; 2] = [
    "this program was built without the engines for a single device, as there was no clang or no \
     libelf",
    "in Shortlane's sources `scripts/setup.sh bpf` installs these, and `make build` then builds \
     the engines",
];

#[cfg(not(feature = "kernel"))]
pub(crate) fn missing() -> Failure {
    Failure::Failed(MISSING.join("; "))
}

#[cfg(not(feature = "kernel"))]
mod userspace_side {
    use super::{Call, Failure, Order, missing};

    pub(super) fn attach(_: &Order, _: Option<&str>, _: &Call) -> Result<(), Failure> {
        Err(missing())
    }

    pub(super) fn serve() -> Result<(), Failure> {
        Err(missing())
    }

    pub(super) fn tidy_up(_: &str) -> Result<bool, Failure> {
        Ok(false)
    }
}

#[cfg(not(feature = "kernel"))]
mod kernel_side {
    use engine::control::Changes;
    use engine::status::Status;
    use sched::Spec;

    use super::{Failure, Order, missing};

    pub(super) fn obstacle(_: &Order) -> Result<Option<String>, Failure> {
        Err(missing())
    }

    pub(super) fn attach(_: &Order) -> Result<(), Failure> {
        Err(missing())
    }

    pub(super) fn change(_: &str, _: &Changes, _: Option<Spec>) -> Result<(), Failure> {
        Err(missing())
    }

    pub(super) fn detach(_: &str) -> Result<(), Failure> {
        Err(missing())
    }

    /// Whatever a qdisc of ours does is not for this program to see.
    pub(super) fn show(device: Option<&str>) -> Result<Vec<Status>, Failure> {
        device.map_or_else(|| Ok(Vec::new()), |_| Err(missing()))
    }
}

#[cfg(not(feature = "kernel"))]
mod marks_side {
    use engine::control::Changes;
    use engine::status::Status;

    use super::{Failure, Order, missing};

    pub(super) fn can(_: &Order) -> bool {
        false
    }

    pub(super) fn attach(_: &Order, _: Option<&str>) -> Result<(), Failure> {
        Err(missing())
    }

    pub(super) fn change(_: &str, _: &Changes) -> Result<(), Failure> {
        Err(missing())
    }

    pub(super) fn holder(_: &str) -> Result<Option<String>, Failure> {
        Ok(None)
    }

    pub(super) fn show(_: Option<&str>) -> Result<Vec<Status>, Failure> {
        Ok(Vec::new())
    }
}
