//! Small scenarios whose results are known, and every ready scenario for a moment.

use std::sync::atomic::AtomicBool;

use measure::{Advance, Block, Flow, FlowKind, LinkUse, Probe, Sample};
use scenario::{
    Observer, Overrides, Progress, Row, Scenario, Summary, TrafficKind, Wanted, library,
};
use sched::Nanos;

/// Keeps rows.
#[derive(Default)]
struct Rows {
    blocks: Vec<Block>,
    links: Vec<LinkUse>,
    flows: Vec<Flow>,
    probes: Vec<Probe>,
    samples: Vec<Sample>,
    advances: Vec<Advance>,
}

impl Observer for Rows {
    fn row(&mut self, row: Row) {
        match row {
            Row::Block(row) => self.blocks.push(*row),
            Row::Link(row) => self.links.push(*row),
            Row::Flow(row) => self.flows.push(*row),
            Row::Probe(row) => self.probes.push(row),
            Row::Sample(row) => self.samples.push(row),
            Row::Advance(row) => self.advances.push(row),
            Row::Drop(_) | Row::Event(_) => {}
        }
    }

    fn progress(&mut self, _: &Progress) {}
}

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "t.toml", None, &Overrides::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn run(scenario: &Scenario) -> (Rows, Summary) {
    let mut rows = Rows::default();
    let wanted = Wanted { tables: true, events: false };
    let stop = AtomicBool::new(false);
    let finished = scenario::run(scenario, 2, wanted, &stop, &mut rows).unwrap();
    assert_eq!(finished.ended_early, None);
    let summary = Summary::of(scenario, &finished);
    (rows, summary)
}

/// One link of 1 Mbit/s and 10 ms from `a` to `b`, and `more`.
fn link(duration: &str, more: &str) -> Scenario {
    parse(&format!(
        "[scenario]\ntitle = \"t\"\nduration = \"{duration}\"\nseeds = 1\n[schedulers]\n\
         run = [\"fifo\"]\n[topology]\nkind = \"free\"\nlinks = [{{ name = \"l\", a = \"a\", b = \"b\", \
         rate = \"1mbit\", delay = \"10ms\", limit = \"100packets\", scheduler = \"tested\" }}]\n\
         [[traffic]]\nfrom = \"a\"\nto = \"b\"\n{more}"
    ))
}

#[test]
fn a_packet_takes_transmission_and_propagation() {
    let (rows, _) = run(&link("1s", "kind = \"cbr\"\nrate = \"100kbit\"\npacket = \"1000b\"\n"));
    // 80 ms apart, 8 ms to send: none waits.
    assert_eq!(rows.probes.len(), 13);
    for (seq, probe) in (0..).zip(&rows.probes) {
        assert_eq!((probe.seq, probe.sent_ns), (seq, seq * 80_000_000));
        assert_eq!(probe.delay_ns, Some(18_000_000));
        assert_eq!(&*probe.stream, "cbr");
    }
    let forward = &rows.links[0];
    assert_eq!((&*forward.link, forward.sent_packets, forward.dropped_packets), ("l", 13, 0));
    assert!((forward.utilisation.unwrap() - 0.104).abs() < 1e-9);
    assert_eq!(rows.samples.len(), 2 * 11, "both directions, from 0 to 1 s");
}

#[test]
fn overhead_is_sent_and_queued_with_every_packet() {
    let text = "[scenario]\ntitle = \"t\"\nduration = \"1s\"\nseeds = 1\n[schedulers]\n\
         run = [\"fifo\"]\n[topology]\nkind = \"dumbbell\"\n\
         access = { rate = \"1gbit\", overhead = \"250b\" }\n\
         bottleneck = { rate = \"1mbit\", delay = \"10ms\", overhead = \"250b\" }\n\
         [[traffic]]\nkind = \"cbr\"\nrate = \"100kbit\"\npacket = \"1000b\"\n";
    let (rows, _) = run(&parse(text));
    // 1250 bytes take 10 ms on the bottleneck, and 10 us on either plain link.
    assert_eq!(rows.probes[0].delay_ns, Some(20_020_000));
    let forward = &rows.links[0];
    assert_eq!((&*forward.link, forward.sent_packets), ("bottleneck", 13));
    assert!((forward.utilisation.unwrap() - 0.13).abs() < 1e-4, "{forward:?}");
}

