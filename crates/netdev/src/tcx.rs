//! Programs on a device by TCX (Linux 6.6), by links that go with the process that holds them.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libbpf_rs::libbpf_sys;
use libbpf_rs::query::ProgInfoIter;

use crate::clsact::Point;

/// Most programs at one point of a device: the kernel's own limit.
const MOST_PROGRAMS: usize = 64;
/// What the names of our programs begin with.
const OURS: &str = "shortlane_";

/// Puts a program on a device, in front of all that are there; it goes with what this gives.
///
/// # Errors
/// `EINVAL` if the kernel has no TCX, or what else the system refuses.
pub fn link(device: u32, program: &OwnedFd, at: Point) -> io::Result<OwnedFd> {
    const BEFORE: u32 = 1 << 3; // BPF_F_BEFORE: of nobody in particular, so of all
    let options = libbpf_sys::bpf_link_create_opts {
        sz: size_of::<libbpf_sys::bpf_link_create_opts>() as libbpf_sys::size_t,
        flags: BEFORE,
        ..Default::default()
    };
    // SAFETY: the options are a local that says how long it is, and ask for nothing else.
    let fd = unsafe {
        libbpf_sys::bpf_link_create(
            program.as_raw_fd(),
            device as i32,
            kind(at),
            &raw const options,
        )
    };
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(-fd));
    }
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The names of the programs that others have at a point of a device, in their order; none if this
/// user may not know, or the kernel has no TCX.
#[must_use]
pub fn others(device: u32, at: Point) -> Vec<String> {
    let ids = programs(device, at);
    if ids.is_empty() {
        return Vec::new();
    }
    let all: Vec<_> = ProgInfoIter::default().collect();
    let name = |id: &u32| {
        let info = all.iter().find(|info| info.id == *id);
        info.map_or_else(|| format!("program {id}"), |info| info.name.to_string_lossy().into())
    };
    ids.iter().map(name).filter(|name: &String| !name.starts_with(OURS)).collect()
}

fn programs(device: u32, at: Point) -> Vec<u32> {
    let mut ids = vec![0; MOST_PROGRAMS];
    let mut options = libbpf_sys::bpf_prog_query_opts {
        sz: size_of::<libbpf_sys::bpf_prog_query_opts>() as libbpf_sys::size_t,
        prog_ids: ids.as_mut_ptr(),
        ..Default::default()
    };
    options.__bindgen_anon_1.count = MOST_PROGRAMS as u32;
    // SAFETY: the options are a local that says how long it is, and where there is room for how
    // many numbers.
    let count = unsafe {
        let refused =
            libbpf_sys::bpf_prog_query_opts(device as i32, kind(at), &raw mut options) != 0;
        if refused { 0 } else { options.__bindgen_anon_1.count as usize }
    };
    ids.truncate(count);
    ids
}

fn kind(at: Point) -> libbpf_sys::bpf_attach_type {
    match at {
        Point::Ingress => libbpf_sys::BPF_TCX_INGRESS,
        Point::Egress => libbpf_sys::BPF_TCX_EGRESS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{Home, Links, index_of};
    use crate::netns::Namespace;

    /// A program that leaves every packet to the next one.
    fn stranger() -> OwnedFd {
        let instruction = |code, imm| libbpf_sys::bpf_insn { code, imm, ..Default::default() };
        // r0 = -1 (TCX_NEXT); exit
        let code = [instruction(0xb7, -1), instruction(0x95, 0)];
        // SAFETY: names and instructions are there for the call, as many as said.
        let fd = unsafe {
            libbpf_sys::bpf_prog_load(
                libbpf_sys::BPF_PROG_TYPE_SCHED_CLS,
                c"stranger".as_ptr(),
                c"GPL".as_ptr(),
                code.as_ptr(),
                code.len() as libbpf_sys::size_t,
                std::ptr::null_mut(),
            )
        };
        assert!(fd >= 0, "{}", io::Error::from_raw_os_error(-fd));
        // SAFETY: the descriptor is new and nobody else's.
        unsafe { OwnedFd::from_raw_fd(fd) }
    }

    #[test]
    fn programs_of_others_are_listed_where_they_are() {
        if !nix::unistd::geteuid().is_root() {
            eprintln!("SKIPPED, nothing was tested: BPF programs need root");
            return;
        }
        let [here, far] = [Namespace::new().unwrap(), Namespace::new().unwrap()];
        here.run(|| {
            let cable = Links::open().unwrap().add_veth("eth0", "eth0", Home::Namespace(&far));
            cable.unwrap();
            let device = index_of("eth0").unwrap();
            assert_eq!(others(device, Point::Ingress), [""; 0]);
            let held = match link(device, &stranger(), Point::Ingress) {
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                    return eprintln!("SKIPPED, nothing was tested: a kernel without TCX");
                }
                held => held.unwrap(),
            };
            assert_eq!(others(device, Point::Ingress), ["stranger"]);
            assert_eq!(others(device, Point::Egress), [""; 0]);
            drop(held);
            assert_eq!(others(device, Point::Ingress), [""; 0]);
        })
        .unwrap();
    }
}
