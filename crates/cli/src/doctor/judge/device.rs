//! What is to be said of a device, and of what is attached to it.

use engine::kernel::inspect::{DeviceFacts, segments_in_time};
use engine::status::{EngineKind, Heading, Status};
use sched::Rate;

use super::{Finding, Verdict, finding, problem_unless};

pub(in crate::doctor) fn device(facts: &DeviceFacts, attached: &[Status]) -> Vec<Finding> {
    let about = About { facts, attached };
    let mut all = Vec::new();
    about.link(&mut all);
    about.redirects(&mut all);
    about.root(&mut all);
    about.offloads(&mut all);
    about.following(&mut all);
    about.performance(&mut all);
    all
}

struct About<'a> {
    facts: &'a DeviceFacts,
    attached: &'a [Status],
}

impl About<'_> {
    fn add(
        &self,
        all: &mut Vec<Finding>,
        check: &'static str,
        result: Verdict,
        found: impl Into<String>,
        remedy: &str,
    ) {
        all.push(finding(Some(&self.facts.name), check, result, found, remedy));
    }

    fn runs(&self, engine: EngineKind) -> bool {
        self.attached.iter().any(|status| status.engine == engine)
    }

    /// Is the device up, and does it carry what it is to pace for?
    fn link(&self, all: &mut Vec<Finding>) {
        let DeviceFacts { name, up, running, speed, .. } = self.facts;
        let is_up = *up && *running;
        let state = match (up, running) {
            (false, _) => "down",
            (true, false) => "up, without a carrier",
            (true, true) => "up",
        };
        let verdict = match (is_up, self.attached.is_empty()) {
            (true, _) => Verdict::Ok,
            (false, true) => Verdict::Note,
            (false, false) => Verdict::Problem,
        };
        let remedy = format!("`ip link set {name} up`, or look at the cable or the other end");
        self.add(all, "link", verdict, state, &remedy);
        let Some(speed) = *speed else { return };
        for status in self.attached {
            let way = status.direction.name();
            let rate = status.link.rate;
            if rate.is_unlimited() {
                continue;
            }
            if rate > speed {
                self.add(
                    all,
                    "rate",
                    Verdict::Problem,
                    format!("{way} at {rate} is more than the link's {speed}"),
                    &format!(
                        "the queue forms in the device, where no discipline orders it: `shortlane \
                         change {name} {} {}`, or what the slowest link behind it carries",
                        flag(status.direction),
                        Rate(speed.0 / 100 * 98)
                    ),
                );
            } else {
                let found = format!("{way} at {rate} of the link's {speed}");
                self.add(all, "rate", Verdict::Ok, found, "");
            }
        }
    }

    /// Does a rate that is to follow the link do so?
    fn following(&self, all: &mut Vec<Finding>) {
        for status in self.attached {
            let Some(asked) = &status.follows else { continue };
            let (way, name, rate) = (status.direction.name(), &self.facts.name, status.link.rate);
            match &status.auto {
                Some(_) => {
                    let found = format!("{way}: {asked} follows the link");
                    self.add(all, "following", Verdict::Ok, found, "");
                }
                None => self.add(
                    all,
                    "following",
                    Verdict::Problem,
                    format!(
                        "{way}: the process by which {asked} followed is gone: it stays at {rate}"
                    ),
                    &format!(
                        "`shortlane attach {name} {} {asked} --replace` starts it anew; `shortlane \
                         change {name} {} {rate}` keeps to that rate",
                        flag(status.direction),
                        flag(status.direction)
                    ),
                ),
            }
        }
    }

    /// Does what is to be shaped get there, and nothing else take it?
    fn redirects(&self, all: &mut Vec<Finding>) {
        let DeviceFacts { name, filters, userspace_filters, xdp, ifb, redirected, .. } = self.facts;
        for (filters, at) in filters.iter().zip(["ingress", "egress"]) {
            if !filters.is_empty() {
                self.add(
                    all,
                    "filters",
                    Verdict::Note,
                    format!("others have programs or filters at its {at}: {}", filters.join(", ")),
                    "if one of them redirects or drops, the packets it takes are not shaped; the \
                     kernel engine's --ingress refuses beside filters at the ingress",
                );
            }
        }
        if *userspace_filters && !self.runs(EngineKind::Userspace) {
            self.add(
                all,
                "redirect",
                Verdict::Problem,
                "filters of a userspace engine that was killed are left; they pass everything",
                &format!("`shortlane detach {name}` removes them"),
            );
        }
        match (ifb, redirected) {
            (Some(ifb), false) => self.add(
                all,
                "redirect",
                Verdict::Problem,
                format!("the filter that leads what it receives to {ifb} has been removed"),
                &format!(
                    "`shortlane attach {name} --ingress RATE --replace` puts it back; `shortlane \
                     detach {name}` removes all of it"
                ),
            ),
            (None, true) => self.add(
                all,
                "redirect",
                Verdict::Problem,
                "the ifb for what it receives is gone; packets pass it by",
                &format!(
                    "`shortlane attach {name} --ingress RATE` makes it anew; `shortlane detach \
                     {name}` removes the filter"
                ),
            ),
            (Some(ifb), true) => {
                self.add(all, "redirect", Verdict::Ok, format!("to {ifb}"), "");
            }
            (None, false) => {}
        }
        if self.runs(EngineKind::Marks) || self.facts.marks_fault.is_some() {
            let fault = self.facts.marks_fault.as_deref();
            self.add(
                all,
                "marks",
                problem_unless(fault.is_none()),
                fault.unwrap_or("on packets of long flows, for classes that are there"),
                &format!(
                    "packets pass as they would without marks; `shortlane detach {name}` takes \
                     away what is left, and `shortlane attach {name}` marks again"
                ),
            );
        }
        if let Some(is_there) = self.facts.marker {
            self.add(
                all,
                "ECN",
                problem_unless(is_there),
                match is_there {
                    true => "packets are marked in front of the qdisc",
                    false => "the program that marks has been removed: packets are dropped instead",
                },
                &format!("`shortlane attach {name} --replace`, with the same rates, puts it back"),
            );
        }
        if *xdp {
            self.add(
                all,
                "XDP",
                Verdict::Note,
                "an XDP program is on it",
                "what it takes or sends back does not get to any queue; `ip link set DEV xdp off` \
                 removes it",
            );
        }
    }

    fn root(&self, all: &mut Vec<Finding>) {
        let DeviceFacts { name, configured_root, transmit_queues, has_qdisc, .. } = self.facts;
        let shaped = self.attached.iter().any(|status| status.direction == Heading::Egress);
        match configured_root {
            Some(root) if self.runs(EngineKind::Marks) => {
                let found = format!("{root}, with marks in front of it");
                self.add(all, "root qdisc", Verdict::Ok, found, "");
            }
            Some(root) if shaped => self.add(
                all,
                "root qdisc",
                Verdict::Note,
                format!("{root} queues behind the engine"),
                "if it shapes to less than the engine's rate, or delays, the queue forms there",
            ),
            Some(root) => self.add(
                all,
                "root qdisc",
                Verdict::Note,
                format!("{root} is configured"),
                &format!(
                    "`shortlane attach {name} --replace` takes its place in the kernel; the \
                     userspace engine works in front of it"
                ),
            ),
            None => self.add(all, "root qdisc", Verdict::Ok, "the kernel's own, or ours", ""),
        }
        match self.facts.per_queue {
            Some((ours, in_use)) => self.add(
                all,
                "queues",
                problem_unless(ours >= in_use),
                format!("{ours} of {in_use} queues that it sends from have a qdisc"),
                &format!(
                    "what the others send is not shaped; `shortlane attach {name} --per-queue \
                     --replace`, with the same rate, takes them in"
                ),
            ),
            None if *transmit_queues > 1 && *has_qdisc => self.add(
                all,
                "queues",
                Verdict::Note,
                format!("it sends from {transmit_queues} queues, and the qdisc is one for all"),
                "nothing below several Gbit/s; above, processors wait for each other, unless \
                 `shortlane attach --per-queue` gives each queue one",
            ),
            None => {}
        }
    }

    /// Are there packets that take longer than a millisecond?
    fn offloads(&self, all: &mut Vec<Finding>) {
        let DeviceFacts { name, gso_max_segs, mtu, receive_offloads, .. } = self.facts;
        if receive_offloads.iter().any(|feature| feature == "rx-lro")
            && (self.facts.forwards || self.runs(EngineKind::Userspace))
        {
            self.add(
                all,
                "LRO",
                Verdict::Problem,
                "large receive offload is on, which forgets how packets were cut",
                &format!("`ethtool -K {name} lro off`"),
            );
        }
        let in_kernel = |status: &&Status| {
            status.engine == EngineKind::Kernel && status.direction == Heading::Egress
        };
        let Some(status) = self.attached.iter().find(in_kernel) else { return };
        let rate = status.link.rate;
        if rate.is_unlimited() {
            return;
        }
        let wanted = segments_in_time(rate, *mtu);
        self.add(
            all,
            "super-packets",
            problem_unless(*gso_max_segs <= wanted),
            format!("of up to {gso_max_segs} segments, where {wanted} take a millisecond"),
            &format!("`shortlane change {name} --rate {rate}` sets it again"),
        );
        if self.facts.forwards {
            let longest = rate.0 / 8 / 1000;
            let joining = self.facts.joining.iter();
            let joining: Vec<&str> = joining
                .filter(|(_, bytes)| u64::from(*bytes) > longest)
                .map(|(other, _)| other.as_str())
                .collect();
            self.add(
                all,
                "GRO",
                problem_unless(joining.is_empty()),
                match joining[..] {
                    [] => "off where packets for it arrive".to_owned(),
                    _ => format!(
                        "on, on {}: 64 KB take longer than a millisecond",
                        joining.join(", ")
                    ),
                },
                &format!("`shortlane change {name} --rate {rate}` switches it off again"),
            );
        }
    }

    /// Does the engine keep up?
    fn performance(&self, all: &mut Vec<Finding>) {
        for status in self.attached {
            let Some(process) = &status.process else { continue };
            let way = status.direction.name();
            self.add(
                all,
                "priority",
                problem_unless(process.realtime),
                match process.realtime {
                    true => format!("{way}: real-time while it paces"),
                    false => format!("{way}: the system refuses real-time priority"),
                },
                "whatever else runs makes it late: CAP_SYS_NICE, or LimitRTPRIO=1 in its unit",
            );
            if status.peer.is_none() && !process.nat_revealed {
                self.add(
                    all,
                    "NAT",
                    Verdict::Note,
                    format!("{way}: clients that this machine translates for are one host"),
                    "conntrack, asked by programs with TCX (Linux 6.6), tells them apart",
                );
            }
            let part = process.punctuality.lost.0 as f64 / status.uptime.0.max(1) as f64;
            if !status.link.rate.is_unlimited() {
                self.add(
                    all,
                    "punctuality",
                    problem_unless(part < 0.01),
                    format!("{way}: {:.2} % of the rate lost to late wake-ups", part * 100.0),
                    &format!(
                        "`shortlane change {} --burst-time 20ms` catches up with more; a processor \
                         of its own keeps it on time",
                        status.device
                    ),
                );
            }
            let received = process.received.packets.max(1);
            let missed = process.lost_in_kernel as f64 / received as f64;
            self.add(
                all,
                "speed",
                problem_unless(missed < 0.001),
                format!("{way}: {} packets came too fast to be received", process.lost_in_kernel),
                "the engine is at its limit of packets per second: give it a processor of its own, \
                 or shape with the kernel engine",
            );
            let engine_drops = status.drops.iter().filter(|drop| drop.lane.is_none());
            for drop in engine_drops {
                self.add(
                    all,
                    "drops",
                    Verdict::Note,
                    format!("{way}: {} packets dropped: {}", drop.packets, drop.reason),
                    "super-packet: `ethtool -K DEV gso off gro off` where they come from; \
                     oversize: the same MTU on both sides",
                );
            }
        }
    }
}

/// The option that sets the rate of a direction.
const fn flag(direction: Heading) -> &'static str {
    match direction {
        Heading::Egress => "--rate",
        Heading::Ingress => "--ingress",
    }
}
