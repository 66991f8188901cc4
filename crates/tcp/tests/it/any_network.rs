//! Whatever a network does, short of losing everything.

use std::cell::RefCell;
use std::rc::Rc;

use proptest::prelude::*;
use tcp::{
    Config, Congestion, Endpoint, Flags, Growth, HyStartLaw, Nanos, Pacing, Recovery, ReduceFrom,
    SackBlocks, Segment, SlowStartExit,
};

use crate::net::{CLIENT, Fate, MS, Net, SERVER, Sent};

/// SplitMix64.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// How bad a network is, in percent of segments.
#[derive(Clone, Copy, Debug)]
struct Weather {
    seed: u64,
    lost: u64,
    late: u64,
    twice: u64,
    marked: u64,
}

impl Weather {
    fn fate(self, from: usize, number: usize) -> Fate {
        let draw = mix(self.seed ^ mix((number * 2 + from) as u64));
        let percent = draw % 100;
        let late = self.lost + self.late;
        let twice = late + self.twice;
        match percent {
            p if p < self.lost => Fate::Lost,
            p if p < late => Fate::Late(Nanos((draw >> 32) % (30 * MS).0)),
            p if p < twice => Fate::Twice,
            p if p < twice + self.marked => Fate::Marked,
            _ => Fate::Arrive,
        }
    }
}

fn any_weather() -> impl Strategy<Value = Weather> {
    (any::<u64>(), 0u64..45, 0u64..20, 0u64..15, 0u64..10)
        .prop_map(|(seed, lost, late, twice, marked)| Weather { seed, lost, late, twice, marked })
}

fn any_config() -> impl Strategy<Value = Config> {
    let preset = prop_oneof![
        Just(Config::default()),
        Just(Config::ns2()),
        Just(Config::qualnet()),
        Just(Config::linux()),
        Just(Config::ns3()),
        Just(Config::ns3_new_reno()),
    ];
    let recovery = prop_oneof![Just(Recovery::Reno), Just(Recovery::NewReno), Just(Recovery::Sack)];
    let exit = prop_oneof![
        Just(SlowStartExit::Loss),
        Just(SlowStartExit::HyStartPlusPlus),
        Just(SlowStartExit::HyStart(HyStartLaw::LINUX)),
    ];
    let reduce = prop_oneof![
        Just(ReduceFrom::Flight),
        Just(ReduceFrom::Pipe),
        Just(ReduceFrom::Window),
        Just(ReduceFrom::UsedWindow),
    ];
    let growth =
        prop_oneof![Just(Growth::PerAck), (1u32..9).prop_map(|limit| Growth::PerByte { limit })];
    let control =
        prop_oneof![Just(Congestion::Reno), Just(Congestion::Cubic), Just(Congestion::Bbr)];
    let flags = proptest::array::uniform12(any::<bool>());
    (preset, (recovery, control), exit, reduce, growth, flags, 1u32..4, 2u32..30).prop_map(
        |(preset, how, slow_start_exit, reduce_from, growth, f, ack_every, window)| Config {
            recovery: how.0,
            congestion: how.1,
            slow_start_exit,
            reduce_from,
            growth,
            prr: f[0],
            limited_transmit: f[1],
            rescue: f[2],
            impatient: f[3],
            timestamps: f[4],
            ecn: f[5],
            pacing: f[6].then_some(Pacing::LINUX),
            validate_window: f[7],
            restart_after_idle: f[8],
            karn_backoff: f[9],
            tail_loss_probe: f[10],
            rack: f[11],
            ack_every,
            receive_window: window * preset.mss,
            data_tries: 100,
            syn_tries: 100,
            ..preset
        },
    )
}

/// What must hold of every segment that an end sends.
struct Watch {
    config: Config,
    /// First number beyond the window that the peer has advertised so far.
    edge: u64,
    acked: u64,
    next: u64,
    last: Nanos,
    sacked: Vec<(u64, u64)>,
    probes: u32,
}

impl Watch {
    fn new(config: &Config) -> Self {
        Self {
            config: config.clone(),
            edge: 0,
            acked: 0,
            next: 0,
            last: Nanos::ZERO,
            sacked: Vec::new(),
            probes: 0,
        }
    }

