//! Programs as filters of a clsact qdisc: of the userspace engine on kernels without TCX links
//! (before Linux 6.6), and of the kernel engine, whose filters are to outlive the command.
//!
//! Filters outlive the process that made them, so they are known again by their name, and whether
//! the clsact was made for them by their handle. Other filters, and a clsact that was there or
//! that others have come to use, are left alone.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use netlink_packet_core::{DefaultNla, Emitable, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL};

use crate::netlink::{Connection, Refusal, attributes};
use crate::tc::{
    CLSACT, CLSACT_HANDLE, EGRESS, INGRESS, Message, RTM_DELQDISC, RTM_DELTFILTER, RTM_GETTFILTER,
    RTM_NEWQDISC, RTM_NEWTFILTER, TC_ACT_STOLEN, TCA_ACT_KIND, TCA_ACT_OPTIONS, TCA_BPF_ACT,
    TCA_BPF_FD, TCA_BPF_FLAG_ACT_DIRECT, TCA_BPF_FLAGS, TCA_BPF_ID, TCA_BPF_NAME, TCA_EGRESS_REDIR,
    TCA_KIND, TCA_MIRRED_PARMS, TCA_OPTIONS,
};

/// Of a filter of ours; one more if the clsact was made for it.
const FILTER: u32 = 0x534c_0000;

/// Where on a device a program sees packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// What the device receives.
    Ingress,
    /// What it sends.
    Egress,
}

/// Whose filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A process, which may have been killed.
    Userspace,
    /// A device whose ingress an ifb has.
    Kernel,
    /// A device whose packets are marked for the queues that it has.
    Marks,
    /// A device whose qdisc of ours marks by ECN.
    Ecn,
}

impl Owner {
    const ALL: [Self; 4] = [Self::Userspace, Self::Kernel, Self::Marks, Self::Ecn];

    /// What its filters' names begin with.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Userspace => "shortlane-user-",
            Self::Kernel => "shortlane-ifb-",
            Self::Marks => "shortlane-marks-",
            Self::Ecn => "shortlane-ecn-",
        }
    }

    fn has(self, filter: &Message) -> bool {
        program(filter).is_some_and(|name| name.starts_with(self.prefix()))
    }
}

impl Point {
    const BOTH: [Self; 2] = [Self::Ingress, Self::Egress];

    fn parent(self) -> u32 {
        match self {
            Self::Ingress => INGRESS,
            Self::Egress => EGRESS,
        }
    }
}

/// The clsact qdisc of a device.
pub struct Clsact {
    device: u32,
    /// Whether there was none before filters of ours.
    made: bool,
    connection: Mutex<Connection>,
}

/// What filters others have at a point of a device: the names of their programs, or their kinds.
///
/// # Errors
/// If the kernel does not tell, or refuses.
pub fn others(device: u32, at: Point) -> io::Result<Vec<String>> {
    let all = filters(&mut Connection::open()?, device, at).map_err(|refusal| told(&refusal))?;
    let ours = |filter: &&Message| Owner::ALL.iter().any(|owner| owner.has(filter));
    let name = |filter: &Message| program(filter).unwrap_or_else(|| filter.text(TCA_KIND));
    let mut names: Vec<String> = all.iter().filter(|filter| !ours(filter)).map(name).collect();
    names.dedup();
    Ok(names)
}

/// Whether an owner has a filter at a point of a device.
///
/// # Errors
/// If the kernel does not tell, or refuses.
pub fn is_placed(owner: Owner, device: u32, at: Point) -> io::Result<bool> {
    let all = filters(&mut Connection::open()?, device, at).map_err(|refusal| told(&refusal))?;
    Ok(all.iter().any(|filter| owner.has(filter)))
}

/// The numbers of the programs that an owner has at a point of a device.
///
/// # Errors
/// If the kernel does not tell, or refuses.
pub fn programs(owner: Owner, device: u32, at: Point) -> io::Result<Vec<u32>> {
    let all = filters(&mut Connection::open()?, device, at).map_err(|refusal| told(&refusal))?;
    let number = |filter: &Message| {
        let options = attributes(filter.attribute(TCA_OPTIONS)?).ok()?;
        let (_, number) = options.into_iter().find(|(kind, _)| *kind == TCA_BPF_ID)?;
        Some(u32::from_ne_bytes(number.try_into().ok()?))
    };
    Ok(all.iter().filter(|filter| owner.has(filter)).filter_map(number).collect())
}

