//! `shortlane top --web`: what is attached to a device, live, as a page that this program serves.

mod answer;
#[cfg(feature = "harness")]
pub(crate) mod harness;
mod history;
mod page;
mod sample;
mod server;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::{Failure, attach};

/// Where the page is if nothing else is said.
pub(super) const ADDRESS: &str = "127.0.0.1:9751";
const PORT: u16 = 9751;
/// A page has at most four updates a second.
pub(super) const LEAST_INTERVAL: Duration = Duration::from_millis(250);

/// An address, with a port if it is not the usual one.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let with_port = text.parse().ok();
    with_port.or_else(|| Some(SocketAddr::new(bare.parse::<IpAddr>().ok()?, PORT))).ok_or_else(|| {
        format!(
            "it takes an address, with a port if that is not {PORT}, such as {ADDRESS} or [::1]; the \
             device stands before --web"
        )
    })
}

pub(super) fn run(device: &str, listen: SocketAddr, interval: Duration) -> Result<(), Failure> {
    let first = attach::attached(Some(device))?;
    let asked = device.to_owned();
    let look = move || attach::attached(Some(&asked));
    server::serve(&server::Plan { device, listen, interval }, first, look)
}

#[cfg(test)]
mod tests;
