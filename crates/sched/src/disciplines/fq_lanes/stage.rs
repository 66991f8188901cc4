//! A stage: members that take turns by deficit round robin, the younger before the older.
//!
//! `fq-lanes` has one stage of hosts, and in every host one of flows; both are this file. A member
//! is *listed* from the time it becomes backlogged until its turn finds it empty. It stands in the
//! list of the new, or in that of its tier. A list is served when those before it are empty, or
//! when it is owed: what younger ones send adds to what each older list is owed.

use core::iter::successors;
use core::ops::{Index, IndexMut};

use super::rules::{MOST_OWED, NEW, QUANTUM, Rules, TIERS};
use crate::interface::Nanos;
use crate::queues::per_flow::NONE;

const LISTS: usize = TIERS + 1;
/// In no list.
const UNLISTED: u8 = u8::MAX;
/// In no stage.
pub(super) const NOWHERE: u16 = u16::MAX;
/// Fractional bits of bytes in virtual time and in what is owed.
pub(super) const BITS: u32 = 8;

/// What a stage knows of a member: a host, or a flow.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Member {
    /// Bytes that it was served in excess of its fair share, as of `served`.
    age: u32,
    /// Bytes that it may still send in its turn.
    deficit: i32,
    /// The stage's virtual time at `served`, and the credit for idle time.
    virtual_served: u64,
    /// When it was served last.
    served: Nanos,
    /// The next member of the same list, or [`NONE`].
    next: u32,
    /// The number of its stage, for a flow that of its host; [`NOWHERE`] before it had one.
    pub(super) stage: u16,
    list: u8,
}

impl Default for Member {
    fn default() -> Self {
        let (virtual_served, served) = (0, Nanos::ZERO);
        Self {
            age: 0,
            deficit: 0,
            virtual_served,
            served,
            next: NONE,
            stage: NOWHERE,
            list: UNLISTED,
        }
    }
}

impl Member {
    /// Whether it stands in a list: its place must not become another's then.
    pub(super) const fn is_listed(&self) -> bool {
        self.list != UNLISTED
    }

    /// What it was served is reckoned by another stage's clock from now on.
    pub(super) const fn set_reading(&mut self, virtual_time: u64) {
        self.virtual_served = virtual_time;
    }

    /// The list that it stands in.
    pub(super) const fn list(&self) -> usize {
        self.list as usize
    }

    /// Its age if it is not served until `now`: what is lost if it is forgotten.
    pub(super) fn faded(&self, rules: &Rules, now: Nanos) -> u32 {
        rules.faded(self.age, now.since(self.served))
    }
}

/// The members of a stage, by number.
pub(super) trait Members {
    /// One of them.
    fn member(&mut self, index: u32) -> &mut Member;
    /// Whether nothing of it is queued.
    fn is_empty(&self, index: u32) -> bool;
    /// It stands in no list any more.
    fn unlisted(&mut self, _index: u32) {}
}

/// The lists of a stage, and what each is owed.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Stage {
    lists: Lists,
    /// Members in a list.
    listed: u32,
    /// A bit for each list with a member.
    occupied: u8,
    /// Bytes that one more member would have been served, in units of 2^-[`BITS`].
    virtual_time: u64,
}

#[derive(Clone, Copy, Debug, Hash)]
struct List {
    first: u32,
    last: u32,
    members: u32,
    /// Bytes, in units of 2^-[`BITS`]; below 0 after a packet larger than what was owed.
    owed: i32,
}

/// Room for as many lists as three bits can name, so that their numbers need no check.
#[derive(Clone, Copy, Debug, Hash)]
struct Lists([List; 8]);

impl Index<usize> for Lists {
    type Output = List;
    #[inline]
    fn index(&self, list: usize) -> &List {
        &self.0[list & 7]
    }
}

impl IndexMut<usize> for Lists {
    #[inline]
    fn index_mut(&mut self, list: usize) -> &mut List {
        &mut self.0[list & 7]
    }
}

impl Default for Stage {
    fn default() -> Self {
        let empty = List { first: NONE, last: NONE, members: 0, owed: 0 };
        Self { lists: Lists([empty; 8]), listed: 0, occupied: 0, virtual_time: 0 }
    }
}

impl Stage {
    /// Members in a list.
    pub(super) const fn listed(&self) -> u32 {
        self.listed
    }

    /// Bytes that one more member would have been served since a reading; none since one that
    /// was taken before this stage was made anew.
    pub(super) const fn share_since(&self, reading: u64) -> u64 {
        self.virtual_time.saturating_sub(reading) >> BITS
    }

