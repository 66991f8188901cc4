//! A bridge between two interfaces, with a queue and a link in each direction.

pub(crate) mod ports;

use self::ports::{Io, Port, take_io};
use crate::control;
use crate::datapath::medium::Medium;
use crate::error::EngineError;
use crate::forwarder::{Forwarder, Way};
use crate::settings::LinkConfig;
use crate::status::Heading;

impl Forwarder {
    /// Takes hold of two interfaces of the calling thread's network namespace, to join them as by
    /// a bridge. Frames are received from now on, and passed on when the engine
    /// [runs](Self::run). The first direction is from left to right.
    ///
    /// # Errors
    /// If an interface cannot be used, or a link cannot be made as configured.
    pub fn bridge(
        left: &str,
        right: &str,
        left_to_right: LinkConfig,
        right_to_left: LinkConfig,
        io: Io,
    ) -> Result<Self, EngineError> {
        const LEFT: usize = 0;
        const RIGHT: usize = 1;
        for (config, to) in [(&left_to_right, right), (&right_to_left, left)] {
            config.check(to)?;
        }
        if left == right {
            return Err(EngineError::SameInterface { interface: left.to_owned() });
        }
        let ports = [Port::open(left)?, Port::open(right)?];
        let configs = [left_to_right, right_to_left];
        let (halves, io) = take_io(&ports, &configs, io)?;
        let ends = [(LEFT, RIGHT), (RIGHT, LEFT)];
        let ways =
            halves.into_iter().zip(configs).zip(ends).map(|((half, config), (from, to))| Way {
                from: ports[from].name.clone(),
                to: ports[to].name.clone(),
                input: half.input,
                output: half.output,
                buffers: half.buffers,
                config,
                medium: Medium::bridged(ports[to].link.mtu),
                known_as: vec![(to, Heading::Egress), (from, Heading::Ingress)],
                adjust: None,
            });
        let ways = ways.collect();
        let held = |port: Port| control::Port {
            name: port.name,
            ifindex: port.link.index,
            lock: port.lock,
        };
        Ok(Self { ways, io, ports: ports.map(held).into(), watch: None, following: None })
    }
}
