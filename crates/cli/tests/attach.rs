//! `attach`, `change`, `detach` and `show` where no qdisc can be attached: what is refused, how,
//! and that nothing is left. `kernel-guest attach` has the rest, in kernels that can.

use std::process::{Command, Output};

const SHORTLANE: &str = env!("CARGO_BIN_EXE_shortlane");

fn shortlane(arguments: &[&str]) -> (Option<i32>, String) {
    said(Command::new(SHORTLANE).args(arguments).output().expect("the program starts"))
}

/// Exit status, and what was said on standard error.
fn said(output: Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

/// It must be bad usage, said in one line with all these words.
fn is_bad_usage(arguments: &[&str], words: &[&str]) {
    let (status, text) = shortlane(arguments);
    assert_eq!(status, Some(2), "{arguments:?}: {text}");
    assert_eq!(text.lines().count(), 1, "{arguments:?}: {text}");
    for word in words {
        assert!(text.contains(word), "{arguments:?}: no '{word}' in: {text}");
    }
}

#[test]
fn bad_usage_is_said_in_one_line() {
    is_bad_usage(&["attach", "eth0"], &["--rate, --ingress, or both"]);
    is_bad_usage(&["attach"], &["<DEVICE>"]);
    for rate in ["0mbit", "10", "-1mbit", "99999999999gbit", "18446744073709551615bit"] {
        is_bad_usage(&["attach", "eth0", "--rate", rate], &[rate, "above 0", "unlimited"]);
    }
    let attach = |option, value| ["attach", "eth0", "--rate", "10mbit", option, value];
    is_bad_usage(&attach("--overhead", "5000"), &["5000", "from -64 to 1024"]);
    let words = ["'docsys'", "docsis", "pppoe-ptm", "mpu=N", "-64 to 1024"];
    is_bad_usage(&attach("--overhead", "docsys"), &words);
    is_bad_usage(&attach("--overhead", "44,docsis"), &["'44' and 'docsis'", "one of them"]);
    is_bad_usage(&attach("--burst-time", "0ms"), &["above 0"]);
    is_bad_usage(&attach("--scheduler", "nope"), &["no discipline is named 'nope'", "efd"]);
    is_bad_usage(&attach("--scheduler", "efd:limit=0packets"), &["limit=0packets"]);
    is_bad_usage(&attach("--engine", "gpu"), &["auto, kernel, marks, userspace"]);
    let contradiction = "red:min=300packets,max=100packets";
    is_bad_usage(&attach("--scheduler", contradiction), &["red", "min", "max"]);
    let options = "--rate, --ingress, --scheduler, --overhead or --burst-time";
    is_bad_usage(&["change", "eth0"], &[options]);
    is_bad_usage(&["detach"], &["<DEVICE>"]);
}

#[cfg(not(feature = "kernel"))]
#[test]
fn a_program_without_the_kernel_engine_says_how_to_get_one() {
    for arguments in [
        &["attach", "eth0", "--rate", "10mbit"][..],
        &["detach", "lo"],
        &["change", "lo", "--rate", "10mbit"],
        &["show", "lo"],
    ] {
        says_what_is_missing(&shortlane(arguments));
    }
    // A bridge's engines are to be seen all the same.
    assert_eq!(shortlane(&["show"]).0, Some(0));
}

#[cfg(not(feature = "kernel"))]
fn says_what_is_missing((status, text): &(Option<i32>, String)) {
    assert_eq!((*status, text.lines().count()), (Some(1), 1), "{text}");
    for words in ["without the engines for a single device", "scripts/setup.sh bpf", "make build"] {
        assert!(text.contains(words), "no '{words}' in: {text}");
    }
}

#[cfg(not(feature = "kernel"))]
#[test]
fn its_doctor_says_so_as_well() {
    let output = Command::new(SHORTLANE).args(["doctor", "lo"]).output();
    let output = output.expect("the program starts");
    let found = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{found}");
    assert!(found.starts_with("PROBLEM engines: this program was built without"), "{found}");
    assert!(found.contains("-> in Shortlane's sources `scripts/setup.sh bpf`"), "{found}");
    is_bad_usage(&["doctor", "eth7"], &["there is no device 'eth7'"]);
}

#[test]
fn its_version_says_what_is_built_in() {
    let output = Command::new(SHORTLANE).arg("--version").output().expect("the program starts");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let engines = if cfg!(feature = "kernel") { "kernel, userspace, bridge" } else { "bridge" };
    assert!(text.starts_with(concat!("shortlane ", env!("CARGO_PKG_VERSION"), " (")), "{text}");
    assert!(text.ends_with(&format!("engines: {engines})\n")), "{text}");
}

#[cfg(feature = "kernel")]
mod with_engine {
    use std::process::Command;

    use super::{SHORTLANE, is_bad_usage, said};

    /// Runs a shell script in namespaces of its own, with the program as `$S` and a `/run` that
    /// goes with it. `None` if no namespaces can be had.
    fn in_private(script: &str) -> Option<(Option<i32>, String)> {
        let private = ["--map-root-user", "--net", "--mount"];
        let works = Command::new("unshare").args(private).args(["tc", "qdisc"]).output();
        if !works.is_ok_and(|output| output.status.success()) {
            eprintln!("SKIPPED: no namespaces here, or no tc");
            return None;
        }
        let script = format!("set -e; mount -t tmpfs none /run; {script}");
        let mut command = Command::new("unshare");
        command.args(private).args(["sh", "-c", &script]).env("S", SHORTLANE);
        Some(said(command.output().expect("unshare starts")))
    }

    fn is_refused(script: &str, status: i32, words: &[&str]) {
        let Some((found, text)) = in_private(script) else { return };
        assert_eq!(found, Some(status), "{script}: {text}");
        assert_eq!(text.lines().count(), 1, "{script}: {text}");
        for word in words {
            assert!(text.contains(word), "{script}: no '{word}' in: {text}");
        }
    }

    #[test]
    fn what_is_no_device_for_it_is_refused() {
        is_refused("$S attach eth7 --rate 10mbit", 2, &["'eth7'", "there are lo"]);
        is_refused("$S attach lo --rate 10mbit", 2, &["loopback", "eth0"]);
        is_refused("$S change eth7 --rate 10mbit", 2, &["'eth7'"]);
        is_refused("$S detach eth7", 2, &["'eth7'"]);
        let in_kernel =
            |spec| ["attach", "lo", "--rate", "1mbit", "--engine", "kernel", "--scheduler", spec];
        is_bad_usage(&in_kernel("las"), &["las", "efd"]);
        is_bad_usage(&in_kernel("efd:limit=9999999packets"), &["4194304 packets at most"]);
    }

    #[test]
    fn what_is_not_attached_cannot_be_changed_or_detached() {
        let device = "ip link add t0 type veth peer name t1; ip link set t0 up";
        let words = ["t0 is not attached", "noqueue, the kernel's default"];
        is_refused(&format!("{device}; $S detach t0"), 1, &words);
        let device = format!("{device}; tc qdisc add dev t0 root handle 5: pfifo");
        is_refused(&format!("{device}; $S detach t0"), 1, &["t0 is not attached", "pfifo 5:"]);
    }

    #[test]
    fn a_configured_device_is_not_overwritten() {
        let root = |root: &str| {
            format!(
                "ip link add t0 type veth peer name t1; ip link set t0 up; \
                 tc qdisc add dev t0 root {root}; tc qdisc show dev t0 > /run/before; \
                 $S attach t0 --rate 10mbit --engine kernel || status=$?; \
                 tc qdisc show dev t0 | cmp - /run/before; [ ! -e /run/shortlane ]; exit $status"
            )
        };
        let comes_back = ["t0 has a root qdisc", "configured", "--replace", "puts it back"];
        is_refused(&root("handle 5: tbf rate 1mbit burst 5kb limit 9kb"), 1, &comes_back);
        is_refused(&root("handle 5: pfifo limit 30"), 1, &["pfifo 5:", "puts it back"]);
        let htb = root(
            "handle 1: htb default 1; tc class add dev t0 parent 1: classid 1:1 htb rate 1mbit",
        );
        is_refused(&htb, 1, &["htb 1:", "could not put it back", "its classes would be missing"]);
    }

    #[test]
    fn a_missing_capability_is_named() {
        // Without a user namespace the set would be whole again.
        let drop = "setpriv --bounding-set=-all --inh-caps=-all";
        let script =
            format!("ip link add t0 type veth peer name t1; {drop} $S attach t0 --rate 1mbit");
        is_refused(&script, 1, &["attaching needs", "CAP_NET_ADMIN", "CAP_BPF", "as root"]);
        is_refused(&format!("{drop} $S show"), 1, &["needs", "CAP_SYS_ADMIN"]);
    }

    #[test]
    fn a_kernel_or_a_user_that_cannot_is_told_why_and_nothing_has_changed() {
        let script = "ip link add t0 type veth peer name t1; ip link set t0 up; \
             ip -d link show t0 > /run/before; \
             $S attach t0 --rate 10mbit --engine kernel || status=$?; \
             [ -n \"$status\" ] || exit 77; \
             ip -d link show t0 | cmp - /run/before; [ ! -e /run/shortlane ]; exit $status";
        let Some((status, text)) = in_private(script) else { return };
        if status == Some(77) {
            eprintln!("SKIPPED: this kernel can, and this user may");
            return;
        }
        assert_eq!(status, Some(1), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        let missing = ["CONFIG_NET_SCH_BPF", "needs the capability CAP_"];
        assert!(missing.iter().any(|word| text.contains(word)), "{text}");
    }
}
