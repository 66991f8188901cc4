//! Writes a synthetic capture of any length to standard output: what `replay` is timed on.
//!
//! ```text
//! cargo run --release -p shortlane-replay --example synthesize -- 5000000 64 > /tmp/5m.pcap
//! ```
//!
//! The arguments are the number of packets and how many bytes are captured of each (at least 64).
//! Of 4096 flows at a time a few send much and most send little; each is replaced by a new one
//! after 1 to 10,000 packets. Packets of 64 to 1514 bytes come at 100,000 a second on average.

use std::io::{self, BufWriter, Write};

const FLOWS: usize = 4096;

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(x ^ (x >> 31)) * u128::from(bound)) >> 64) as u64
    }
}

#[derive(Clone, Copy)]
struct Flow {
    number: u32,
    left: u64,
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let (Some(Ok(packets)), Some(Ok(captured))) = (arguments.next(), arguments.next()) else {
        eprintln!("two numbers are needed: packets, and bytes captured of each");
        std::process::exit(2);
    };
    let captured = captured.clamp(64, 1514) as usize;
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let header: [u32; 6] = [0xa1b2_3c4d, 2 | 4 << 16, 0, 0, captured as u32, 1];
    out.write_all(&header.map(u32::to_le_bytes).concat())?;
    let mut random = Random(1);
    let mut flows = [Flow { number: 0, left: 0 }; FLOWS];
    let mut begun = 0;
    let mut time_ns = 0;
    let mut frame = vec![0; 1514];
    for _ in 0..packets {
        time_ns += random.below(20_000);
        // A random number below a random number prefers the first flows.
        let bound = 1 + random.below(FLOWS as u64);
        let at = random.below(bound) as usize;
        if flows[at].left == 0 {
            begun += 1;
            flows[at] = Flow { number: begun, left: 1 + 10_000 / (1 + random.below(10_000)) };
        }
        flows[at].left -= 1;
        let length = if random.below(3) == 0 { 64 } else { 64 + random.below(1451) as usize };
        write_frame(&mut frame, flows[at].number, length);
        let kept = length.min(captured);
        let record = [
            (time_ns / 1_000_000_000) as u32,
            (time_ns % 1_000_000_000) as u32,
            kept as u32,
            length as u32,
        ];
        out.write_all(&record.map(u32::to_le_bytes).concat())?;
        out.write_all(&frame[..kept])?;
    }
    out.flush()
}

/// A UDP packet from an address and port that are the flow's own.
fn write_frame(frame: &mut [u8], flow: u32, length: usize) {
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
    frame[14..16].copy_from_slice(&[0x45, 0]);
    frame[16..18].copy_from_slice(&(length as u16 - 14).to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 17]);
    let flow = flow.to_be_bytes();
    frame[26..30].copy_from_slice(&[10, flow[0], flow[1], 1]);
    frame[30..34].copy_from_slice(&[192, 0, 2, 1]);
    frame[34..38].copy_from_slice(&[flow[2], flow[3], 1, 187]);
    frame[38..40].copy_from_slice(&(length as u16 - 34).to_be_bytes());
}
