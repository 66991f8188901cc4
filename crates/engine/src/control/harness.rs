//! What is said on the control socket, and to the pilot's probes, for fuzzing.

mod probes;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use self::probes::Probes;
use super::protocol::{Answer, Request, hear, say};

/// What a client says.
///
/// # Panics
/// If a request that is read and said again is another one.
pub fn request(bytes: &[u8]) {
    same::<Request>(bytes);
}

/// What an engine answers.
///
/// # Panics
/// If an answer that is read and said again is another one.
pub fn answer(bytes: &[u8]) {
    same::<Answer>(bytes);
}

fn same<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(mut bytes: &[u8]) {
    let Ok(heard) = hear::<T>(&mut bytes) else { return };
    let mut line = Vec::new();
    say(&mut line, &heard).expect("memory takes what is written");
    let again: T = hear(&mut line.as_slice()).expect("what is said can be heard");
    assert_eq!(again, heard);
}
