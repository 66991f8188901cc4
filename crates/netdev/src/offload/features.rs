//! Offloads by their names: `rx-gro` and the like, as `ethtool -k` lists them.

use std::io;
use std::os::fd::OwnedFd;

use super::{control, ethtool};

const GET_STRING_SET_INFO: u32 = 0x37;
const GET_STRINGS: u32 = 0x1b;
const GET_FEATURES: u32 = 0x3a;
const SET_FEATURES: u32 = 0x3b;
/// `ETH_SS_FEATURES`.
const NAMES: u32 = 4;
const NAME_LENGTH: usize = 32;

/// Which of these features of an interface are on.
///
/// # Errors
/// If there is no such interface.
pub fn active(interface: &str, names: &[&str]) -> io::Result<Vec<String>> {
    let socket = control()?;
    let all = all_names(&socket, interface)?;
    let blocks = blocks(&all);
    let mut command = vec![0; 2 + blocks * 4];
    command[..2].copy_from_slice(&[GET_FEATURES, blocks as u32]);
    // SAFETY: an `ethtool_gfeatures` with as many blocks as it says.
    unsafe { ethtool(&socket, interface, command.as_mut_ptr().cast()) }?;
    // A block has 32 features each: available, requested, active, never changed.
    let is_active = |at: usize| command[2 + at / 32 * 4 + 2] & 1 << (at % 32) != 0;
    let on = all
        .iter()
        .enumerate()
        .filter(|(at, name)| names.contains(&name.as_str()) && is_active(*at));
    Ok(on.map(|(_, name)| name.clone()).collect())
}

/// Switches these features of an interface; those that it does not know, or that are not its to
/// change, stay.
///
/// # Errors
/// If there is no such interface, or permission is lacking.
pub fn switch(interface: &str, names: &[String], on: bool) -> io::Result<()> {
    let socket = control()?;
    let all = all_names(&socket, interface)?;
    let blocks = blocks(&all);
    let mut command = vec![0; 2 + blocks * 2];
    command[..2].copy_from_slice(&[SET_FEATURES, blocks as u32]);
    for (at, _) in all.iter().enumerate().filter(|(_, name)| names.contains(name)) {
        let (block, bit) = (2 + at / 32 * 2, 1 << (at % 32));
        command[block] |= bit;
        command[block + 1] |= if on { bit } else { 0 };
    }
    // SAFETY: an `ethtool_sfeatures` with as many blocks as it says.
    unsafe { ethtool(&socket, interface, command.as_mut_ptr().cast()) }
}

const fn blocks(names: &[String]) -> usize {
    names.len().div_ceil(32)
}

fn all_names(socket: &OwnedFd, interface: &str) -> io::Result<Vec<String>> {
    let mask = (1u64 << NAMES).to_ne_bytes();
    let half = |at: usize| mask[at..at + 4].try_into().map_or(0, u32::from_ne_bytes);
    // Command, reserved, the 64-bit mask of sets, the size of the one set.
    let mut info = [GET_STRING_SET_INFO, 0, half(0), half(4), 0];
    // SAFETY: an `ethtool_sset_info` with room for one set.
    unsafe { ethtool(socket, interface, info.as_mut_ptr().cast()) }?;
    let count = info[4] as usize;
    let mut strings = vec![0u32; 3 + count * NAME_LENGTH / 4];
    strings[..3].copy_from_slice(&[GET_STRINGS, NAMES, count as u32]);
    // SAFETY: an `ethtool_gstrings` with room for as many names as it says.
    unsafe { ethtool(socket, interface, strings.as_mut_ptr().cast()) }?;
    let bytes: Vec<u8> = strings[3..].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let name = |bytes: &[u8]| {
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    };
    Ok(bytes.chunks_exact(NAME_LENGTH).map(name).collect())
}
