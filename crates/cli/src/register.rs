//! `shortlane register` and `unregister`: disciplines as kinds of qdisc for `tc`.

use clap::Args;

#[cfg(feature = "kernel")]
use self::in_kernel as engine_side;
use crate::Failure;

/// The options of `shortlane register`.
#[derive(Args)]
pub(crate) struct RegisterOptions {
    /// Register this discipline; its qdiscs start from these parameters: efd:threshold=30packets
    #[arg(value_name = "SPEC")]
    scheduler: Option<String>,
    /// Allow this many qdiscs of this kind at once; each takes memory from now on
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = crate::quantity::number(1..=16u32))]
    instances: u32,
    /// Print the registered qdiscs as one JSON document
    #[arg(long, conflicts_with = "scheduler")]
    json: bool,
}

/// The options of `shortlane unregister`.
#[derive(Args)]
pub(crate) struct UnregisterOptions {
    /// Unregister this kind of qdisc, such as shortlane_efd
    name: String,
}

pub(crate) fn register(options: &RegisterOptions) -> Result<(), Failure> {
    match &options.scheduler {
        Some(scheduler) => engine_side::register(&scheduler.parse()?, options.instances),
        None => engine_side::list(options.json),
    }
}

pub(crate) fn unregister(options: &UnregisterOptions) -> Result<(), Failure> {
    engine_side::unregister(&options.name)
}

#[cfg(feature = "kernel")]
mod in_kernel {
    use engine::kernel;
    use sched::Spec;
    use serde_json::json;

    use crate::{Failure, print, say};

    pub(super) fn register(spec: &Spec, instances: u32) -> Result<(), Failure> {
        let name = kernel::register(spec, instances)?;
        say(&format!("{name}: registered; `tc qdisc add dev DEV root {name}` puts it in place"));
        Ok(())
    }

    pub(super) fn list(as_json: bool) -> Result<(), Failure> {
        let kinds = kernel::registered()?;
        if as_json {
            return print(&format!("{:#}\n", json!({ "registered": kinds })));
        }
        if kinds.is_empty() {
            say("no kind is registered");
        }
        let line = |kind: &kernel::Kind| {
            let kernel::Kind { name, scheduler, instances, in_use } = kind;
            format!("{name}: {scheduler}, {in_use} of {instances} in use\n")
        };
        print(&kinds.iter().map(line).collect::<String>())
    }

    pub(super) fn unregister(name: &str) -> Result<(), Failure> {
        Ok(kernel::unregister(name)?)
    }
}

/// Of a program that was built where nothing could compile the qdisc.
#[cfg(not(feature = "kernel"))]
mod engine_side {
    use sched::Spec;

    use crate::{Failure, attach};

    pub(super) fn register(_: &Spec, _: u32) -> Result<(), Failure> {
        Err(attach::missing())
    }

    pub(super) fn list(_: bool) -> Result<(), Failure> {
        Err(attach::missing())
    }

    pub(super) fn unregister(_: &str) -> Result<(), Failure> {
        Err(attach::missing())
    }
}
