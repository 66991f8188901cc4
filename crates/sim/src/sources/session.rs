//! One web session: a page at a time.

use sched::Nanos;
use workload::{CountLaw, PageLaw, Random};

use super::web::{WebConfig, WebIndex};
use crate::flow::{Connection, FlowReport};
use crate::flow_names::FlowName;
use crate::network::{NetworkError, NodeId};
use crate::recorder::{Exchange, ExchangeKind};
use crate::source::Context;

pub(super) struct Session {
    number: u32,
    client: NodeId,
    random: Random,
    /// Pages to come; `None` for a user who never leaves.
    pages_left: Option<u64>,
    /// The page that is being fetched, or the next.
    page_number: u32,
    /// When the next page begins.
    begin: Nanos,
    page: Option<Page>,
    connections: Vec<Open>,
    /// When it asked to go on.
    pub(super) waits_for: Option<Nanos>,
}

/// What a session does next.
pub(super) enum Next {
    /// It goes on at this time.
    At(Nanos),
    /// It goes on when an object is fetched.
    WhenFetched,
    /// Nothing more.
    Over,
}

struct Page {
    server: NodeId,
    began: Nanos,
    objects: Vec<Object>,
    /// Objects asked for, and those of them that are under way.
    asked: usize,
    under_way: u32,
    failed: bool,
    /// Time to think when it is complete.
    think: Nanos,
}

struct Object {
    /// When the browser knows of it.
    known: Nanos,
    bytes: u64,
}

/// A connection of the session.
struct Open {
    flow: FlowName,
    index: u64,
    server: NodeId,
    /// The object that it fetches, and since when.
    fetches: Option<(u32, Nanos)>,
}

impl Session {
    /// A session whose first page begins at `begin`; if that is not given, after a time to think.
    pub(super) fn new(
        config: &WebConfig,
        number: u32,
        pages: Option<&CountLaw>,
        mut random: Random,
        begin: Option<Nanos>,
    ) -> Self {
        let client = config.clients[random.below(config.clients.len() as u64) as usize];
        let pages_left = pages.map(|law| law.sample(&mut random));
        let begin = begin.unwrap_or_else(|| config.from + Nanos(config.think.sample(&mut random)));
        Self {
            number,
            client,
            random,
            pages_left,
            page_number: 0,
            begin,
            page: None,
            connections: Vec::new(),
            waits_for: Some(begin),
        }
    }

    /// Does all that can be done now.
    pub(super) fn go_on(
        &mut self,
        config: &WebConfig,
        context: &mut Context<'_>,
    ) -> Result<Next, NetworkError> {
        let now = context.now();
        let connections = config.connections.max(1);
        loop {
            if self.page.is_none() {
                if self.pages_left == Some(0) || self.begin >= config.until {
                    self.close_idle(None, context);
                    return Ok(Next::Over);
                }
                if self.begin > now {
                    return Ok(Next::At(self.begin));
                }
                self.begin_page(config, now);
                self.close_idle(self.page.as_ref().map(|page| page.server), context);
            }
            let Some(page) = &self.page else { return Ok(Next::Over) };
            match page.objects.get(page.asked) {
                Some(_) if page.under_way == connections => return Ok(Next::WhenFetched),
                Some(object) if object.known > now => return Ok(Next::At(object.known)),
                Some(_) => self.fetch(config, context)?,
                None if page.under_way > 0 => return Ok(Next::WhenFetched),
                None => self.end_page(context),
            }
        }
    }

    fn begin_page(&mut self, config: &WebConfig, now: Nanos) {
        let law = PageLaw {
            objects: &config.objects,
            sizes: &config.object_bytes,
            gap: &config.between_objects,
            think: &config.think,
        };
        let page = law.draw(config.servers.len(), &mut self.random);
        let object = |object: &workload::Object| Object {
            known: now + object.known,
            bytes: object.size_bytes,
        };
        self.page = Some(Page {
            server: config.servers[page.server],
            began: now,
            objects: page.objects.iter().map(object).collect(),
            asked: 0,
            under_way: 0,
            failed: false,
            think: page.think,
        });
    }

