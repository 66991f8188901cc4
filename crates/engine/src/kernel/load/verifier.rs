//! What libbpf says while it loads: the verifier's log is in it if the verifier refuses.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::{env, process};

use libbpf_rs::{PrintLevel, set_print};

static SAID: Mutex<String> = Mutex::new(String::new());

/// Collects what libbpf says while something is loaded.
pub(super) fn listen<T>(load: impl FnOnce() -> T) -> T {
    SAID.lock().unwrap_or_else(PoisonError::into_inner).clear();
    set_print(Some((PrintLevel::Info, |_, text| {
        SAID.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
    })));
    let loaded = load();
    set_print(None);
    loaded
}

/// Writes the verifier's log, if it has refused a program, to a file where nothing was before.
pub(super) fn keep_log() -> Option<io::Result<PathBuf>> {
    let said = SAID.lock().unwrap_or_else(PoisonError::into_inner).clone();
    said.contains("BEGIN PROG LOAD LOG").then(|| {
        let path = env::temp_dir().join(format!("shortlane-verifier-{}.log", process::id()));
        let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        file.write_all(said.as_bytes())?;
        Ok(path)
    })
}
