//! `shortlane test`: latency under load, before and after.

mod flent;
mod queue;
mod result;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use responsiveness::{Client, Error, Load, Security, Server};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use self::result::{Phase, TestResult};
use crate::{Failure, attach, print, say};

/// The port where server and client meet if none is given.
const PORT: u16 = 4043;

/// The options of `shortlane test`.
#[derive(Args)]
pub(crate) struct Options {
    /// Test against this host; give its port if that is not 4043
    #[arg(required_unless_present = "server", value_name = "HOST[:PORT]", value_parser = server)]
    host: Option<String>,
    /// Serve such tests instead, to anybody who can reach the address
    #[arg(long, conflicts_with_all = ["host", "duration", "json", "flent"])]
    server: bool,
    /// Listen on this address and port
    #[arg(long, requires = "server", value_name = "ADDRESS:PORT", default_value = "[::]:4043", value_parser = address)]
    listen: SocketAddr,
    /// Use HTTP/2 without TLS, at server and client alike, if a machine is slow at TLS
    #[arg(long)]
    plain: bool,
    /// Take this long in all
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = seconds)]
    duration: usize,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Write the figures of each second to a file for flent: NAME.flent
    #[arg(long, value_name = "FILE")]
    flent: Option<PathBuf>,
}

fn server(text: &str) -> Result<String, String> {
    let accepted =
        || Err("it takes a host, and a port if it is not 4043: router.lan, [::1]:443".into());
    if text.is_empty() || text.contains(['/', ' ', '@']) {
        return accepted();
    }
    let after_host = text.rsplit_once(']').map_or(text, |(_, after)| after);
    match (text.starts_with('['), after_host.rsplit_once(':')) {
        (false, None) => Ok(format!("{text}:{PORT}")),
        (true, None) if after_host.is_empty() => Ok(format!("{text}:{PORT}")),
        (_, Some((host, port))) if !host.contains(':') && port.parse::<u16>().is_ok() => {
            Ok(text.to_owned())
        }
        _ => accepted(),
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "it takes an address and a port, such as 192.168.1.1:4043 or [::]:4043".into())
}

fn seconds(text: &str) -> Result<usize, String> {
    let time = crate::quantity::time(text).ok().map(|time| time.0 / 1_000_000_000);
    time.filter(|time| (8..=600).contains(time))
        .map(|time| time as usize)
        .ok_or_else(|| "it takes a time from 8s to 10min, such as 20s".into())
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let security = if options.plain { Security::Plain } else { Security::Tls };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| Failure::Failed(format!("cannot start the test: {error}")))?;
    match &options.host {
        None => runtime.block_on(serve(options.listen, security)),
        Some(host) => measure(&runtime, host, security, options),
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Failed(error.to_string())
    }
}

async fn serve(listen: SocketAddr, security: Security) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Failed(format!("serving tests: {error}"));
    let server = Server::listen(listen, security).await?;
    let mut term = signal(SignalKind::terminate()).map_err(failed)?;
    let mut int = signal(SignalKind::interrupt()).map_err(failed)?;
    let scheme = if security == Security::Tls { "https" } else { "http" };
    say(&format!("test: {scheme}://{}/.well-known/nq", server.address().map_err(failed)?));
    server
        .serve_until(async {
            tokio::select! {
                _ = term.recv() => {}
                _ = int.recv() => {}
            }
        })
        .await;
    Ok(())
}

fn measure(
    runtime: &Runtime,
    host: &str,
    security: Security,
    options: &Options,
) -> Result<(), Failure> {
    let client = runtime.block_on(Client::find(host, security))?;
    let mut phases: Vec<Phase> = Vec::new();
    for load in Load::ALL {
        let seconds = share(load, options.duration);
        say(&format!("{}: {seconds} s", load.name()));
        let before = statuses();
        let measured = runtime.block_on(client.measure(load, seconds))?;
        let carried = queue::carried(&measured, &before, &statuses());
        let idle = phases.first().map(|idle| idle.delay_median);
        phases.push(Phase::new(&measured, idle, carried));
    }
    let result = TestResult { server: host.to_owned(), tls: security == Security::Tls, phases };
    if let Some(path) = &options.flent {
        flent::write(path, &result)?;
    }
    if options.json {
        return print(&format!("{:#}\n", result.json()));
    }
    print(&result.text())
}

/// Seconds of a phase: a tenth for idleness, the rest in three.
fn share(load: Load, duration: usize) -> usize {
    let idle = (duration / 10).max(1);
    if load == Load::Idle { idle } else { (duration - idle) / 3 }
}

/// What is attached, if this user may see it: without, nothing is said about queues.
fn statuses() -> Vec<engine::status::Status> {
    attach::attached(None).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_the_port_of_the_test_unless_it_names_one() {
        assert_eq!(server("router.lan").unwrap(), "router.lan:4043");
        assert_eq!(server("10.0.0.1:443").unwrap(), "10.0.0.1:443");
        assert_eq!(server("[fe80::1]").unwrap(), "[fe80::1]:4043");
        assert_eq!(server("[::1]:80").unwrap(), "[::1]:80");
        for bad in ["", "https://x", "::1", "host:", "host:99999", "[::1]x", "a b"] {
            assert!(server(bad).unwrap_err().contains("it takes"), "{bad}");
        }
    }

    #[test]
    fn phases_fill_the_time() {
        let all = |duration| Load::ALL.map(|load| share(load, duration));
        assert_eq!(all(20), [2, 6, 6, 6]);
        assert_eq!(all(8), [1, 2, 2, 2]);
    }
}
