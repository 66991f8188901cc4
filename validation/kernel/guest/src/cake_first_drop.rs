//! A fault of CAKE: each queue drops one packet the first time that it is over target
//! (`docs/upstream/cake-first-drop.md`). Prints what is dropped of ten packets at once.

use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::command;

const DEVICE: &str = "dm0";
const HERE: &str = "10.77.0.1";
const THERE: &str = "10.77.0.2:9";
const PACKETS: usize = 10;
const BYTES: usize = 1_200;
/// The same queue three times, then others.
const PORTS: [u16; 6] = [1001, 1001, 1001, 1002, 1002, 1003];

pub(crate) fn run(_: &[String]) -> Result<()> {
    for line in [
        format!("ip link add {DEVICE} type dummy"),
        format!("ip address add {HERE}/24 dev {DEVICE}"),
        format!("ip link set {DEVICE} up"),
        format!("ip neighbour add 10.77.0.2 lladdr 02:00:00:00:00:02 dev {DEVICE}"),
    ] {
        command::run(&line)?;
    }
    let tbf = ["root handle 1: tbf rate 10mbit burst 5kb limit 1mb", "parent 1:1 fq_codel"];
    let settings: [(&str, &[&str]); 3] = [
        ("cake bandwidth 10mbit", &["root cake bandwidth 10mbit"]),
        ("cake bandwidth 10mbit rtt 400ms", &["root cake bandwidth 10mbit rtt 400ms"]),
        ("tbf rate 10mbit + fq_codel", &tbf),
    ];
    for (name, parts) in settings {
        let _ = command::run(&format!("tc qdisc del dev {DEVICE} root"));
        for part in parts {
            command::run(&format!("tc qdisc add dev {DEVICE} {part}"))?;
        }
        for port in PORTS {
            let before = drops()?;
            let socket = UdpSocket::bind((HERE, port))?;
            for _ in 0..PACKETS {
                socket.send_to(&[0; BYTES], THERE)?;
            }
            thread::sleep(Duration::from_secs(1));
            println!("{name}: from port {port}: {} of {PACKETS} dropped", drops()? - before);
        }
    }
    Ok(())
}

/// Of the root qdisc, which counts those of its children.
fn drops() -> Result<u64> {
    let json = command::run(&format!("tc -s -j qdisc show dev {DEVICE} root"))?;
    let all: serde_json::Value = serde_json::from_str(&json)?;
    all[0]["drops"].as_u64().context("tc tells no drops")
}
