//! Plans of rounds, from the configuration.

use workload::{Cbr as Rate, TransferList};

use crate::config::{Config, ConfigError, Ends, Round};
use crate::traffic::{Cbr, Pings, Plan, Session, Stream, Tcp, Transfer};

const MS: u64 = 1_000_000;

/// The traffic of a round: the same for every discipline.
pub(crate) fn of_round(config: &Config, round: u64) -> Result<Round, ConfigError> {
    match config.rounds.get(round as usize) {
        Some(round) => Ok(round.clone()),
        None => {
            let plans = vec![mixed(config, &config.transfers(round)?)];
            Ok(Round { seed: config.seed, plans, varying: [None, None] })
        }
    }
}

fn mixed(config: &Config, transfers: &TransferList) -> Plan {
    let timing = &config.timing;
    let traffic = &config.traffic;
    let mut plan = Ends::default().plan(0, 0);
    plan.arrivals_end_ns = (timing.warm_up + timing.arrivals).0;
    plan.drain_end_ns = timing.block().0;
    plan.transfers = (0..)
        .zip(transfers.transfers())
        .map(|(id, transfer)| Transfer {
            id,
            start_ns: (timing.warm_up + transfer.start).0,
            size_bytes: transfer.size_bytes,
            tcp: in_turn(&traffic.tcp, id),
        })
        .collect();
    // Long flows run on through the drain phase: what is late must not find an empty link.
    let long = |id| Stream {
        id,
        tcp: in_turn(&traffic.tcp, id),
        start_ns: u64::from(id) * 20 * MS,
        stop_ns: plan.drain_end_ns,
    };
    plan.downloads = (0..traffic.downloads).map(long).collect();
    plan.uploads = (0..traffic.uploads).map(long).collect();
    if traffic.interactive {
        add_interactive(&mut plan, timing.warm_up.0, traffic.tcp[0]);
    }
    plan
}

fn in_turn(tcp: &[Tcp], index: u32) -> Tcp {
    tcp[index as usize % tcp.len()]
}

/// Voice, video, pings and a connection that stays open, during the arrivals.
fn add_interactive(plan: &mut Plan, start_ns: u64, tcp: Tcp) {
    let stop_ns = plan.arrivals_end_ns;
    for (name, rate) in [("voice", Rate::VOICE), ("video", Rate::VIDEO)] {
        plan.cbr.push(Cbr {
            name: name.into(),
            rate_bps: rate.rate.0,
            packet_bytes: rate.packet_bytes as u16,
            // Off the beat of the other streams.
            start_ns: start_ns + 3 * MS * (plan.cbr.len() as u64 + 1),
            stop_ns,
        });
    }
    plan.pings.push(Pings {
        id: 0,
        packet_bytes: 64,
        period_ns: 50 * MS,
        start_ns: start_ns + 11 * MS,
        stop_ns,
    });
    let due_ns: Vec<u64> = (start_ns + 17 * MS..stop_ns).step_by(250 * MS as usize).collect();
    if !due_ns.is_empty() {
        plan.sessions.push(Session { id: 0, tcp, due_ns, size_bytes: 4_000 });
    }
}
