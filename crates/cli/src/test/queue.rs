//! Whose queue a delay was: of what is attached here, or of something further out.

use std::path::Path;
use std::time::Duration;

use engine::status::{Heading, Status};
use responsiveness::Measured;
use sched::Rate;
use serde::Serialize;

/// What load adds below this is no queue to look for: the bound of the best grade.
const NEGLIGIBLE: Duration = Duration::from_millis(5);

/// Where new connections waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Whose {
    /// Nowhere to speak of.
    Nobodys,
    /// In the queue that is attached.
    Ours,
    /// Behind it: the link is slower than the rate.
    FurtherOut,
    /// In the radio of the device that it is attached to.
    WiFi,
}

/// What an attached queue did during a phase that it carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Carried {
    pub(super) device: String,
    pub(super) heading: Heading,
    pub(super) rate: Rate,
    /// What short flows waited in it, on average.
    pub(super) wait: Duration,
    pub(super) wireless: bool,
}

/// The attached queues that carried the phase: those that more than half of its bytes passed.
pub(super) fn carried(measured: &Measured, before: &[Status], after: &[Status]) -> Vec<Carried> {
    let bytes = |of: fn(&responsiveness::Interval) -> u64| -> u64 {
        measured.intervals.iter().map(of).sum()
    };
    let down = measured.load.is_down().then(|| bytes(|each| each.down_bytes));
    let up = measured.load.is_up().then(|| bytes(|each| each.up_bytes));
    after
        .iter()
        .filter_map(|now| {
            let then = before.iter().find(|then| {
                (then.ifindex, then.direction, then.attached_at)
                    == (now.ifindex, now.direction, now.attached_at)
            })?;
            let expected = match now.direction {
                Heading::Egress => up?,
                Heading::Ingress => down?,
            };
            if now.sent_bytes().saturating_sub(then.sent_bytes()) <= expected / 2 {
                return None;
            }
            // The first lane is that of short flows, and the only one where there are no lanes.
            let waited = now.lanes.first()?.sojourn.since(&then.lanes.first()?.sojourn);
            (waited.packets() > 0).then(|| Carried {
                device: now.device.clone(),
                heading: now.direction,
                rate: now.link.rate,
                wait: Duration::from_nanos(waited.mean().0),
                wireless: Path::new("/sys/class/net").join(&now.device).join("phy80211").exists(),
            })
        })
        .collect()
}

/// Whose queue it was that added this delay; none if nothing attached carried the load.
pub(super) fn whose(extra: Duration, carried: &[Carried]) -> Option<Whose> {
    if carried.is_empty() {
        return None;
    }
    let ours: Duration = carried.iter().map(|queue| queue.wait).sum();
    Some(if extra < NEGLIGIBLE {
        Whose::Nobodys
    } else if ours >= extra / 2 {
        Whose::Ours
    } else if carried.iter().any(|queue| queue.wireless) {
        Whose::WiFi
    } else {
        Whose::FurtherOut
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waited(ms: u64, wireless: bool) -> Carried {
        Carried {
            device: "wan0".into(),
            heading: Heading::Egress,
            rate: Rate(20_000_000),
            wait: Duration::from_millis(ms),
            wireless,
        }
    }

    #[test]
    fn it_is_where_most_of_the_delay_was() {
        let ms = Duration::from_millis;
        assert_eq!(whose(ms(80), &[]), None);
        assert_eq!(whose(ms(4), &[waited(0, false)]), Some(Whose::Nobodys));
        assert_eq!(whose(ms(80), &[waited(75, false)]), Some(Whose::Ours));
        assert_eq!(whose(ms(80), &[waited(1, false)]), Some(Whose::FurtherOut));
        assert_eq!(whose(ms(80), &[waited(1, true)]), Some(Whose::WiFi));
        assert_eq!(whose(ms(80), &[waited(70, true)]), Some(Whose::Ours));
        assert_eq!(whose(ms(80), &[waited(21, false), waited(21, false)]), Some(Whose::Ours));
    }
}