#[test]
fn a_burst_waits_for_itself_and_what_does_not_fit_is_dropped() {
    let burst = "kind = \"open-loop\"\narrivals = 0.001\nstop = \"1ms\"\npacket = \"125b\"\n\
                 sizes = \"fixed:size=12500b\"\nstratified = false\n";
    // Too rare to come at all.
    assert_eq!(run(&link("1s", burst)).0.flows.len(), 0);
    let certain = burst.replace("arrivals = 0.001", "arrivals = 20000").replace("1ms", "100us");
    let (rows, _) = run(&link("20s", &certain));
    assert!(!rows.flows.is_empty(), "about two are expected");
    let first = &rows.flows.iter().min_by_key(|flow| flow.start_ns).unwrap();
    // 100 packets of 1 ms, of which one is on the wire and 99 fit.
    assert_eq!(first.packets, Some(100));
    assert_eq!((first.dropped_packets, first.complete), (Some(0), true));
    assert_eq!(first.completion_ns, Some(110_000_000));
    assert_eq!((first.idle_ns, first.slowdown), (Some(110_000_000), Some(1.0)));
}

#[test]
fn a_flow_without_end_fills_the_link() {
    let (rows, summary) = run(&link("60s", "kind = \"persistent\"\n"));
    assert!(rows.links[0].utilisation.unwrap() > 0.95, "{:?}", rows.links[0]);
    let TrafficKind::Persistent { mbit, .. } = &summary.schedulers[0].traffic[0].kind else {
        panic!("it is a persistent flow");
    };
    // 1448 of 1500 bytes are payload.
    let mbit = mbit.unwrap().value;
    assert!((0.90..=0.966).contains(&mbit), "{mbit}");
    assert_eq!((rows.flows.len(), rows.flows[0].complete), (1, false));
    assert_eq!(rows.flows[0].size_bytes, None);
}

#[test]
fn what_flows_without_end_receive_in_the_warm_up_does_not_count() {
    let mut scenario = link("60s", "kind = \"persistent\"\nflows = 2\n");
    scenario.warm_up = Nanos::from_secs(40);
    let (rows, summary) = run(&scenario);
    let TrafficKind::Persistent { mbit, .. } = &summary.schedulers[0].traffic[0].kind else {
        panic!("they are persistent flows");
    };
    let bytes: u64 = rows.flows.iter().map(|flow| flow.received_bytes).sum();
    let of_rows = bytes as f64 * 8.0 / 1e6 / 20.0;
    assert!((0.90..=0.966).contains(&of_rows), "{of_rows}");
    assert!((mbit.unwrap().value - of_rows).abs() < 1e-9, "{mbit:?}, in the rows {of_rows}");
}

/// One loss in twenty: what was sent again is often lost too, which without RACK only the timer
/// finds.
#[test]
fn rack_replaces_timeouts() {
    let [without, with] = [false, true].map(|rack| {
        let scenario = parse(&format!(
            "[scenario]\ntitle = \"t\"\nduration = \"200s\"\nseeds = 1\n[schedulers]\n\
             run = [\"fifo\"]\n[tcp]\npreset = \"linux\"\nrack = {rack}\n[topology]\n\
             kind = \"free\"\nlinks = [{{ name = \"l\", a = \"a\", b = \"b\", rate = \"10mbit\", \
             delay = \"10ms\", limit = \"100packets\", scheduler = \"tested\", loss = 0.05 }}]\n\
             [[traffic]]\nfrom = \"a\"\nto = \"b\"\nkind = \"persistent\"\n"
        ));
        let (rows, summary) = run(&scenario);
        (summary.schedulers[0].timeouts.unwrap().value, rows.flows[0].received_bytes)
    });
    assert!(with.0 < without.0 / 3.0, "timeouts: {with:?}, without {without:?}");
    assert!(with.1 > without.1, "bytes: {with:?}, without {without:?}");
}

#[test]
fn a_receiver_that_opens_asks_half_a_round_trip_later() {
    let transfers = "kind = \"periodic\"\nevery = \"5s\"\nsize = \"1000b\"\n";
    let times = |more: &str| {
        let (rows, _) = run(&link("9s", &format!("{transfers}{more}")));
        let took = |flow: &Flow| (flow.start_ns, flow.completion_ns.unwrap(), flow.idle_ns);
        rows.flows.iter().map(took).collect::<Vec<_>>()
    };
    let (sent, asked) = (times(""), times("opens = \"receiver\"\n"));
    assert_eq!(times("opens = \"sender\"\n"), sent);
    assert_eq!((sent.len(), asked.len()), (2, 2));
    for (sent, asked) in sent.into_iter().zip(asked) {
        assert_eq!(sent.0, asked.0, "the same starts");
        // 10 ms and the 16 bytes of the question with its headers on 1 Mbit/s.
        let later = asked.1 - sent.1;
        assert!((10_000_000..11_000_000).contains(&later), "{later}");
        assert_eq!((sent.2, asked.2), (Some(sent.1), Some(asked.1)), "alone on the link");
    }
    // A flow without end fills the link as well as one that its sender opens.
    let (rows, _) = run(&link("20s", "kind = \"persistent\"\nopens = \"receiver\"\n"));
    assert!(rows.links[0].utilisation.unwrap() > 0.9, "{:?}", rows.links[0]);
    assert_eq!((rows.flows[0].kind, rows.flows[0].size_bytes), (FlowKind::Download, None));
}

