//! What commands leave for the next one, for fuzzing.

use super::journal::Journal;

/// Reads a journal.
///
/// # Panics
/// If one that is read and written again is another one.
pub fn journal(bytes: &[u8]) {
    let Ok(read) = serde_json::from_slice::<Journal>(bytes) else { return };
    let written = serde_json::to_vec(&read).expect("a journal has nothing that JSON lacks");
    let again: Journal = serde_json::from_slice(&written).expect("what is written can be read");
    assert_eq!(again, read);
}
