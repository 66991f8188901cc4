//! Compiles what runs inside the kernel, where the feature `kernel` asks for it.

fn main() {
    #[cfg(feature = "kernel")]
    kernel::compile();
}

#[cfg(feature = "kernel")]
mod kernel {
    use std::env;
    use std::ffi::OsStr;
    use std::path::PathBuf;
    use std::process::Command;

    use libbpf_cargo::SkeletonBuilder;

    const OBJECTS: [&str; 6] = ["shortlane", "fq_lanes", "ingress", "hook", "nat", "marks"];
    /// Older ones lose the tag of a pointer that a map owns, and the kernel refuses the object.
    const OLDEST_CLANG: u32 = 16;
    const NEWEST_CLANG: u32 = 24;

    pub(crate) fn compile() {
        // Another directory is for the kernel bench, which plants bugs in a copy.
        let directory = env::var_os("SHORTLANE_BPF_SOURCE").map_or("bpf".into(), PathBuf::from);
        println!("cargo::rerun-if-changed={}", directory.display());
        println!("cargo::rerun-if-env-changed=SHORTLANE_BPF_SOURCE");
        println!("cargo::rerun-if-env-changed=CLANG");
        let into = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
        let clang = clang();
        for object in OBJECTS {
            let source = directory.join(format!("{object}.bpf.c"));
            let result = SkeletonBuilder::new()
                .source(&source)
                .clang(&clang)
                .clang_args(["-mcpu=v3", "-Wall", "-Werror"])
                // Nobody reads it: a formatter that does not exist leaves the text alone, where a toolchain
                // without rustfmt has a proxy of that name which fails.
                .rustfmt(into.join("no-rustfmt"))
                .build_and_generate(into.join(format!("{object}.skel.rs")));
            if let Err(error) = result {
                panic!("cannot compile {}: {error:#}", source.display());
            }
        }
    }

    /// The compiler that `CLANG` names, or the newest one there is.
    fn clang() -> PathBuf {
        if let Some(named) = env::var_os("CLANG") {
            assert!(
                works(&named),
                "CLANG names {named:?}, which is not clang {OLDEST_CLANG} or newer"
            );
            return named.into();
        }
        (OLDEST_CLANG..=NEWEST_CLANG)
            .rev()
            .map(|version| format!("clang-{version}"))
            .chain([String::from("clang")])
            .find(|name| works(name.as_ref()))
            .unwrap_or_else(|| {
                panic!(
                    "the in-kernel qdisc needs clang {OLDEST_CLANG} or newer: \
                     `scripts/setup.sh bpf` installs one; CLANG names another"
                )
            })
            .into()
    }

    fn works(name: &OsStr) -> bool {
        let Ok(output) = Command::new(name).arg("-dumpversion").output() else { return false };
        let version = String::from_utf8_lossy(&output.stdout);
        let major = version.split('.').next().and_then(|major| major.trim().parse().ok());
        major.is_some_and(|major: u32| major >= OLDEST_CLANG)
    }
}
