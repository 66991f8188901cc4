//! The program that hands frames to the engine: a few instructions, loaded by `bpf(2)`.
//!
//! It redirects each frame to the engine's socket while the engine's heartbeat is fresh, and lets
//! it pass up the stack otherwise: whatever lies beneath (a kernel bridge, say) takes over from an
//! engine that has stopped. It is attached by a link that ends with the process.
//!
//! Written out as instructions because these need no compiler for BPF and no library where the
//! engine is built, which a C source would.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use sched::Nanos;

/// Without a heartbeat for this long, frames pass the engine by.
const STALE: Nanos = Nanos::from_millis(50);

/// A heartbeat that is never too old.
pub(super) const FOREVER: Nanos = Nanos(i64::MAX as u64);
/// Interfaces of a bridge: 0 is the left one, 1 the right one.
const PORTS: u32 = 2;

/// How the program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// In the driver, before the kernel makes a packet of the frame.
    Native,
    /// In the stack, for every driver.
    Generic,
}

/// When each port was last attended to, where the program sees it.
pub(super) struct Heartbeats {
    map: OwnedFd,
    page: NonNull<AtomicU64>,
}

// SAFETY: the page holds atomics only, and stays mapped as long as this value lives.
unsafe impl Send for Heartbeats {}
// SAFETY: threads that share it meet only in atomics.
unsafe impl Sync for Heartbeats {}

impl Heartbeats {
    const LENGTH: usize = 4096;

    pub(super) fn new() -> io::Result<Self> {
        // One value for all ports: the address of no other can stand in a program.
        let map = create_map(MAP_TYPE_ARRAY, PORTS * size_of::<u64>() as u32, 1, MAP_MMAPABLE)?;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                Self::LENGTH,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                map.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let page = NonNull::new(address.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { map, page })
    }

    /// The port is attended to at this time.
    pub(super) fn beat(&self, port: u32, now: Nanos) {
        // SAFETY: `PORTS` times are in the page, 8 bytes apart.
        let beat = unsafe { self.page.add((port % PORTS) as usize).as_ref() };
        beat.store(now.0, Ordering::Relaxed);
    }
}

impl Drop for Heartbeats {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.page.as_ptr().cast(), Self::LENGTH) };
    }
}

/// The sockets that frames go to, by port.
pub(super) struct SocketMap(OwnedFd);

impl SocketMap {
    pub(super) fn new() -> io::Result<Self> {
        create_map(MAP_TYPE_XSKMAP, size_of::<u32>() as u32, PORTS, 0).map(Self)
    }

    pub(super) fn set(&self, port: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        let value: RawFd = socket.as_raw_fd();
        let mut attributes = UpdateElement {
            map: self.0.as_raw_fd() as u32,
            pad: 0,
            key: ptr::from_ref(&port) as u64,
            value: ptr::from_ref(&value) as u64,
            flags: 0,
        };
        bpf(MAP_UPDATE_ELEM, &mut attributes).map(|_| ())
    }
}

/// Attaches the program to an interface; it stays until the descriptor is closed.
pub(super) fn attach(
    ifindex: u32,
    port: u32,
    sockets: &SocketMap,
    heartbeats: &Heartbeats,
    mode: Mode,
) -> io::Result<OwnedFd> {
    let program = load(&instructions(port, &sockets.0, &heartbeats.map))?;
    let mut attributes = CreateLink {
        program: program.as_raw_fd() as u32,
        ifindex,
        attach_type: ATTACH_XDP,
        flags: match mode {
            Mode::Native => FLAG_NATIVE,
            Mode::Generic => FLAG_GENERIC,
        },
    };
    bpf_fd(LINK_CREATE, &mut attributes)
}