    /// Asks for the next object, on an idle connection if there is one.
    fn fetch(&mut self, config: &WebConfig, context: &mut Context<'_>) -> Result<(), NetworkError> {
        let Some(page) = &mut self.page else { return Ok(()) };
        let (number, server) = (page.asked as u32, page.server);
        let response_bytes = page.objects[page.asked].bytes;
        let request_bytes = config.request_bytes.max(1);
        page.asked += 1;
        page.under_way += 1;
        let fetches = Some((number, context.now()));
        if let Some(idle) = self.connections.iter_mut().find(|open| open.fetches.is_none()) {
            idle.fetches = fetches;
            context.exchange(idle.flow, request_bytes, response_bytes);
            return Ok(());
        }
        let index = self.index(number);
        let flow = context.connect(&Connection {
            client: self.client,
            server,
            tcp: config.tcp,
            request_bytes,
            response_bytes,
            keep_open: config.persistent,
            index,
        })?;
        self.connections.push(Open { flow, index, server, fetches });
        Ok(())
    }

    /// An object is complete.
    pub(super) fn fetched(&mut self, flow: FlowName, persistent: bool, context: &mut Context<'_>) {
        let Some(at) = self.connections.iter().position(|open| open.flow == flow) else { return };
        if persistent {
            self.report_object(&self.connections[at], Some(context.now()), context);
            self.connections[at].fetches = None;
        } else {
            self.connections.remove(at);
        }
        if let Some(page) = &mut self.page {
            page.under_way -= 1;
        }
    }

    /// A connection has failed, and with it the object that it was to fetch.
    pub(super) fn lost_connection(
        &mut self,
        report: &FlowReport,
        persistent: bool,
        context: &mut Context<'_>,
    ) {
        let lost = self.connections.iter().position(|open| open.index == report.index);
        let Some(at) = lost else { return };
        let open = self.connections.remove(at);
        if open.fetches.is_none() {
            return;
        }
        if persistent {
            self.report_object(&open, None, context);
        }
        if let Some(page) = &mut self.page {
            page.under_way -= 1;
            page.failed = true;
        }
    }

    fn end_page(&mut self, context: &mut Context<'_>) {
        let Some(page) = self.page.take() else { return };
        let now = context.now();
        self.report_page(&page, (!page.failed).then_some(now), context);
        self.pages_left = self.pages_left.map(|left| left.saturating_sub(1));
        self.page_number += 1;
        self.begin = now + page.think;
    }

    /// Closes connections that wait for requests, but for those to `server`.
    fn close_idle(&mut self, server: Option<NodeId>, context: &mut Context<'_>) {
        self.connections.retain(|open| {
            let stays = open.fetches.is_some() || Some(open.server) == server;
            if !stays {
                context.close(open.flow);
            }
            stays
        });
    }

    /// The run is over.
    pub(super) fn report_unfinished(&self, persistent: bool, context: &mut Context<'_>) {
        let Some(page) = &self.page else { return };
        if persistent {
            self.connections.iter().for_each(|open| self.report_object(open, None, context));
        }
        self.report_page(page, None, context);
    }

    fn report_page(&self, page: &Page, completed: Option<Nanos>, context: &mut Context<'_>) {
        context.report(&Exchange {
            source: context.source(),
            kind: ExchangeKind::Page,
            index: self.index(0),
            label: None,
            bytes: page.objects.iter().map(|object| object.bytes).sum(),
            due: page.began,
            sent: Some(page.began),
            completed,
        });
    }

    fn report_object(&self, open: &Open, completed: Option<Nanos>, context: &mut Context<'_>) {
        let (Some((number, sent)), Some(page)) = (open.fetches, &self.page) else { return };
        let object = &page.objects[number as usize];
        context.report(&Exchange {
            source: context.source(),
            kind: ExchangeKind::Object,
            index: self.index(number),
            label: context.label_of_answers(open.flow),
            bytes: object.bytes,
            due: object.known,
            sent: Some(sent),
            completed,
        });
    }

    fn index(&self, object: u32) -> u64 {
        WebIndex { session: self.number, page: self.page_number, object }.into()
    }
}
