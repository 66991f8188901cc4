//! Drives a direction with fake I/O and a fake clock, for fuzzing and soak tests.

mod trips;

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};

use frame::Fingerprinter;
use sched::edge::EdgeSpec;
use sched::{Nanos, ParamError};

pub use self::trips::RoundTrips;
use crate::datapath::buffers::Buffers;
use crate::datapath::command::Command;
use crate::datapath::direction::{Direction, Parts};
use crate::datapath::frame_io::FrameIo;
use crate::datapath::medium::Medium;
use crate::datapath::observe::Observer;
use crate::datapath::report::DirectionReport;
use crate::datapath::shaper::Pacing;
use crate::settings::LinkConfig;

/// One direction of an engine, without its thread and its clock.
pub struct Harness<O: Observer> {
    direction: Direction<O>,
    commands: Sender<Command>,
}

impl<O: Observer> Harness<O> {
    /// From `input` to `output`, of which an interface has this MTU.
    #[must_use]
    pub fn new(
        input: Box<dyn FrameIo>,
        output: Box<dyn FrameIo>,
        buffers: Buffers,
        config: &LinkConfig,
        observer: O,
        mtu: u32,
    ) -> Self {
        let (commands, receiver) = channel();
        let parts = Parts {
            input,
            output,
            qdisc: config.spec.clone().on_link(config.link.rate).build(config.seed),
            tagger: config.edge.as_ref().map(EdgeSpec::build),
            observer,
            fingerprinter: Fingerprinter::from_seed(config.seed),
            needs: config.spec.info().needs,
            pacing: Pacing::on(config),
            delay: config.delay,
            commands: Some(receiver),
            medium: Medium::bridged(mtu),
            note: None,
        };
        Self { direction: Direction::new(parts, buffers), commands }
    }

    /// Does all that is to be done at this time. An output that has taken nothing is asked again.
    ///
    /// # Errors
    /// If the input or the output fails for good.
    pub fn turn(&mut self, now: Nanos) -> io::Result<()> {
        self.direction.unblock();
        self.direction.work(|| now).map(|_| ()).map_err(|fault| fault.error)
    }

    /// Asks for other parameters and another rate; the next turn sees to it, and the answer is
    /// there after it.
    pub fn change(&mut self, config: &LinkConfig) -> Receiver<Result<(), ParamError>> {
        let (answer, answered) = sync_channel(1);
        let params = config.spec.clone().on_link(config.link.rate).params().clone();
        // The direction has the other end.
        let _ = self.commands.send(Command::Change(params, Pacing::on(config), answer));
        answered
    }

    /// What it has counted so far.
    pub fn counted(&mut self) -> DirectionReport {
        self.direction.counted()
    }
}
