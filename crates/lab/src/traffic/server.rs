//! The server: behind the bottleneck, sends what it is asked for.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use units::Nanos;

use super::cause::{Cause, count_failures};
use super::cbr;
use super::clock::Clock;
use super::error::Error;
use super::pings;
use super::plan::Plan;
use super::report::{CbrSent, ConnectionKind, ConnectionRow, ServerReport, UploadReceived, flow};
use super::role::{begin, runtime};
use super::series::Series;
use super::tcp;
use super::tcp_info::TcpInfo;
use super::udp;
use super::wire::{REQUEST, Request};

/// How long after the client is gone, or after the hard stop, the server lets connections end
/// by themselves: their last packets may still be in the queue.
const GRACE: Duration = Duration::from_secs(1);

/// Plays the server until the client is done or dead, at the latest a second after the hard
/// stop.
///
/// `ready` is called when clients can connect.
///
/// # Errors
/// If the plan is bad, its epoch has passed, a congestion control or a socket cannot be had.
pub fn run_server(plan: &Plan, ready: impl FnOnce()) -> Result<ServerReport, Error> {
    plan.check()?;
    let transfers = plan.transfers.iter().map(|t| t.tcp);
    let downloads = plan.downloads.iter().map(|d| d.tcp);
    begin(transfers.chain(downloads).chain(plan.sessions.iter().map(|s| s.tcp)))?;
    let address = plan.server_address();
    let listener =
        tcp::listen(address).map_err(Error::io(format!("cannot listen on {address}")))?;
    let socket = udp::bind(address).map_err(Error::io(format!("cannot bind UDP {address}")))?;
    let clock = Clock::starting(plan.epoch)?;
    ready();

    let (stop, stopped) = watch::channel(false);
    thread::scope(|scope| {
        let datagrams =
            scope.spawn(|| runtime()?.block_on(send_datagrams(plan, socket, clock, stopped)));
        let tcp =
            runtime().and_then(|runtime| runtime.block_on(serve(plan, listener, clock, &stop)));
        stop.send_replace(true);
        let datagrams = datagrams.join().unwrap_or_else(|panic| resume_unwind(panic));
        let mut report = tcp.map_err(Error::io("cannot serve TCP"))?;
        (report.cbr, report.worst_late) = datagrams.map_err(Error::io("cannot serve UDP"))?;
        Ok(report)
    })
}

/// The UDP thread: answers pings and sends CBR streams until `stop`.
async fn send_datagrams(
    plan: &Plan,
    socket: std::net::UdpSocket,
    clock: Clock,
    mut stop: watch::Receiver<bool>,
) -> io::Result<(Vec<CbrSent>, Nanos)> {
    let socket = Arc::new(UdpSocket::from_std(socket)?);
    let mut senders = Vec::new();
    for (index, cbr) in plan.cbr.iter().enumerate() {
        let (cbr, to, stream) = (cbr.clone(), plan.cbr_address(index), index as u32);
        let (socket, stop) = (socket.clone(), stop.clone());
        let sender = cbr::Sender { cbr, stream, to, clock };
        senders.push(tokio::spawn(async move { sender.run(&socket, stop).await }));
    }
    tokio::select! {
        result = pings::answer(&socket, clock) => result?,
        _ = stop.wait_for(|stop| *stop) => {}
    }
    let mut all = (Vec::new(), Nanos::ZERO);
    for sender in senders {
        let (sent, late) = sender.await??;
        all.0.push(sent);
        all.1 = all.1.max(late);
    }
    Ok(all)
}

/// How one connection ended.
enum Ended {
    /// The control connection: the client is done or dead.
    ClientGone,
    Sent(ConnectionRow),
    Received(UploadReceived, Option<Cause>),
    NoRequest(Cause),
}

/// The TCP thread: accepts until the client is gone, then lets what is open end.
async fn serve(
    plan: &Plan,
    listener: std::net::TcpListener,
    clock: Clock,
    stop: &watch::Sender<bool>,
) -> io::Result<ServerReport> {
    let listener = TcpListener::from_std(listener)?;
    let hard_stop = clock.deadline(plan.drain_end) + GRACE;
    let mut open = JoinSet::new();
    let mut rows = Rows::default();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, client)) => {
                    let (server, stop) = (plan.server_address(), stop.subscribe());
                    let connection = Connection { client, server, clock, stop };
                    open.spawn(connection.handle(stream, plan.sample_every));
                }
                Err(error) => {
                    rows.causes.push(Cause::from(&error));
                    // Out of descriptors: a connection that ends makes room.
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            },
            Some(ended) = open.join_next() => {
                if !rows.add(ended?) {
                    break;
                }
            }
            () = sleep_until(hard_stop) => break,
        }
    }
    let give_up = hard_stop.min(Instant::now() + GRACE);
    let _ = tokio::time::timeout_at(give_up, async {
        while let Some(ended) = open.join_next().await {
            rows.add(ended?);
        }
        io::Result::Ok(())
    })
    .await;
    // What is still open reports as it is.
    stop.send_replace(true);
    while let Some(ended) = open.join_next().await {
        rows.add(ended?);
    }
    Ok(rows.report())
}

