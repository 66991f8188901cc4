//! Small captures, made byte by byte.

#![allow(dead_code)]

use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use measure::{EventWriter, RunInfo, SCHEMA_VERSION};
use replay::capture::{Capture, CaptureError};
use replay::{Config, Report, Tables};
use sched::{Amount, Nanos, Rate};

/// A UDP packet of flow `flow` in an Ethernet frame of `length` bytes, at least 42.
pub(crate) fn udp(flow: u16, length: usize) -> Vec<u8> {
    transport(17, &[&(1000 + flow).to_be_bytes()[..], &[0, 53, 0, 8, 0, 0]].concat(), length)
}

/// A TCP segment of flow `flow`.
pub(crate) fn tcp(flow: u16, sequence: u32, syn: bool, length: usize) -> Vec<u8> {
    let mut header = [(1000 + flow).to_be_bytes(), 80u16.to_be_bytes()].concat();
    header.extend(sequence.to_be_bytes());
    header.extend([0, 0, 0, 0, 0x50, if syn { 2 } else { 16 }, 0, 0, 0, 0, 0, 0]);
    transport(6, &header, length)
}

fn transport(protocol: u8, header: &[u8], length: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
    frame.extend((length.max(42) as u16 - 14).to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend(header);
    frame.resize(length.max(frame.len()), 0);
    frame
}

/// Byte order and unit of a pcap file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flavour {
    pub big_endian: bool,
    pub(crate) nanoseconds: bool,
}

pub(crate) const USUAL: Flavour = Flavour { big_endian: false, nanoseconds: true };

impl Flavour {
    pub(crate) fn u32(self, value: u32) -> [u8; 4] {
        if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub(crate) fn u16(self, value: u16) -> [u8; 2] {
        if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub(crate) fn header(self, linktype: u32) -> Vec<u8> {
        let magic = if self.nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
        let mut file = self.u32(magic).to_vec();
        file.extend([self.u16(2), self.u16(4)].concat());
        file.extend([self.u32(0), self.u32(0), self.u32(65535), self.u32(linktype)].concat());
        file
    }

    pub(crate) fn record(self, time_ns: u64, bytes: &[u8], wire_length: u32) -> Vec<u8> {
        let (seconds, rest) = (time_ns / 1_000_000_000, (time_ns % 1_000_000_000) as u32);
        let fraction = if self.nanoseconds { rest } else { rest / 1000 };
        let captured = bytes.len() as u32;
        let head = [seconds as u32, fraction, captured, wire_length].map(|n| self.u32(n));
        [&head.concat(), bytes].concat()
    }
}

/// A pcap file of whole packets.
pub(crate) fn pcap(packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut file = USUAL.header(1);
    for (time, bytes) in packets {
        file.extend(USUAL.record(*time, bytes, bytes.len() as u32));
    }
    file
}

/// A pcapng block.
pub(crate) fn block(order: Flavour, kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let length = order.u32(padded as u32 + 12);
    let mut block = [order.u32(kind), length].concat();
    block.extend(body);
    block.resize(8 + padded, 0);
    block.extend(length);
    block
}

pub(crate) fn section(order: Flavour) -> Vec<u8> {
    let mut body = order.u32(0x1a2b_3c4d).to_vec();
    body.extend([order.u16(1), order.u16(0)].concat());
    body.extend([0xff; 8]);
    block(order, 0x0a0d_0d0a, &body)
}

pub(crate) fn interface(order: Flavour, linktype: u16, options: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = [order.u16(linktype), order.u16(0)].concat();
    body.extend(order.u32(0));
    for (code, value) in options {
        body.extend([order.u16(*code), order.u16(value.len() as u16)].concat());
        body.extend(*value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    block(order, 1, &body)
}

pub(crate) fn enhanced(
    order: Flavour,
    interface: u32,
    ticks: u64,
    bytes: &[u8],
    wire: u32,
) -> Vec<u8> {
    let head = [interface, (ticks >> 32) as u32, ticks as u32, bytes.len() as u32, wire];
    block(order, 6, &[&head.map(|n| order.u32(n)).concat(), bytes].concat())
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn config(rate_bps: u64, schedulers: &[&str]) -> Config {
    Config {
        schedulers: schedulers.iter().map(|spec| spec.parse().unwrap()).collect(),
        rate: Rate(rate_bps),
        limit: Amount::Packets(300),
        seed: 1,
        idle: Nanos::from_secs(60),
    }
}

/// A replay that writes nothing.
pub(crate) fn replay(config: &Config, file: &[u8]) -> Result<Report, CaptureError> {
    let capture = Capture::open(file)?;
    let go_on = AtomicBool::new(false);
    replay::run(config, capture, &mut Tables::new(), &go_on, &mut |_| {})
}

/// A packet event as it stands in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) index: u64,
    pub(crate) arrival: u64,
    pub(crate) size: u64,
    pub(crate) flow: String,
    pub(crate) lane: Option<u8>,
    pub(crate) outcome: String,
    pub(crate) reason: String,
    pub(crate) departure: Option<u64>,
}

/// A replay with its packet events, by scheduler.
pub(crate) fn events(config: &Config, file: &[u8]) -> (Report, Vec<Vec<Event>>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.csv");
    let writer = EventWriter::for_path(&path).unwrap().unwrap();
    let mut tables = Tables::new().with_events(writer, &path);
    let go_on = AtomicBool::new(false);
    let capture = Capture::open(file).unwrap();
    let report = replay::run(config, capture, &mut tables, &go_on, &mut |_| {}).unwrap();
    tables.finish(&info(), false).unwrap();
    let rows = read_events(&path, config);
    (report, rows)
}

fn read_events(path: &Path, config: &Config) -> Vec<Vec<Event>> {
    let names: Vec<String> = config.schedulers.iter().map(ToString::to_string).collect();
    let mut rows = vec![Vec::new(); names.len()];
    let mut reader = csv::Reader::from_path(path).unwrap();
    let columns = "scheduler,index,arrival_ns,size_bytes,flow,lane,outcome,reason,departure_ns";
    assert_eq!(reader.headers().unwrap().iter().collect::<Vec<_>>().join(","), columns);
    for (number, record) in reader.records().enumerate() {
        let cells: Vec<String> = record.unwrap().iter().map(str::to_owned).collect();
        let scheduler = names.iter().position(|name| *name == cells[0]).unwrap();
        assert_eq!(scheduler, number % names.len(), "packet by packet, in the order given");
        rows[scheduler].push(Event {
            index: cells[1].parse().unwrap(),
            arrival: cells[2].parse().unwrap(),
            size: cells[3].parse().unwrap(),
            flow: cells[4].clone(),
            lane: cells[5].parse().ok(),
            outcome: cells[6].clone(),
            reason: cells[7].clone(),
            departure: cells[8].parse().ok(),
        });
    }
    rows
}

pub(crate) fn info() -> RunInfo {
    RunInfo {
        run: replay::RUN.into(),
        engine: None,
        schema: SCHEMA_VERSION,
        command: Vec::new(),
        version: String::new(),
        started: None,
        machine: None,
        ended_early: None,
        seed: 1,
        scenario: serde_json::Value::Null,
    }
}
