//! Pings: the client asks on a schedule, the server answers at once.

use std::io;
use std::net::SocketAddr;

use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout_at};
use units::Nanos;

use super::clock::{Alarm, Clock};
use super::plan::Pings;
use super::report::{PingRow, PingsRow, flow};
use super::udp::{LARGEST, payload};
use super::wire::Datagram;

/// The server's side: sends every ping back with the time at which it was here; never ends.
pub(crate) async fn answer(socket: &UdpSocket, clock: Clock) -> io::Result<()> {
    let mut bytes = vec![0; LARGEST];
    loop {
        let (length, from) = socket.recv_from(&mut bytes).await?;
        let echoed = clock.now();
        if let Some(ping) = Datagram::read(&bytes[..length]) {
            Datagram { echoed, ..ping }.write(&mut bytes);
            // An answer that cannot be sent is a lost ping, which the client reports.
            let _ = socket.send_to(&bytes[..length], from).await;
        }
    }
}

/// The client's side of one stream.
pub(crate) struct Asker {
    pings: Pings,
    server: SocketAddr,
    clock: Clock,
    row: PingsRow,
    answered: u32,
    worst_late: Nanos,
}

impl Asker {
    pub(crate) fn new(pings: Pings, server: SocketAddr, here: SocketAddr, clock: Clock) -> Self {
        let flow = flow(server, here, "udp");
        let row = PingsRow { id: pings.id, flow, rows: Vec::new(), duplicates: 0 };
        Self { pings, server, clock, row, answered: 0, worst_late: Nanos::ZERO }
    }

    /// Asks and listens until every answer is there or given up; says what came, and how late
    /// it asked at worst.
    pub(crate) async fn run(
        mut self,
        socket: UdpSocket,
        give_up: Instant,
    ) -> io::Result<(PingsRow, Nanos)> {
        let ended = timeout_at(give_up, self.ask_all(&socket)).await;
        ended.unwrap_or(Ok(()))?;
        Ok((self.row, self.worst_late))
    }

    async fn ask_all(&mut self, socket: &UdpSocket) -> io::Result<()> {
        let mut alarm = Alarm::new(self.clock)?;
        let mut bytes = vec![0; LARGEST];
        let mut next = 0;
        while self.answered < self.pings.requests() {
            let due = self.pings.due(next);
            tokio::select! {
                biased;
                received = socket.recv_from(&mut bytes) => {
                    let (length, from) = received?;
                    let received = self.clock.now();
                    if let Some(pong) = Datagram::read(&bytes[..length])
                        && from == self.server
                        && pong.stream == self.pings.id
                    {
                        self.note(pong, received);
                    }
                }
                woken = alarm.wait_until(due), if next < self.pings.requests() => {
                    woken?;
                    self.ask(socket, next, due).await;
                    next += 1;
                }
            }
        }
        Ok(())
    }

    async fn ask(&mut self, socket: &UdpSocket, seq: u32, due: Nanos) {
        let mut bytes = payload(self.pings.packet_bytes, self.server);
        let sent = self.clock.now();
        Datagram { stream: self.pings.id, seq, sent, echoed: Nanos::ZERO }.write(&mut bytes);
        self.row.rows.push(PingRow { sent, answered: None, received: None });
        self.worst_late = self.worst_late.max(sent - due);
        // A request that cannot be sent is a lost ping.
        let _ = socket.send_to(&bytes, self.server).await;
    }

    fn note(&mut self, pong: Datagram, received: Nanos) {
        match self.row.rows.get_mut(pong.seq as usize) {
            None => {}
            Some(row) if row.received.is_some() => self.row.duplicates += 1,
            Some(row) => {
                row.answered = Some(pong.echoed);
                row.received = Some(received);
                self.answered += 1;
            }
        }
    }
}
