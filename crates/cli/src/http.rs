//! What the program's HTTP servers have in common: an address, bounded connections, an end.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body, Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use nix::sys::socket::{setsockopt, sockopt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::Failure;

/// What a client may take to send its request.
const PATIENCE: Duration = Duration::from_secs(10);

/// What clients may take.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Connections at a time; more wait.
    pub(crate) connections: usize,
    /// How long a connection lasts at most.
    pub(crate) longest: Duration,
    /// How long it lasts while its client does not read what it was sent.
    pub(crate) unread: Duration,
    /// Whether a connection takes one request after the other.
    pub(crate) keep_alive: bool,
}

/// Listens; `option` is what the address was given by.
pub(crate) async fn listen(option: &str, at: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(at).await.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => {
            let other = SocketAddr::new(at.ip(), at.port().saturating_add(1));
            let text =
                format!("{option} {at}: the port is in use; another one does, such as {other}");
            Failure::Failed(text)
        }
        _ => Failure::Failed(format!("{option} {at}: {error}")),
    })
}

/// SIGTERM and SIGINT, which are caught from now on.
pub(crate) fn stop_signals() -> io::Result<impl Future<Output = ()>> {
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
    })
}

/// Whether a Host header is of the loopback, with whatever port: a tunnel may have another one.
pub(crate) fn names_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(name, _)| name),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let is_loopback = |address: std::net::IpAddr| address.is_loopback();
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(is_loopback)
}

/// Answers whoever connects.
pub(crate) async fn accept<A, F, B>(
    listener: TcpListener,
    limits: Limits,
    answer: A,
) -> io::Result<()>
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let room = Arc::new(Semaphore::new(limits.connections));
    loop {
        let permit = Arc::clone(&room).acquire_owned().await.map_err(io::Error::other)?;
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // Out of descriptors, or a client that has gone again: others may still come.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        // The kernel ends the connection of a client that is stuck, which nothing here would notice.
        // Where it cannot, `longest` does.
        let unread = u32::try_from(limits.unread.as_millis()).unwrap_or(u32::MAX);
        let _ = setsockopt(&stream, sockopt::TcpUserTimeout, &unread);
        let answer = answer.clone();
        tokio::spawn(async move {
            // What goes wrong on a connection is its client's to notice.
            let _ = timeout(limits.longest, converse(stream, limits, answer)).await;
            drop(permit);
        });
    }
}

/// Answers what comes on one connection.
pub(crate) async fn converse<S, A, F, B>(stream: S, limits: Limits, answer: A) -> hyper::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = Response<B>>,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let service = service_fn(|request| {
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let mut connection = http1::Builder::new();
    connection.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    connection.keep_alive(limits.keep_alive).max_buf_size(64 * 1024);
    connection.serve_connection(TokioIo::new(stream), service).await
}
