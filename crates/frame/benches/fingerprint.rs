//! What it costs to read a frame and hash its key.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use etherparse::PacketBuilder;
use frame::{Fingerprinter, LinkType};
use sched::Needs;

fn frames() -> Vec<(&'static str, Vec<u8>)> {
    let payload = [0; 1400];
    let mut frames = Vec::new();
    let mut add = |name, write: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = Vec::new();
        write(&mut frame);
        frames.push((name, frame));
    };
    add("ipv4-tcp", &|frame| {
        let builder = PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4([10; 4], [11; 4], 64);
        builder.tcp(1234, 80, 0, 1000).write(frame, &payload).unwrap();
    });
    add("ipv6-udp", &|frame| {
        let builder = PacketBuilder::ethernet2([1; 6], [2; 6]).ipv6([10; 16], [11; 16], 64);
        builder.udp(1234, 80).write(frame, &payload).unwrap();
    });
    add("qinq-ipv4-tcp", &|frame| {
        let (outer, inner) = (20.try_into().unwrap(), 10.try_into().unwrap());
        let builder = PacketBuilder::ethernet2([1; 6], [2; 6]).double_vlan(outer, inner);
        let builder = builder.ipv4([10; 4], [11; 4], 64);
        builder.tcp(1234, 80, 0, 1000).write(frame, &payload).unwrap();
    });
    add("arp", &|frame| {
        frame.extend([0xff; 12]);
        frame.extend([0x08, 0x06]);
        frame.extend([0; 46]);
    });
    frames
}

fn fingerprint(criterion: &mut Criterion) {
    let fingerprinter = Fingerprinter::from_seed(1);
    let mut group = criterion.benchmark_group("fingerprint");
    group.throughput(Throughput::Elements(1));
    let hosts = Needs { hosts: true, ..Needs::NOTHING };
    for (name, frame) in frames() {
        for (suffix, needs) in [("", Needs::NOTHING), ("+hosts", hosts)] {
            group.bench_function(format!("{name}{suffix}"), |bencher| {
                bencher.iter(|| {
                    let frame = black_box(&frame[..]);
                    fingerprinter.packet(LinkType::Ethernet, frame, frame.len() as u32, needs)
                });
            });
        }
        let key = fingerprinter.packet(LinkType::Ethernet, &frame, 60, Needs::NOTHING).key;
        group.bench_function(format!("{name}, hash alone"), |bencher| {
            bencher.iter(|| fingerprinter.flow(black_box(&key)));
        });
    }
    group.finish();
}

criterion_group!(benches, fingerprint);
criterion_main!(benches);