/// ```c
/// if (ctx->rx_queue_index != 0)
///         return XDP_PASS;
/// last = heartbeats[port];
/// if ((s64)(bpf_ktime_get_coarse_ns() - last) > STALE)
///         return XDP_PASS;
/// return bpf_redirect_map(&sockets, port, XDP_PASS);
/// ```
///
/// The coarse clock, which is up to 10 ms behind, costs a few ns where the exact one costs 20.
fn instructions(port: u32, sockets: &OwnedFd, heartbeats: &OwnedFd) -> [Instruction; 16] {
    let [beat_low, beat_high] = load_map(6, PSEUDO_MAP_VALUE, heartbeats, port * 8);
    let [sockets_low, sockets_high] = load_map(1, PSEUDO_MAP_FD, sockets, 0);
    [
        Instruction::new(LOAD_32, 2, 1, RX_QUEUE_INDEX, 0),
        Instruction::new(JUMP_UNEQUAL, 2, 0, 12, 0), // to the last two
        // Before the time is read, so that the difference is not below 0 for long.
        beat_low,
        beat_high,
        Instruction::new(LOAD_64, 6, 6, 0, 0),
        Instruction::new(CALL, 0, 0, 0, KTIME_GET_COARSE_NS),
        Instruction::new(SUBTRACT, 0, 6, 0, 0),
        Instruction::new(JUMP_SIGNED_GREATER, 0, 0, 6, STALE.0 as i32), // to the last two
        sockets_low,
        sockets_high,
        Instruction::new(MOVE, 2, 0, 0, port as i32),
        Instruction::new(MOVE, 3, 0, 0, XDP_PASS),
        Instruction::new(CALL, 0, 0, 0, REDIRECT_MAP),
        Instruction::new(EXIT, 0, 0, 0, 0),
        Instruction::new(MOVE, 0, 0, 0, XDP_PASS),
        Instruction::new(EXIT, 0, 0, 0, 0),
    ]
}

/// Two instructions that load a map, or the address `offset` bytes into its value, into a register.
fn load_map(register: u8, kind: u8, map: &OwnedFd, offset: u32) -> [Instruction; 2] {
    let low = Instruction::new(LOAD_IMMEDIATE_64, register, kind, 0, map.as_raw_fd());
    [low, Instruction::new(0, 0, 0, 0, offset as i32)]
}

/// `struct bpf_insn`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

impl Instruction {
    const fn new(code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Self {
        // Which half of a byte is the first bit field is the byte order's choice.
        let registers =
            if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from };
        Self { code, registers, offset, immediate }
    }
}

// Of `linux/bpf.h` and `linux/bpf_common.h`.
const LOAD_IMMEDIATE_64: u8 = 0x18;
const LOAD_32: u8 = 0x61;
const LOAD_64: u8 = 0x79;
const MOVE: u8 = 0xb7;
const SUBTRACT: u8 = 0x1f;
const JUMP_UNEQUAL: u8 = 0x55;
const JUMP_SIGNED_GREATER: u8 = 0x65;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const PSEUDO_MAP_FD: u8 = 1;
const PSEUDO_MAP_VALUE: u8 = 2;
const KTIME_GET_COARSE_NS: i32 = 160;
const REDIRECT_MAP: i32 = 51;
/// Where `struct xdp_md` has it.
const RX_QUEUE_INDEX: i16 = 16;
const XDP_PASS: i32 = 2;

const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;
const MAP_TYPE_ARRAY: u32 = 2;
const MAP_TYPE_XSKMAP: u32 = 17;
const MAP_MMAPABLE: u32 = 1 << 10;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
const FLAG_GENERIC: u32 = 1 << 1;
const FLAG_NATIVE: u32 = 1 << 2;

// Beginnings of `union bpf_attr`, one a command; the kernel takes what is missing as 0.

#[repr(C)]
struct CreateMap {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
}

#[repr(C)]
struct UpdateElement {
    map: u32,
    pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct LoadProgram {
    program_type: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    ifindex: u32,
    expected_attach_type: u32,
}

#[repr(C)]
struct CreateLink {
    program: u32,
    ifindex: u32,
    attach_type: u32,
    flags: u32,
}

fn create_map(map_type: u32, value_size: u32, max_entries: u32, flags: u32) -> io::Result<OwnedFd> {
    let key_size = size_of::<u32>() as u32;
    bpf_fd(MAP_CREATE, &mut CreateMap { map_type, key_size, value_size, max_entries, flags })
}

fn load(instructions: &[Instruction]) -> io::Result<OwnedFd> {
    bpf_fd(
        PROG_LOAD,
        &mut LoadProgram {
            program_type: PROG_TYPE_XDP,
            instruction_count: instructions.len() as u32,
            instructions: instructions.as_ptr() as u64,
            license: c"Dual MIT/GPL".as_ptr() as u64,
            log_level: 0,
            log_size: 0,
            log: 0,
            kernel_version: 0,
            flags: 0,
            name: *b"shortlane_xdp\0\0\0",
            ifindex: 0,
            expected_attach_type: ATTACH_XDP,
        },
    )
}

fn bpf_fd<T>(command: libc::c_int, attributes: &mut T) -> io::Result<OwnedFd> {
    let fd = bpf(command, attributes)?;
    // SAFETY: these commands answer with a new descriptor, which is nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn bpf<T>(command: libc::c_int, attributes: &mut T) -> io::Result<RawFd> {
    let (attributes, size) = (ptr::from_mut(attributes), size_of::<T>());
    // SAFETY: the attributes are a C struct of this size; what they point to lives in the caller.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as RawFd) }
}
