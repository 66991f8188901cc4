//! The client: asks on schedule and measures.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::panic::resume_unwind;
use std::thread;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::timeout_at;
use units::Nanos;

use super::cause::{Cause, count_failures};
use super::cbr;
use super::clock::{Alarm, Clock};
use super::error::Error;
use super::pings;
use super::plan::{Plan, Session, Stream, Tcp, Transfer, Visitor};
use super::report::{
    Answer, CbrReceived, ClientReport, ConnectionKind, DownloadRow, Link, PingsRow, SessionRow,
    TransferRow, UploadRow, flow,
};
use super::role::{begin, runtime};
use super::tcp;
use super::tcp_info::TcpInfo;
use super::udp;
use super::wire::Request;

/// Plays the client until all is received or given up, at the latest to the hard stop.
///
/// `ready` is called when the server has been reached and every UDP socket is bound.
///
/// # Errors
/// If the plan is bad, its epoch has passed, a congestion control or a socket cannot be had,
/// or the server cannot be reached before the epoch.
pub fn run_client(plan: &Plan, ready: impl FnOnce()) -> Result<ClientReport, Error> {
    plan.check()?;
    begin(plan.uploads.iter().map(|upload| upload.tcp))?;
    let clock = Clock::starting(plan.epoch)?;
    let sockets = UdpSockets::bind(plan).map_err(Error::io("cannot bind UDP"))?;
    let runtime = runtime().map_err(Error::io("cannot start the client"))?;
    let control = runtime
        .block_on(open_control(plan, clock))
        .map_err(Error::io(format!("cannot reach the server at {}", plan.server_address())))?;
    Clock::starting(plan.epoch)?;
    ready();

    thread::scope(|scope| {
        let datagrams = scope.spawn(|| exchange_datagrams(plan, sockets, clock));
        let tcp = runtime.block_on(run_tcp(plan, clock));
        let datagrams = datagrams.join().unwrap_or_else(|panic| resume_unwind(panic));
        drop(control);
        let mut report = tcp.map_err(Error::io("cannot time TCP"))?;
        let datagrams = datagrams.map_err(Error::io("cannot time UDP"))?;
        report.cbr = datagrams.cbr;
        report.pings = datagrams.pings;
        report.worst_late = report.worst_late.max(datagrams.worst_late);
        Ok(report)
    })
}

/// The connection that shows the server that the client is there.
async fn open_control(plan: &Plan, clock: Clock) -> io::Result<TcpStream> {
    let asker = Asker { hard_stop: Nanos::ZERO, ..Asker::of(plan, clock) };
    let request = Request { kind: ConnectionKind::Control, tcp: Tcp::Cubic, id: 0, size: 0 };
    timeout_at(clock.deadline(Nanos::ZERO), asker.open(&mut Link::default(), request)).await?
}

/// Bound before the epoch, so that no packet finds its port closed.
struct UdpSockets {
    cbr: Vec<std::net::UdpSocket>,
    pings: Vec<std::net::UdpSocket>,
}

impl UdpSockets {
    fn bind(plan: &Plan) -> io::Result<Self> {
        let cbr = (0..plan.cbr.len()).map(|index| udp::bind(plan.cbr_address(index)));
        let any_port = SocketAddr::new(plan.client, 0);
        let pings = plan.pings.iter().map(|_| udp::bind(any_port));
        Ok(Self { cbr: cbr.collect::<io::Result<_>>()?, pings: pings.collect::<io::Result<_>>()? })
    }
}

struct Datagrams {
    cbr: Vec<CbrReceived>,
    pings: Vec<PingsRow>,
    worst_late: Nanos,
}

/// The UDP thread: receives CBR streams and pings until all is there or given up.
fn exchange_datagrams(plan: &Plan, sockets: UdpSockets, clock: Clock) -> io::Result<Datagrams> {
    let server = plan.server_address();
    runtime()?.block_on(async {
        let mut receivers = Vec::new();
        for (stream, (cbr, socket)) in (0..).zip(plan.cbr.iter().zip(sockets.cbr)) {
            let socket = UdpSocket::from_std(socket)?;
            let here = socket.local_addr()?;
            let receiver = cbr::Receiver::new(cbr, stream, server, here, clock);
            let give_up = clock.deadline(plan.give_up(cbr.stop));
            receivers.push(tokio::spawn(receiver.run(socket, give_up)));
        }
        let mut askers = Vec::new();
        for (pings, socket) in plan.pings.iter().zip(sockets.pings) {
            let socket = UdpSocket::from_std(socket)?;
            let asker = pings::Asker::new(*pings, server, socket.local_addr()?, clock);
            let give_up = clock.deadline(plan.give_up(pings.stop));
            askers.push(tokio::spawn(asker.run(socket, give_up)));
        }
        let mut all = Datagrams { cbr: Vec::new(), pings: Vec::new(), worst_late: Nanos::ZERO };
        for receiver in receivers {
            all.cbr.push(receiver.await??);
        }
        for asker in askers {
            let (row, late) = asker.await??;
            all.pings.push(row);
            all.worst_late = all.worst_late.max(late);
        }
        Ok(all)
    })
}

