//! Every queue of a scheduler is used once before a block.
//!
//! A queue of CAKE that was never used drops one packet the first time that it is over target
//! (`docs/upstream/cake-first-drop.md`). A router that has run for an hour has no such queues left,
//! so they are not what is to be compared.

use std::net::{IpAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use nix::sys::socket::{setsockopt, sockopt};

/// Flows of each class: nine of ten of 1,024 queues get one.
const FLOWS: u32 = 2_500;
/// One enters CoDel's dropping state, one is dropped.
const PACKETS: u32 = 4;
/// Bytes of a packet's data: all of them take a second at 10 Mbit/s.
const BYTES: usize = 20;
/// Best effort, and CS1, which CAKE has a tin for.
const CLASSES: [i32; 2] = [0, 0x20];
const DRAINED: Duration = Duration::from_millis(2_500);

/// Sends a few packets of many flows at once, and waits until all have left.
pub(super) fn flood(from: IpAddr, to: IpAddr) -> Result<()> {
    for class in CLASSES {
        for _ in 0..FLOWS {
            let socket = UdpSocket::bind((from, 0))?;
            setsockopt(&socket, sockopt::Ipv4Tos, &class)?;
            for _ in 0..PACKETS {
                // The other end has nobody there and may say so.
                let _ = socket.send_to(&[0; BYTES], (to, 9));
            }
        }
        thread::sleep(DRAINED);
    }
    Ok(())
}