    fn hears(&mut self, segment: &Segment) {
        if segment.flags.has(Flags::ACK) {
            self.edge = self.edge.max(segment.ack + u64::from(segment.window));
            self.acked = self.acked.max(segment.ack);
            let blocks = segment.sack.as_slice().iter();
            self.sacked.extend(
                blocks.map(|b| (segment.ack + u64::from(b.0), segment.ack + u64::from(b.1))),
            );
        }
    }

    fn says(&mut self, sent: &Sent) {
        let segment = &sent.segment;
        assert!(sent.at >= self.last);
        self.last = sent.at;
        // New data is within the congestion window, or alone in the network, or a probe.
        let is_probe = sent.probes > self.probes;
        self.probes = sent.probes;
        if segment.len > 0 && !segment.is_retransmission() && !is_probe {
            // FIN, which goes with the last data, is none.
            let pipe = sent.pipe - u64::from(segment.flags.has(Flags::FIN));
            assert!(pipe <= u64::from(segment.len.max(sent.cwnd)), "{sent:?}");
        }
        if let Some(hole) = self.sacked.iter().find(|b| b.0 < segment.end() && segment.seq < b.1)
            && segment.len > 0
        {
            panic!("sent although SACKed: {segment:?}, {hole:?}");
        }
        assert!(segment.len <= self.config.mss);
        if segment.len > 0 {
            let end = segment.seq + u64::from(segment.len);
            assert!(end <= self.edge, "beyond the window: {segment:?}, {}", self.edge);
            assert!(end <= self.acked + u64::from(self.config.send_buffer));
            assert!(segment.end() > self.acked, "sent although acknowledged: {segment:?}");
        }
        // New is what was never sent, and goes out in order.
        if segment.is_retransmission() {
            assert!(segment.end() <= self.next);
        } else if segment.end() > segment.seq {
            assert_eq!(segment.seq, self.next);
            self.next = segment.end();
        }
        let blocks = segment.sack.as_slice();
        assert!(
            blocks.iter().all(|b| 0 < b.0 && b.0 < b.1 && b.1 <= self.config.receive_window + 1)
        );
        for (i, a) in blocks.iter().enumerate() {
            assert!(blocks[i + 1..].iter().all(|b| a.1 < b.0 || b.1 < a.0), "{blocks:?}");
        }
    }
}

fn transfer(configs: [Config; 2], weather: Weather, bytes: [u64; 2]) -> Net {
    let [client, server] = configs;
    let watches = [&client, &server].map(|config| Rc::new(RefCell::new(Watch::new(config))));
    let ears = watches.clone();
    let mut net = Net::new(client, server, 10 * MS);
    net.ear = Box::new(move |to, segment| ears[to].borrow_mut().hears(segment));
    net.fate = Box::new(move |sent| {
        watches[sent.from].borrow_mut().says(sent);
        weather.fate(sent.from, sent.number)
    });
    net.ends[CLIENT].write(bytes[0]);
    net.ends[CLIENT].close();
    net.ends[SERVER].write(bytes[1]);
    net.ends[SERVER].close();
    net.connect();
    net
}

/// Cases of each property; `PROPTEST_CASES` asks for more.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(600)
}

/// RFC 6675, section 5: an acknowledgment that was overtaken says as well what has arrived.
#[test]
fn what_an_overtaken_acknowledgment_says_has_arrived_is_not_sent_again() {
    let config = Config {
        mss: 1448,
        header_bytes: 52,
        initial_window: 10,
        receive_window: 20_272,
        recovery: Recovery::Sack,
        congestion: Congestion::Cubic,
        limited_transmit: true,
        pacing: Some(Pacing::LINUX),
        ..Config::default()
    };
    let weather =
        Weather { seed: 3_414_835_722_044_347_369, lost: 18, late: 15, twice: 0, marked: 0 };
    let mut net = transfer([config.clone(), config], weather, [24_617; 2]);
    while net.step() {}
    assert!(net.ends.iter().all(Endpoint::is_finished));
}