/// The TCP thread: one task a connection, each started when it is due.
async fn run_tcp(plan: &Plan, clock: Clock) -> io::Result<ClientReport> {
    let asker = Asker::of(plan, clock);
    let sample_every = plan.sample_every;
    let downloads: Vec<_> =
        plan.downloads.iter().map(|d| tokio::spawn(asker.download(*d, sample_every))).collect();
    let uploads: Vec<_> = plan.uploads.iter().map(|u| tokio::spawn(asker.upload(*u))).collect();
    let session = |s: &Session| tokio::spawn(asker.session(s.clone()));
    let sessions: Vec<_> = plan.sessions.iter().map(session).collect();
    let visit = |v: &Visitor| tokio::spawn(asker.visit(v.clone()));
    let visits: Vec<_> = plan.visitors.iter().map(visit).collect();
    let mut report =
        ClientReport { transfers: run_transfers(plan, asker).await?, ..Default::default() };
    for download in downloads {
        report.downloads.push(download.await?);
    }
    for upload in uploads {
        report.uploads.push(upload.await?);
    }
    for session in sessions {
        report.sessions.push(session.await?);
    }
    for visit in visits {
        report.objects.extend(visit.await??);
    }
    let (links, failures): (Vec<_>, Vec<_>) = report.connections().unzip();
    report.worst_late = links.into_iter().map(Link::late).max().unwrap_or_default();
    report.failures = count_failures(failures.into_iter().flatten());
    Ok(report)
}

/// Starts every transfer when it is due, and waits for all; rows in the plan's order.
async fn run_transfers(plan: &Plan, asker: Asker) -> io::Result<Vec<TransferRow>> {
    let mut by_start: Vec<_> = plan.transfers.iter().enumerate().collect();
    by_start.sort_by_key(|(_, transfer)| transfer.start);
    let mut alarm = Alarm::new(asker.clock)?;
    let mut running = Vec::with_capacity(by_start.len());
    for (index, transfer) in by_start {
        alarm.wait_until(transfer.start).await?;
        running.push((index, tokio::spawn(asker.transfer(*transfer))));
    }
    running.sort_by_key(|(index, _)| *index);
    let mut rows = Vec::with_capacity(running.len());
    for (_, transfer) in running {
        rows.push(transfer.await?);
    }
    Ok(rows)
}

/// Opens connections to the server and follows each to its end.
#[derive(Clone, Copy)]
struct Asker {
    client: IpAddr,
    server: SocketAddr,
    clock: Clock,
    hard_stop: Nanos,
}

impl Asker {
    fn of(plan: &Plan, clock: Clock) -> Self {
        let (client, server) = (plan.client, plan.server_address());
        Self { client, server, clock, hard_stop: plan.drain_end }
    }

    async fn transfer(self, transfer: Transfer) -> TransferRow {
        let Transfer { id, start, size_bytes, tcp } = transfer;
        let mut row = TransferRow::new(id, start);
        let request = Request { kind: ConnectionKind::Transfer, tcp, id, size: size_bytes };
        let failure = self
            .until(self.hard_stop, async {
                let stream = self.open(&mut row.link, request).await?;
                while row.bytes < size_bytes {
                    let bytes = tcp::receive(&stream).await?;
                    let now = self.clock.now();
                    if bytes == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    row.first_byte.get_or_insert(now);
                    row.bytes += bytes as u64;
                    row.end = (row.bytes >= size_bytes).then_some(now);
                }
                // The server closes first and keeps TIME_WAIT: the client's ports stay free.
                tcp::end_of_stream(&stream).await
            })
            .await;
        row.failure = failure.filter(|_| row.end.is_none());
        row
    }

    async fn download(self, download: Stream, sample_every: Nanos) -> DownloadRow {
        let Stream { id, tcp, start, stop } = download;
        let mut row = DownloadRow::new(id, start, sample_every);
        let request = Request { kind: ConnectionKind::Download, tcp, id, size: u64::MAX };
        let mut stream = None;
        let ended = self
            .until(stop, async {
                Alarm::new(self.clock)?.wait_until(start).await?;
                let stream = stream.insert(self.open(&mut row.link, request).await?);
                loop {
                    match tcp::receive(stream).await? {
                        0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                        bytes => row.received.add(self.clock.now(), bytes as u64),
                    }
                }
            })
            .await;
        if let Some(stream) = stream {
            tcp::reset(stream);
        }
        row.failure = unless_stopped(ended, &row.link);
        row
    }

    async fn upload(self, upload: Stream) -> UploadRow {
        let Stream { id, tcp, start, stop } = upload;
        let mut row = UploadRow::new(id, start, tcp);
        let request = Request { kind: ConnectionKind::Upload, tcp, id, size: u64::MAX };
        let mut stream = None;
        let ended = self
            .until(stop, async {
                Alarm::new(self.clock)?.wait_until(start).await?;
                let stream = stream.insert(self.open(&mut row.link, request).await?);
                tcp::send(stream, u64::MAX).await
            })
            .await;
        if let Some(stream) = stream {
            row.tcp = tcp::congestion(&stream).unwrap_or(tcp);
            row.info = TcpInfo::of(&stream).ok();
            tcp::reset(stream);
        }
        row.failure = unless_stopped(ended, &row.link);
        row
    }