#[test]
fn requests_are_answered_and_late_by_those_before() {
    let requests = "kind = \"requests\"\nevery = \"100ms\"\nsize = \"1000b\"\nrequest = \"100b\"\n";
    let (rows, summary) = run(&link("10s", requests));
    let TrafficKind::Requests { answered, unanswered, times_ms } =
        &summary.schedulers[0].traffic[0].kind
    else {
        panic!("they are requests");
    };
    assert_eq!(answered + unanswered, 100);
    assert!(*unanswered <= 1);
    // A round trip of 20 ms, 152 bytes there and 1052 back: 29.6 ms, longer only if two are due
    // within that time. The first waits for the handshake as well.
    let times: Vec<u64> = rows.flows.iter().filter_map(|flow| flow.completion_ns).collect();
    let alone = times.iter().filter(|ns| (29_600_000..29_800_000).contains(*ns)).count();
    assert!(alone > 60, "{times:?}");
    assert!(times.iter().all(|ns| *ns >= 29_600_000), "{times:?}");
    assert!(times_ms.mean.unwrap().value < 40.0);
    // Slower than the link: they pile up, and the last have no answer.
    let slow = requests.replace("\"1000b\"", "\"20000b\"");
    let (_, summary) = run(&link("10s", &slow));
    let TrafficKind::Requests { answered, unanswered, .. } = summary.schedulers[0].traffic[0].kind
    else {
        panic!("they are requests");
    };
    assert_eq!(answered + unanswered, 100);
    assert!(unanswered > 20, "{unanswered}");
}

#[test]
fn a_user_of_the_web_waits_for_pages_and_thinks() {
    let web = "kind = \"web\"\nusers = 1\nthink = \"fixed:time=1s\"\nobjects = \"fixed:count=3\"\n\
               gap = \"fixed:time=1ms\"\nsizes = \"fixed:size=1448b\"\n";
    let (rows, summary) = run(&link("100s", web));
    let TrafficKind::Transfers { classes, pages: Some(pages) } =
        &summary.schedulers[0].traffic[0].kind
    else {
        panic!("pages of objects are transfers");
    };
    // A handshake and a request are two round trips of 20 ms, three objects 36 ms more at most.
    let mean = pages.times_ms.mean.unwrap().value;
    assert!((52.0..90.0).contains(&mean), "{mean}");
    let expected = 100_000.0 / (1000.0 + mean);
    assert!((pages.complete as f64 - expected).abs() <= 2.0, "{} of {expected}", pages.complete);
    assert_eq!((classes.len(), classes[0].complete / 3), (1, pages.complete));
    let slowdown = classes[0].slowdown.unwrap().value;
    assert!((0.99..1.5).contains(&slowdown), "{slowdown}");
    assert!(rows.flows.iter().all(|flow| flow.size_bytes == Some(1448)));
}

#[test]
fn a_stream_that_pauses_sends_half_of_the_time() {
    let on_off = "kind = \"on-off\"\nrate = \"400kbit\"\npacket = \"500b\"\n\
                  on = \"exponential:mean=500ms\"\noff = \"exponential:mean=500ms\"\n";
    let (rows, summary) = run(&link("500s", on_off));
    // 100 packets a second in half of the time, and half a packet more in each of 500 periods.
    let sent = rows.probes.len() as f64;
    assert!((sent / 25_250.0 - 1.0).abs() < 0.15, "{sent}");
    let TrafficKind::Stream { loss_percent, .. } = &summary.schedulers[0].traffic[0].kind else {
        panic!("it is a stream");
    };
    assert_eq!(loss_percent.unwrap().value, 0.0);
}

