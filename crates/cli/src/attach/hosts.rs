//! Which address of a packet is its host: that of the client, whichever way the packet goes.

use netdev::routes;
use sched::Spec;

const HOSTS: &str = "hosts";

/// The discipline for what leaves a device. Behind a router's way out are its clients, which send
/// there; at the far end of any other device are those that it sends to.
pub(crate) fn leaving(spec: &Spec, device: &str) -> Spec {
    let is_open = spec.params().has(HOSTS) && !spec.params().is_given(HOSTS);
    if is_open && routes::clients_send_by(device) {
        return set(spec, "source");
    }
    spec.clone()
}

/// The same for what arrives at the device.
pub(crate) fn arriving(spec: &Spec, device: &str) -> Spec {
    opposite(&leaving(spec, device))
}

/// The same hosts for packets that go the other way.
pub(crate) fn opposite(spec: &Spec) -> Spec {
    if !spec.params().has(HOSTS) {
        return spec.clone();
    }
    match spec.params().word(HOSTS) {
        "destination" => set(spec, "source"),
        "source" => set(spec, "destination"),
        _ => spec.clone(),
    }
}

fn set(spec: &Spec, word: &str) -> Spec {
    spec.clone().with(HOSTS, word).unwrap_or_else(|_| spec.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> Spec {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_asked_for_is_for_what_leaves_and_its_opposite_for_what_arrives() {
        for (asked, other) in
            [("source", "destination"), ("destination", "source"), ("none", "none")]
        {
            let asked = spec(&format!("fq-lanes:hosts={asked}"));
            assert_eq!(leaving(&asked, "eth0").params().word(HOSTS), asked.params().word(HOSTS));
            assert_eq!(arriving(&asked, "eth0").params().word(HOSTS), other);
        }
    }

    #[test]
    fn nobody_sends_by_a_device_that_is_not_there() {
        assert_eq!(leaving(&spec("fq-lanes"), "no such").params().word(HOSTS), "destination");
        assert_eq!(arriving(&spec("fq-lanes"), "no such").params().word(HOSTS), "source");
        assert_eq!(arriving(&spec("efd"), "eth0").to_string(), spec("efd").to_string());
    }
}
