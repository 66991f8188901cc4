//! Which commands a fault befalls, and which commands come at once.

use nix::errno::Errno;
use nix::libc;

use super::scene::Kind;
use super::tracer::Call;

const ATTACH: &str = "attach t0 --rate 10mbit --engine userspace";
const ANOTHER: &str = "attach t0 --rate 20mbit --engine userspace";
const IN_KERNEL: &str = "attach t0 --rate 10mbit --engine kernel";
const BRIDGE: &str = "bridge t0 u0 --rate 10mbit --io packet";
const DETACH: &str = "detach t0";
const CHANGE: &str = "change t0 --rate 20mbit";
/// A kind of small programs, which are soon verified.
const REGISTER: &str = "register fifo --instances 1";
const UNREGISTER: &str = "unregister shortlane_fifo";

/// A command, and one before it that nothing befalls.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) before: Option<&'static str>,
    pub(super) command: &'static str,
    /// What brings the machine back to what it was, after whatever befell the command.
    pub(super) undo: &'static str,
    /// Whether it does not end until then.
    pub(super) stays: bool,
}

const fn case(name: &'static str, before: Option<&'static str>, command: &'static str) -> Case {
    Case { name, kind: Kind::Device, before, command, undo: DETACH, stays: false }
}

pub(super) const ATTACH_CASE: Case = case("attach", None, ATTACH);
pub(super) const BOTH_CASE: Case = case(
    "attach both directions",
    None,
    "attach t0 --rate 10mbit --ingress 20mbit --engine userspace",
);
pub(super) const CHANGE_CASE: Case = case("change", Some(ATTACH), CHANGE);
pub(super) const SHOW_CASE: Case = case("show", Some(ATTACH), "show t0");
pub(super) const DETACH_CASE: Case = case("detach", Some(ATTACH), DETACH);
pub(super) const DOCTOR_CASE: Case = case("doctor", Some(ATTACH), "doctor t0");

pub(super) const BRIDGE_CASE: Case =
    Case { kind: Kind::Bridge, stays: true, ..case("bridge", None, BRIDGE) };
pub(super) const XDP_BRIDGE_CASE: Case = Case {
    kind: Kind::KernelBridge,
    stays: true,
    ..case("bridge by AF_XDP", None, "bridge t0 u0 --rate 10mbit --io xdp")
};

const fn in_kernel(case: Case) -> Case {
    Case { kind: Kind::Qdisc, ..case }
}

const fn registry(case: Case) -> Case {
    Case { kind: Kind::Registry, undo: UNREGISTER, ..case }
}

pub(super) const KERNEL_ATTACH_CASE: Case = in_kernel(case("kernel: attach", None, IN_KERNEL));
pub(super) const KERNEL_CHANGE_CASE: Case =
    in_kernel(case("kernel: change", Some(IN_KERNEL), CHANGE));
pub(super) const KERNEL_DETACH_CASE: Case =
    in_kernel(case("kernel: detach", Some(IN_KERNEL), DETACH));
pub(super) const REGISTER_CASE: Case = registry(case("register", None, REGISTER));
pub(super) const UNREGISTER_CASE: Case = registry(case("unregister", Some(REGISTER), UNREGISTER));

/// A case during which another command is given.
pub(super) struct Race {
    pub(super) case: Case,
    pub(super) rival: &'static str,
    /// Whether only one of both may succeed.
    pub(super) excludes: bool,
}

const fn race(case: Case, rival: &'static str) -> Race {
    Race { case, rival, excludes: false }
}

const fn exclusive(case: Case, rival: &'static str) -> Race {
    Race { case, rival, excludes: true }
}

const ATTACHED: Option<&str> = Some(ATTACH);

pub(super) const TWO_ATTACH: Race = exclusive(case("attach, attach", None, ATTACH), ANOTHER);
pub(super) const ATTACH_AND_DETACH: Race = race(case("attach, detach", None, ATTACH), DETACH);
pub(super) const CHANGE_AND_DETACH: Race = race(case("change, detach", ATTACHED, CHANGE), DETACH);
pub(super) const DETACH_AND_ATTACH: Race = race(case("detach, attach", ATTACHED, DETACH), ANOTHER);
pub(super) const TWO_DETACH: Race = race(case("detach, detach", ATTACHED, DETACH), DETACH);
pub(super) const BRIDGE_AND_ATTACH: Race =
    exclusive(Case { name: "bridge, attach", ..BRIDGE_CASE }, ANOTHER);
