//! What goes in and out of a discipline.

use pyo3::prelude::*;
use sched::{Ecn, FlowId, HostId};

use crate::errors::InputError;

/// A packet as a discipline sees it.
#[pyclass(frozen, get_all, eq, hash, module = "shortlane.disciplines")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Packet {
    /// Its flow: any number above 0.
    flow: u64,
    /// Bytes.
    size: u32,
    /// The caller's name for it.
    id: u64,
    /// Byte offset of its payload in its flow, where known.
    offset: Option<u64>,
    /// Bytes of the whole flow, where known.
    flow_size: Option<u64>,
    /// Segments: more than 1 for a super-packet.
    segments: u16,
    /// The two ECN bits.
    ecn: u8,
    /// The six DSCP bits.
    dscp: u8,
    /// The sending host.
    source: u32,
    /// The receiving host.
    destination: u32,
    /// Whether the discipline has it carry "congestion experienced" from here on.
    marked: bool,
}

#[pymethods]
impl Packet {
    #[new]
    #[pyo3(signature = (flow, size, *, id = 0, offset = None, flow_size = None, segments = 1,
                        ecn = 0, dscp = 0, source = 0, destination = 0))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        flow: i128,
        size: i128,
        id: i128,
        offset: Option<i128>,
        flow_size: Option<i128>,
        segments: i128,
        ecn: i128,
        dscp: i128,
        source: i128,
        destination: i128,
    ) -> PyResult<Self> {
        // The largest number stands for "not known" in the disciplines.
        const MOST: u64 = u64::MAX - 1;
        let within = |name, value, least: u64, most: u64| within(name, value, least, most);
        let known =
            |name, value: Option<i128>| value.map(|value| within(name, value, 0, MOST)).transpose();
        Ok(Self {
            flow: within("flow", flow, 1, u64::MAX)?,
            size: within("size", size, 1, u32::MAX.into())? as u32,
            id: within("id", id, 0, u64::MAX)?,
            offset: known("offset", offset)?,
            flow_size: known("flow_size", flow_size)?,
            segments: within("segments", segments, 1, u16::MAX.into())? as u16,
            ecn: within("ecn", ecn, 0, 3)? as u8,
            dscp: within("dscp", dscp, 0, 63)? as u8,
            source: within("source", source, 0, u32::MAX.into())? as u32,
            destination: within("destination", destination, 0, u32::MAX.into())? as u32,
            marked: false,
        })
    }

    /// Only what was given.
    pub(crate) fn __repr__(&self) -> String {
        let mut text = format!("Packet(flow={}, size={}", self.flow, self.size);
        let numbers = [
            ("id", self.id, 0),
            ("segments", self.segments.into(), 1),
            ("ecn", self.ecn.into(), 0),
            ("dscp", self.dscp.into(), 0),
            ("source", self.source.into(), 0),
            ("destination", self.destination.into(), 0),
            ("offset", self.offset.unwrap_or(u64::MAX), u64::MAX),
            ("flow_size", self.flow_size.unwrap_or(u64::MAX), u64::MAX),
        ];
        for (name, value, usual) in numbers {
            if value != usual {
                text += &format!(", {name}={value}");
            }
        }
        text + if self.marked { ") marked" } else { ")" }
    }
}

fn within(name: &str, value: i128, least: u64, most: u64) -> PyResult<u64> {
    let found = u64::try_from(value).ok().filter(|value| (least..=most).contains(value));
    found.ok_or_else(|| {
        InputError::new_err(format!(
            "packet: {name} {value} is not accepted: it takes {least} to {most}"
        ))
    })
}

impl Packet {
    pub(crate) fn to_sched(&self) -> sched::Packet {
        let mut packet = sched::Packet::new(FlowId::new(self.flow), self.size)
            .with_id(self.id)
            .with_segments(self.segments)
            .with_ecn(Ecn::from_bits(self.ecn))
            .with_hosts(HostId(self.source), HostId(self.destination));
        packet.dscp = self.dscp;
        if let Some(offset) = self.offset {
            packet = packet.with_offset(offset);
        }
        match self.flow_size {
            Some(bytes) => packet.with_flow_size(bytes),
            None => packet,
        }
    }

    pub(crate) fn from_sched(packet: &sched::Packet, marked: bool) -> Self {
        Self {
            flow: packet.flow.get(),
            size: packet.size,
            id: packet.id,
            offset: packet.offset(),
            flow_size: packet.flow_size(),
            segments: packet.segments,
            ecn: match packet.ecn() {
                Ecn::NotEct => 0,
                Ecn::Ect1 => 1,
                Ecn::Ect0 => 2,
                Ecn::Ce => 3,
            },
            dscp: packet.dscp,
            source: packet.source.0,
            destination: packet.destination.0,
            marked,
        }
    }
}
