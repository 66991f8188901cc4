use engine::LinkSettings;
use engine::kernel::inspect::{DeviceFacts, Machine};
use engine::status::{EngineKind, Heading, LaneCounters, Process, Status, Tally};
use sched::{Nanos, Rate};

use super::*;

const GBIT: u64 = 1_000_000_000;

fn sound_machine() -> Machine {
    Machine {
        qdisc: Ok(()),
        marks: Ok("cake"),
        tcx: true,
        xdp: true,
        tun: Ok(()),
        ifb: Some(Ok(())),
        clock_source: "tsc".into(),
        halt_poll: Some(Nanos(200_000)),
        lacking: None,
        left: Vec::new(),
    }
}

fn sound_device() -> DeviceFacts {
    DeviceFacts {
        name: "eth0".into(),
        ifindex: 2,
        up: true,
        running: true,
        speed: Some(Rate(GBIT)),
        transmit_queues: 1,
        per_queue: None,
        gso_max_segs: 1,
        mtu: 1500,
        receive_offloads: vec!["rx-gro".into()],
        forwards: false,
        joining: vec![("lan0".into(), 65_536)],
        configured_root: None,
        has_qdisc: false,
        filters: [Vec::new(), Vec::new()],
        userspace_filters: false,
        xdp: false,
        ifb: None,
        redirected: false,
        marks_fault: None,
        marker: None,
    }
}

fn status(engine: EngineKind, direction: Heading, rate: u64) -> Status {
    let process = Process {
        pid: 1,
        received: Tally { packets: 1000, bytes: 1_000_000 },
        realtime: true,
        nat_revealed: true,
        ..Process::default()
    };
    Status {
        device: "eth0".into(),
        ifindex: 2,
        engine,
        direction,
        link: LinkSettings { rate: Rate(rate), ..LinkSettings::default() },
        uptime: Nanos::from_secs(10),
        lanes: vec![LaneCounters::default()],
        process: (engine == EngineKind::Userspace).then_some(process),
        ..Status::default()
    }
}

/// What is found beside what is as it should be.
fn wrong(findings: &[Finding]) -> Vec<(&'static str, Verdict)> {
    let wrong = findings.iter().filter(|finding| finding.result != Verdict::Ok);
    wrong.map(|finding| (finding.check, finding.result)).collect()
}

/// Makes something wrong.
type Planted<T> = fn(&mut T);

#[test]
fn a_sound_machine_and_device_have_nothing_wrong() {
    assert_eq!(wrong(&machine(&sound_machine())), []);
    assert_eq!(wrong(&device(&sound_device(), &[])), []);
    let both = [
        status(EngineKind::Userspace, Heading::Egress, 20_000_000),
        status(EngineKind::Userspace, Heading::Ingress, 50_000_000),
    ];
    assert_eq!(wrong(&device(&sound_device(), &both)), []);
}

#[test]
fn each_fault_of_the_machine_is_found_with_a_remedy() {
    let faults: [(Planted<Machine>, &str, Verdict); 9] = [
        (|m| m.qdisc = Err("6.1 cannot".into()), "kernel engine", Verdict::Note),
        (|m| m.marks = Err("no cake".into()), "marks", Verdict::Note),
        (|m| m.tun = Err("No such device".into()), "userspace engine", Verdict::Note),
        (|m| m.tcx = false, "TCX", Verdict::Note),
        (|m| m.xdp = false, "AF_XDP", Verdict::Note),
        (|m| m.ifb = Some(Err("unknown".into())), "ifb", Verdict::Note),
        (|m| m.clock_source = "acpi_pm".into(), "clock", Verdict::Problem),
        (|m| m.halt_poll = Some(Nanos::ZERO), "idle processors", Verdict::Note),
        (|m| m.left = vec!["eth1".into()], "left behind", Verdict::Problem),
    ];
    for (inject, check, verdict) in faults {
        let mut facts = sound_machine();
        inject(&mut facts);
        let findings = machine(&facts);
        assert_eq!(wrong(&findings), [(check, verdict)]);
        let found = findings.iter().find(|finding| finding.result == verdict).unwrap();
        assert!(found.remedy.as_ref().is_some_and(|remedy| !remedy.is_empty()), "{found:?}");
    }
    let mut neither = sound_machine();
    neither.qdisc = Err("too old".into());
    neither.lacking = Some("CAP_BPF".into());
    let found = wrong(&machine(&neither));
    assert!(found.contains(&("userspace engine", Verdict::Problem)), "{found:?}");
}

