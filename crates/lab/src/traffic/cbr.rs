//! Constant bit rate streams: the server sends, the client notes what arrives.

use std::io;
use std::net::SocketAddr;

use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use units::Nanos;

use super::clock::{Alarm, Clock};
use super::plan::Cbr;
use super::report::{CbrArrival, CbrReceived, CbrSent, flow};
use super::udp::{LARGEST, payload};
use super::wire::Datagram;

/// The server's end of a stream.
pub(crate) struct Sender {
    pub(crate) cbr: Cbr,
    /// Its place in the plan.
    pub(crate) stream: u32,
    pub(crate) to: SocketAddr,
    pub(crate) clock: Clock,
}

impl Sender {
    /// Sends to the end of the schedule or until `stop`; says what, and how late at worst.
    pub(crate) async fn run(
        self,
        socket: &UdpSocket,
        mut stop: watch::Receiver<bool>,
    ) -> io::Result<(CbrSent, Nanos)> {
        let name = self.cbr.name.clone();
        let mut sent = CbrSent { name, sent: Vec::new(), refused: Vec::new() };
        let mut worst_late = Nanos::ZERO;
        tokio::select! {
            result = self.send_all(socket, &mut sent, &mut worst_late) => result?,
            _ = stop.wait_for(|stop| *stop) => {}
        }
        Ok((sent, worst_late))
    }

    async fn send_all(
        &self,
        socket: &UdpSocket,
        sent: &mut CbrSent,
        worst_late: &mut Nanos,
    ) -> io::Result<()> {
        let mut alarm = Alarm::new(self.clock)?;
        let mut bytes = payload(self.cbr.packet_bytes, self.to);
        for seq in 0..self.cbr.packets() {
            let due = self.cbr.due(seq);
            alarm.wait_until(due).await?;
            let sent_at = self.clock.now();
            Datagram { stream: self.stream, seq, sent: sent_at, echoed: Nanos::ZERO }
                .write(&mut bytes);
            // Noted before anything can cancel: a packet that was sent has a row.
            sent.sent.push(sent_at);
            *worst_late = (*worst_late).max(sent_at - due);
            if socket.send_to(&bytes, self.to).await.is_err() {
                sent.refused.push(seq);
            }
        }
        Ok(())
    }
}

/// The client's end of a stream.
pub(crate) struct Receiver {
    stream: u32,
    server: SocketAddr,
    clock: Clock,
    /// By number: whether the packet has arrived.
    seen: Vec<bool>,
    newest: Option<u32>,
    received: CbrReceived,
}

impl Receiver {
    pub(crate) fn new(
        cbr: &Cbr,
        stream: u32,
        server: SocketAddr,
        here: SocketAddr,
        clock: Clock,
    ) -> Self {
        let received = CbrReceived {
            name: cbr.name.clone(),
            flow: flow(server, here, "udp"),
            arrivals: Vec::new(),
            duplicates: 0,
            reordered: 0,
        };
        let seen = vec![false; cbr.packets() as usize];
        Self { stream, server, clock, seen, newest: None, received }
    }

    /// Receives until every packet is there or given up.
    pub(crate) async fn run(
        mut self,
        socket: UdpSocket,
        give_up: Instant,
    ) -> io::Result<CbrReceived> {
        let ended = timeout_at(give_up, self.receive_all(&socket)).await;
        ended.unwrap_or(Ok(()))?;
        Ok(self.received)
    }

    async fn receive_all(&mut self, socket: &UdpSocket) -> io::Result<()> {
        let mut bytes = vec![0; LARGEST];
        while self.received.arrivals.len() < self.seen.len() {
            let (length, from) = socket.recv_from(&mut bytes).await?;
            let received = self.clock.now();
            match Datagram::read(&bytes[..length]) {
                Some(packet) if from == self.server && packet.stream == self.stream => {
                    self.note(packet, received);
                }
                _ => {} // a stranger's
            }
        }
        Ok(())
    }

    fn note(&mut self, packet: Datagram, received: Nanos) {
        let Datagram { seq, sent, .. } = packet;
        match self.seen.get_mut(seq as usize) {
            None => return,
            Some(true) => {
                self.received.duplicates += 1;
                return;
            }
            Some(seen) => *seen = true,
        }
        self.received.arrivals.push(CbrArrival { seq, sent, received });
        if self.newest.is_some_and(|newest| seq < newest) {
            self.received.reordered += 1;
        }
        self.newest = self.newest.max(Some(seq));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reordered_duplicate_and_foreign_packets_are_told_apart() {
        let cbr = Cbr {
            name: "video".into(),
            rate: units::Rate(8_000),
            packet_bytes: 100,
            start: Nanos::ZERO,
            stop: Nanos::from_millis(500),
        };
        assert_eq!(cbr.packets(), 5);
        let address: SocketAddr = "10.0.0.1:5000".parse().unwrap();
        let mut receiver = Receiver::new(&cbr, 0, address, address, Clock::new(Nanos::ZERO));
        for (seq, received) in [(0, 1), (2, 2), (1, 3), (2, 4), (4, 5), (5, 6), (3, 7)] {
            let datagram = Datagram { stream: 0, seq, sent: Nanos::ZERO, echoed: Nanos::ZERO };
            receiver.note(datagram, Nanos(received));
        }
        let received = receiver.received;
        let order: Vec<_> = received.arrivals.iter().map(|a| (a.seq, a.received.0)).collect();
        assert_eq!(order, [(0, 1), (2, 2), (1, 3), (4, 5), (3, 7)]);
        assert_eq!((received.duplicates, received.reordered), (1, 2));
    }
}
