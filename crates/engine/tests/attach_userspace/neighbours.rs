//! Others who use the same device.

use engine::userspace::HookKind;
use engine::{EngineError, Forwarder, SettingsError};

use super::hooks;
use super::hosts::{B4, Hosts, came_through, link, server};

const SPEC: &str = "fifo:limit=1000packets";
const RATE: u64 = 50_000_000;

#[test]
fn filters_of_others_on_clsact_stay_and_work() {
    let Some(hosts) = Hosts::new() else { return };
    let tc = |rest: &str| Hosts::says(&hosts.a, &format!("tc {rest}"));
    tc("qdisc add dev eth0 clsact");
    for side in ["ingress", "egress"] {
        let filter = "prio 5 protocol ip u32 match ip protocol 6 0xff flowid 1:1";
        tc(&format!("filter add dev eth0 {side} {filter}"));
    }
    let theirs = || {
        let show = |side| tc(&format!("filter show dev eth0 {side}"));
        format!("{}{}", show("ingress"), show("egress"))
    };
    let before = theirs();
    for hook in hooks() {
        let ((), report) = hosts.while_attached(link(SPEC, RATE), link(SPEC, RATE), hook, || {
            hosts.transfer(&hosts.a, server(&hosts.b, B4), 300_000);
        });
        for direction in &report.directions {
            assert!(direction.sent.packets > 0, "{direction:#?}");
            assert!(came_through(direction).packets > 10, "{direction:#?}");
        }
        assert_eq!(theirs(), before, "{hook:?}");
    }
    // The clsact was there before.
    assert!(tc("qdisc show dev eth0").contains("clsact"));
}

#[test]
fn a_clsact_that_others_have_come_to_use_stays() {
    let Some(hosts) = Hosts::new() else { return };
    let config = || link(SPEC, RATE);
    let add = "tc filter add dev eth0 egress prio 77 protocol ip u32 match u32 0 0 flowid 1:1";
    let ((), _) = hosts.while_attached(config(), config(), HookKind::Clsact, || {
        Hosts::says(&hosts.a, add);
    });
    let filters = Hosts::says(&hosts.a, "tc filter show dev eth0 egress");
    assert!(filters.contains("pref 77") && !filters.contains("shortlane"), "{filters}");
}

#[test]
fn a_device_has_one_engine_at_a_time() {
    let Some(hosts) = Hosts::new() else { return };
    let ((), _) = hosts.while_attached(link(SPEC, RATE), None, HookKind::Auto, || {
        let second = || Forwarder::attach("eth0", None, link(SPEC, RATE), HookKind::Auto);
        let refused = hosts.a.run(second).unwrap().err().expect("the device is taken");
        assert!(matches!(refused, EngineError::Taken { .. }), "{refused}");
        hosts.transfer(&hosts.a, server(&hosts.b, B4), 100_000);
    });
}

#[test]
fn what_cannot_be_attached_is_refused_with_the_reason() {
    let Some(hosts) = Hosts::new() else { return };
    let refused = |device: &str, egress| {
        let attach = || Forwarder::attach(device, egress, None, HookKind::Auto);
        hosts.a.run(attach).unwrap().err().expect("it must be refused")
    };
    let any = || link(SPEC, RATE);
    assert!(matches!(refused("lo", any()), EngineError::Loopback { .. }));
    assert!(matches!(refused("eth7", any()), EngineError::NoSuchInterface { .. }));
    assert!(matches!(refused("eth0", None), EngineError::NoDirection { .. }));
    assert!(matches!(
        refused("eth0", link("srpt", RATE)),
        EngineError::Settings(SettingsError::Unsuitable { .. })
    ));
    assert!(matches!(
        refused("eth0", link(SPEC, 0)),
        EngineError::Settings(SettingsError::RateZero { .. })
    ));
    assert_eq!(hosts.left_behind(), [""; 0]);
}
