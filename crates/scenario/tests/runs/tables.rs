//! What the tables tell.

use super::*;

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
