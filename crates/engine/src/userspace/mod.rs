//! The engine on a single interface, on any Linux since 5.15.
//!
//! Programs on the device lead its packets to the engine by way of TAP devices,
//! one a direction: from there they go through the same queue and link as between two interfaces,
//! and then out of the device, or on to where they would have arrived.
//!
//! **It fails open.** Programs let every packet pass when the engine's heartbeat is older than
//! 50 ms, so that traffic flows on if the process is stopped or stuck; if it ends, however it
//! does, the kernel removes programs and TAPs with it. When it ends in order, packets pass from
//! that moment on, and what is queued goes out at once.
//!
//! **A kernel without TCX links** (before 6.6) has filters of a clsact qdisc instead. A killed
//! process leaves one that passes everything, which the next engine on the device removes; killed
//! between making the clsact and its first filter, it leaves an empty clsact. Filters of others
//! that have the first priority see packets before the engine does, and keep from it those that
//! they decide on. And the kernel itself loses what is about to leave the device in the moment in
//! which a clsact is made or removed.
//!
//! **Super-packets** stay whole if one of 64 KB takes a millisecond at most, which is at
//! 524.288 Mbit/s and above; else the kernel splits them in front of the engine.
//!
//! What a packet carries beside its bytes does not survive the way through the engine: its mark
//! and priority, its sender's socket, and its time to leave as `fq` keeps it. Captures on the
//! device show an arriving packet twice.

mod hook;
mod nat;
mod skeleton;
mod tap;
#[cfg(test)]
mod tests;

use std::io;

use frame::LinkType;
use netdev::capabilities::{BPF, NET_ADMIN, NET_RAW, lacking};
use netdev::clsact::{self, Owner, Point};
use netdev::link::Link;
use netdev::watch::{Watch, Watched};
use sched::Rate;

use self::hook::{Facts, Placer, Programs};
use self::nat::Clients;
use self::tap::{Layer, Tap};
use crate::control::{self, Adjust};
use crate::datapath::medium::{HEADER, Medium};
use crate::error::EngineError;
use crate::forwarder::interface::{hold, look_up, system};
use crate::forwarder::{Forwarder, Way};
use crate::io::FrameIo;
use crate::io::packet_socket::PacketSocket;
use crate::settings::LinkConfig;
use crate::settings::overhead::ETHERNET_HEADER;
use crate::status::Heading;

pub use hook::HookKind;

/// Bytes of a frame that lie together at least: all headers, and most packets whole.
const HEAD: usize = 2032;
/// The same at most.
const LARGEST_HEAD: usize = 1 << 14;

impl Forwarder {
    /// Takes hold of one interface of the calling thread's network namespace, to shape what
    /// leaves by it, what arrives at it, or both. Packets take the way through the engine when it
    /// [runs](Self::run), and none before.
    ///
    /// # Errors
    /// If the interface cannot be used, permission is lacking, or a link cannot be made as
    /// configured. Then everything is as it was.
    pub fn attach(
        device: &str,
        egress: Option<LinkConfig>,
        ingress: Option<LinkConfig>,
        hook: HookKind,
    ) -> Result<Self, EngineError> {
        let (link, layer) = examine(device, egress.as_ref(), ingress.as_ref())?;
        let lock = hold(device, &link)?;
        let place = Place { device, link, layer };
        let made = place.make(egress, ingress, hook).map_err(|(doing, source)| {
            if source.kind() == io::ErrorKind::PermissionDenied {
                let capability = format!("more rights than the process has, for {doing}");
                return EngineError::Lacking { interface: device.to_owned(), capability };
            }
            system(device, doing)(source)
        })?;
        let (ways, watch) = made;
        let ports = vec![control::Port { name: device.to_owned(), ifindex: link.index, lock }];
        Ok(Self {
            ways,
            io: "TAP and AF_PACKET".to_owned(),
            ports,
            watch: Some(watch),
            following: None,
        })
    }
}

