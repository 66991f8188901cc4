//! Requests and answers on a connection that stays open.

use sched::Nanos;
use workload::Requests;

use crate::flow::{Connection, FlowReport, TcpId};
use crate::flow_names::FlowName;
use crate::network::{NetworkError, NodeId};
use crate::recorder::{Exchange, ExchangeKind};
use crate::source::{Context, Source};

/// A client that asks when it is due, one request after the other on one connection.
///
/// A request that is due while another is under way waits, and its time counts from when it was
/// due. The connection is opened with the first request, and anew if it fails; the request that
/// was under way then stays unanswered.
pub struct RequestStream {
    requests: Requests,
    client: NodeId,
    server: NodeId,
    tcp: TcpId,
    /// When requests are due, in order.
    due: Vec<Nanos>,
    /// The first request that is not due yet, and the first that is neither under way nor over.
    next: usize,
    waiting: usize,
    under_way: Option<UnderWay>,
    connection: Option<FlowName>,
}

#[derive(Clone, Copy)]
struct UnderWay {
    number: usize,
    sent: Nanos,
}

impl RequestStream {
    /// Requests that are due at these times, as [`Requests::times_ns`] draws them; put in order.
    #[must_use]
    pub fn new(
        requests: Requests,
        client: NodeId,
        server: NodeId,
        tcp: TcpId,
        mut due: Vec<Nanos>,
    ) -> Self {
        due.sort_unstable();
        Self {
            requests,
            client,
            server,
            tcp,
            due,
            next: 0,
            waiting: 0,
            under_way: None,
            connection: None,
        }
    }

    /// Sends the next request if it is due and none is under way; closes after the last.
    fn ask(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        if self.under_way.is_some() {
            return Ok(());
        }
        if self.waiting == self.due.len() {
            if let Some(connection) = self.connection.take() {
                context.close(connection);
            }
            return Ok(());
        }
        if self.waiting == self.next {
            return Ok(());
        }
        let request_bytes = u64::from(self.requests.request_bytes).max(1);
        let response_bytes = u64::from(self.requests.response_bytes);
        match self.connection {
            Some(connection) => context.exchange(connection, request_bytes, response_bytes),
            None => {
                self.connection = Some(context.connect(&Connection {
                    client: self.client,
                    server: self.server,
                    tcp: self.tcp,
                    request_bytes,
                    response_bytes,
                    keep_open: true,
                    index: self.waiting as u64,
                })?);
            }
        }
        self.under_way = Some(UnderWay { number: self.waiting, sent: context.now() });
        self.waiting += 1;
        Ok(())
    }

    /// The request under way is over, one way or another.
    fn over(&mut self, completed: Option<Nanos>, context: &mut Context<'_>) {
        if let Some(UnderWay { number, sent }) = self.under_way.take() {
            self.report(number, Some(sent), completed, context);
        }
    }

    fn report(
        &self,
        number: usize,
        sent: Option<Nanos>,
        completed: Option<Nanos>,
        context: &mut Context<'_>,
    ) {
        context.report(&Exchange {
            source: context.source(),
            kind: ExchangeKind::Request,
            index: number as u64,
            label: self.connection.and_then(|flow| context.label_of_answers(flow)),
            bytes: u64::from(self.requests.response_bytes),
            due: self.due[number],
            sent,
            completed,
        });
    }
}

impl Source for RequestStream {
    fn start(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        if let Some(first) = self.due.first() {
            context.wake_at(*first);
        }
        Ok(())
    }

    fn wake(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        while self.due.get(self.next).is_some_and(|due| *due <= context.now()) {
            self.next += 1;
        }
        if let Some(next) = self.due.get(self.next) {
            context.wake_at(*next);
        }
        self.ask(context)
    }

    fn exchanged(
        &mut self,
        _flow: FlowName,
        _index: u64,
        context: &mut Context<'_>,
    ) -> Result<(), NetworkError> {
        self.over(Some(context.now()), context);
        self.ask(context)
    }

    fn done(&mut self, report: &FlowReport, context: &mut Context<'_>) -> Result<(), NetworkError> {
        if report.failure.is_none() {
            return Ok(());
        }
        self.over(None, context);
        self.connection = None;
        self.ask(context)
    }

    fn finish(&mut self, context: &mut Context<'_>) {
        self.over(None, context);
        for number in self.waiting..self.next {
            self.report(number, None, None, context);
        }
    }
}