    async fn session(self, session: Session) -> SessionRow {
        let mut row = SessionRow::new(session.id, session.due[0]);
        let SessionRow { link, answers, .. } = &mut row;
        row.failure = self.until(self.hard_stop, self.ask_all(&session, link, answers)).await;
        row
    }

    /// Sends a session's requests when they are due, and tells its answers apart.
    async fn ask_all(
        self,
        session: &Session,
        link: &mut Link,
        answers: &mut Vec<Answer>,
    ) -> io::Result<()> {
        let Session { id, tcp, size_bytes, .. } = *session;
        let request = Request { kind: ConnectionKind::Session, tcp, id, size: size_bytes };
        let mut alarm = Alarm::new(self.clock)?;
        alarm.wait_until(session.due[0]).await?;
        let mut stream = self.connect(link, request).await?;
        let mut incoming = Incoming { answer: 0, bytes: 0, of: size_bytes };
        loop {
            let due = session.due.get(answers.len()).copied();
            if due.is_none() && incoming.answer == answers.len() {
                return stream.shutdown().await;
            }
            tokio::select! {
                biased;
                received = tcp::receive(&stream) => match received? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    bytes => incoming.add(bytes as u64, self.clock.now(), answers),
                },
                woken = alarm.wait_until(due.unwrap_or_default()), if due.is_some() => {
                    woken?;
                    let sent = self.clock.now();
                    stream.write_all(&request.encode()).await?;
                    let due = due.unwrap_or(sent);
                    answers.push(Answer { due, sent, first_byte: None, end: None });
                }
            }
        }
    }

    /// Fetches pages, one after another, until no more may begin.
    async fn visit(self, visitor: Visitor) -> io::Result<Vec<TransferRow>> {
        let mut alarm = Alarm::new(self.clock)?;
        let mut rows = Vec::new();
        let mut begin = visitor.start;
        for page in visitor.pages {
            if begin >= visitor.stop {
                break;
            }
            alarm.wait_until(begin).await?;
            let mut open = JoinSet::new();
            for object in page.objects {
                let known = begin + object.start;
                alarm.wait_until(known).await?;
                let mut start = known;
                while open.len() >= visitor.connections as usize {
                    rows.extend(open.join_next().await.transpose()?);
                    start = self.clock.now();
                }
                while let Some(fetched) = open.try_join_next() {
                    rows.push(fetched?);
                }
                open.spawn(self.transfer(Transfer { start, ..object }));
            }
            while let Some(fetched) = open.join_next().await {
                rows.push(fetched?);
            }
            begin = self.clock.now() + page.think;
        }
        rows.sort_by_key(|row| row.id);
        Ok(rows)
    }

    /// Connects and asks.
    async fn open(self, link: &mut Link, request: Request) -> io::Result<TcpStream> {
        let mut stream = self.connect(link, request).await?;
        stream.write_all(&request.encode()).await?;
        Ok(stream)
    }

    async fn connect(self, link: &mut Link, request: Request) -> io::Result<TcpStream> {
        let is_upload = request.kind == ConnectionKind::Upload;
        link.start = self.clock.now();
        let stream = tcp::connect(self.client, self.server, is_upload.then_some(request.tcp))?;
        let here = stream.local_addr()?;
        let (from, to) = if is_upload { (here, self.server) } else { (self.server, here) };
        link.flow = Some(flow(from, to, "tcp"));
        tcp::connected(&stream).await?;
        link.connected = Some(self.clock.now());
        Ok(stream)
    }

    /// Runs `work` until it ends, fails, or is stopped.
    async fn until(self, stop: Nanos, work: impl Future<Output = io::Result<()>>) -> Option<Cause> {
        match timeout_at(self.clock.deadline(stop), work).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(Cause::from(&error)),
            Err(_) => Some(Cause::HardStop),
        }
    }
}

/// A long stream is meant to be stopped, if it ever stood.
fn unless_stopped(ended: Option<Cause>, link: &Link) -> Option<Cause> {
    ended.filter(|cause| *cause != Cause::HardStop || link.connected.is_none())
}

/// Where in a session's answers the next byte belongs: they come one after the other.
struct Incoming {
    answer: usize,
    /// Of that answer, bytes already here.
    bytes: u64,
    /// Bytes of each answer.
    of: u64,
}

impl Incoming {
    fn add(&mut self, bytes: u64, now: Nanos, answers: &mut [Answer]) {
        let mut left = bytes;
        while left > 0
            && let Some(answer) = answers.get_mut(self.answer)
        {
            answer.first_byte.get_or_insert(now);
            let taken = left.min(self.of - self.bytes);
            left -= taken;
            self.bytes += taken;
            if self.bytes == self.of {
                answer.end = Some(now);
                self.answer += 1;
                self.bytes = 0;
            }
        }
    }
}
