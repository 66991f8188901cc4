use super::*;
use proptest::prelude::*;

const MSS: u64 = 100;
const CUT: Cut = Cut { most: MSS, fin: u64::MAX };
const LONG: Cut = Cut { most: 1000, fin: u64::MAX };

fn board(segments: u64) -> Scoreboard {
    let mut board = Scoreboard::default();
    board.sent(segments * MSS);
    board
}

fn sack(board: &mut Scoreboard, blocks: &[(u64, u64)]) -> u32 {
    let una = board.una();
    let relative = blocks.iter().map(|b| ((b.0 * MSS - una) as u32, (b.1 * MSS - una) as u32));
    let new = board.sack(una, &relative.collect());
    board.mark_lost(3, MSS as u32);
    new
}

#[test]
fn three_segments_above_declare_a_loss() {
    let mut board = board(10);
    assert_eq!(sack(&mut board, &[(1, 3)]), 200);
    assert_eq!((board.has_losses(), board.pipe()), (false, 800));
    assert_eq!(sack(&mut board, &[(1, 4)]), 100);
    assert_eq!((board.has_losses(), board.pipe()), (true, 600));
    assert_eq!(board.next_lost(CUT), Some((0, 100)));
    board.retransmitted(100);
    assert_eq!((board.next_lost(CUT), board.pipe()), (None, 700));
}

#[test]
fn three_ranges_above_declare_a_loss_however_short() {
    let mut board = board(10);
    board.sack(0, &[(910, 911), (920, 921), (930, 931)].into_iter().collect());
    board.mark_lost(3, MSS as u32);
    assert_eq!(board.next_lost(LONG), Some((0, 910)));
}

#[test]
fn holes_are_filled_from_the_left_around_what_arrived() {
    let mut board = board(12);
    sack(&mut board, &[(2, 3), (5, 6), (8, 11)]);
    let mut holes = Vec::new();
    while let Some((start, end)) = board.next_lost(CUT) {
        holes.push(start / MSS);
        board.retransmitted(end);
    }
    assert_eq!(holes, [0, 1, 3, 4, 6, 7]);
    // All that was lost was sent again: 12 segments less the 5 that have arrived.
    assert_eq!(board.pipe(), 700);
    let expected = Outstanding { all: 1200, sacked: 500, lost: 600, sent_again: 600 };
    assert_eq!(board.outstanding(), expected);
    assert_eq!(board.next_doubtful(CUT, false), None);
    assert_eq!(board.next_doubtful(CUT, true), Some((1100, 1200)));
    assert_eq!(board.last_hole(CUT), Some((1100, 1200)));
    board.advance(500);
    assert_eq!((board.pipe(), board.sacked()), (300, 400));
}

#[test]
fn a_fin_goes_with_the_last_data() {
    let mut board = board(3);
    board.sent(301);
    board.mark_all_lost();
    let cut = Cut { fin: 300, ..CUT };
    board.retransmitted(200);
    assert_eq!(board.next_lost(cut), Some((200, 301)));
    assert_eq!(board.last_hole(cut), Some((200, 301)));
    assert_eq!(board.last_hole(CUT), Some((201, 301)));
}

#[test]
fn a_peer_that_reneges_is_not_believed() {
    let mut board = board(5);
    sack(&mut board, &[(1, 3)]);
    board.mark_all_lost();
    assert_eq!((board.pipe(), board.sacked()), (0, 200));
    board.advance(100);
    assert_eq!(board.sacked(), 200);
    board.mark_all_lost();
    assert_eq!((board.pipe(), board.sacked()), (0, 0));
    assert_eq!(board.next_lost(LONG), Some((100, 500)));
}

#[test]
fn duplicates_without_sack_are_segments_that_arrived() {
    let mut board = board(10);
    for _ in 0..3 {
        board.estimate_arrival(100);
    }
    board.repair_head_again(100);
    assert_eq!(board.pipe(), 600);
    board.retransmitted(100);
    assert_eq!(board.pipe(), 700);
    // A partial acknowledgment of four segments: three of them were estimated.
    board.advance(400);
    board.forget_arrivals(400, 100);
    board.repair_head_again(100);
    assert_eq!((board.sacked(), board.pipe()), (0, 500));
}

proptest! {
    /// Against a model that keeps three flags for each octet.
    #[test]
    fn pipe_is_the_count_over_all_octets(
        steps in proptest::collection::vec((0u8..5, 0u32..40, 1u32..12), 1..60),
    ) {
        let mut board = board(0);
        let mut sacked = vec![false; 4000];
        for (kind, at, len) in steps {
            let (una, nxt) = (board.una(), board.nxt());
            match kind {
                0 => board.sent(nxt + u64::from(len)),
                1 => board.advance((una + u64::from(at)).min(nxt)),
                2 => {
                    board.sack(una, &[(at, at + len)].into_iter().collect());
                    let end = (una + u64::from(at + len)).min(nxt) as usize;
                    let start = (una + u64::from(at)) as usize;
                    if start < end {
                        sacked[start..end].fill(true);
                    }
                    board.mark_lost(3, 4);
                }
                3 => {
                    if let Some((start, end)) = board.next_lost(Cut { most: len.into(), ..CUT }) {
                        prop_assert!(sacked[start as usize..end as usize].iter().all(|s| !s));
                        board.retransmitted(end);
                    }
                }
                _ => {
                    let reneged = (una < nxt) && sacked[una as usize];
                    board.mark_all_lost();
                    if reneged {
                        sacked.fill(false);
                    }
                }
            }
            let mut pipe = 0;
            let mut total = 0;
            for octet in board.una..board.nxt {
                if sacked[octet as usize] {
                    total += 1;
                } else {
                    pipe += u64::from(octet >= board.lost_edge);
                    pipe += u64::from(octet < board.high_rxt);
                }
            }
            prop_assert_eq!(board.pipe(), pipe);
            prop_assert_eq!(board.sacked(), total);
            prop_assert!(board.una <= board.high_rxt && board.high_rxt <= board.nxt);
            prop_assert!(board.una <= board.lost_edge && board.lost_edge <= board.nxt);
        }
    }
}
