//! What is to be said of a machine, whatever is attached.

use engine::kernel::inspect::Machine;
use sched::Nanos;

use super::{Finding, Verdict, finding, note_unless, problem_unless};

/// What a wrong answer of the clock costs at most: these are read without a system call.
const GOOD_CLOCKS: [&str; 4] =
    ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"];

pub(in crate::doctor) fn machine(machine: &Machine) -> Vec<Finding> {
    let mut all = Vec::new();
    let mut add = |check, result, found: String, remedy: &str| {
        all.push(finding(None, check, result, found, remedy));
    };
    let yes = |good: bool, what: &str| format!("{} {what}", if good { "has" } else { "has no" });
    add(
        "kernel engine",
        note_unless(machine.qdisc.is_ok()),
        machine.qdisc.clone().err().unwrap_or_else(|| "this kernel can".into()),
        match &machine.marks {
            Ok(_) => "nothing: --engine auto takes marks here",
            Err(_) => "nothing: --engine auto takes the userspace engine here",
        },
    );
    add(
        "marks",
        note_unless(machine.marks.is_ok()),
        match &machine.marks {
            Ok(queues) => format!("this kernel can, in front of {queues}"),
            Err(why) => why.clone(),
        },
        "nothing, unless it is to be marks: `modprobe sch_cake` shows whether there is a module",
    );
    let works = machine.tun.is_ok() && machine.lacking.is_none();
    let why = match (&machine.tun, &machine.lacking) {
        (Err(error), _) => format!("/dev/net/tun: {error}"),
        (_, Some(lacking)) => format!("this user lacks {lacking}"),
        _ => "this kernel and this user can".into(),
    };
    add(
        "userspace engine",
        match (works, &machine.qdisc) {
            (true, _) => Verdict::Ok,
            (false, Ok(())) => Verdict::Note,
            (false, Err(_)) => Verdict::Problem,
        },
        why,
        "run it as root; `modprobe tun` makes the device; in a container, give it /dev/net/tun, \
         CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF",
    );
    add(
        "TCX",
        note_unless(machine.tcx),
        format!("the kernel {}", yes(machine.tcx, "TCX links")),
        "nothing: filters of a clsact qdisc do it; what a killed engine leaves of them passes \
         everything, and `shortlane detach DEV` removes it",
    );
    add(
        "AF_XDP",
        note_unless(machine.xdp),
        format!("the kernel {}", yes(machine.xdp, "AF_XDP sockets")),
        "nothing: `shortlane bridge` takes packet sockets, which are slower",
    );
    match (&machine.ifb, &machine.qdisc) {
        (Some(Ok(())), _) => add("ifb", Verdict::Ok, "can be made".into(), ""),
        (Some(Err(error)), Ok(())) => add(
            "ifb",
            Verdict::Note,
            error.clone(),
            "`modprobe ifb`, or --engine userspace: the kernel engine's --ingress needs one",
        ),
        _ => {}
    }
    let clock = &machine.clock_source;
    add(
        "clock",
        problem_unless(clock.is_empty() || GOOD_CLOCKS.contains(&clock.as_str())),
        if clock.is_empty() { "the kernel does not tell".into() } else { clock.clone() },
        "each look at this clock is a slow access to a device: write tsc, if it is among \
         available_clocksource, to /sys/devices/system/clocksource/clocksource0/current_clocksource",
    );
    if let Some(awake) = machine.halt_poll {
        add(
            "idle processors",
            note_unless(awake > Nanos::ZERO),
            format!("this virtual machine keeps an idle one awake for {} us", awake.0 / 1000),
            "nothing, unless each round trip through the userspace engine counts: to wake one takes \
             the hypervisor tens of us; the kernel's default is 200000 in \
             /sys/module/haltpoll/parameters/guest_halt_poll_ns",
        );
    }
    for device in &machine.left {
        all.push(finding(
            Some(device),
            "left behind",
            Verdict::Problem,
            "an attachment that has ended has left offloads or a root qdisc changed",
            &format!("`shortlane detach {device}` puts them back"),
        ));
    }
    all
}
