//! The numbers of `fq-lanes`: which age makes which tier, how an age fades, what a tier is owed.

use crate::interface::{Lane, Nanos, Standing};

/// Tiers by age.
pub(super) const TIERS: usize = 4;
/// The list of the new; that of tier `t` is `t + 1`.
pub(super) const NEW: usize = 0;
/// The list of the last tier.
pub(super) const LAST: usize = TIERS;
/// Bytes of a turn: a full Ethernet frame.
pub(super) const QUANTUM: u32 = 1514;

/// Ages at which the second, third and last tier begin. Twenty packets are young, as with EFD; a
/// factor of five between tiers is the largest that still helps transfers of 100 to 1000 packets.
const BOUNDS: [u32; TIERS - 1] = [30_000, 150_000, 750_000];
/// Below this age a member that becomes backlogged is new: two packets, for voice, DNS, a SYN.
const NEW_BELOW: u32 = 3_000;
/// Idle, a member is forgiven half of its age in this time, beside its fair share.
const HALF_LIFE: Nanos = Nanos::from_secs(2);
/// An older tier is owed a half of the fair share of its members ...
const PART_SHIFT: u32 = 1;
/// ... and never less than a 32nd of the link, however many are younger.
const FLOOR_SHIFT: u32 = 5;
/// Quanta that a tier must be owed to go before the new ones, so that these wait for nobody but
/// each other most of the time.
const PATIENCE: u32 = 4;
/// Bytes that a tier is owed at most: beyond that it would make up for the past in a burst.
pub(super) const MOST_OWED: i32 = 8 * QUANTUM as i32;

/// What can be left out: see the parameter `without`.
pub(super) const WITHOUT: &[&str] =
    &["nothing", "ages", "new", "patience", "part", "floor", "half-life", "clock", "ahead", "idle"];

/// The rules of a stage.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Rules {
    /// By which members differ in rank; without it there is one tier, and everybody is new.
    ages: bool,
    pub(super) new_below: u32,
    pub(super) patience: u32,
    half_life: Option<Nanos>,
    part: bool,
    floor: bool,
    /// Whether a member that becomes backlogged has what was left of its last quantum, and not a
    /// whole one: otherwise one that sends two packets each time has twice its share.
    pub(super) keeps_rest: bool,
}

impl Rules {
    /// The rules among the flows of a host, but for one of them.
    pub(super) fn of_flows(without: &str) -> Self {
        let with = |what: &str| without != what;
        if !with("ages") {
            return Self { keeps_rest: false, ..Self::of_hosts() };
        }
        Self {
            ages: true,
            new_below: if with("new") { NEW_BELOW } else { 0 },
            patience: if with("patience") { PATIENCE } else { 1 },
            half_life: with("half-life").then_some(HALF_LIFE),
            part: with("part"),
            floor: with("floor"),
            keeps_rest: false,
        }
    }

    /// The rules among hosts, and without ages: fair queueing, the sparse first (RFC 8290).
    pub(super) const fn of_hosts() -> Self {
        Self {
            ages: false,
            new_below: u32::MAX,
            patience: u32::MAX,
            half_life: None,
            part: false,
            floor: false,
            keeps_rest: true,
        }
    }

    /// Whether members differ by age.
    #[inline]
    pub(super) const fn know_ages(&self) -> bool {
        self.ages
    }

    /// The tier of an age, from 0.
    #[inline]
    pub(super) fn tier(&self, age: u32) -> usize {
        if !self.ages {
            return 0;
        }
        BOUNDS.iter().map(|bound| usize::from(age >= *bound)).sum()
    }

    /// The list that a member of this age joins.
    #[inline]
    pub(super) fn list(&self, age: u32) -> usize {
        if age < self.new_below { NEW } else { 1 + self.tier(age) }
    }

    /// An age after `size` more bytes. It is bounded, so that the oldest are forgiven in time.
    #[inline]
    pub(super) fn aged(&self, age: u32, size: u32) -> u32 {
        const MOST: u32 = 2 * BOUNDS[TIERS - 2];
        age.saturating_add(size).min(MOST)
    }

