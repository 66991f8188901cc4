//! Preparations that both roles share.

use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::runtime::{Builder, Runtime};

use super::error::Error;
use super::plan::Tcp;
use super::tcp;

/// Makes room for thousands of connections, and checks that every congestion control that
/// this side sends with can be had.
pub(crate) fn begin(senders: impl Iterator<Item = Tcp>) -> Result<(), Error> {
    raise_file_limit().map_err(Error::io("cannot raise the limit of open files"))?;
    let wanted: Vec<Tcp> = senders.collect();
    let distinct = Tcp::ALL.into_iter().filter(|tcp| wanted.contains(tcp));
    distinct.map(Tcp::name).try_for_each(tcp::check_congestion)
}

fn raise_file_limit() -> io::Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?)
}

/// A runtime of the calling thread.
pub(crate) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_io().enable_time().build()
}