#[test]
fn transfers_have_the_load_that_was_asked_for() {
    let transfers = "kind = \"transfers\"\nload = 0.5\nsizes = \"exponential:mean=20kb\"\n";
    let (rows, summary) = run(&link("500s", transfers));
    let load = rows.blocks[0].offered_load.unwrap();
    // 1448 of 1500 bytes of the half of the link.
    assert!((load / (0.5 * 1448.0 / 1500.0) - 1.0).abs() < 0.02, "{load}");
    let TrafficKind::Transfers { classes, .. } = &summary.schedulers[0].traffic[0].kind else {
        panic!("they are transfers");
    };
    for class in classes {
        assert!(class.slowdown.unwrap().value >= 0.99, "{class:?}");
    }
    let flows = rows.flows.len() as u64;
    assert_eq!(flows, rows.blocks[0].transfers);
    let counted: u64 = classes.iter().map(|class| class.complete + class.incomplete).sum();
    assert_eq!(flows, counted);
}

#[test]
fn the_warm_up_counts_in_tables_and_not_in_means() {
    let text = "kind = \"transfers\"\nload = 0.5\nsizes = \"fixed:size=1460b\"\n";
    let mut scenario = link("100s", text);
    scenario.warm_up = Nanos::from_secs(50);
    let (rows, summary) = run(&scenario);
    let TrafficKind::Transfers { classes, .. } = &summary.schedulers[0].traffic[0].kind else {
        panic!("they are transfers");
    };
    let late = rows.flows.iter().filter(|flow| flow.start_ns >= 50_000_000_000).count() as u64;
    assert_eq!(classes[0].complete + classes[0].incomplete, late);
    assert!(rows.flows.len() as u64 > late + 500);
    let (arrived, flows) = (rows.links[0].arrived_packets, rows.flows.len() as u64);
    assert!(arrived > 3 * flows, "all of the run is in the table: {arrived} of {flows} flows");
}

/// A dumbbell of 2 Mbit/s with 30 packets of buffer, for 60 s of which 10 s do not count.
fn dumbbell(schedulers: &str, more: &str) -> Scenario {
    parse(&format!(
        "[scenario]\ntitle = \"t\"\nduration = \"60s\"\nwarm-up = \"10s\"\nseeds = 1\n\
         [schedulers]\nrun = [{schedulers}]\n[topology]\nkind = \"dumbbell\"\npairs = 2\n\
         access = {{ rate = \"100mbit\", delay = \"1ms\" }}\n\
         bottleneck = {{ rate = \"2mbit\", delay = \"1ms\", limit = \"30packets\" }}\n{more}"
    ))
}

const OVERLOAD: &str = "[[traffic]]\nkind = \"transfers\"\nload = 1.2\n";

/// The longest wait of a transfer, from its rows in table `progress`.
fn longest_stall(flow: &Flow, rows: &[&Advance]) -> u64 {
    let mut since = flow.connect_ns.unwrap();
    let end = if flow.complete { None } else { Some(60_000_000_000) };
    let waits = rows.iter().map(|row| row.t_ns).chain(end).map(|at| {
        let wait = at - since;
        since = at;
        wait
    });
    waits.max().unwrap_or_default()
}

