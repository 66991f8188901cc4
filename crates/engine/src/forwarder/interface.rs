//! Interfaces, looked up and held.

use std::io;

use netdev::link::{Link, Links};

use crate::control::Lock;
use crate::error::EngineError;

/// What the interface of this name is.
pub(crate) fn look_up(name: &str) -> Result<Link, EngineError> {
    let not_found = |error: io::Error| match error.raw_os_error() {
        Some(libc::ENODEV | libc::EINVAL | libc::ERANGE) => {
            EngineError::NoSuchInterface { interface: name.to_owned() }
        }
        _ => system(name, "looking it up")(error),
    };
    let mut links = Links::open().map_err(|error| system(name, "netlink")(error.into_system()))?;
    links.get(name).map_err(|error| not_found(error.into_system()))
}

/// Keeps other engines away from an interface.
pub(crate) fn hold(name: &str, link: &Link) -> Result<Lock, EngineError> {
    Lock::take(link.index).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => EngineError::Taken { interface: name.to_owned() },
        _ => system(name, "taking hold of it")(error),
    })
}

/// What to make of a refusal of the system's.
pub(crate) fn system(
    interface: &str,
    doing: &'static str,
) -> impl FnOnce(io::Error) -> EngineError {
    let interface = interface.to_owned();
    move |source| EngineError::System { interface, doing, source }
}