    /// A reading for [`Stage::share_since`].
    pub(super) const fn virtual_time(&self) -> u64 {
        self.virtual_time
    }

    /// A member becomes backlogged: it is forgiven its fair share of the time since it was
    /// served, `credit` for idle time in it, and joins a list unless it still stands in one.
    /// Returns whether it joined the new.
    #[inline]
    pub(super) fn arrive(
        &mut self,
        members: &mut impl Members,
        index: u32,
        credit: u64,
        rules: &Rules,
        now: Nanos,
    ) -> bool {
        let member = members.member(index);
        if rules.know_ages() {
            member.age = self.forgiven(member, credit, rules, now);
            (member.virtual_served, member.served) = (self.virtual_time + credit, now);
        }
        if member.is_listed() {
            return false;
        }
        if !rules.keeps_rest || member.deficit <= 0 {
            member.deficit = QUANTUM as i32;
        }
        let list = rules.list(member.age);
        self.listed += 1;
        self.append(members, index, list);
        list == NEW
    }

    /// A member's age when it becomes backlogged.
    #[inline]
    fn forgiven(&self, member: &Member, credit: u64, rules: &Rules, now: Nanos) -> u32 {
        let share = (self.virtual_time + credit).saturating_sub(member.virtual_served) >> BITS;
        let age = member.age.saturating_sub(u32::try_from(share).unwrap_or(u32::MAX));
        rules.faded(age, now.since(member.served))
    }

    /// The list and the age that a member has while it is backlogged, or would have.
    pub(super) fn standing(
        &self,
        member: &Member,
        is_empty: bool,
        credit: u64,
        rules: &Rules,
        now: Nanos,
    ) -> (usize, u32) {
        let age = if is_empty { self.forgiven(member, credit, rules, now) } else { member.age };
        (if member.is_listed() { member.list() } else { rules.list(age) }, age)
    }

    /// The member whose turn it is, and its list.
    #[inline]
    pub(super) fn next(
        &mut self,
        members: &mut impl Members,
        rules: &Rules,
    ) -> Option<(u32, usize)> {
        while let Some(list) = self.list_in_turn(rules) {
            if let Some(index) = self.ready(members, list, rules) {
                return Some((index, list));
            }
        }
        None
    }

    /// The new member whose turn it is among the new.
    pub(super) fn next_new(&mut self, members: &mut impl Members, rules: &Rules) -> Option<u32> {
        while self.lists[NEW].members > 0 {
            let ready = self.ready(members, NEW, rules);
            if ready.is_some() {
                return ready;
            }
        }
        None
    }

    /// The member of the first list whose turn it is there, whatever older ones are owed.
    pub(super) fn next_of_youngest(
        &mut self,
        members: &mut impl Members,
        rules: &Rules,
    ) -> Option<u32> {
        while self.occupied != 0 {
            let first = self.occupied.trailing_zeros() as usize;
            let ready = self.ready(members, first, rules);
            if ready.is_some() {
                return ready;
            }
        }
        None
    }