#[test]
fn progress_is_that_of_the_largest_transfers_under_every_scheduler() {
    let periodic = "[[traffic]]\nkind = \"periodic\"\nevery = \"20s\"\nsize = \"2mb\"\n";
    let more = format!("[record]\nprogress = 4\n{OVERLOAD}{periodic}");
    let (rows, _) = run(&dumbbell("\"fifo\", \"las\"", &more));
    let mut watched = Vec::new();
    for block in 0..2 {
        let advances: Vec<&Advance> =
            rows.advances.iter().filter(|row| row.key.block == block).collect();
        let mut of_block: Vec<u64> = advances.iter().map(|row| row.index).collect();
        of_block.sort_unstable();
        of_block.dedup();
        for index in &of_block {
            let own = |flow: &&Flow| flow.key.block == block && flow.index == *index;
            let flow = rows.flows.iter().find(own).unwrap();
            let own: Vec<&Advance> =
                advances.iter().filter(|row| row.index == *index).copied().collect();
            assert!(own.iter().all(|row| row.traffic == flow.traffic));
            assert!(own.is_sorted_by(|a, b| a.received_bytes < b.received_bytes));
            assert_eq!(own.last().unwrap().received_bytes, flow.received_bytes);
            assert_eq!(flow.stall_max_ns, Some(longest_stall(flow, &own)));
            assert!((10_000_000_000..45_000_000_000).contains(&flow.planned_ns.unwrap()));
        }
        watched.push(of_block);
    }
    assert_eq!(watched[0], watched[1]);
    // Two of the four are the rounds at 20 and at 40 s, larger than 1000 packets.
    let of_both: Vec<&str> = watched[0]
        .iter()
        .filter_map(|index| rows.flows.iter().find(|flow| flow.index == *index)?.traffic.as_deref())
        .collect();
    assert_eq!(of_both.len(), 4);
    assert_eq!(of_both.iter().filter(|traffic| **traffic == "periodic").count(), 2);
    for flow in &rows.flows {
        let of_it = |row: &&Advance| row.key == flow.key && row.index == flow.index;
        let Some(last) = rows.advances.iter().rfind(of_it) else { continue };
        assert!(last.packets <= flow.packets, "{last:?}");
        assert!(last.packets.unwrap() * 1460 >= last.received_bytes, "{last:?}");
        assert!(last.dropped_packets <= flow.dropped_packets, "{last:?}");
    }
    assert!(rows.advances.iter().any(|row| row.dropped_packets > Some(0)));
    // One row a second at most, the first of each.
    let thinned = more.replace("progress = 4", "progress = 4\nprogress-every = \"1s\"");
    let (thin, _) = run(&dumbbell("\"fifo\", \"las\"", &thinned));
    for index in &watched[0] {
        let of = |rows: &[Advance]| -> Vec<u64> {
            let own = rows.iter().filter(|row| row.key.block == 0 && row.index == *index);
            own.map(|row| row.t_ns).collect()
        };
        let mut expected = of(&rows.advances);
        expected.dedup_by_key(|ns| *ns / 1_000_000_000);
        assert!(expected.len() > 5);
        assert_eq!(of(&thin.advances), expected);
    }
    // Nobody has asked for it: none.
    let (rows, _) = run(&dumbbell("\"fifo\"", OVERLOAD));
    assert!(rows.advances.is_empty() && rows.flows.iter().any(|flow| flow.stall_max_ns > Some(0)));
}

#[test]
fn losses_are_told_of_every_transfer_and_stream_from_its_start() {
    let stream =
        "[[traffic]]\nkind = \"cbr\"\nrate = \"64kbit\"\npacket = \"160b\"\nstart = \"5s\"\n";
    let (rows, _) = run(&dumbbell("\"fifo\", \"las\"", &format!("{OVERLOAD}{stream}")));
    for block in 0..2 {
        let flows: Vec<&Flow> = rows.flows.iter().filter(|flow| flow.key.block == block).collect();
        let (streams, transfers): (Vec<&Flow>, Vec<&Flow>) =
            flows.iter().partition(|flow| flow.kind == FlowKind::Stream);
        assert!(transfers.iter().any(|flow| !flow.complete));
        let mut sums = [0; 5];
        for flow in &transfers {
            assert!(flow.duplicates <= flow.retransmissions, "nothing duplicates: {flow:?}");
            let told = [
                flow.packets,
                flow.dropped_packets,
                flow.retransmissions,
                flow.duplicates,
                flow.timeouts.zip(flow.handshake_timeouts).map(|(data, syn)| data + syn),
            ];
            for (sum, told) in sums.iter_mut().zip(told) {
                *sum += told.unwrap_or_else(|| panic!("{flow:?}"));
            }
        }
        let [packets, dropped, again, in_vain, timeouts] = sums;
        assert!(again > 0 && in_vain > 0 && timeouts > 0);
        let [stream] = streams[..] else { panic!("there is one stream") };
        // Of every 20 ms, from 5 s on: what came before the end of the warm-up counts as well.
        assert_eq!((stream.start_ns, stream.packets), (5_000_000_000, Some(55 * 50)));
        let lost = rows.probes.iter().filter(|p| p.key.block == block && p.delay_ns.is_none());
        assert_eq!(stream.dropped_packets, Some(lost.count() as u64));
        assert!(stream.dropped_packets > Some(0));
        let link = rows.links.iter().find(|link| link.key.block == block).unwrap();
        // What TCP still sends of transfers that both ends are done with belongs to none.
        let all = |of_transfers: u64, of_stream: Option<u64>| of_transfers + of_stream.unwrap();
        let stray = link.arrived_packets - all(packets, stream.packets);
        let stray_dropped = link.dropped_packets - all(dropped, stream.dropped_packets);
        assert!(stray_dropped <= stray && stray * 1000 <= packets, "{stray_dropped}, {stray}");
    }
}

