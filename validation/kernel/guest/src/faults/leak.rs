//! Attaching and detaching a thousand times leaves nothing behind, with packets queued or without.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use engine::kernel::{Order, attach, detach};

use super::bench::{Link, backlog, find, shaping, wait_until};
use super::census::{Census, kernel_memory};
use crate::traffic::{Frames, Sender, Varying};

/// Growth of the kernel's memory, in kB, that may be noise: a hundredth of what one attachment
/// takes, over all of them.
const NOISE: u64 = 2048;

pub(crate) fn run(words: &[String]) -> Result<()> {
    let rounds: u32 = words.first().map_or(Ok(1000), |word| word.parse())?;
    let _link = Link::new(1)?;
    let sender = Sender::new("v0")?;
    let census = Census::now();
    // What the kernel keeps for the next time is there after these.
    (0..20).try_for_each(|round| once(&sender, round, 0))?;
    census.wait_for_return()?;
    let begin = Instant::now();
    let before = kernel_memory()?;
    for round in 0..rounds {
        once(&sender, round, if round % 5 == 0 { 200 } else { 0 })?;
        if round % 100 == 99 {
            census.wait_for_return()?;
            let now = kernel_memory()?;
            println!(
                "leak: {} rounds in {:?}: the kernel has {now} kB, {before} before",
                round + 1,
                begin.elapsed()
            );
        }
    }
    census.wait_for_return()?;
    let mut after = 0;
    wait_until("memory returns", || {
        after = kernel_memory()?;
        std::thread::sleep(Duration::from_millis(200));
        Ok(after < before + NOISE)
    })?;
    println!("leak: {rounds} times attached and detached; kernel memory {before} kB, then {after}");
    Ok(())
}

/// Attaches one discipline or the other, queues this many packets, and detaches.
fn once(sender: &Sender, round: u32, packets: u64) -> Result<()> {
    let spec = &["efd", "fq-lanes"][round as usize % 2].parse()?;
    // So slow that none of them leaves.
    let link = shaping(Some(1_000)).link;
    attach(&Order {
        device: "v0",
        spec,
        link,
        replace: false,
        keep_offloads: false,
        per_queue: false,
    })?;
    if packets > 0 {
        sender.send(&mut Frames::new(1000, Varying::Ports(7)), packets)?;
        // One is on its way as soon as it comes.
        ensure!(backlog(&find("v0")?.status()) >= packets - 2, "they are not queued");
    }
    detach("v0")?;
    wait_until("queued packets are freed", || Ok(sender.unfreed()? == 0))
}
