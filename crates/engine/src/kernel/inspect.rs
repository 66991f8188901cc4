//! What `doctor` looks at: facts about the machine and its devices, without judging them.

use std::fs::{self, File};

use netdev::capabilities::{BPF, NET_ADMIN, NET_RAW, lacking};
use netdev::clsact::{self, Owner, Point};
use netdev::device::{Device, add_ifb};
use netdev::netlink::Connection;
use netdev::netns::Namespace;
use netdev::offload::{self, features};
use netdev::tc::{Qdisc, TrafficControl, handle_text};
use netdev::tcx;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage, LinkXdp, XdpAttached};
use sched::{Nanos, Rate};

use super::ecn;
use super::error::KernelError;
use super::ingress::{ifb_of, ingress_of};
use super::is_ours;
use super::journal::{Journal, Journals};
use super::load::check_kernel;
use super::marks;
use super::offloads::segments_at;
use super::queues;
use super::work::{all_devices, find_device, on, traffic_control};

/// What is the same for all devices.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Why the kernel takes no qdisc written in BPF, if it does not.
    pub qdisc: Result<(), String>,
    /// Which of the kernel's own queues marks would be in front of; or why there are none.
    pub marks: Result<&'static str, String>,
    /// Whether the kernel has TCX, whose links end with their process.
    pub tcx: bool,
    /// Whether the kernel has AF_XDP sockets.
    pub xdp: bool,
    /// Why no TAP device can be made, if none can.
    pub tun: Result<(), String>,
    /// Why no ifb device can be made, if none can; `None` if that could not be tried out.
    pub ifb: Option<Result<(), String>>,
    /// What the kernel's clock is read from; empty if it does not tell.
    pub clock_source: String,
    /// How long an idle processor of this virtual machine stays awake, if the machine decides on
    /// that.
    pub halt_poll: Option<Nanos>,
    /// Capabilities that the userspace engine needs and this process has not.
    pub lacking: Option<String>,
    /// Devices for which something is to be put back, by an attachment that has ended.
    pub left: Vec<String>,
}

/// What is known about a device.
#[derive(Clone, Debug)]
pub struct DeviceFacts {
    /// Its name.
    pub name: String,
    /// Its index.
    pub ifindex: u32,
    /// Whether it is switched on.
    pub up: bool,
    /// Whether it has a carrier.
    pub running: bool,
    /// What it says it carries; none if it does not know.
    pub speed: Option<Rate>,
    /// Queues that it sends from.
    pub transmit_queues: u32,
    /// How many of these have a qdisc of ours each, and how many are in use; `None` if none has.
    pub per_queue: Option<(u32, u32)>,
    /// Segments that a super-packet of its own may have.
    pub gso_max_segs: u32,
    /// The MTU.
    pub mtu: u32,
    /// Features that join received packets, as far as they are on: `rx-gro` and the like.
    pub receive_offloads: Vec<String>,
    /// Whether what arrives at other devices leaves by it.
    pub forwards: bool,
    /// Other devices that join received packets to some of this many bytes, and how many.
    pub joining: Vec<(String, u32)>,
    /// The root qdisc that somebody configured, none of ours.
    pub configured_root: Option<String>,
    /// Whether a qdisc of ours is at the root.
    pub has_qdisc: bool,
    /// Programs and filters of others at its ingress, and at its egress.
    pub filters: [Vec<String>; 2],
    /// Whether filters of the userspace engine's are there, of a kernel without TCX.
    pub userspace_filters: bool,
    /// Whether an XDP program is on it.
    pub xdp: bool,
    /// The ifb of the kernel engine's for what it receives.
    pub ifb: Option<String>,
    /// Whether a filter of the kernel engine's leads there.
    pub redirected: bool,
    /// What keeps marks from working, for what it sends or receives.
    pub marks_fault: Option<String>,
    /// Whether what marks by ECN is in front of each qdisc of ours that wants it, for what it sends
    /// or receives; `None` if none does.
    pub marker: Option<bool>,
}