#[test]
fn without_a_kernel_engine_it_names_what_auto_takes() {
    let mut facts = sound_machine();
    facts.qdisc = Err("6.1 cannot".into());
    let remedy = |facts: &Machine| machine(facts)[0].remedy.clone().unwrap_or_default();
    assert!(remedy(&facts).contains("takes marks"), "{}", remedy(&facts));
    facts.marks = Err("no cake".into());
    assert!(remedy(&facts).contains("takes the userspace engine"), "{}", remedy(&facts));
}

#[test]
fn each_fault_around_a_device_is_found_with_a_remedy() {
    const NOTHING: &[EngineKind] = &[];
    const KERNEL: &[EngineKind] = &[EngineKind::Kernel];
    const USERSPACE: &[EngineKind] = &[EngineKind::Userspace];
    type Fault = (fn(&mut DeviceFacts), &'static [EngineKind], &'static str, Verdict);
    let faults: [Fault; 18] = [
        (|d| d.per_queue = Some((4, 8)), KERNEL, "queues", Verdict::Problem),
        (|d| d.marks_fault = Some("gone".into()), NOTHING, "marks", Verdict::Problem),
        (|d| d.marker = Some(false), KERNEL, "ECN", Verdict::Problem),
        (|d| d.up = false, NOTHING, "link", Verdict::Note),
        (|d| d.running = false, USERSPACE, "link", Verdict::Problem),
        (|d| d.speed = Some(Rate(10_000_000)), USERSPACE, "rate", Verdict::Problem),
        (|d| d.filters[0] = vec!["matchall".into()], NOTHING, "filters", Verdict::Note),
        (|d| d.filters[1] = vec!["u32".into()], NOTHING, "filters", Verdict::Note),
        (|d| d.userspace_filters = true, NOTHING, "redirect", Verdict::Problem),
        (|d| d.ifb = Some("sl-in-2".into()), NOTHING, "redirect", Verdict::Problem),
        (|d| d.redirected = true, NOTHING, "redirect", Verdict::Problem),
        (|d| d.xdp = true, NOTHING, "XDP", Verdict::Note),
        (|d| d.configured_root = Some("htb 1:".into()), NOTHING, "root qdisc", Verdict::Note),
        (|d| d.configured_root = Some("tbf 1:".into()), USERSPACE, "root qdisc", Verdict::Note),
        (|d| d.receive_offloads.push("rx-lro".into()), USERSPACE, "LRO", Verdict::Problem),
        (|d| d.gso_max_segs = 65_535, KERNEL, "super-packets", Verdict::Problem),
        (|d| d.forwards = true, KERNEL, "GRO", Verdict::Problem),
        (|d| (d.has_qdisc, d.transmit_queues) = (true, 8), KERNEL, "queues", Verdict::Note),
    ];
    for (inject, engines, check, verdict) in faults {
        let mut facts = sound_device();
        inject(&mut facts);
        let attached: Vec<Status> =
            engines.iter().map(|engine| status(*engine, Heading::Egress, 20_000_000)).collect();
        let findings = device(&facts, &attached);
        assert_eq!(wrong(&findings), [(check, verdict)], "{findings:#?}");
        let found = findings.iter().find(|finding| finding.result == verdict).unwrap();
        assert_eq!(found.device.as_deref(), Some("eth0"));
        assert!(found.remedy.as_ref().is_some_and(|remedy| !remedy.is_empty()), "{found:?}");
    }
    // Filters of an engine at work are as they should be.
    let working = DeviceFacts { userspace_filters: true, ..sound_device() };
    let attached = [status(EngineKind::Userspace, Heading::Egress, 20_000_000)];
    assert_eq!(wrong(&device(&working, &attached)), []);
}

#[test]
fn an_engine_that_does_not_keep_up_is_found() {
    let faults: [(Planted<Process>, &str, Verdict); 4] = [
        (|p| p.realtime = false, "priority", Verdict::Problem),
        (|p| p.nat_revealed = false, "NAT", Verdict::Note),
        (|p| p.punctuality.lost = Nanos::from_millis(500), "punctuality", Verdict::Problem),
        (|p| p.lost_in_kernel = 50, "speed", Verdict::Problem),
    ];
    for (inject, check, verdict) in faults {
        let mut slow = status(EngineKind::Userspace, Heading::Ingress, 20_000_000);
        inject(slow.process.as_mut().unwrap());
        assert_eq!(wrong(&device(&sound_device(), &[slow])), [(check, verdict)]);
    }
}
