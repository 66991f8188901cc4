//! Why the kernel engine cannot do something.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::settings::merge::SpecChangeError;

/// Why the kernel engine cannot do something: what was found, and what to do.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The discipline has no form in the kernel.
    #[error(
        "{discipline}: the kernel engine has {}; --engine userspace has others",
        super::DISCIPLINES.join(", ")
    )]
    NotInKernel {
        /// Its name.
        discipline: &'static str,
    },
    /// A parameter's value has no form in the kernel.
    #[error("{discipline}: {parameter}={found} is not for the kernel engine: {reason}")]
    Parameter {
        /// The discipline.
        discipline: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// Its value.
        found: String,
        /// What is accepted, or why not.
        reason: String,
    },
    /// The process may not load BPF programs.
    #[error(
        "{doing} needs the capability {capability}; run it as root, or give the program the \
         capability"
    )]
    NoPermission {
        /// What was being done.
        doing: &'static str,
        /// What is missing.
        capability: String,
    },
    /// The kernel has no BPF qdiscs.
    #[error(
        "this kernel ({release}) cannot take a qdisc written in BPF: {missing}; Linux 6.16 or \
         newer with CONFIG_NET_SCH_BPF and CONFIG_DEBUG_INFO_BTF can"
    )]
    Kernel {
        /// Its release.
        release: String,
        /// What was looked for and not found.
        missing: &'static str,
    },
    /// The verifier refused the programs.
    #[error("the kernel's verifier refused the qdisc: its log is in {}", log.display())]
    Refused {
        /// Where the log is.
        log: PathBuf,
    },
    /// There is not enough memory for the maps.
    #[error(
        "no memory for {instances} times two queues of {packets} packets and a table of {flows} \
         flows; lower the limit or `flows`"
    )]
    Memory {
        /// Packets that a lane has slots for.
        packets: u64,
        /// Entries of the flow table.
        flows: u64,
        /// Qdiscs that the load was for.
        instances: u32,
    },
    /// More qdiscs than a load can serve, or none.
    #[error("instances={found}: a load serves 1 to {most} qdiscs")]
    Instances {
        /// What was asked for.
        found: u32,
        /// What is possible.
        most: usize,
    },
    /// A live change goes beyond what the qdisc was made for.
    #[error("limit={found}: this qdisc was made for {most} packets at most; attach it anew")]
    Beyond {
        /// What was asked for.
        found: String,
        /// What is possible.
        most: u64,
    },
    /// A live change would need other parts.
    #[error("{found} cannot take the place of {running} while it runs; attach it anew")]
    OtherParts {
        /// What was asked for.
        found: String,
        /// What runs.
        running: String,
    },
    /// There is no such device.
    #[error("there is no device '{found}' in this network namespace; there are {}", there.join(", "))]
    NoDevice {
        /// Its name.
        found: String,
        /// The devices there are.
        there: Vec<String>,
    },
    /// The device is a loopback.
    #[error(
        "{device} is the loopback, and leads to no link; name the device towards the link, such as \
         eth0"
    )]
    Loopback {
        /// Its name.
        device: String,
    },
    /// Other disciplines cannot share a rate.
    #[error("{found} has no form for several transmit queues; --per-queue takes fq-lanes")]
    PerQueue {
        /// The discipline.
        found: &'static str,
    },
    /// A qdisc for each transmit queue cannot be had.
    #[error(
        "{device} has {found} transmit queues; a qdisc for each of them takes 2 to {most} \
         (`ethtool -L {device} tx N` may change that)"
    )]
    TransmitQueues {
        /// The device.
        device: String,
        /// Its transmit queues.
        found: u32,
        /// How many there may be.
        most: usize,
    },
    /// Somebody has configured the device's qdisc.
    #[error(
        "{device} has a root qdisc that somebody configured, {found}; --replace takes its place, and \
         detach {}",
        match lost {
            Some(lost) => format!("could not put it back ({lost} would be missing)"),
            None => String::from("puts it back"),
        }
    )]
    Configured {
        /// The device.
        device: String,
        /// The qdisc.
        found: String,
        /// What of it could not be put back.
        lost: Option<String>,
    },
    /// The device has a qdisc of ours.
    #[error(
        "{device} has {found} already; `shortlane change {device}` changes it as it runs, --replace \
         puts a new one in its place"
    )]
    Attached {
        /// The device.
        device: String,
        /// What it has.
        found: String,
    },
    /// Somebody has filters at the ingress of the device.
    #[error(
        "{device} has a filter for what it receives already, {found}: \
         `tc filter show dev {device} ingress` shows it; without it, --ingress works"
    )]
    Filtered {
        /// The device.
        device: String,
        /// The kind of filter, or the name of its program.
        found: String,
    },
    /// The device has no qdisc of ours.
    #[error("{device} is not attached: its root qdisc is {found}")]
    NotAttached {
        /// The device.
        device: String,
        /// What it has.
        found: String,
    },
    /// Marks cannot be had like that.
    #[error("{0}")]
    Marks(String),
    /// A parameter cannot change while packets are queued, or not to that value.
    #[error("{0}")]
    Merge(SpecChangeError),
    /// An offload of a device could not be switched.
    #[error(
        "{device}: cannot switch offloads, and packets of 64 KB would take longer than a \
         millisecond: {source}; --keep-offloads attaches without changing them"
    )]
    Offload {
        /// The device.
        device: String,
        /// What the system said.
        source: io::Error,
    },
    /// What is restored later could not be read or written.
    #[error("{}: {source}", super::journal::DIRECTORY)]
    Journal {
        /// What the system said.
        source: io::Error,
    },
    /// The kernel's traffic control has refused something.
    #[error("{device}: {doing}: {said}")]
    TrafficControl {
        /// The device.
        device: String,
        /// What was being done.
        doing: &'static str,
        /// What the kernel said.
        said: String,
    },
    /// The kernel has a qdisc of this name.
    #[error("the kernel has a qdisc named {name} already")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// A kind of this name is registered.
    #[error("{name} is registered already; `shortlane unregister {name}` takes it away")]
    Registered {
        /// The name.
        name: String,
    },
    /// No kind of this name is registered.
    #[error(
        "no kind '{name}' is registered; {}",
        if known.is_empty() { String::from("there is none") } else { known.join(", ") + " are" }
    )]
    NotRegistered {
        /// The name.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// There is no BPF file system to keep a registration in.
    #[error(
        "{} is not a BPF file system, which keeps a registration: `mount -t bpf bpf {}` mounts one",
        path.display(), path.display()
    )]
    NoBpfFiles {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The system has refused something else.
    #[error("{doing}: {source}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl KernelError {
    /// Whether what was asked for is at fault, rather than what was found.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::NotInKernel { .. }
                | Self::Parameter { .. }
                | Self::Beyond { .. }
                | Self::Instances { .. }
                | Self::NotRegistered { .. }
                | Self::OtherParts { .. }
                | Self::NoDevice { .. }
                | Self::Loopback { .. }
                | Self::PerQueue { .. }
                | Self::TransmitQueues { .. }
                | Self::Merge(_)
        )
    }

    /// What libbpf could not do, with the capability that it takes if that is what is missing.
    pub(crate) fn bpf(
        doing: &'static str,
        capability: &'static str,
        error: &libbpf_rs::Error,
    ) -> Self {
        match error.kind() {
            libbpf_rs::ErrorKind::PermissionDenied => {
                Self::NoPermission { doing, capability: capability.into() }
            }
            _ => Self::System { doing, source: io::Error::other(format!("{error:#}")) },
        }
    }

    /// A refusal of the system's, with the capability that it takes if that is what is missing.
    pub(crate) fn system(
        doing: &'static str,
        capability: &'static str,
        source: impl Into<io::Error>,
    ) -> Self {
        let source = source.into();
        match source.kind() {
            io::ErrorKind::PermissionDenied => {
                Self::NoPermission { doing, capability: capability.into() }
            }
            _ => Self::System { doing, source },
        }
    }
}