/// Segments that a super-packet may have at a rate, so that it takes a millisecond at most.
#[must_use]
pub fn segments_in_time(rate: Rate, mtu: u32) -> u32 {
    segments_at(rate, mtu)
}

/// Looks at the machine.
#[must_use]
pub fn machine() -> Machine {
    let has_type = |name| {
        let btf = libbpf_rs::btf::Btf::from_vmlinux();
        btf.is_ok_and(|btf| btf.type_by_name::<libbpf_rs::btf::types::Struct<'_>>(name).is_some())
    };
    let tun = File::options().read(true).write(true).open("/dev/net/tun");
    const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    Machine {
        qdisc: check_kernel().map_err(|error| error.to_string()),
        marks: marks::can(None).map(marks::Queues::name).map_err(|error| error.to_string()),
        tcx: has_type("tcx_link"),
        xdp: has_type("xdp_sock"),
        tun: tun.map(|_| ()).map_err(|error| error.to_string()),
        ifb: try_ifb(),
        clock_source: fs::read_to_string(CLOCK).unwrap_or_default().trim().to_owned(),
        halt_poll: halt_poll(),
        lacking: lacking(&[NET_ADMIN, NET_RAW, BPF]),
        left: left(),
    }
}

fn halt_poll() -> Option<Nanos> {
    const GOVERNOR: &str = "/sys/devices/system/cpu/cpuidle/current_governor";
    const LIMIT: &str = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";
    let governor = fs::read_to_string(GOVERNOR).ok()?;
    let limit = fs::read_to_string(LIMIT).ok()?.trim().parse().ok()?;
    (governor.trim() == "haltpoll").then_some(Nanos(limit))
}

/// Tries it out in a fresh network namespace, which goes with it.
fn try_ifb() -> Option<Result<(), String>> {
    let namespace = Namespace::new().ok()?;
    let make = || add_ifb("ifb").map_err(|refusal| refusal.to_string());
    namespace.run(make).ok()
}

/// An ordinary user has nothing to put back.
fn left() -> Vec<String> {
    let Ok(journals) = Journals::lock().and_then(|journals| journals.all()) else {
        return Vec::new();
    };
    let (Ok(devices), Ok(mut tc)) = (Device::all(), TrafficControl::open()) else {
        return Vec::new();
    };
    let is_left = |journal: &&Journal| {
        let device = devices.iter().find(|device| device.index == journal.ifindex);
        let qdiscs = device.and_then(|device| tc.qdiscs(device.index).ok()).unwrap_or_default();
        !journal.is_attached(&qdiscs).unwrap_or(true)
    };
    let left: Vec<_> = journals.iter().filter(is_left).collect();
    left.iter().map(|journal| journal.device.clone()).collect()
}

/// Looks at a device, or at all but loopbacks and those that the kernel engine has made.
///
/// # Errors
/// If there is no such device, or the kernel does not tell.
pub fn devices(name: Option<&str>) -> Result<Vec<DeviceFacts>, KernelError> {
    let devices = all_devices()?;
    let wanted: Vec<&Device> = match name {
        Some(name) => vec![find_device(&devices, name)?],
        None => {
            let ours = |device: &Device| device.ifb && ingress_of(&device.name).is_some();
            devices.iter().filter(|device| !device.loopback && !ours(device)).collect()
        }
    };
    let mut tc = traffic_control()?;
    wanted.into_iter().map(|device| look_at(device, &devices, &mut tc)).collect()
}

fn look_at(
    device: &Device,
    devices: &[Device],
    tc: &mut TrafficControl,
) -> Result<DeviceFacts, KernelError> {
    let system = |source| KernelError::System { doing: "reading the filters of a device", source };
    let qdiscs = tc.qdiscs(device.index).map_err(on(&device.name, "reading its qdiscs"))?;
    let root = qdiscs.iter().find(|qdisc| qdisc.is_root()).cloned();
    let journals = Journals::lock().and_then(|journals| journals.all()).unwrap_or_default();
    let ifb = ifb_of(devices, device);
    let is_marked = |journal: &&Journal| {
        let of_device = [Some(device), ifb].into_iter().flatten();
        journal.marker_had_clsact.is_some()
            && of_device.map(|device| device.index).any(|index| index == journal.ifindex)
    };
    let marker = journals.iter().filter(is_marked).map(|journal| ecn::is_placed(journal.ifindex));
    let marker: Vec<bool> = marker.collect::<Result<_, _>>().map_err(system)?;
    let journal = journals.into_iter().find(|journal| journal.ifindex == device.index);
    let has_put = |root: &Qdisc| {
        journal.as_ref().map_or_else(|| is_ours(root), |journal| journal.has_put(root))
    };
    let has_qdisc = root.as_ref().is_some_and(has_put);
    let configured = root.filter(|root| root.is_configured() && !has_put(root));
    let others = |at| {
        let mut names = tcx::others(device.index, at);
        names.extend(clsact::others(device.index, at).map_err(system)?);
        Ok::<_, KernelError>(names)
    };
    let is_placed = |owner, at| clsact::is_placed(owner, device.index, at).map_err(system);
    let mut faults = [Some(device), ifb].into_iter().flatten().map(|device| {
        // An ordinary user has attached none.
        marks::fault(device.index).ok().flatten()
    });
    let more = More::of(device.index).map_err(on(&device.name, "looking at it"))?;
    let receive =
        |name: &str| features::active(name, &super::offloads::RECEIVE).unwrap_or_default();
    let joining = devices.iter().filter(|other| other.index != device.index && !other.loopback);
    Ok(DeviceFacts {
        name: device.name.clone(),
        ifindex: device.index,
        up: device.up,
        running: more.running,
        speed: offload::speed(&device.name),
        transmit_queues: more.transmit_queues,
        per_queue: queues::coverage(device, &qdiscs),
        gso_max_segs: device.gso_max_segs,
        mtu: device.mtu,
        receive_offloads: receive(&device.name),
        forwards: device.forwards(),
        joining: joining
            .filter(|other| !receive(&other.name).is_empty())
            .map(|other| (other.name.clone(), other.gro_max_size))
            .collect(),
        configured_root: configured
            .map(|root| format!("{} {}", root.kind, handle_text(root.handle))),
        has_qdisc,
        filters: [others(Point::Ingress)?, others(Point::Egress)?],
        userspace_filters: is_placed(Owner::Userspace, Point::Ingress)?
            || is_placed(Owner::Userspace, Point::Egress)?,
        xdp: more.xdp,
        ifb: ifb.map(|ifb| ifb.name.clone()),
        redirected: is_placed(Owner::Kernel, Point::Ingress)?,
        marks_fault: faults.find_map(|fault| fault),
        marker: marker.into_iter().reduce(|all, one| all && one),
    })
}

/// What attaching needs not know of a device.
struct More {
    running: bool,
    transmit_queues: u32,
    xdp: bool,
}

impl More {
    fn of(index: u32) -> Result<Self, netdev::netlink::Refusal> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        let found = Connection::open()?
            .request(RouteNetlinkMessage::GetLink(message), netlink_packet_core::NLM_F_ACK)?;
        let mut more = Self { running: false, transmit_queues: 1, xdp: false };
        for message in found {
            let RouteNetlinkMessage::NewLink(link) = message else { continue };
            more.running =
                link.header.flags.contains(netlink_packet_route::link::LinkFlags::LowerUp);
            for attribute in &link.attributes {
                match attribute {
                    LinkAttribute::NumTxQueues(queues) => more.transmit_queues = *queues,
                    LinkAttribute::Xdp(xdp) => {
                        let is_on = |xdp: &LinkXdp| matches!(xdp, LinkXdp::Attached(at) if *at != XdpAttached::None);
                        more.xdp = xdp.iter().any(is_on);
                    }
                    _ => {}
                }
            }
        }
        Ok(more)
    }
}