/// Refuses what [`Forwarder::attach`] would refuse, as far as that shows before it takes hold of the
/// interface, so that a caller can ask before it takes something else off.
///
/// # Errors
/// If the interface cannot be used, permission is lacking, or a link cannot be made as configured.
pub fn check(
    device: &str,
    egress: Option<&LinkConfig>,
    ingress: Option<&LinkConfig>,
) -> Result<(), EngineError> {
    examine(device, egress, ingress).map(|_| ())
}

fn examine(
    device: &str,
    egress: Option<&LinkConfig>,
    ingress: Option<&LinkConfig>,
) -> Result<(Link, Layer), EngineError> {
    if egress.is_none() && ingress.is_none() {
        return Err(EngineError::NoDirection { interface: device.to_owned() });
    }
    for config in [egress, ingress].into_iter().flatten() {
        config.check(device)?;
    }
    let link = look_up(device)?;
    let layer = layer(device, &link)?;
    if let Some(capability) = lacking(&[NET_ADMIN, NET_RAW, BPF]) {
        return Err(EngineError::Lacking { interface: device.to_owned(), capability });
    }
    Ok((link, layer))
}

/// Removes what an engine that was killed may have left on a device, as a kernel without TCX links
/// lets it. Says whether there was something.
///
/// # Errors
/// If there is no such interface, an engine runs on it, or the system refuses.
pub fn tidy_up(device: &str) -> Result<bool, EngineError> {
    let link = look_up(device)?;
    let _lock = hold(device, &link)?;
    clsact::tidy_up(Owner::Userspace, link.index).map_err(system(device, "removing what was left"))
}

fn layer(device: &str, link: &Link) -> Result<Layer, EngineError> {
    let interface = device.to_owned();
    match link {
        Link { loopback: true, .. } => Err(EngineError::Loopback { interface }),
        Link { ethernet: true, .. } => Ok(Layer::Ethernet),
        Link { ip_only: true, .. } => Ok(Layer::Ip),
        _ => Err(EngineError::Unfit { interface }),
    }
}

/// What could not be done, and what the system said.
type Failed = (&'static str, io::Error);

fn when(doing: &'static str) -> impl FnOnce(io::Error) -> Failed {
    move |error| (doing, error)
}

const TAP: &str = "making a TAP device";
const HOOK: &str = "putting a program on it";

/// Where an engine is to work.
struct Place<'a> {
    device: &'a str,
    link: Link,
    layer: Layer,
}