    /// An age after `idle` without service: half of it a half-life, in a straight line between.
    #[inline]
    pub(super) fn faded(&self, age: u32, idle: Nanos) -> u32 {
        let Some(half_life) = self.half_life.filter(|_| age > 0) else { return age };
        let (halvings, rest) = (idle.0 / half_life.0, idle.0 % half_life.0);
        let age = u64::from(age) >> halvings.min(63);
        // At most 2^21 x 2^31: ages and half-life are bounded.
        (age - age * rest / (2 * half_life.0)) as u32
    }

    /// What a tier of `members` is owed when `size` bytes of younger ones left, of which `share`
    /// would have been a member's.
    #[inline]
    pub(super) const fn owed(&self, share: u64, members: u32, size: u64) -> u64 {
        let part = if self.part { (share * members as u64) >> PART_SHIFT } else { 0 };
        let floor = if self.floor { size >> FLOOR_SHIFT } else { 0 };
        if part > floor { part } else { floor }
    }
}

/// Lists as lanes: new, young (every tier but the last), old.
pub(super) const fn lane(list: usize) -> Lane {
    match list {
        NEW => Lane(0),
        LAST => Lane(2),
        _ => Lane(1),
    }
}

/// Where a flow of `fq-lanes` stands by the age that it had when it was served last, `idle` ago.
/// What it has been forgiven since as its fair share, which makes it younger, only its queue knows.
#[must_use]
pub fn standing(age: u32, idle: Nanos) -> Standing {
    let rules = Rules::of_flows("nothing");
    let age = rules.faded(age, idle);
    let list = rules.list(age);
    Standing { lane: lane(list), tier: list as u8, excess_bytes: age.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_halves_in_a_half_life_and_never_grows() {
        let rules = Rules::of_flows("nothing");
        let ages = [0, 1, 2, 4, 60].map(|s| rules.faded(100_000, Nanos::from_secs(s)));
        assert_eq!(ages, [100_000, 75_000, 50_000, 25_000, 0]);
        let mut before = u32::MAX;
        for ms in 0..20_000 {
            let age = rules.faded(1_500_000, Nanos::from_millis(ms));
            assert!(age <= before, "{ms} ms: {age} after {before}");
            before = age;
        }
        assert_eq!(rules.faded(u32::MAX, Nanos::MAX), 0);
    }

    #[test]
    fn an_idle_flow_stands_where_its_age_has_faded_to() {
        let at = |seconds| standing(200_000, Nanos::from_secs(seconds));
        let expected = |lane, tier, excess_bytes| Standing { lane: Lane(lane), tier, excess_bytes };
        assert_eq!(at(0), expected(1, 3, 200_000));
        assert_eq!(at(2), expected(1, 2, 100_000));
        assert_eq!(at(20), expected(0, 0, 195));
        assert_eq!(standing(750_000, Nanos::ZERO).lane, Lane(2));
    }

    #[test]
    fn tiers_begin_at_their_bounds() {
        let rules = Rules::of_flows("nothing");
        let ages = [0, 29_999, 30_000, 149_999, 150_000, 749_999, 750_000, u32::MAX];
        assert_eq!(ages.map(|age| rules.tier(age)), [0, 0, 1, 1, 2, 2, 3, 3]);
    }

    #[test]
    fn a_tier_is_owed_half_a_fair_share_and_at_least_a_32nd() {
        let rules = Rules::of_flows("nothing");
        // One of 4 members, beside one more that the share is reckoned for: a tenth.
        assert_eq!(rules.owed(6400 / 5, 1, 6400), 640);
        assert_eq!(rules.owed(6400 / 101, 1, 6400), 200);
        assert_eq!(Rules::of_flows("floor").owed(6400 / 101, 1, 6400), 31);
        assert_eq!(Rules::of_flows("part").owed(6400 / 5, 1, 6400), 200);
    }
}
