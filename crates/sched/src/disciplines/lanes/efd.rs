//! EFD, early flow discard: the first packets of a flow first, and no memory of a flow that has
//! nothing queued.
//!
//! Chen, Heusse, Urvoy-Keller: "EFD: An efficient low-overhead scheduler", IFIP Networking 2011.
//!
//! # Idea
//!
//! Size-based schedulers serve short flows first and long ones no worse, since most flows are short
//! and most bytes are of few long flows. What kept them in the lab is the table: an entry for every
//! flow that lives, whether it sends or not. EFD has an entry only for flows with a packet in the
//! queue. What it counts is not a flow then but an *episode*: from the flow's first packet in the
//! queue until its queue has run empty. A flow that sends less than the link would give it hardly
//! ever has many packets queued, so it is short however long it lives; a bulk transfer keeps its
//! queue standing, and is long after `threshold` packets. So EFD is sensitive to rate, not to age.
//!
//! # Algorithm
//!
//! ```text
//! enqueue(packet of flow f):
//!     entry f, made if there is none: queued = count = 0, short
//!     f.queued += 1
//!     if f is short and f.count < threshold:  f.count += 1; lane = short
//!     else:                                   f is long;    lane = long
//!     if the buffer is full:
//!         lane is short and the long lane has a packet:  drop the tail of the long lane
//!         otherwise:                                     drop the arrival
//!         (a drop is a departure: its flow's `queued` falls, and the entry goes at 0)
//!     append the packet to its lane
//!
//! dequeue():
//!     packet = head of the short lane; if that is empty, of the long lane
//!     f.queued -= 1; if that leaves 0, the entry goes
//! ```
//!
//! The parts are in the files beside this one: the entry is
//! [`WhileQueued`](super::while_queued), what `boundary` makes of `count < threshold` is
//! [`Rule`](super::accounting::Rule), who is dropped is
//! [`Buffer::room`](crate::interface::parts::Buffer::room), the lanes are
//! [`Queues`](super::queues), and [`Lanes`](super::Lanes) calls them in this order. `low-share`
//! (ours; 0 in the paper) turns strict priority into [`Guaranteed`](super::service): while both lanes
//! have packets, the long one gets at least this share of the link, and of the buffer.
//! `hold-on-wire` (ours; the paper leaves it open) has a packet leave its flow's `queued` when its
//! transmission ends rather than when it begins.
//!
//! # Invariants
//!
//! * The table has no more entries than the queue has packets, one more with `hold-on-wire`.
//! * No flow is reordered: a flow that has become long stays so until nothing of it is queued, so
//!   none of its packets joins the short lane behind one in the long lane; with `low-share` the long
//!   lane is served out of turn only if nothing of its head's flow is in the short lane.
//! * A packet is dropped only at a full buffer. One of a short flow only if the long lane has nothing
//!   (or not enough, in bytes) to give, or `low-share` reserves the room.
//! * The link is never idle while a packet is queued.
//! * `threshold=inf` is `fifo`.
//!
//! # Cost and memory
//!
//! A look-up at arrival and one at departure, in a table of 16 bytes an entry, three to a cache
//! line; two rings; no allocation once they are as large as they get, no clock, no random numbers.
//! An entry's counter and its position in the short lane's history share a word: the counter is
//! needed until the flow is long, the position from then on.
//!
//! # Where it fails
//!
//! * A sender that paces below the rate of the link (BBR) lets its queue run empty: its entry goes,
//!   and a long transfer is short again and again.
//! * Many short flows never get old. Under strict priority they starve the long lane for as long as
//!   they fill the link; `low-share` bounds that.
//! * A flow slightly longer than the threshold has its last packets behind all of the long lane,
//!   which is also where packets are dropped.
//! * Inside the long lane it is a FIFO: bulk transfers delay each other as they do there.
//! * Flows in a tunnel are one flow.
//! * At the table's bound a newcomer is short and not counted.

use crate::interface::parts::{Accounting, Buffer, Parts, Service};
use crate::interface::{Info, Params, shared};

use super::compose::Named;
use super::params::{BOUNDARY, HOLD_ON_WIRE, LOW_SHARE, THRESHOLD};

/// Early flow discard.
pub(crate) struct Efd;

impl Named for Efd {
    const INFO: Info = Info {
        name: "efd",
        summary: "early flow discard: the first packets of a flow first, and no memory of a flow \
                  that has nothing queued",
        source: "Chen, Heusse, Urvoy-Keller, IFIP Networking 2011",
        params: &[
            shared::LIMIT.any(),
            THRESHOLD.any(),
            BOUNDARY.any(),
            LOW_SHARE.any(),
            HOLD_ON_WIRE.any(),
            // The queue's limit bounds the table first.any(), unless it is in bytes of tiny packets.
            shared::FLOWS.with_default("1048576", "ours").any(),
        ],
        ..Info::PLAIN
    };

    fn parts(_params: &Params) -> Parts {
        Parts {
            accounting: Accounting::WhileQueued,
            service: Service::Guaranteed,
            buffer: Buffer::Knockout,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::interface::DropReason;
    use crate::testkit::Bench;

    #[test]
    fn a_flow_is_short_until_its_episode_has_had_so_many_packets() {
        let mut efd = Bench::new("efd:threshold=2packets");
        let long: [u64; 4] = [1, 1, 1, 1].map(|flow| efd.enqueue(flow, 1500));
        let short = efd.enqueue(2, 100);
        assert_eq!(efd.depart(3), [long[0], long[1], short]);
        // While its packets are queued the flow stays long; then it is a new one.
        let later = efd.enqueue(1, 1500);
        assert_eq!(efd.drain(), [long[2], long[3], later]);
        assert_eq!(efd.qdisc.flows(), 0);
        let (first, other) = (efd.enqueue(1, 1500), efd.enqueue(2, 100));
        assert_eq!(efd.drain(), [first, other]);
    }

    #[test]
    fn a_full_buffer_loses_the_tail_of_the_long_lane_or_a_long_arrival() {
        let mut efd = Bench::new("efd:threshold=1packets,limit=3packets");
        let ids: [u64; 3] = [1, 1, 1].map(|flow| efd.enqueue(flow, 1500));
        let refused = efd.enqueue(1, 1500);
        assert_eq!(efd.take_drops(), [(refused, DropReason::Full)]);
        let short = efd.enqueue(2, 100);
        assert_eq!(efd.take_drops(), [(ids[2], DropReason::PushedOut)]);
        assert_eq!(efd.drain(), [ids[0], short, ids[1]]);
    }
}