    /// The members in the order of their turns, a younger list before an older one.
    pub(super) fn in_turn<'a>(
        &'a self,
        member: impl Fn(u32) -> &'a Member + Copy + 'a,
    ) -> impl Iterator<Item = u32> + 'a {
        let some = |index| (index != NONE).then_some(index);
        self.lists.0[..LISTS]
            .iter()
            .flat_map(move |list| successors(some(list.first), move |at| some(member(*at).next)))
    }

    /// The list to serve: the one that is owed most, if that is due, or else the first.
    #[inline]
    fn list_in_turn(&self, rules: &Rules) -> Option<usize> {
        if self.occupied == 0 {
            return None;
        }
        let first = self.occupied.trailing_zeros() as usize;
        if self.occupied.is_power_of_two() || !rules.know_ages() {
            return Some(first);
        }
        let patience = if first == NEW { rules.patience } else { 1 };
        let mut chosen = (first, ((QUANTUM * patience) << BITS) as i32 - 1);
        for list in first + 1..LISTS {
            let owed = self.lists[list].owed;
            if owed > chosen.1 {
                chosen = (list, owed);
            }
        }
        Some(chosen.0)
    }

    /// The first member of `list` if it may send; otherwise it is passed on.
    #[inline]
    fn ready(&mut self, members: &mut impl Members, list: usize, rules: &Rules) -> Option<u32> {
        let index = self.lists[list].first;
        let member = members.member(index);
        if member.deficit <= 0 {
            member.deficit += QUANTUM as i32;
            let tier = 1 + rules.tier(member.age);
            if tier != list {
                self.remove_first(members, list);
                self.append(members, index, tier);
            } else if self.lists[list].members > 1 {
                // Alone in its tier, it keeps its place, and what the tier is owed.
                self.turn_round(members, index, list);
            }
        } else if members.is_empty(index) {
            self.pass_on_empty(members, index, list, rules);
        } else {
            return Some(index);
        }
        None
    }

    /// `size` bytes of a member of `list` left.
    #[inline]
    pub(super) fn served(
        &mut self,
        member: &mut Member,
        list: usize,
        size: u32,
        credit: u64,
        rules: &Rules,
        now: Nanos,
    ) {
        let share = (u64::from(size) << BITS) / u64::from(self.listed + 1);
        self.virtual_time += share;
        member.deficit = member.deficit.saturating_sub_unsigned(size);
        if rules.know_ages() {
            member.age = rules.aged(member.age, size);
            (member.virtual_served, member.served) = (self.virtual_time + credit, now);
            if !self.occupied.is_power_of_two() {
                self.settle(list, size, share, rules);
            }
        }
    }

    /// The list that was served is owed less, and every older one more.
    fn settle(&mut self, list: usize, size: u32, share: u64, rules: &Rules) {
        let size = u64::from(size) << BITS;
        let is_first = list == self.occupied.trailing_zeros() as usize;
        let served = &mut self.lists[list];
        served.owed = served.owed.saturating_sub(i32::try_from(size).unwrap_or(i32::MAX));
        if is_first {
            served.owed = served.owed.max(0);
        }
        for list in list + 1..LISTS {
            let older = &mut self.lists[list];
            if older.members > 0 {
                let owed = i64::from(older.owed) + rules.owed(share, older.members, size) as i64;
                older.owed = owed.min(i64::from(MOST_OWED << BITS)) as i32;
            }
        }
    }

    /// Takes an empty member from the front of its list. As in RFC 8290 a new one passes through
    /// a tier while there are others in one, lest it be new again each time its queue runs
    /// empty; but where ages are known, one that is still young enough cannot gain by that.
    fn pass_on_empty(
        &mut self,
        members: &mut impl Members,
        index: u32,
        list: usize,
        rules: &Rules,
    ) {
        self.remove_first(members, list);
        let age = members.member(index).age;
        let would_gain = !rules.know_ages() || age >= rules.new_below;
        if list == NEW && would_gain && self.occupied != 0 && self.occupied != 1 {
            self.append(members, index, 1 + rules.tier(age));
        } else {
            members.member(index).list = UNLISTED;
            self.listed -= 1;
            members.unlisted(index);
        }
    }

    /// Takes all members from their lists; they must be empty.
    pub(super) fn clear(&mut self, members: &mut impl Members) {
        while self.occupied != 0 {
            let list = self.occupied.trailing_zeros() as usize;
            let index = self.lists[list].first;
            self.remove_first(members, list);
            members.member(index).list = UNLISTED;
        }
        self.listed = 0;
    }

    /// The first member of a list of several becomes its last.
    #[inline]
    fn turn_round(&mut self, members: &mut impl Members, index: u32, list: usize) {
        let next = core::mem::replace(&mut members.member(index).next, NONE);
        let ends = &mut self.lists[list];
        ends.first = next;
        let last = core::mem::replace(&mut ends.last, index);
        members.member(last).next = index;
    }

    #[inline]
    fn append(&mut self, members: &mut impl Members, index: u32, list: usize) {
        let member = members.member(index);
        (member.list, member.next) = (list as u8, NONE);
        let ends = &mut self.lists[list];
        ends.members += 1;
        match core::mem::replace(&mut ends.last, index) {
            NONE => {
                ends.first = index;
                self.occupied |= 1 << list;
            }
            last => members.member(last).next = index,
        }
    }

    #[inline]
    fn remove_first(&mut self, members: &mut impl Members, list: usize) {
        let ends = &mut self.lists[list];
        ends.members -= 1;
        ends.first = members.member(ends.first).next;
        if ends.first == NONE {
            (ends.last, ends.owed) = (NONE, 0);
            self.occupied &= !(1 << list);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!((size_of::<Member>(), size_of::<Stage>()), (32, 144));
    }
}
