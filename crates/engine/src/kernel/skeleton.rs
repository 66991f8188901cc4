//! What the build makes of the object files: their programs, their maps and their types.
#![allow(missing_docs, unreachable_pub, unused_imports, clippy::all)]

pub(super) mod fq_lanes {
    include!(concat!(env!("OUT_DIR"), "/fq_lanes.skel.rs"));
}

pub(super) mod ingress {
    include!(concat!(env!("OUT_DIR"), "/ingress.skel.rs"));
}

pub(super) mod marks {
    include!(concat!(env!("OUT_DIR"), "/marks.skel.rs"));
}

include!(concat!(env!("OUT_DIR"), "/shortlane.skel.rs"));