/// Round trips of a minute, as a bad network makes them, pace for longer than the timeout.
#[test]
fn what_a_timeout_repairs_waits_for_no_pace() {
    let client = Config {
        receive_window: 4824,
        recovery: Recovery::Reno,
        congestion: Congestion::Reno,
        growth: Growth::PerByte { limit: 3 },
        prr: true,
        timestamps: true,
        pacing: Some(Pacing::LINUX),
        syn_tries: 100,
        data_tries: 100,
        ack_every: 2,
        ..Config::ns3()
    };
    let server = Config {
        receive_window: 4344,
        recovery: Recovery::Reno,
        congestion: Congestion::Cubic,
        growth: Growth::PerAck,
        reduce_from: ReduceFrom::Flight,
        slow_start_exit: SlowStartExit::Loss,
        prr: false,
        rescue: false,
        tail_loss_probe: false,
        limited_transmit: false,
        validate_window: false,
        pacing: None,
        syn_tries: 100,
        data_tries: 100,
        ack_every: 1,
        ..Config::linux()
    };
    let weather =
        Weather { seed: 7_579_099_308_946_487_234, lost: 40, late: 2, twice: 13, marked: 0 };
    let mut net = transfer([client, server], weather, [4448, 34_753]);
    while net.step() {}
    assert!(net.ends.iter().all(Endpoint::is_finished), "{:?}", net.ends);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Everything arrives, in order and once, and both ends close.
    #[test]
    fn a_transfer_completes(
        client in any_config(),
        server in any_config(),
        weather in any_weather(),
        up in 0u64..80_000,
        down in 0u64..80_000,
    ) {
        let mut net = transfer([client, server], weather, [up, down]);
        let mut received = [0; 2];
        let finished = |net: &Net| net.ends.iter().all(Endpoint::is_finished);
        for _ in 0..200_000 {
            if finished(&net) || !net.step() {
                break;
            }
            for (end, before) in received.iter_mut().enumerate() {
                let after = net.ends[end].received();
                prop_assert!(after >= *before);
                *before = after;
            }
        }
        prop_assert!(finished(&net), "{} ns: {:?}", net.now, net.ends);
        prop_assert_eq!(received, [down, up]);
        prop_assert_eq!([net.ends[CLIENT].acked(), net.ends[SERVER].acked()], [up, down]);
        prop_assert!(net.ends.iter().all(|end| end.failed().is_none() && end.in_flight() == 0));
    }

    /// What was done once is done again.
    #[test]
    fn a_run_is_a_function_of_its_input(
        client in any_config(),
        weather in any_weather(),
        up in 0u64..40_000,
    ) {
        let run = || {
            let mut net = transfer([client.clone(), client.clone()], weather, [up, up]);
            for _ in 0..20_000 {
                if !net.step() {
                    break;
                }
            }
            net.log.iter().map(|sent| (sent.at, sent.from, sent.segment)).collect::<Vec<_>>()
        };
        prop_assert_eq!(run(), run());
    }

    /// Segments from nowhere: no panic, no window beyond bounds, and time goes on.
    #[test]
    fn nonsense_is_survived(
        config in any_config(),
        steps in proptest::collection::vec(
            (any::<u8>(), any::<u16>(), 0u64..40_000, 0u64..40_000, any::<[u32; 4]>(), any::<u64>()),
            1..80,
        ),
    ) {
        for mut end in [Endpoint::client(&config), Endpoint::server(&config)] {
            let mut now = Nanos::ZERO;
            end.connect(&config, now);
            end.write(u64::MAX);
            for &(kind, flags, seq, ack, more, far) in &steps {
                let mut segment = Segment {
                    seq,
                    ack,
                    timestamp: Nanos(now.0.wrapping_sub(u64::from(more[0]))),
                    echo: Nanos(far),
                    len: more[1] % 3000,
                    window: more[2],
                    sack: [(more[0] % 9000, more[3] % 9000), (more[3], more[0])].into_iter().collect::<SackBlocks>(),
                    flags: Flags(flags),
                };
                match kind % 8 {
                    0 => segment.seq = far,
                    1 => segment.ack = far,
                    2 => (segment.seq, segment.len) = (u64::MAX, u32::MAX),
                    3 | 4 => segment.flags = Flags::ACK,
                    5 => (segment.flags, segment.ack) = (Flags::SYN.with(Flags::ACK), 1),
                    6 => end.on_timer(&config, now),
                    _ => end.close(),
                }
                now += u64::from(more[3] % 400) * MS;
                end.on_segment(&config, &segment, flags & 1 == 0, now);
                for _ in 0..5000 {
                    if end.poll_transmit(&config, now).is_none() {
                        break;
                    }
                }
                if let Some(timer) = end.next_timer() && kind % 3 == 0 {
                    now = now.max(timer);
                    end.on_timer(&config, now);
                }
                prop_assert!(end.congestion_window() <= tcp::MAX_WINDOW);
                let _ = (end.state(), end.stats(), end.received(), end.acked());
            }
        }
    }
}