/// Removes the filters that an owner has, or has left, on a device. Says whether there were any.
/// Only the holder of the device may call it.
///
/// # Errors
/// If the kernel does not tell, or refuses.
pub fn tidy_up(owner: Owner, device: u32) -> io::Result<bool> {
    let mut connection = Connection::open()?;
    let mut found = Vec::new();
    for at in Point::BOTH {
        let filters = filters(&mut connection, device, at).map_err(Refusal::into_system)?;
        found.extend(filters.into_iter().filter(|filter| owner.has(filter)));
    }
    for filter in &found {
        delete(&mut connection, filter).map_err(Refusal::into_system)?;
    }
    let made = found.iter().any(|filter| filter.handle == FILTER + 1);
    Clsact { device, made, connection: connection.into() }.go_if_unused();
    Ok(!found.is_empty())
}

/// Whether the clsact of a device was made for filters of ours that are there.
///
/// # Errors
/// If the kernel does not tell, or refuses.
pub fn is_ours(device: u32) -> io::Result<bool> {
    was_made(&mut Connection::open()?, device).map_err(|refusal| told(&refusal))
}

/// Removes a clsact that has no filters, if the caller has made it.
///
/// # Errors
/// If the kernel does not tell, or refuses.
pub fn remove_unused(device: u32) -> io::Result<()> {
    Clsact { device, made: true, connection: Connection::open()?.into() }.go_if_unused();
    Ok(())
}

impl Clsact {
    /// The clsact of a device, made if there is none.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn on(device: u32) -> io::Result<Self> {
        let mut connection = Connection::open()?;
        let attributes = vec![(TCA_KIND, b"clsact\0".to_vec())];
        let kind = RTM_NEWQDISC;
        let (handle, parent) = (CLSACT_HANDLE, CLSACT);
        let message =
            Message { kind, ifindex: device, handle, parent, attributes, ..Message::default() };
        let made = match connection.request(message, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL) {
            Ok(_) => true,
            Err(refusal) if refusal.number() == Some(libc::EEXIST) => {
                was_made(&mut connection, device).map_err(|refusal| told(&refusal))?
            }
            Err(refusal) => return Err(told(&refusal)),
        };
        Ok(Self { device, made, connection: connection.into() })
    }

    /// Puts a program in front of all other filters, unless one has the first priority. The filter
    /// stays.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn add(&self, owner: Owner, program: impl AsFd, at: Point) -> io::Result<()> {
        self.placed(owner, program, at, &direct()).map(|_| ())
    }

    /// The same, and what the program matches (it does not return 0) goes to an ifb device.
    ///
    /// By the action `mirred`, since an ifb drops what `bpf_redirect` sends it before Linux 6.5.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn redirect(
        &self,
        owner: Owner,
        program: impl AsFd,
        at: Point,
        ifb: u32,
    ) -> io::Result<()> {
        self.placed(owner, program, at, &mirred(ifb)).map(|_| ())
    }

    fn placed(
        &self,
        owner: Owner,
        program: impl AsFd,
        at: Point,
        then: &DefaultNla,
    ) -> io::Result<Message> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let there = filters(&mut connection, self.device, at).map_err(|refusal| told(&refusal))?;
        let is_free = |priority: &u32| there.iter().all(|filter| filter.info >> 16 != *priority);
        let priority = (1..=0xffff).find(is_free).unwrap_or(1);
        let direction = match at {
            Point::Ingress => "in",
            Point::Egress => "out",
        };
        let name = format!("{}{direction}\0", owner.prefix());
        let program = program.as_fd().as_raw_fd();
        let options = [
            DefaultNla::new(TCA_BPF_FD, program.to_ne_bytes().to_vec()),
            DefaultNla::new(TCA_BPF_NAME, name.into()),
            then.clone(),
        ];
        let every_protocol = (libc::ETH_P_ALL as u16).to_be();
        let message = Message {
            kind: RTM_NEWTFILTER,
            ifindex: self.device,
            handle: FILTER + u32::from(self.made),
            parent: at.parent(),
            info: priority << 16 | u32::from(every_protocol),
            attributes: vec![(TCA_KIND, b"bpf\0".to_vec()), (TCA_OPTIONS, emitted(&options))],
        };
        let flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
        connection.request(message.clone(), flags).map_err(|refusal| told(&refusal))?;
        Ok(message)
    }

    /// Removes the qdisc if it was made for filters of ours, and there is none at all any more.
    fn go_if_unused(&self) {
        let connection = &mut *self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let mut unused = |at| filters(connection, self.device, at).is_ok_and(|all| all.is_empty());
        if self.made && Point::BOTH.into_iter().all(&mut unused) {
            let (handle, parent) = (CLSACT_HANDLE, CLSACT);
            let kind = RTM_DELQDISC;
            let message =
                Message { kind, ifindex: self.device, handle, parent, ..Message::default() };
            // If the device is gone, so is it.
            let _ = connection.request(message, NLM_F_ACK);
        }
    }
}

