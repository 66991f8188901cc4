//! Web sessions: pages of objects, fetched over a few connections, and time to think.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use sched::Nanos;
use workload::{CountLaw, Random, SizeLaw, TimeLaw};

use super::session::{Next, Session};
use crate::flow::{FlowReport, TcpId};
use crate::flow_names::FlowName;
use crate::network::{NetworkError, NodeId};
use crate::source::{Context, Source};

/// Who browses.
#[derive(Clone, Debug, PartialEq)]
pub enum Visitors {
    /// A fixed number of users who never leave. Each begins with a time to think.
    Users(u32),
    /// Sessions that begin as a Poisson process.
    Sessions {
        /// How many a second.
        per_second: f64,
        /// Pages of a session.
        pages: CountLaw,
    },
}

/// What a web is like.
#[derive(Clone, Debug)]
pub struct WebConfig {
    /// Who browses.
    pub visitors: Visitors,
    /// Where they are; each session has its place.
    pub clients: Vec<NodeId>,
    /// Where pages are; each page has its place.
    pub servers: Vec<NodeId>,
    /// The TCP of both.
    pub tcp: TcpId,
    /// Objects of a page; 0 counts as 1.
    pub objects: CountLaw,
    /// Bytes of an object.
    pub object_bytes: SizeLaw,
    /// Bytes that an object is asked for with; at least 1.
    pub request_bytes: u64,
    /// From one object of a page to the next: when the browser comes to know of it.
    pub between_objects: TimeLaw,
    /// From a complete page to the next of the session.
    pub think: TimeLaw,
    /// How many connections a session has at a time; 0 counts as 1. An object that is known while
    /// all are busy waits.
    pub connections: u32,
    /// Whether connections stay open for further objects of the session from the same server.
    /// If not, each object has its own connection.
    pub persistent: bool,
    /// No page begins before.
    pub from: Nanos,
    /// No page begins from then on.
    pub until: Nanos,
}

/// Names an object, or a page: the index of its flow or exchange.
///
/// It says which object of which page of which session it is, which does not depend on the order
/// in which pages get done: the same object has the same name under every discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WebIndex {
    /// The session, or user, from 0.
    pub session: u32,
    /// The page of the session, from 0.
    pub page: u32,
    /// The object of the page, from 0; 0 for the page itself.
    pub object: u32,
}

const OBJECT_BITS: u32 = 20;
const PAGE_BITS: u32 = 20;

impl From<WebIndex> for u64 {
    fn from(index: WebIndex) -> Self {
        let part = |n: u32, bits: u32| Self::from(n) & ((1 << bits) - 1);
        (Self::from(index.session) << (PAGE_BITS + OBJECT_BITS))
            | (part(index.page, PAGE_BITS) << OBJECT_BITS)
            | part(index.object, OBJECT_BITS)
    }
}

impl From<u64> for WebIndex {
    fn from(index: u64) -> Self {
        let part = |shift: u32, bits: u32| ((index >> shift) & ((1 << bits) - 1)) as u32;
        Self {
            session: (index >> (PAGE_BITS + OBJECT_BITS)) as u32,
            page: part(OBJECT_BITS, PAGE_BITS),
            object: part(0, OBJECT_BITS),
        }
    }
}

/// Web traffic. Every flow is an object (the first of those that it carries if it stays open);
/// the recorder is also told of each page, from its begin to the last byte of its last object.
///
/// Each session draws from a stream of random numbers of its own, so that pages have the same
/// objects however long they take. When a page begins depends on when the one before is done.
pub struct Web {
    config: WebConfig,
    random: Random,
    sessions: BTreeMap<u32, Session>,
    /// What is to be done: when, and for which session.
    agenda: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// When the next session begins, if sessions come and go, and its number.
    next_session: Option<Nanos>,
    number: u32,
    /// The earliest time that it has asked to be woken at and that has not come.
    wakes_at: Option<Nanos>,
}

impl Web {
    /// Nobody comes where there are no clients or no servers.
    #[must_use]
    pub fn new(config: WebConfig, random: Random) -> Self {
        let (sessions, agenda) = (BTreeMap::new(), BinaryHeap::new());
        Self { config, random, sessions, agenda, next_session: None, number: 0, wakes_at: None }
    }

