//! Plans of rounds, from the configuration.

use units::Nanos;
use workload::{Cbr as Rate, TransferList};

use crate::config::{Config, ConfigError, Ends, Round};
use crate::traffic::{Cbr, Pings, Plan, Session, Stream, Tcp, Transfer};

const MS: Nanos = Nanos::from_millis(1);

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
    plan.arrivals_end = timing.warm_up + timing.arrivals;
    plan.drain_end = timing.block();
    plan.transfers = (0..)
        .zip(transfers.transfers())
        .map(|(id, transfer)| Transfer {
            id,
            start: timing.warm_up + transfer.start,
            size_bytes: transfer.size_bytes,
            tcp: in_turn(&traffic.tcp, id),
        })
        .collect();
    // Long flows run on through the drain phase: what is late must not find an empty link.
    let long = |id| Stream {
        id,
        tcp: in_turn(&traffic.tcp, id),
        start: u64::from(id) * 20 * MS,
        stop: plan.drain_end,
    };
    plan.downloads = (0..traffic.downloads).map(long).collect();
    plan.uploads = (0..traffic.uploads).map(long).collect();
    if traffic.interactive {
        add_interactive(&mut plan, timing.warm_up, traffic.tcp[0]);
    }
    plan
}

fn in_turn(tcp: &[Tcp], index: u32) -> Tcp {
    tcp[index as usize % tcp.len()]
}

/// Voice, video, pings and a connection that stays open, during the arrivals.
fn add_interactive(plan: &mut Plan, start: Nanos, tcp: Tcp) {
    let stop = plan.arrivals_end;
    for (name, rate) in [("voice", Rate::VOICE), ("video", Rate::VIDEO)] {
        plan.cbr.push(Cbr {
            name: name.into(),
            rate: rate.rate,
            packet_bytes: rate.packet_bytes as u16,
            // Off the beat of the other streams.
            start: start + 3 * MS * (plan.cbr.len() as u64 + 1),
            stop,
        });
    }
    let (period, pinged) = (50 * MS, start + 11 * MS);
    plan.pings.push(Pings { id: 0, packet_bytes: 64, period, start: pinged, stop });
    let asked = (0..).map(|request| start + 17 * MS + request * 250 * MS);
    let due: Vec<Nanos> = asked.take_while(|at| *at < stop).collect();
    if !due.is_empty() {
        plan.sessions.push(Session { id: 0, tcp, due, size_bytes: 4_000 });
    }
}
