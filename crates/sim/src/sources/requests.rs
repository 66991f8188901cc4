//! Requests and answers on a connection that stays open.

use std::collections::VecDeque;
use std::iter::Peekable;

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
    /// Requests to come.
    due: Peekable<Box<dyn Iterator<Item = Nanos> + Send>>,
    /// How many have been due.
    count: u64,
    /// Requests that wait for the one under way.
    waiting: VecDeque<Request>,
    under_way: Option<(Request, Nanos)>,
    connection: Option<FlowName>,
}

#[derive(Clone, Copy)]
struct Request {
    index: u64,
    due: Nanos,
}

impl RequestStream {
    /// Requests that are due at these times, which are in order; [`Requests::drawn`] draws
    /// such times.
    pub fn new(
        requests: Requests,
        client: NodeId,
        server: NodeId,
        tcp: TcpId,
        due: impl Iterator<Item = Nanos> + Send + 'static,
    ) -> Self {
        let due: Box<dyn Iterator<Item = Nanos> + Send> = Box::new(due);
        Self {
            requests,
            client,
            server,
            tcp,
            due: due.peekable(),
            count: 0,
            waiting: VecDeque::new(),
            under_way: None,
            connection: None,
        }
    }

    /// Sends the next request if none is under way; closes after the last.
    fn ask(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        if self.under_way.is_some() {
            return Ok(());
        }
        let Some(request) = self.waiting.pop_front() else {
            if self.due.peek().is_none()
                && let Some(connection) = self.connection.take()
            {
                context.close(connection);
            }
            return Ok(());
        };
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
                    index: request.index,
                })?);
            }
        }
        self.under_way = Some((request, context.now()));
        Ok(())
    }

    /// The request under way is over, one way or another.
    fn over(&mut self, completed: Option<Nanos>, context: &mut Context<'_>) {
        if let Some((request, sent)) = self.under_way.take() {
            self.report(request, Some(sent), completed, context);
        }
    }

    fn report(
        &self,
        request: Request,
        sent: Option<Nanos>,
        completed: Option<Nanos>,
        context: &mut Context<'_>,
    ) {
        context.report(&Exchange {
            source: context.source(),
            kind: ExchangeKind::Request,
            index: request.index,
            label: self.connection.and_then(|flow| context.label_of_answers(flow)),
            bytes: u64::from(self.requests.response_bytes),
            due: request.due,
            sent,
            completed,
        });
    }

    fn wait(&mut self, context: &mut Context<'_>) {
        if let Some(next) = self.due.peek() {
            context.wake_at(*next);
        }
    }
}

impl Source for RequestStream {
    fn start(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        self.wait(context);
        Ok(())
    }

    fn wake(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        while let Some(due) = self.due.next_if(|due| *due <= context.now()) {
            self.waiting.push_back(Request { index: self.count, due });
            self.count += 1;
        }
        self.wait(context);
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
        for request in &self.waiting {
            self.report(*request, None, None, context);
        }
    }
}
