//! The TCP of a scenario: a preset and its changes.

use tcp::{Config, Congestion, HyStartLaw, Pacing, Recovery, SlowStartExit};

use crate::error::ScenarioError;
use crate::reader::Table;

/// The `[tcp]` of a scenario.
pub(crate) fn read_root(root: &Table<'_>) -> Result<Config, ScenarioError> {
    let table = root.table_or_defaults("tcp")?;
    let preset = table.needed("preset", table.word("preset"))?;
    changed(&table, of_preset(preset))
}

/// What differs from `base` for some traffic; with a preset, from that.
pub(crate) fn read(table: &Table<'_>, base: &Config) -> Result<Config, ScenarioError> {
    let base = match table.word("preset")? {
        Some(preset) if table.has("preset") => of_preset(preset),
        _ => base.clone(),
    };
    changed(table, base)
}

fn of_preset(name: &str) -> Config {
    match name {
        "ns2" => Config::ns2(),
        "qualnet" => Config::qualnet(),
        "linux" => Config::linux(),
        "ns3" => Config::ns3(),
        "ns3-newreno" => Config::ns3_new_reno(),
        _ => Config::default(),
    }
}

fn changed(table: &Table<'_>, mut config: Config) -> Result<Config, ScenarioError> {
    match table.word("congestion")? {
        Some("reno") => config.congestion = Congestion::Reno,
        Some("bbr") => config.congestion = Congestion::Bbr,
        Some(_) => config.congestion = Congestion::Cubic,
        None => {}
    }
    match table.word("recovery")? {
        Some("reno") => config.recovery = Recovery::Reno,
        Some("newreno") => config.recovery = Recovery::NewReno,
        Some(_) => config.recovery = Recovery::Sack,
        None => {}
    }
    match table.word("slow-start")? {
        Some("loss") => config.slow_start_exit = SlowStartExit::Loss,
        Some("hystart") => config.slow_start_exit = SlowStartExit::HyStart(HyStartLaw::LINUX),
        Some(_) => config.slow_start_exit = SlowStartExit::HyStartPlusPlus,
        None => {}
    }
    if let Some(timestamps) = table.flag("timestamps")? {
        config.timestamps = timestamps;
        config.header_bytes = if timestamps { 52 } else { 40 };
    }
    if let Some(pacing) = table.flag("pacing")? {
        config.pacing = pacing.then_some(Pacing::LINUX);
    }
    for (key, field) in [
        ("mss", &mut config.mss),
        ("header", &mut config.header_bytes),
        ("initial-ssthresh", &mut config.initial_ssthresh),
        ("window", &mut config.receive_window),
        ("send-buffer", &mut config.send_buffer),
    ] {
        // Every range of these keys ends below 2^32.
        table.bytes(key)?.into_iter().for_each(|value| *field = value as u32);
    }
    for (key, field) in [
        ("initial-window", &mut config.initial_window),
        ("ack-every", &mut config.ack_every),
        ("quick-acks", &mut config.quick_acks),
        ("syn-tries", &mut config.syn_tries),
        ("data-tries", &mut config.data_tries),
        ("dup-threshold", &mut config.dup_threshold),
    ] {
        table.count(key)?.into_iter().for_each(|value| *field = value as u32);
    }
    for (key, field) in [
        ("ack-delay", &mut config.ack_delay),
        ("syn-timeout", &mut config.syn_timeout),
        ("initial-rto", &mut config.initial_rto),
        ("min-rto", &mut config.min_rto),
        ("max-rto", &mut config.max_rto),
        ("granularity", &mut config.granularity),
    ] {
        table.time(key)?.into_iter().for_each(|value| *field = value);
    }
    for (key, field) in [
        ("limited-transmit", &mut config.limited_transmit),
        ("prr", &mut config.prr),
        ("rack", &mut config.rack),
        ("tail-loss-probe", &mut config.tail_loss_probe),
        ("ecn", &mut config.ecn),
    ] {
        table.flag(key)?.into_iter().for_each(|value| *field = value);
    }
    if config.congestion == Congestion::Bbr && config.recovery != Recovery::Sack {
        return Err(
            table.error("does not go together: congestion = \"bbr\" takes recovery = \"sack\"")
        );
    }
    config.check().map_err(|error| table.error(format!("does not go together: {error}")))?;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Takes;
    use crate::sections::TCP;

    /// A word without an arm in `of_preset` would be the default in silence.
    #[test]
    fn every_preset_has_a_configuration_of_its_own() {
        let key = TCP.keys[0].iter().find(|key| key.name == "preset").unwrap();
        let Takes::Word(words) = &key.takes else { panic!("the preset is a word") };
        let configs: Vec<Config> = words.iter().map(|word| of_preset(word)).collect();
        for (place, config) in configs.iter().enumerate() {
            assert!(!configs[..place].contains(config), "{}", words[place]);
        }
        assert_eq!(of_preset("qualnet"), Config::qualnet());
    }
}