/// What the histogram of the flow table is made from, and the columns of table `links`.
#[test]
fn samples_and_links_tell_the_flow_table() {
    let schedulers = "\"las\", \"x-protect\", \"efd\", \"run2c\"";
    let text = format!("[record]\nsamples = \"1s\"\n{OVERLOAD}");
    let (rows, _) = run(&dumbbell(schedulers, &text));
    for block in 0..4 {
        let link = rows.links.iter().find(|link| link.key.block == block).unwrap();
        let (mean, peak) = (link.flow_entries_mean.unwrap(), link.flow_entries_peak.unwrap());
        let p99 = link.flow_entries_p99.unwrap();
        assert!(mean > 1.0 && mean < p99 as f64 && p99 <= peak, "{link:?}");
        let samples = rows.samples.iter().filter(|s| s.key.block == block && s.link == link.link);
        let counted: Vec<u64> = samples
            .filter(|sample| sample.t_ns >= 10_000_000_000)
            .map(|sample| sample.flow_entries.unwrap())
            .collect();
        assert_eq!(counted.len(), 51);
        assert!(counted.iter().all(|entries| *entries <= peak));
        let sampled = counted.iter().sum::<u64>() as f64 / 51.0;
        assert!((sampled / mean - 1.0).abs() < 0.2, "{sampled}, {mean} of {}", link.key.scheduler);
        let beyond = link.flow_entries_beyond_backlog.unwrap();
        assert_eq!(beyond == 0, &*link.key.scheduler == "efd", "{beyond}");
    }
}

/// The bytes that each traffic got across a link of 1 Mbit/s which it shares with others.
fn shares(scheduler: &str, traffic: &str) -> Vec<u64> {
    let scenario = parse(&format!(
        "[scenario]\ntitle = \"t\"\nduration = \"100s\"\nseeds = 1\n[schedulers]\n\
         run = [\"{scheduler}\"]\n[topology]\nkind = \"dumbbell\"\n\
         access = {{ rate = \"10mbit\" }}\nbottleneck = {{ rate = \"1mbit\" }}\n{traffic}"
    ));
    let (rows, _) = run(&scenario);
    let of = |name: &str| {
        let flows = rows.flows.iter().filter(|flow| flow.traffic.as_deref() == Some(name));
        flows.map(|flow| flow.received_bytes).sum()
    };
    scenario.traffic.iter().map(|traffic| of(&traffic.name)).collect()
}

#[test]
fn traffic_has_the_dscp_that_it_is_given() {
    for kind in ["kind = \"cbr\"\nrate = \"1mbit\"", "kind = \"persistent\""] {
        let two = format!(
            "[[traffic]]\nname = \"ef\"\ndscp = 46\n{kind}\n[[traffic]]\nname = \"other\"\n{kind}\n"
        );
        let ratio = |scheduler| match shares(scheduler, &two)[..] {
            [ef, other] => ef as f64 / other as f64,
            _ => panic!("two kinds of traffic"),
        };
        let found = [ratio("wfq:weights=1+3@ef"), ratio("wfq:weights=1+3@af41"), ratio("wfq")];
        // What TCP has queued is not always enough for its share.
        assert!((1.8..=3.1).contains(&found[0]), "{kind}: {found:?}");
        assert!(found[1..].iter().all(|ratio| (ratio - 1.0).abs() < 0.05), "{kind}: {found:?}");
    }
}