    fn open_session(&mut self, pages: Option<CountLaw>, begin: Option<Nanos>) {
        let random = Random::new(self.random.below(u64::MAX));
        let session = Session::new(&self.config, self.number, pages.as_ref(), random, begin);
        self.agenda.extend(session.waits_for.map(|due| Reverse((due, self.number))));
        self.sessions.insert(self.number, session);
        self.number += 1;
    }

    fn begin_due_sessions(&mut self, now: Nanos) {
        let Visitors::Sessions { per_second, pages } = self.config.visitors.clone() else { return };
        while let Some(begin) = self.next_session.filter(|begin| *begin <= now) {
            self.open_session(Some(pages.clone()), Some(begin));
            self.next_session = self.after(begin, per_second);
        }
    }

    fn after(&mut self, time: Nanos, per_second: f64) -> Option<Nanos> {
        let gap = self.random.exponential(1e9 / per_second) as u64;
        let next = time.0.saturating_add(gap);
        (per_second > 0.0 && next < self.config.until.0).then_some(Nanos(next))
    }

    fn wait(&mut self, context: &mut Context<'_>) {
        let due = self.agenda.peek().map(|Reverse((due, _))| *due);
        if let Some(next) = due.into_iter().chain(self.next_session).min() {
            self.wake_by(next, context);
        }
    }

    /// Asks to be woken, unless it will be before: wakes must not become more and more.
    fn wake_by(&mut self, time: Nanos, context: &mut Context<'_>) {
        if self.wakes_at.is_none_or(|at| time < at) {
            self.wakes_at = Some(time);
            context.wake_at(time);
        }
    }

    /// Lets a session go on.
    fn go_on(&mut self, number: u32, context: &mut Context<'_>) -> Result<(), NetworkError> {
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        match session.go_on(&self.config, context)? {
            // An entry an instant is enough, however often a session comes to wait for it.
            Next::At(time) if session.waits_for == Some(time) => {}
            Next::At(time) => {
                session.waits_for = Some(time);
                self.agenda.push(Reverse((time, number)));
                self.wake_by(time, context);
            }
            Next::WhenFetched => {}
            Next::Over => {
                self.sessions.remove(&number);
            }
        }
        Ok(())
    }
}

impl Source for Web {
    fn start(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        if self.config.clients.is_empty() || self.config.servers.is_empty() {
            return Ok(());
        }
        match self.config.visitors {
            Visitors::Users(users) => (0..users).for_each(|_| self.open_session(None, None)),
            Visitors::Sessions { per_second, .. } => {
                self.next_session = self.after(self.config.from, per_second);
            }
        }
        self.wait(context);
        Ok(())
    }

    fn wake(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        let now = context.now();
        self.wakes_at = self.wakes_at.filter(|at| *at > now);
        self.begin_due_sessions(now);
        while let Some(Reverse((due, number))) = self.agenda.peek().copied() {
            if due > now {
                break;
            }
            self.agenda.pop();
            match self.sessions.get_mut(&number) {
                Some(session) if session.waits_for == Some(due) => session.waits_for = None,
                _ => continue, // it went on without it
            }
            self.go_on(number, context)?;
        }
        self.wait(context);
        Ok(())
    }

    fn exchanged(
        &mut self,
        flow: FlowName,
        index: u64,
        context: &mut Context<'_>,
    ) -> Result<(), NetworkError> {
        let number = WebIndex::from(index).session;
        if let Some(session) = self.sessions.get_mut(&number) {
            session.fetched(flow, self.config.persistent, context);
        }
        self.go_on(number, context)
    }

    fn done(&mut self, report: &FlowReport, context: &mut Context<'_>) -> Result<(), NetworkError> {
        if report.failure.is_none() {
            return Ok(());
        }
        let number = WebIndex::from(report.index).session;
        if let Some(session) = self.sessions.get_mut(&number) {
            session.lost_connection(report, self.config.persistent, context);
        }
        self.go_on(number, context)
    }

    fn finish(&mut self, context: &mut Context<'_>) {
        for session in self.sessions.values() {
            session.report_unfinished(self.config.persistent, context);
        }
    }
}
