//! `shortlane attach`, `change`, `detach` and `show`: a discipline on a device of this machine.

#[cfg(feature = "kernel")]
mod in_kernel;
#[cfg(feature = "kernel")]
mod text;

use clap::{Args, ValueEnum};
use engine::Overhead;
use sched::{Nanos, Spec};

#[cfg(feature = "kernel")]
use self::in_kernel as engine_side;
use crate::{Failure, quantity};

/// Puts a discipline on a device, inside the kernel.
///
/// It paces for the link's rate, so that the queue is here and not in a modem. It stays until
/// `shortlane detach`, which leaves the device as it was.
#[derive(Args)]
pub(crate) struct AttachOptions {
    /// The device towards the link, such as eth0
    device: String,
    /// Rate of the link, a little below what it really carries; unlimited: the device sets the pace
    #[arg(long, allow_hyphen_values = true, value_parser = link_rate)]
    rate: LinkRate,
    /// The discipline with its parameters, such as efd:threshold=30packets
    #[arg(long, value_name = "SPEC", default_value = "efd")]
    scheduler: String,
    /// Where the discipline runs
    #[arg(long, value_enum, default_value_t = Engine::Auto)]
    engine: Engine,
    /// What a packet takes on the link beside its bytes: what the link is (docsis, pppoe-ptm, ethernet and others of tc-cake), or a number of bytes; with ether-vlan, atm, ptm, mpu=N beside it: 44,atm,mpu=64
    #[arg(long, default_value = "0", allow_hyphen_values = true)]
    overhead: Overhead,
    /// How far a late pacer may catch up: more holds the rate, less keeps bursts short
    #[arg(long, value_name = "TIME", default_value = DEFAULT_BURST, allow_hyphen_values = true, value_parser = quantity::positive_time)]
    burst_time: Nanos,
    /// Take the place of a root qdisc that somebody configured
    #[arg(long)]
    replace: bool,
    /// Leave GRO and gso_max_segs as they are, whatever that costs in delay
    #[arg(long)]
    keep_offloads: bool,
}

/// Changes an attached discipline while packets are queued, without losing one.
///
/// What is not given stays as it is.
#[derive(Args)]
pub(crate) struct ChangeOptions {
    /// The device
    device: String,
    /// Another rate
    #[arg(long, allow_hyphen_values = true, value_parser = link_rate)]
    rate: Option<LinkRate>,
    /// Other parameters of the discipline, such as efd:threshold=30packets; those that are not named stay
    #[arg(long, value_name = "SPEC")]
    scheduler: Option<String>,
    /// Something else that a packet takes on the link beside its bytes
    #[arg(long, allow_hyphen_values = true)]
    overhead: Option<Overhead>,
    /// Another time that a late pacer may catch up
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
    /// Only this device
    device: Option<String>,
    /// One JSON document on standard output
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Engine {
    /// The kernel
    Auto,
    /// A qdisc inside the kernel
    Kernel,
    /// A program that holds the packets
    Userspace,
}

/// Bits per second, or as fast as the device is.
#[derive(Clone, Copy)]
pub(crate) struct LinkRate(Option<u64>);

/// Generous: what a timer is later than this is lost to the rate, and on a virtual machine timers
/// are milliseconds late; what it costs is a burst of as long after such a moment, or after idleness.
const DEFAULT_BURST: &str = "10ms";

fn link_rate(text: &str) -> Result<LinkRate, String> {
    match text {
        "unlimited" | "inf" => Ok(LinkRate(None)),
        _ => quantity::rate(text)
            .map(|rate| LinkRate(Some(rate)))
            .map_err(|accepted| format!("{accepted}, or unlimited")),
    }
}

pub(crate) fn attach(options: &AttachOptions) -> Result<(), Failure> {
    let spec: Spec = options.scheduler.parse()?;
    if matches!(options.engine, Engine::Userspace) {
        let text = "--engine userspace is not built yet; kernel is, and auto takes it";
        return Err(Failure::Usage(text.into()));
    }
    engine_side::attach(options, &spec)
}

pub(crate) fn change(options: &ChangeOptions) -> Result<(), Failure> {
    let ChangeOptions { rate, scheduler, overhead, burst_time, .. } = options;
    if (rate.is_none(), scheduler.is_none(), overhead.is_none(), burst_time.is_none())
        == (true, true, true, true)
    {
        let text = "nothing to change; it takes --rate, --scheduler, --overhead or --burst-time";
        return Err(Failure::Usage(text.into()));
    }
    let spec = scheduler.as_ref().map(|text| text.parse::<Spec>()).transpose()?;
    engine_side::change(options, spec)
}

pub(crate) fn detach(options: &DetachOptions) -> Result<(), Failure> {
    engine_side::detach(&options.device)
}

pub(crate) fn show(options: &ShowOptions) -> Result<(), Failure> {
    engine_side::show(options)
}

/// What a program says that was built where nothing could compile the qdisc.
#[cfg(not(feature = "kernel"))]
pub(crate) fn missing() -> Failure {
    Failure::Usage(
        "this program was built without the kernel engine; `scripts/setup.sh bpf` installs \
         what that takes, and `make build` then builds it"
            .into(),
    )
}

/// Of such a program.
#[cfg(not(feature = "kernel"))]
mod engine_side {
    use super::{AttachOptions, ChangeOptions, Failure, ShowOptions, Spec, missing};

    pub(super) fn attach(options: &AttachOptions, _: &Spec) -> Result<(), Failure> {
        let AttachOptions { device, rate, overhead, burst_time, replace, keep_offloads, .. } =
            options;
        let _ = (device, rate.0, overhead, burst_time, replace, keep_offloads);
        Err(missing())
    }

    pub(super) fn change(options: &ChangeOptions, _: Option<Spec>) -> Result<(), Failure> {
        let _ = &options.device;
        Err(missing())
    }

    pub(super) fn detach(_: &str) -> Result<(), Failure> {
        Err(missing())
    }

    pub(super) fn show(options: &ShowOptions) -> Result<(), Failure> {
        let _ = (&options.device, options.json);
        Err(missing())
    }
}