#[test]
fn open_loop_flows_may_come_from_a_list() {
    let directory = std::env::temp_dir().join(format!("shortlane-list-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("two.csv"), "start_s,size_bytes\n0.5,1250\n1.25,2500\n").unwrap();
    let text = "[scenario]\ntitle = \"t\"\nduration = \"9s\"\nseeds = 1\n[schedulers]\n\
                run = [\"fifo\"]\n[topology]\nkind = \"free\"\nlinks = [{ a = \"a\", b = \"b\", \
                rate = \"1mbit\", scheduler = \"tested\" }]\n[[traffic]]\nfrom = \"a\"\nto = \"b\"\n\
                kind = \"open-loop\"\npacket = \"125b\"\nlist = \"two.csv\"\n";
    let read = |text: &str, from| Scenario::parse(text, "t.toml", from, &Overrides::default());
    let found = read(text, Some(directory.as_path()));
    let absolute = text.replace("two.csv", &directory.join("two.csv").display().to_string());
    assert!(read(&absolute, None).is_ok());
    let nowhere = read(text, None).unwrap_err().to_string();
    assert!(nowhere.contains("absolute path"), "{nowhere}");
    std::fs::remove_dir_all(&directory).unwrap();
    let (rows, _) = run(&found.unwrap());
    let found: Vec<_> = rows.flows.iter().map(|flow| (flow.start_ns, flow.completion_ns)).collect();
    let expected = [(500_000_000, Some(10_000_000)), (1_250_000_000, Some(20_000_000))];
    assert_eq!(found, expected);
}

#[test]
fn traffic_may_go_without_rows_and_still_counts() {
    let both = |rows| {
        let one = |name, more| {
            format!("[[traffic]]\nname = \"{name}\"\nkind = \"transfers\"\nload = 0.2\n{more}\n")
        };
        let scenario = dumbbell("\"fifo\"", &(one("seen", "") + &one("unseen", rows)));
        let (rows, _) = run(&scenario);
        let named = |name| rows.flows.iter().filter(|f| f.traffic.as_deref() == Some(name)).count();
        (named("seen"), named("unseen"), rows.blocks[0].transfers, rows.links[0].clone())
    };
    let (all, without) = (both(""), both("rows = false"));
    assert!(all.1 > 0 && without.1 == 0);
    assert_eq!((all.0, all.2, &all.3), (without.0, without.2, &without.3));
}

/// Each with its first and last scheduler for two seconds: something gets through each.
#[test]
fn every_ready_scenario_runs() {
    for ready in library::ALL {
        let mut scenario =
            Scenario::parse(ready.text, ready.name, None, &Overrides::default()).unwrap();
        scenario.duration = Nanos::from_secs(2);
        scenario.warm_up = Nanos::ZERO;
        for traffic in &mut scenario.traffic {
            traffic.start = Nanos::ZERO;
            traffic.stop = scenario.duration;
        }
        scenario.seeds.truncate(1);
        let last = scenario.schedulers.pop().unwrap();
        scenario.schedulers.truncate(1);
        scenario.schedulers.push(last);
        let (rows, summary) = run(&scenario);
        assert_eq!((rows.blocks.len(), summary.seeds), (2, 1), "{}", ready.name);
        assert!(rows.links[0].sent_packets > 0, "{}", ready.name);
        let report = scenario::text::report(&scenario, &summary);
        for line in report.lines() {
            assert!(line.chars().count() <= 100, "{}: {line}", ready.name);
        }
    }
}

/// When every transfer over a busy dumbbell ended, and how many packets were marked or dropped.
fn ends(scheduler: &str, access: &str, bottleneck: &str) -> (Vec<Option<u64>>, u64) {
    let scenario = parse(&format!(
        "[scenario]\ntitle = \"t\"\nduration = \"30s\"\nseeds = 1\n[schedulers]\n\
         run = [\"{scheduler}\"]\n[tcp]\necn = true\n[topology]\nkind = \"dumbbell\"\npairs = 3\n\
         access = {{ rate = \"100mbit\", delay = \"5ms\"{access} }}\n\
         bottleneck = {{ rate = \"3mbit\", delay = \"5ms\", limit = \"60packets\"{bottleneck} }}\n\
         [[traffic]]\nkind = \"persistent\"\nflows = 2\n\
         [[traffic]]\nkind = \"transfers\"\nload = 0.6\n"
    ));
    let (rows, _) = run(&scenario);
    let signals =
        rows.links.iter().map(|link| link.marked_packets.unwrap_or(0) + link.dropped_packets).sum();
    (rows.flows.iter().map(|flow| flow.end_ns).collect(), signals)
}

/// Tags that an edge has put in front of the queue, or at the sender's link, are what `rio-ps`
/// finds with its own.
#[test]
fn an_edge_is_the_same_wherever_it_stands() {
    let edge = "threshold=5,update=inf,idle=inf";
    let own = ends(&format!("rio-ps:averaging=0.1,{edge}"), "", "");
    assert!(own.0.len() > 30 && own.1 > 50, "{} flows, {} signals", own.0.len(), own.1);
    let key = format!(", edge = \"{edge}\"");
    let tagged = "rio-ps:averaging=0.1,classifier=tag";
    assert_eq!(ends(tagged, "", &key), own, "in front of the queue");
    assert_eq!(ends(tagged, &key, ""), own, "at the sender");
    assert_ne!(ends(tagged, "", ""), own, "nowhere, so all are long");
    // Where the threshold moves, two edges that see the same move alike.
    let moves = "threshold=5,update=2s";
    let own = ends(&format!("rio-ps:averaging=0.1,{moves}"), "", "");
    assert_eq!(ends(tagged, "", &format!(", edge = \"{moves}\"")), own);
}

/// Nine downloads to one host and one to another, onto one bottleneck: the one's part of the bytes.
fn part_of_the_host_with_one_download(scheduler: &str) -> f64 {
    let scenario = parse(&format!(
        "[scenario]\ntitle = \"t\"\nduration = \"20s\"\nseeds = 1\n[schedulers]\nrun = [\"{scheduler}\"]\n\
         [topology]\nkind = \"dumbbell\"\npairs = 2\naccess = {{ rate = \"1gbit\", delay = \"5ms\" }}\n\
         bottleneck = {{ rate = \"10mbit\", delay = \"5ms\" }}\n\
         [[traffic]]\nname = \"many\"\nkind = \"persistent\"\nflows = 9\nto = \"right1\"\n\
         [[traffic]]\nname = \"one\"\nkind = \"persistent\"\nflows = 1\nto = \"right2\"\n"
    ));
    let (rows, _) = run(&scenario);
    let bytes = |name: &str| {
        let flows = rows.flows.iter().filter(|flow| flow.traffic.as_deref() == Some(name));
        flows.map(|flow| flow.received_bytes as f64).sum::<f64>()
    };
    bytes("one") / (bytes("one") + bytes("many"))
}

/// One flow of Reno does not take all of its half: a signal is for all of its host's share.
#[test]
fn hosts_are_the_nodes_that_traffic_goes_between() {
    let by_host = part_of_the_host_with_one_download("cake:isolation=dual-dsthost");
    assert!((0.36..0.5).contains(&by_host), "{by_host}");
    let by_flow = part_of_the_host_with_one_download("cake:isolation=flows");
    assert!((0.08..0.12).contains(&by_flow), "{by_flow}");
}

/// A link of 1 Mbit/s that stalls from 0.2 s to 0.5 s, and a packet of 8 ms every 80 ms.
#[test]
fn a_stalled_link_holds_up_what_came_and_loses_nothing() {
    let directory = std::env::temp_dir().join(format!("shortlane-rates-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let trace = "time_s,rate_bps\n0,1000000\n0.2,0\n0.5,1000000\n";
    std::fs::write(directory.join("rates.csv"), trace).unwrap();
    let traffic = "kind = \"cbr\"\nrate = \"100kbit\"\npacket = \"1000b\"\n";
    let text = link("1s", traffic).text.replace(
        "rate = \"1mbit\"",
        "rate = \"1mbit\", varying = \"trace:rates.csv\", back-scheduler = \"fifo\"",
    );
    let scenario = Scenario::parse(&text, "t.toml", Some(&directory), &Overrides::default());
    std::fs::remove_dir_all(&directory).unwrap();
    let (rows, _) = run(&scenario.unwrap());
    let delays: Vec<u64> =
        rows.probes.iter().map(|probe| probe.delay_ns.expect("it arrived") / 1_000_000).collect();
    // Those of 240, 320, 400 and 480 ms leave one after another from 500 ms on.
    assert_eq!(delays, [18, 18, 18, 278, 206, 134, 62, 18, 18, 18, 18, 18, 18]);
    assert_eq!(rows.links[0].rate_bps, 700_000, "what the link gave");
    assert_eq!(rows.links[0].dropped_packets, 0);
}

/// Bits that every link of a run on a walk of rates gave, by scheduler and seed.
#[test]
fn a_walk_is_the_same_for_every_scheduler_and_another_for_every_seed() {
    let traffic = "kind = \"persistent\"\n";
    let text = link("5s", traffic).text.replace(
        "rate = \"1mbit\"",
        "rate = \"1mbit\", varying = \"walk:min=500kbit,max=2mbit,every=100ms,step=0.3\"",
    );
    let text = text.replace("run = [\"fifo\"]", "run = [\"fifo\", \"efd\"]");
    let overrides = Overrides { seeds: Some(vec![1, 2]), ..Overrides::default() };
    let scenario = Scenario::parse(&text, "t.toml", None, &overrides).unwrap();
    let (rows, _) = run(&scenario);
    let mut given = std::collections::BTreeMap::new();
    for row in rows.links.iter().filter(|row| !row.link.ends_with("-back")) {
        let before = given.insert(row.key.seed, row.rate_bps);
        assert!(before.is_none_or(|rate| rate == row.rate_bps), "seed {}", row.key.seed);
        assert!((500_000..2_000_000).contains(&row.rate_bps));
        assert!((0.9..1.001).contains(&row.utilisation.unwrap()), "{:?}", row.utilisation);
    }
    assert_eq!(given.len(), 2);
    assert_ne!(given[&1], given[&2]);
}
