//! Programs as filters of a clsact qdisc, for kernels without TCX links (before Linux 6.6).
//!
//! Filters outlive the process that made them, so they are known again by their name, and whether
//! the clsact was made for them by their handle. Other filters, and a clsact that was there or
//! that others have come to use, are left alone.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use netlink_packet_core::{DefaultNla, Emitable, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL};

use super::hook::Point;
use crate::kernel::traffic_control::{
    Message, RTM_DELQDISC, RTM_GETTFILTER, RTM_NEWQDISC, TCA_KIND, TCA_OPTIONS,
};
use crate::netlink::{Connection, Refusal, attributes};

const RTM_NEWTFILTER: u16 = 44;
const RTM_DELTFILTER: u16 = 45;
const TCA_BPF_FD: u16 = 6;
const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_FLAGS: u16 = 8;
/// The program's answer is what becomes of the packet.
const DIRECT_ACTION: u32 = 1;
const HANDLE: u32 = 0xffff_0000;
const PARENT: u32 = 0xffff_fff1;

/// What our filters' names begin with, as the programs' do.
const NAME: &str = "shortlane_";
/// Of a filter of ours; one more if the clsact was made for it.
const FILTER: u32 = 0x534c_0000;

impl Point {
    const BOTH: [Self; 2] = [Self::Ingress, Self::Egress];

    fn parent(self) -> u32 {
        match self {
            Self::Ingress => 0xffff_fff2,
            Self::Egress => 0xffff_fff3,
        }
    }
}

/// The clsact qdisc of a device.
pub(super) struct Clsact {
    device: u32,
    /// Whether there was none before.
    made: bool,
    connection: Mutex<Connection>,
}

/// Removes the filters that engines which were killed have left on a device. Says whether there
/// were any. Only for who holds the device.
pub(super) fn tidy_up(device: u32) -> io::Result<bool> {
    let mut connection = Connection::open()?;
    let mut found = Vec::new();
    for at in Point::BOTH {
        let filters = filters(&mut connection, device, at).map_err(Refusal::into_system)?;
        found.extend(filters.into_iter().filter(is_ours));
    }
    for filter in &found {
        delete(&mut connection, filter).map_err(Refusal::into_system)?;
    }
    let made = found.iter().any(|filter| filter.handle == FILTER + 1);
    Clsact { device, made, connection: connection.into() }.go_if_unused();
    Ok(!found.is_empty())
}

impl Clsact {
    pub(super) fn on(device: u32) -> io::Result<Self> {
        let mut connection = Connection::open()?;
        let attributes = vec![(TCA_KIND, b"clsact\0".to_vec())];
        let kind = RTM_NEWQDISC;
        let (handle, parent) = (HANDLE, PARENT);
        let message =
            Message { kind, ifindex: device, handle, parent, attributes, ..Message::default() };
        let made = match connection.request(message, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL) {
            Ok(_) => true,
            Err(refusal) if refusal.number() == Some(libc::EEXIST) => false,
            Err(refusal) => return Err(told(&refusal)),
        };
        Ok(Self { device, made, connection: connection.into() })
    }

    /// Removes the qdisc if it was made for filters of ours, and there is none at all any more.
    fn go_if_unused(&self) {
        let connection = &mut *self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let mut unused = |at| filters(connection, self.device, at).is_ok_and(|all| all.is_empty());
        if self.made && Point::BOTH.into_iter().all(&mut unused) {
            let (handle, parent) = (HANDLE, PARENT);
            let kind = RTM_DELQDISC;
            let message =
                Message { kind, ifindex: self.device, handle, parent, ..Message::default() };
            // If the device is gone, so is it.
            let _ = connection.request(message, NLM_F_ACK);
        }
    }
}

/// A program as a filter, until this is dropped.
pub(super) struct Filter {
    clsact: Arc<Clsact>,
    message: Message,
}

impl Filter {
    /// Puts it in front of all others, unless one has the first priority.
    pub(super) fn place(clsact: &Arc<Clsact>, program: &OwnedFd, at: Point) -> io::Result<Self> {
        let mut connection = clsact.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let there =
            filters(&mut connection, clsact.device, at).map_err(|refusal| told(&refusal))?;
        let is_free = |priority: &u32| there.iter().all(|filter| filter.info >> 16 != *priority);
        let priority = (1..=0xffff).find(is_free).unwrap_or(1);
        let name = match at {
            Point::Ingress => "shortlane_in\0",
            Point::Egress => "shortlane_out\0",
        };
        let options = [
            DefaultNla::new(TCA_BPF_FD, program.as_raw_fd().to_ne_bytes().to_vec()),
            DefaultNla::new(TCA_BPF_NAME, name.into()),
            DefaultNla::new(TCA_BPF_FLAGS, DIRECT_ACTION.to_ne_bytes().to_vec()),
        ];
        let mut bytes = vec![0; options.as_slice().buffer_len()];
        options.as_slice().emit(&mut bytes);
        let every_protocol = (libc::ETH_P_ALL as u16).to_be();
        let message = Message {
            kind: RTM_NEWTFILTER,
            ifindex: clsact.device,
            handle: FILTER + u32::from(clsact.made),
            parent: at.parent(),
            info: priority << 16 | u32::from(every_protocol),
            attributes: vec![(TCA_KIND, b"bpf\0".to_vec()), (TCA_OPTIONS, bytes)],
        };
        let flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
        connection.request(message.clone(), flags).map_err(|refusal| told(&refusal))?;
        drop(connection);
        Ok(Self { clsact: Arc::clone(clsact), message })
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        let connection = &self.clsact.connection;
        let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
        // If the device is gone, so is the filter.
        let _ = delete(&mut connection, &self.message);
        drop(connection);
        self.clsact.go_if_unused();
    }
}

fn filters(connection: &mut Connection, device: u32, at: Point) -> Result<Vec<Message>, Refusal> {
    let (kind, parent) = (RTM_GETTFILTER, at.parent());
    let message = Message { kind, ifindex: device, parent, ..Message::default() };
    let found: Vec<Message> = connection.dump(message)?;
    // Each priority comes once more without a handle.
    Ok(found.into_iter().filter(|filter| filter.ifindex == device && filter.handle != 0).collect())
}

fn is_ours(filter: &Message) -> bool {
    let options = attributes(filter.attribute(TCA_OPTIONS).unwrap_or_default()).unwrap_or_default();
    let name = options.iter().find(|(kind, _)| *kind == TCA_BPF_NAME);
    filter.text(TCA_KIND) == "bpf"
        && name.is_some_and(|(_, name)| name.starts_with(NAME.as_bytes()))
}

fn delete(connection: &mut Connection, filter: &Message) -> Result<(), Refusal> {
    let kind = RTM_DELTFILTER;
    let attributes = vec![(TCA_KIND, b"bpf\0".to_vec())];
    connection.request(Message { kind, attributes, ..filter.clone() }, NLM_F_ACK).map(|_| ())
}

/// A refusal with the kernel's words.
fn told(refusal: &Refusal) -> io::Error {
    let number = refusal.number().unwrap_or_default();
    io::Error::new(io::Error::from_raw_os_error(number).kind(), refusal.to_string())
}
