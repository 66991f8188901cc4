//! Short sequences for each discipline, worked out by hand from the papers.
//!
//! The notation is explained in `conformance::golden`.

use conformance::golden::golden;

/// Two packets fit, the third is lost; in bytes a small one may still fit where a large one did
/// not, and a super-packet counts as its segments.
#[test]
fn fifo() {
    golden("fifo:limit=2packets", "+A +B +A!A2 >A1 +B >B1 >B2 >-");
    golden("fifo:limit=2500b", "+A=1500 +B=1001!B1 +B=1000 >A1 >B2 >-");
    golden("fifo:limit=4packets", "+A=4500x3 +B +A!A2 >A1 +A=4500x4!A3 +A=4500x3 >B1 >A4");
    // A lowered limit loses nothing that is queued, and refuses until there is room again.
    golden("fifo:limit=3packets", "+A +A +A limit=1packets +B!B1 >A1 >A2 +B!B2 >A3 +B >B3");
}
