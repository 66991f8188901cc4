//! What crosses one link.

use super::*;

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
