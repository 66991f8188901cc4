//! Has the rate of queues inside the kernel follow the link: a process beside them that looks.
//!
//! No packet passes here. What the queues have sent is what they count; when a probe or a packet of
//! TCP leaves and is answered is what a socket on the device sees; rates are set as `change` sets
//! them.

mod counter;
mod tap;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use frame::{Fingerprinter, LinkType};
use netdev::link::index_of;
use sched::Rate;

use self::counter::Counter;
use self::tap::Tap;
use crate::control::{Changes, Followed, Following, Pilot, Port, Refusal, Server, Steered};
use crate::datapath::follow::{Gauge, Note, Passing, Stamps};
use crate::datapath::trips::Trips;
use crate::error::EngineError;
use crate::forwarder::interface::{hold, look_up, system};
use crate::kernel::ingress_device;
use crate::status::{Heading, Status};

/// Queues inside the kernel, of one device.
pub trait Queues {
    /// What each direction is and has counted.
    ///
    /// # Errors
    /// Why that cannot be told.
    fn status(&mut self) -> Result<Vec<Status>, Refusal>;

    /// Changes them while packets are queued: all of it, or nothing.
    ///
    /// # Errors
    /// Why not.
    fn change(&mut self, changes: &Changes) -> Result<(), Refusal>;

    /// Gives a direction another rate, and changes nothing else.
    ///
    /// # Errors
    /// Why not.
    fn set(&mut self, heading: Heading, rate: Rate) -> Result<(), Refusal>;

    /// Called every 25 ms.
    fn tick(&mut self) {}
}

/// Has the rates of a device follow the link. Nobody else does meanwhile.
pub struct Follower<Q> {
    server: Server<Ways<Q>>,
    tap: Tap,
    /// Counts what is in front of a probe.
    sent: Option<Arc<Counter>>,
    departing: Note,
    returning: Note,
}

struct Ways<Q> {
    queues: Q,
    ways: Vec<Way>,
    dry_run: bool,
    /// Why there is nothing to steer any more.
    fault: Option<String>,
}

struct Way {
    heading: Heading,
    counter: Arc<Counter>,
    /// At what the rate is left, if it follows.
    base: Option<Rate>,
}

impl<Q: Queues> Follower<Q> {
    /// Takes hold of a device on which queues have been made. `log` is told what an operator
    /// should know, a line each.
    ///
    /// # Errors
    /// If there is no such device, somebody holds it, it has no queues, or permission is lacking.
    pub fn new(
        device: &str,
        following: &Following,
        mut queues: Q,
        log: impl FnMut(&str) + Send + 'static,
    ) -> Result<Self, EngineError> {
        let link = look_up(device)?;
        let lock = hold(device, &link)?;
        let ports = vec![Port { name: device.to_owned(), ifindex: link.index, lock }];
        let found = queues.status().map_err(|refusal| io::Error::other(refusal.text));
        let found = found.map_err(system(device, "looking at its queues"))?;
        let mut token = [0; 8];
        getrandom::fill(&mut token)
            .map_err(|error| system(device, "drawing a random number")(io::Error::other(error)))?;
        let stamps = Arc::new(Stamps::new(token));
        let trips = Fingerprinter::random().map(Trips::new).map_err(io::Error::other);
        let trips = Arc::new(trips.map_err(system(device, "drawing a random number"))?);
        let note = |passing| Note {
            gauge: Arc::new(Gauge::default()),
            stamps: Arc::clone(&stamps),
            passing,
            trips: Some(Arc::clone(&trips)),
            link: if link.ethernet { LinkType::Ethernet } else { LinkType::RawIp },
        };
        let (departing, returning) = (note(Passing::Departing), note(Passing::Returning));
        let (mut ways, mut followed) = (Vec::new(), Vec::new());
        let (mut sent, mut most) = (None, Rate(0));
        for status in found {
            let (note, bounds) = match status.direction {
                Heading::Egress => (&departing, following.egress),
                Heading::Ingress => (&returning, following.ingress),
            };
            let index = match status.direction {
                Heading::Egress => Ok(link.index),
                Heading::Ingress => index_of_ifb(device),
            };
            let gauge = Arc::clone(&note.gauge);
            let counter = index.and_then(|index| Counter::new(index, status.framing, gauge));
            let counter = counter.map_err(system(device, "reading what its queues count"))?;
            let (counter, base) = (Arc::new(counter), bounds.map(|bounds| bounds.base()));
            if status.direction == Heading::Egress {
                sent = Some(Arc::clone(&counter));
            }
            ways.push(Way { heading: status.direction, counter, base });
            let (gauge, rate) = (Arc::clone(&note.gauge), status.link.rate);
            most = most.max(bounds.map_or(rate, |bounds| bounds.ceiling()));
            followed.push(Followed { gauge, passing: note.passing, rate, bounds });
        }
        let seen = (Arc::clone(&stamps), Some(Arc::clone(&trips)));
        let pilot = Pilot::new(device, following, seen, followed, Box::new(log));
        let pilot = pilot.map_err(system(device, "probing"))?;
        let tap = Tap::open(link.index, token, most);
        let tap = tap.map_err(system(device, "opening a packet socket"))?;
        let ways = Ways { queues, ways, dry_run: following.dry_run, fault: None };
        let server = Server::new(ports, ways, Some(pilot));
        Ok(Self { server, tap, sent, departing, returning })
    }

