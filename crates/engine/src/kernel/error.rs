//! Why the kernel engine cannot do something.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why the kernel engine cannot do something: what was found, and what to do.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The discipline has no form in the kernel.
    #[error(
        "{discipline}: the kernel engine has {}; the lab and the simulator have the others",
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
        capability: &'static str,
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
        "no memory for queues of {packets} packets and a table of {flows} flows; lower the limit \
         or `flows`"
    )]
    Memory {
        /// Packets that a lane has slots for.
        packets: u64,
        /// Entries of the flow table.
        flows: u64,
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
    /// What libbpf could not do, with the capability that it takes if that is what is missing.
    pub(crate) fn bpf(
        doing: &'static str,
        capability: &'static str,
        error: &libbpf_rs::Error,
    ) -> Self {
        match error.kind() {
            libbpf_rs::ErrorKind::PermissionDenied => Self::NoPermission { doing, capability },
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
            io::ErrorKind::PermissionDenied => Self::NoPermission { doing, capability },
            _ => Self::System { doing, source },
        }
    }
}
