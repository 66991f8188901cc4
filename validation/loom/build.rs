//! Takes the engine's own files, with loom's atomics in place of the standard library's.

use std::path::Path;
use std::{env, fs};

const FILES: [&str; 3] = ["datapath/follow.rs", "datapath/trips.rs", "io/xdp/ring.rs"];

fn main() {
    println!("cargo::rerun-if-env-changed=SHORTLANE_ENGINE");
    // What only the kernel's engine needs is left out here.
    println!("cargo::rustc-check-cfg=cfg(feature, values(\"kernel\"))");
    let engine = env::var("SHORTLANE_ENGINE").unwrap_or_else(|_| "../../crates/engine/src".into());
    let out = env::var("OUT_DIR").expect("cargo sets it");
    for file in FILES {
        let from = Path::new(&engine).join(file);
        println!("cargo::rerun-if-changed={}", from.display());
        let text = fs::read_to_string(&from).unwrap_or_else(|e| panic!("{}: {e}", from.display()));
        // The file's own tests have no loom around them, and an included file has no head.
        let text = text.split("#[cfg(test)]").next().expect("there is a first part");
        let lines = text.lines().filter(|line| !line.starts_with("//!"));
        let text = lines.collect::<Vec<_>>().join("\n");
        let text = text
            .replace("std::sync::atomic", "loom::sync::atomic")
            .replace("use autorate::PROBES;", "use crate::PROBES;")
            // Tables of one place, which everything wants.
            .replace("const SOUGHT: usize = 1 << 10;", "const SOUGHT: usize = 1;")
            .replace("const FOUND: usize = 1 << 8;", "const FOUND: usize = 1;");
        let name = from.file_name().expect("a file");
        fs::write(Path::new(&out).join(name), text).expect("the build's own directory");
    }
}