/// A program as a filter, until this is dropped.
pub struct Filter {
    clsact: Arc<Clsact>,
    message: Message,
}

impl Filter {
    /// Puts a program of the userspace engine in place.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn place(clsact: &Arc<Clsact>, program: &OwnedFd, at: Point) -> io::Result<Self> {
        let message = clsact.placed(Owner::Userspace, program, at, &direct())?;
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

/// What a program returns is what is done.
fn direct() -> DefaultNla {
    DefaultNla::new(TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT.to_ne_bytes().to_vec())
}

/// What a program matches goes to a device, and is over here: a list of one action, `struct
/// tc_mirred`.
fn mirred(device: u32) -> DefaultNla {
    let (index, capabilities, references, bindings) = (0, 0, 0, 0);
    let what = [index, capabilities, TC_ACT_STOLEN, references, bindings, TCA_EGRESS_REDIR, device];
    let what = what.iter().flat_map(|number| number.to_ne_bytes()).collect();
    let action = [
        DefaultNla::new(TCA_ACT_KIND, b"mirred\0".to_vec()),
        DefaultNla::new(TCA_ACT_OPTIONS, emitted(&[DefaultNla::new(TCA_MIRRED_PARMS, what)])),
    ];
    DefaultNla::new(TCA_BPF_ACT, emitted(&[DefaultNla::new(1, emitted(&action))]))
}

fn emitted(attributes: &[DefaultNla]) -> Vec<u8> {
    let mut bytes = vec![0; attributes.buffer_len()];
    attributes.emit(&mut bytes);
    bytes
}

fn filters(connection: &mut Connection, device: u32, at: Point) -> Result<Vec<Message>, Refusal> {
    let (kind, parent) = (RTM_GETTFILTER, at.parent());
    let message = Message { kind, ifindex: device, parent, ..Message::default() };
    let found: Vec<Message> = connection.dump(message)?;
    // Each priority comes once more without a handle.
    Ok(found.into_iter().filter(|filter| filter.ifindex == device && filter.handle != 0).collect())
}

/// Whether filters of ours say that the clsact was made for them.
fn was_made(connection: &mut Connection, device: u32) -> Result<bool, Refusal> {
    let says_so = |filter: &Message| {
        filter.handle == FILTER + 1 && Owner::ALL.iter().any(|owner| owner.has(filter))
    };
    for at in Point::BOTH {
        if filters(connection, device, at)?.iter().any(says_so) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The name of a filter's program, if it has one.
fn program(filter: &Message) -> Option<String> {
    let options = attributes(filter.attribute(TCA_OPTIONS).unwrap_or_default()).ok()?;
    let (_, name) = options.into_iter().find(|(kind, _)| *kind == TCA_BPF_NAME)?;
    let name = name.strip_suffix(&[0]).unwrap_or(&name);
    (filter.text(TCA_KIND) == "bpf").then(|| String::from_utf8_lossy(name).into_owned())
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