    /// Follows until `stop` is set, a client asks for the end, no rate follows any more, or the
    /// queues are gone, of which it tells. It leaves each rate that followed at its base. `ready`
    /// is called when it answers.
    ///
    /// # Errors
    /// If the system has no threads.
    pub fn run(
        self,
        stop: &AtomicBool,
        ready: impl FnOnce(),
    ) -> Result<Option<String>, EngineError> {
        let Self { mut server, tap, sent, departing, returning } = self;
        let device = server.ports[0].name.clone();
        let halt = AtomicBool::new(false);
        let ended = thread::scope(|scope| {
            let seeing = thread::Builder::new().spawn_scoped(scope, || {
                let ended = tap.run(&halt, sent.as_deref(), &departing, &returning);
                halt.store(true, Ordering::Relaxed);
                ended
            })?;
            ready();
            server.serve(stop, &halt);
            halt.store(true, Ordering::Relaxed);
            seeing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let rested = server.steered.rest();
        ended.map_err(system(&device, "looking for probes"))?;
        Ok(rested)
    }
}

impl<Q: Queues> Ways<Q> {
    /// Leaves each rate that follows at its base. Tells why it ends, or why that could not be done.
    fn rest(&mut self) -> Option<String> {
        if self.fault.is_some() || self.dry_run {
            return self.fault.take();
        }
        let queues = &mut self.queues;
        let bases = self.ways.iter().filter_map(|way| Some((way.heading, way.base?)));
        let failed = bases.filter_map(|(heading, base)| queues.set(heading, base).err());
        failed.last().map(|refusal| refusal.text)
    }
}

fn index_of_ifb(device: &str) -> io::Result<u32> {
    let ifb = ingress_device(device).map_err(io::Error::other)?;
    index_of(&ifb.unwrap_or_default())
}

impl<Q: Queues> Steered for Ways<Q> {
    const ENDS_UNSTEERED: bool = true;

    fn status(&mut self, _: &[Port], _: usize) -> Result<Vec<(usize, Status)>, Refusal> {
        let found = self.queues.status()?;
        let place = |heading| self.ways.iter().position(|way| way.heading == heading);
        Ok(found.into_iter().filter_map(|one| Some((place(one.direction)?, one))).collect())
    }

    fn change(
        &mut self,
        _: &[Port],
        _: usize,
        changes: &Changes,
        is_set: &mut dyn FnMut(usize, Rate),
    ) -> Result<(), Refusal> {
        self.queues.change(changes)?;
        for (at, way) in self.ways.iter_mut().enumerate() {
            if let Some(rate) = changes.link(way.heading).rate {
                way.base = None;
                is_set(at, rate);
            }
        }
        Ok(())
    }

    fn set(&mut self, way: usize, rate: Rate) -> Result<(), Refusal> {
        self.queues.set(self.ways[way].heading, rate)
    }

    fn look(&mut self) -> bool {
        self.queues.tick();
        let looked = self.ways.iter().try_for_each(|way| way.counter.look());
        self.fault = looked.err().map(|error| error.to_string());
        self.fault.is_none()
    }
}
