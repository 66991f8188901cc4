//! What an engine refuses to start with, and what it says then.

mod common;

use common::{Lab, link};
use engine::{EngineError, Forwarder, Io, LinkConfig, SettingsError};
use netdev::link::Links;

/// The one line that a user reads.
fn refusal(lab: &Lab, left: &str, right: &str, config: &LinkConfig) -> (EngineError, String) {
    let open = || Forwarder::bridge(left, right, config.clone(), config.clone(), Io::Packet);
    let error = lab.middle.run(open).unwrap().err().expect("it must be refused");
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text}");
    (error, text)
}

#[test]
fn interfaces_that_cannot_be_used_are_named_with_the_remedy() {
    let Some(lab) = Lab::new() else { return };
    let fifo = link("fifo", 1_000_000);

    let (error, text) = refusal(&lab, "left", "nosuch0", &fifo);
    assert!(matches!(error, EngineError::NoSuchInterface { .. }), "{text}");
    assert!(text.starts_with("nosuch0: ") && text.contains("`ip link`"), "{text}");

    let (error, text) = refusal(&lab, "a-name-that-no-interface-has", "right", &fifo);
    assert!(matches!(error, EngineError::NoSuchInterface { .. }), "{text}");

    let (error, text) = refusal(&lab, "left", "left", &fifo);
    assert!(matches!(error, EngineError::SameInterface { .. }), "{text}");

    let (error, text) = refusal(&lab, "lo", "right", &fifo);
    assert!(matches!(error, EngineError::NotEthernet { .. }), "{text}");

    lab.middle.run(|| Links::open().unwrap().set_down("right")).unwrap().unwrap();
    let (error, text) = refusal(&lab, "left", "right", &fifo);
    assert!(matches!(error, EngineError::Down { .. }), "{text}");
    assert!(text.starts_with("right: ") && text.contains("ip link set right up"), "{text}");
}

#[test]
fn an_interface_has_one_engine_at_a_time() {
    let Some(lab) = Lab::new() else { return };
    let fifo = link("fifo", 1_000_000);
    let open = || Forwarder::bridge("left", "right", fifo.clone(), fifo.clone(), Io::Packet);
    let first = lab.middle.run(open).unwrap().unwrap();
    let (error, text) = refusal(&lab, "left", "right", &fifo);
    assert!(matches!(error, EngineError::Taken { .. }), "{text}");
    // A namesake in another namespace is another interface.
    let other = Lab::new().unwrap();
    drop(other.middle.run(open).unwrap().unwrap());
    drop(first);
    drop(lab.middle.run(open).unwrap().unwrap());
}

#[test]
fn links_and_disciplines_that_cannot_work_are_refused() {
    let Some(lab) = Lab::new() else { return };
    let (error, text) = refusal(&lab, "left", "right", &link("fifo", 0));
    assert!(matches!(error, EngineError::Settings(SettingsError::RateZero { .. })), "{text}");

    for info in sched::registry::ALL {
        let config = link(info.name, 1_000_000);
        if info.needs.of_no_link().is_some() {
            let (error, text) = refusal(&lab, "left", "right", &config);
            assert!(
                matches!(error, EngineError::Settings(SettingsError::Unsuitable { .. })),
                "{text}"
            );
            assert!(text.starts_with(&format!("{} needs ", info.name)), "{text}");
        } else {
            let open =
                || Forwarder::bridge("left", "right", config.clone(), config.clone(), Io::Packet);
            assert!(lab.middle.run(open).unwrap().is_ok(), "{}", info.name);
        }
    }
}

#[test]
fn without_permission_it_says_what_is_missing() {
    let Some(lab) = Lab::new() else { return };
    let fifo = link("fifo", 1_000_000);
    let open = || {
        common::drop_capabilities();
        Forwarder::bridge("left", "right", fifo.clone(), fifo.clone(), Io::Packet)
    };
    let error = lab.middle.run(open).unwrap().err().expect("it must be refused");
    assert!(matches!(error, EngineError::NoPermission { .. }), "{error}");
    assert!(error.to_string().contains("CAP_NET_RAW"), "{error}");
}