#[derive(Default)]
struct Rows {
    connections: Vec<ConnectionRow>,
    uploads: Vec<UploadReceived>,
    /// Of failures that have no connection's row.
    causes: Vec<Cause>,
}

impl Rows {
    /// Returns false if the client is gone.
    fn add(&mut self, ended: Ended) -> bool {
        match ended {
            Ended::ClientGone => return false,
            Ended::Sent(row) => self.connections.push(row),
            Ended::Received(row, failure) => {
                self.uploads.push(row);
                self.causes.extend(failure);
            }
            Ended::NoRequest(cause) => self.causes.push(cause),
        }
        true
    }

    fn report(self) -> ServerReport {
        let of_rows = self.connections.iter().filter_map(|row| row.failure);
        let failures = count_failures(of_rows.chain(self.causes));
        let Self { connections, uploads, .. } = self;
        ServerReport { connections, uploads, failures, ..ServerReport::default() }
    }
}

/// One accepted connection.
struct Connection {
    client: SocketAddr,
    server: SocketAddr,
    clock: Clock,
    stop: watch::Receiver<bool>,
}

impl Connection {
    async fn handle(mut self, mut stream: TcpStream, sample_every: Nanos) -> Ended {
        let request = self.until_stop(next_request(&mut stream)).await;
        match request {
            Err(cause) => Ended::NoRequest(cause),
            Ok(None) => Ended::NoRequest(Cause::NoRequest),
            Ok(Some(request)) => match request.kind {
                ConnectionKind::Control => {
                    // However this ends, the client is gone.
                    let _ = self.until_stop(tcp::end_of_stream(&stream)).await;
                    Ended::ClientGone
                }
                ConnectionKind::Upload => self.receive(stream, request.id, sample_every).await,
                _ => self.send(stream, request).await,
            },
        }
    }

    async fn send(mut self, mut stream: TcpStream, request: Request) -> Ended {
        let Request { kind, tcp, id, .. } = request;
        let mut asked_bytes = 0;
        let ended = self.until_stop(answer(&mut stream, request, &mut asked_bytes)).await;
        let tcp = tcp::congestion(&stream).unwrap_or(tcp);
        let info = TcpInfo::of(&stream).ok();
        let acked = info.and_then(|info| info.bytes_acked).unwrap_or(u64::MAX);
        let failure = match ended {
            Err(Cause::Reset | Cause::ClosedEarly) if kind == ConnectionKind::Download => None,
            Err(cause) => Some(cause),
            Ok(()) if acked < asked_bytes => Some(Cause::ClosedEarly),
            Ok(()) => None,
        };
        if failure.is_some() {
            tcp::reset(stream);
        }
        let flow = flow(self.server, self.client, "tcp");
        Ended::Sent(ConnectionRow { kind, id, flow, tcp, info, failure })
    }

    /// The client ends an upload with a reset; whether that was planned, its report tells.
    async fn receive(mut self, stream: TcpStream, id: u32, sample_every: Nanos) -> Ended {
        let clock = self.clock;
        let mut received = Series::new(sample_every);
        let ended = self
            .until_stop(async {
                loop {
                    match tcp::receive(&stream).await? {
                        0 => return Ok(()),
                        bytes => received.add(clock.now(), bytes as u64),
                    }
                }
            })
            .await;
        let flow = flow(self.client, self.server, "tcp");
        let failure = ended.err().filter(|cause| *cause != Cause::Reset);
        Ended::Received(UploadReceived { id, flow, received }, failure)
    }

    async fn until_stop<T>(
        &mut self,
        work: impl Future<Output = io::Result<T>>,
    ) -> Result<T, Cause> {
        tokio::select! {
            result = work => result.map_err(|error| Cause::from(&error)),
            _ = self.stop.wait_for(|stop| *stop) => Err(Cause::HardStop),
        }
    }
}

/// Sends what is asked for, and on a session what is asked for after that; returns when the
/// client has closed. Notes how many bytes that was.
async fn answer(stream: &mut TcpStream, first: Request, asked: &mut u64) -> io::Result<()> {
    stream.set_nodelay(true)?;
    tcp::set_congestion(stream, first.tcp)?;
    let mut next = Some(first);
    while let Some(request) = next {
        *asked = asked.saturating_add(request.size);
        tcp::send(stream, request.size).await?;
        if request.kind != ConnectionKind::Session {
            stream.shutdown().await?;
            // When the client closes, it has all it was sent.
            return tcp::end_of_stream(stream).await;
        }
        next = next_request(stream).await?;
    }
    Ok(())
}

/// The next request; `None` if the client has closed, or sent something else.
async fn next_request(stream: &mut TcpStream) -> io::Result<Option<Request>> {
    let mut bytes = [0; REQUEST];
    match stream.read_exact(&mut bytes).await {
        Ok(_) => Ok(Request::decode(&bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}
