//! What the build makes of the object file: its programs, its maps and their types.
#![allow(missing_docs, unreachable_pub, unused_imports, clippy::all)]

include!(concat!(env!("OUT_DIR"), "/hook.skel.rs"));