pub(super) const BRIDGE_AND_DETACH: Race =
    race(Case { name: "bridge, detach", ..BRIDGE_CASE }, DETACH);
pub(super) const TWO_REGISTER: Race =
    exclusive(Case { name: "register, register", ..REGISTER_CASE }, REGISTER);
pub(super) const REGISTER_AND_UNREGISTER: Race =
    race(Case { name: "register, unregister", ..REGISTER_CASE }, UNREGISTER);
pub(super) const UNREGISTER_AND_REGISTER: Race =
    race(Case { name: "unregister, register", ..UNREGISTER_CASE }, REGISTER);
pub(super) const TWO_UNREGISTER: Race =
    race(Case { name: "unregister, unregister", ..UNREGISTER_CASE }, UNREGISTER);

/// Commands of `bpf(2)` that make more than something without a name, which ends with its process.
const BPF_EFFECTS: [u64; 7] = {
    const MAP_UPDATE_ELEM: u64 = 2;
    const OBJ_PIN: u64 = 6;
    const PROG_ATTACH: u64 = 8;
    const PROG_DETACH: u64 = 9;
    const LINK_CREATE: u64 = 28;
    const LINK_UPDATE: u64 = 29;
    const LINK_DETACH: u64 = 34;
    [MAP_UPDATE_ELEM, OBJ_PIN, PROG_ATTACH, PROG_DETACH, LINK_CREATE, LINK_UPDATE, LINK_DETACH]
};

/// How a kernel may fail a call, by its manual page.
pub(super) fn failures(call: Call) -> &'static [Errno] {
    let command = call.arguments[1] as i32;
    match call.number as libc::c_long {
        libc::SYS_fcntl if command == libc::F_DUPFD_CLOEXEC => &[Errno::EMFILE],
        libc::SYS_mmap
        | libc::SYS_mprotect
        | libc::SYS_mremap
        | libc::SYS_brk
        | libc::SYS_clone3
        | libc::SYS_execve
        | libc::SYS_memfd_create
        | libc::SYS_statx
        | libc::SYS_getdents64
        // Frames to a TAP device.
        | libc::SYS_writev => &[Errno::ENOMEM],
        libc::SYS_bpf | libc::SYS_socket => &[Errno::EPERM, Errno::ENOMEM],
        libc::SYS_sendto | libc::SYS_sendmsg | libc::SYS_sendmmsg => {
            &[Errno::EPERM, Errno::ENOBUFS]
        }
        libc::SYS_openat => &[Errno::EPERM, Errno::EMFILE],
        libc::SYS_pipe2 => &[Errno::EMFILE],
        libc::SYS_write => &[Errno::ENOSPC, Errno::EINTR],
        libc::SYS_rename | libc::SYS_mkdir => &[Errno::ENOSPC],
        libc::SYS_ioctl | libc::SYS_bind => &[Errno::EBUSY, Errno::EPERM],
        libc::SYS_listen => &[Errno::EADDRINUSE],
        libc::SYS_unlink | libc::SYS_rmdir => &[Errno::EBUSY],
        libc::SYS_connect
        | libc::SYS_setsockopt
        | libc::SYS_getsockopt
        | libc::SYS_sched_setscheduler => &[Errno::EPERM],
        libc::SYS_accept4 => &[Errno::EINTR, Errno::EMFILE],
        libc::SYS_read
        | libc::SYS_readv
        | libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_recvmmsg
        | libc::SYS_poll
        | libc::SYS_ppoll
        | libc::SYS_flock
        | libc::SYS_getrandom
        | libc::SYS_futex => &[Errno::EINTR],
        _ => &[],
    }
}

/// Whether there is something after it that was not there before, and may outlive the process.
pub(super) fn has_effects(call: Call) -> bool {
    match call.number as libc::c_long {
        libc::SYS_bpf => BPF_EFFECTS.contains(&call.arguments[0]),
        libc::SYS_openat => call.arguments[2] as i32 & (libc::O_CREAT | libc::O_WRONLY) != 0,
        libc::SYS_clone3
        | libc::SYS_sendto
        | libc::SYS_sendmsg
        | libc::SYS_ioctl
        | libc::SYS_bind
        | libc::SYS_rename
        | libc::SYS_mkdir
        | libc::SYS_unlink
        | libc::SYS_rmdir => true,
        _ => false,
    }
}
