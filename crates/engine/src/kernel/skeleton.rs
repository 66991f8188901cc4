//! What the build makes of the object file.
#![allow(missing_docs, unreachable_pub, clippy::all)]
include!(concat!(env!("OUT_DIR"), "/shortlane.skel.rs"));
