//! A pair of interfaces: frames go out at one, through the qdisc, and come in at the other.

use std::io;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use engine::buffers::{Buffers, Offload};
use engine::io::{BATCH, FrameIo};
use engine::packet_socket::PacketSocket;
use netdev::link::Links;

use super::frames::{Door, Frame, SuperKind};

/// Runs a command that must succeed; gives what it printed.
pub(crate) fn run_command(line: &str) -> Result<String> {
    let mut words = line.split_whitespace();
    let program = words.next().context("no command")?;
    let output = Command::new(program).args(words).output().context(program.to_owned())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{line}: {said}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn ifindex(name: &str) -> Result<u32> {
    let path = format!("/sys/class/net/{name}/ifindex");
    std::fs::read_to_string(&path).context(path)?.trim().parse().context("an interface's index")
}

/// Bytes of the largest super-packet.
const MOST_BYTES: usize = 65_550;
const BUFFERS: usize = BATCH + 1;

/// The pair, with sockets at both ends.
pub(crate) struct Device {
    name: String,
    links: Links,
    pub(crate) ifindex: u32,
    /// In the order of [`Door::ALL`].
    doors: Vec<PacketSocket>,
    far_end: PacketSocket,
    buffers: Buffers,
    incoming: Vec<u32>,
}

impl Device {
    /// Number `n` of them; nothing but what is sent through its doors leaves it.
    pub(crate) fn new(n: u32) -> Result<Self> {
        let (near, far) = (format!("near{n}"), format!("far{n}"));
        std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")?;
        run_command(&format!("ip link add {near} type veth peer name {far}"))?;
        let mut doors = Vec::new();
        for link in [&near, &far] {
            run_command(&format!("ip link set {link} arp off up"))?;
        }
        for door in Door::ALL {
            let name = match door {
                Door::Device => near.clone(),
                Door::Vlan => format!("{near}.v"),
                Door::ServiceVlan => format!("{near}.s"),
            };
            if let Some((kind, id)) = door.tag() {
                let protocol = if kind == 0x8100 { "802.1q" } else { "802.1ad" };
                run_command(&format!(
                    "ip link add link {near} name {name} type vlan protocol {protocol} id {id}"
                ))?;
                run_command(&format!("ip link set {name} arp off up"))?;
            }
            doors.push(PacketSocket::sender(ifindex(&name)?)?);
        }
        Ok(Self {
            ifindex: ifindex(&near)?,
            far_end: PacketSocket::receiver(ifindex(&far)?)?,
            name: near,
            links: Links::open()?,
            doors,
            buffers: Buffers::new(MOST_BYTES, BUFFERS)?,
            incoming: Vec::new(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn attach(&mut self, kind: &str) -> Result<()> {
        Ok(self.links.add_qdisc(&self.name, kind)?)
    }

    pub(crate) fn detach(&mut self) -> Result<()> {
        Ok(self.links.remove_qdisc(&self.name)?)
    }

    /// Sends a frame; returns whether it got as far as the qdisc, which may have dropped it.
    pub(crate) fn send(&mut self, frame: &Frame) -> Result<bool> {
        let bytes = &frame.bytes;
        let outgoing = self.buffers.take().context("no buffer")?;
        self.buffers.space(outgoing)[..bytes.len()].copy_from_slice(bytes);
        self.buffers.received(outgoing, bytes.len() as u32, offload(frame));
        let door = &mut self.doors[frame.door as usize];
        let sent = door.send(&mut self.buffers, &[outgoing]);
        if !matches!(sent, Ok(1)) {
            self.buffers.give(outgoing);
        }
        match sent {
            Ok(1) => Ok(true),
            Ok(_) => anyhow::bail!("the socket takes no frame of {} bytes", bytes.len()),
            // The qdisc has dropped it.
            Err(error) if error.raw_os_error() == Some(ENOBUFS) => Ok(true),
            // No frame that an interface takes.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(false),
            Err(error) => Err(error).context(format!("sending {} bytes", bytes.len())),
        }
    }

    /// What has come in at the far end since the last call, in order.
    pub(crate) fn receive(&mut self, into: &mut Vec<Vec<u8>>) -> Result<()> {
        loop {
            self.far_end.receive(&mut self.buffers, &mut self.incoming)?;
            if self.incoming.is_empty() {
                return Ok(());
            }
            for buffer in self.incoming.drain(..) {
                into.push(self.buffers.frame(buffer).to_vec());
                self.buffers.give(buffer);
            }
        }
    }
}

const ENOBUFS: i32 = 105;

/// A `struct virtio_net_hdr`: what the sender leaves to the kernel.
fn offload(frame: &Frame) -> Offload {
    const NEEDS_CHECKSUM: u8 = 1;
    let Some(super_packet) = frame.super_packet else { return Offload::default() };
    let (kind, network) = match super_packet.kind {
        SuperKind::TcpV4 => (1, 20),
        SuperKind::TcpV6 => (4, 40),
    };
    let mut header = [0; Offload::LEN];
    header[0] = NEEDS_CHECKSUM;
    header[1] = kind;
    header[2..4].copy_from_slice(&(super_packet.headers as u16).to_ne_bytes());
    header[4..6].copy_from_slice(&(super_packet.segment as u16).to_ne_bytes());
    header[6..8].copy_from_slice(&(14u16 + network).to_ne_bytes());
    header[8..10].copy_from_slice(&16u16.to_ne_bytes());
    Offload(header)
}
