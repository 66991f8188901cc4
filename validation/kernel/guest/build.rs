//! Compiles what the test `probes` tries to load: one object for each thing tried.

fn main() {
    #[cfg(feature = "kernel")]
    kernel::compile();
}

#[cfg(feature = "kernel")]
mod kernel {
    use std::env;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use libbpf_cargo::SkeletonBuilder;

    /// Things to try, as `bpf/probe.bpf.c` numbers them.
    const PROBES: u32 = 10;

    pub(crate) fn compile() {
        println!("cargo::rerun-if-changed=bpf");
        println!("cargo::rerun-if-changed=../../../crates/engine/bpf/kernel.h");
        println!("cargo::rerun-if-env-changed=CLANG");
        let into = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
        let engine = Path::new("../../../crates/engine/bpf").canonicalize();
        let engine = engine.expect("the engine's programs are beside this crate");
        for probe in 0..PROBES {
            let result = SkeletonBuilder::new()
                .source("bpf/probe.bpf.c")
                .obj(into.join(format!("probe{probe}.bpf.o")))
                .clang(clang())
                .clang_args([format!("-DPROBE={probe}"), format!("-I{}", engine.display())])
                .build();
            if let Err(error) = result {
                panic!("cannot compile probe {probe}: {error:#}");
            }
        }
    }

    /// The compiler that `CLANG` names, or the newest one there is; the engine's build has said
    /// what to do if there is none.
    fn clang() -> PathBuf {
        let named = env::var_os("CLANG").map(PathBuf::from);
        let versions = (16..=24).rev().map(|version| PathBuf::from(format!("clang-{version}")));
        let works = |clang: &PathBuf| Command::new(clang).arg("-dumpversion").output().is_ok();
        named.into_iter().chain(versions).find(works).unwrap_or_else(|| PathBuf::from("clang"))
    }
}
