//! Datagrams at given times: on/off streams and traces.

use std::collections::BTreeMap;
use std::iter::Peekable;

use sched::Nanos;
use workload::{DatagramList, OnOff, Random};

use super::plan::Pair;
use crate::flow_names::FlowName;
use crate::network::NetworkError;
use crate::source::{Context, Source};

/// One stream of datagrams, the fate of each recorded.
pub struct DatagramStream {
    datagrams: Peekable<Box<dyn Iterator<Item = (Nanos, u32)> + Send>>,
    pair: Pair,
    index: u64,
    flow: Option<FlowName>,
}

impl DatagramStream {
    /// Datagrams by time and size, in the order of times, of the stream that is called `index`.
    pub fn new(
        datagrams: impl Iterator<Item = (Nanos, u32)> + Send + 'static,
        pair: Pair,
        index: u64,
    ) -> Self {
        let datagrams: Box<dyn Iterator<Item = (Nanos, u32)> + Send> = Box::new(datagrams);
        Self { datagrams: datagrams.peekable(), pair, index, flow: None }
    }

    /// A constant rate that pauses, from `from` until before `until`.
    #[must_use]
    pub fn on_off(
        stream: OnOff,
        pair: Pair,
        index: u64,
        (from, until): (Nanos, Nanos),
        random: Random,
    ) -> Self {
        let bytes = stream.peak.packet_bytes;
        let times = stream.times(from, until, random);
        Self::new(times.map(move |at| (at, bytes)), pair, index)
    }
}

impl Source for DatagramStream {
    fn start(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        if let Some((first, _)) = self.datagrams.peek() {
            context.wake_at(*first);
        }
        Ok(())
    }

    fn wake(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        let flow = match self.flow {
            Some(flow) => flow,
            None => {
                context.open_datagrams(self.pair.sender, self.pair.receiver, self.index, true)?
            }
        };
        self.flow = Some(flow);
        let now = context.now();
        while let Some((_, bytes)) = self.datagrams.next_if(|(time, _)| *time <= now) {
            context.datagram(flow, bytes, None);
        }
        match self.datagrams.peek() {
            Some((next, _)) => context.wake_at(*next),
            None => context.close(flow),
        }
        Ok(())
    }
}

/// Datagrams of any number of streams from a list, the fate of each recorded. A stream's index is
/// its number in the list.
pub struct Trace {
    list: DatagramList,
    pair: Pair,
    /// Datagrams that each stream has still to send, and its flow once it has one.
    streams: BTreeMap<u64, (u64, Option<FlowName>)>,
    next: usize,
}

impl Trace {
    /// The datagrams of `list`.
    #[must_use]
    pub fn new(list: DatagramList, pair: Pair) -> Self {
        let mut streams = BTreeMap::new();
        for datagram in list.datagrams() {
            streams.entry(datagram.stream).or_insert((0, None)).0 += 1;
        }
        Self { list, pair, streams, next: 0 }
    }

    fn wait(&self, context: &mut Context<'_>) {
        if let Some(next) = self.list.datagrams().get(self.next) {
            context.wake_at(next.time);
        }
    }
}

impl Source for Trace {
    fn start(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        self.wait(context);
        Ok(())
    }

    fn wake(&mut self, context: &mut Context<'_>) -> Result<(), NetworkError> {
        let (now, Pair { sender, receiver }) = (context.now(), self.pair);
        while let Some(datagram) = self.list.datagrams().get(self.next) {
            if datagram.time > now {
                break;
            }
            self.next += 1;
            let Some((left, opened)) = self.streams.get_mut(&datagram.stream) else { continue };
            let flow = match *opened {
                Some(flow) => flow,
                None => context.open_datagrams(sender, receiver, datagram.stream, true)?,
            };
            *opened = Some(flow);
            context.datagram(flow, datagram.packet_bytes, None);
            *left -= 1;
            if *left == 0 {
                context.close(flow);
                self.streams.remove(&datagram.stream);
            }
        }
        self.wait(context);
        Ok(())
    }
}