impl Place<'_> {
    fn make(
        &self,
        egress: Option<LinkConfig>,
        ingress: Option<LinkConfig>,
        hook: HookKind,
    ) -> Result<(Vec<Way>, Watch), Failed> {
        clsact::tidy_up(Owner::Userspace, self.link.index)
            .map_err(when("removing what an engine has left"))?;
        let tap = |config: &LinkConfig, what| self.tap(what, config.link.rate).map_err(when(TAP));
        let egress = egress
            .map(|config| Ok((tap(&config, "what leaves by")?, self.sender()?, config)))
            .transpose()?;
        let ingress =
            ingress.map(|config| Ok((tap(&config, "what arrives at")?, config))).transpose()?;
        let mut token = [0; 4];
        getrandom::fill(&mut token)
            .map_err(|error| ("drawing a random number", io::Error::other(error)))?;
        let index = |tap: &Tap| tap.index;
        let programs = Programs::load(&Facts {
            // No socket has the cookie 0, but packets that belong to none do.
            cookie: match &egress {
                Some((_, sender, _)) => sender.cookie().map_err(when("opening a packet socket"))?,
                None => u64::MAX,
            },
            token: u32::from_ne_bytes(token) | 1,
            device: self.link.index,
            egress_tap: egress.as_ref().map_or(0, |(tap, ..)| index(tap)),
            ingress_tap: ingress.as_ref().map_or(0, |(tap, _)| index(tap)),
            only_ip: self.layer == Layer::Ip,
        })
        .map_err(when("loading BPF programs"))?;

        let mut watched =
            vec![Watched { index: self.link.index, name: self.device.to_owned(), up: false }];
        for tap in egress.iter().map(|(tap, ..)| tap).chain(ingress.iter().map(|(tap, _)| tap)) {
            tap.filter(&programs.only).and_then(|()| tap.up()).map_err(when(TAP))?;
            watched.push(Watched { index: tap.index, name: tap.name.clone(), up: true });
        }
        let watch = Watch::new(watched).map_err(when("looking after the interface"))?;

        let mut placer = Placer::new(self.link.index, hook);
        let mut ways = Vec::new();
        if let Some((tap, sender, config)) = egress {
            ways.push(self.egress(tap, sender, config, &programs, &mut placer)?);
        }
        if let Some((tap, config)) = ingress {
            ways.push(self.ingress(tap, config, &programs, &mut placer, hook)?);
        }
        Ok((ways, watch))
    }

    fn tap(&self, what: &str, rate: Rate) -> io::Result<Tap> {
        let tap = Tap::new(self.layer, &format!("{what} {}", self.device))?;
        tap.suit(rate)?;
        Ok(tap)
    }

    fn sender(&self) -> Result<PacketSocket, Failed> {
        let sender = match self.layer {
            Layer::Ethernet => PacketSocket::sender(self.link.index),
            Layer::Ip => PacketSocket::ip_sender(self.link.index),
        };
        sender.map_err(when("opening a packet socket"))
    }

    fn egress(
        &self,
        tap: Tap,
        sender: PacketSocket,
        config: LinkConfig,
        programs: &Programs,
        placer: &mut Placer,
    ) -> Result<Way, Failed> {
        let hook = placer.place(&programs.out, Point::Egress).map_err(when(HOOK))?;
        let clients = self.clients(Point::Egress);
        let reader = tap.reader(programs.pulse(Point::Egress), hook, clients);
        let reader = reader.map_err(when(TAP))?;
        Ok(self.way(Heading::Egress, config, tap, Box::new(reader), Box::new(sender)))
    }

    fn ingress(
        &self,
        tap: Tap,
        config: LinkConfig,
        programs: &Programs,
        placer: &mut Placer,
        kind: HookKind,
    ) -> Result<Way, Failed> {
        let back = Placer::new(tap.index, kind).place(&programs.back, Point::Ingress);
        let writer = tap.writer(back.map_err(when(HOOK))?).map_err(when(TAP))?;
        let hook = placer.place(&programs.arrive, Point::Ingress).map_err(when(HOOK))?;
        let clients = self.clients(Point::Ingress);
        let reader = tap.reader(programs.pulse(Point::Ingress), hook, clients);
        let reader = reader.map_err(when(TAP))?;
        Ok(self.way(Heading::Ingress, config, tap, Box::new(reader), Box::new(writer)))
    }

    /// Who is behind translated addresses, where the kernel can tell: without it they are one.
    fn clients(&self, at: Point) -> Option<Clients> {
        Clients::on(self.link.index, at).ok()
    }

    fn way(
        &self,
        heading: Heading,
        config: LinkConfig,
        tap: Tap,
        input: Box<dyn FrameIo>,
        output: Box<dyn FrameIo>,
    ) -> Way {
        let (device, tap_name) = (self.device.to_owned(), tap.name.clone());
        let (from, to) = match heading {
            Heading::Egress => (tap_name, device),
            Heading::Ingress => (device, tap_name),
        };
        let (link_type, link_header) = match self.layer {
            Layer::Ethernet => (LinkType::Ethernet, ETHERNET_HEADER),
            Layer::Ip => (LinkType::RawIp, 0),
        };
        let config = LinkConfig { link_header, ..config };
        let medium = Medium {
            link_type,
            // The device's MTU may change; it says itself what is too large for it.
            largest: u32::MAX,
            head: HEAD.max((self.link.mtu + HEADER) as usize).min(LARGEST_HEAD),
            splits: true,
            outlives_down: true,
        };
        let adjust: Adjust = Box::new(move |config| tap.suit(config.link.rate));
        let (known_as, adjust) = (vec![(0, heading)], Some(adjust));
        Way { from, to, input, output, buffers: None, config, medium, known_as, adjust }
    }
}
