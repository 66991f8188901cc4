//! Turns as `fq-lanes` gives them to hosts and to the flows of a host: deficit round robin in lists
//! by age, each of which is owed something.

use std::collections::VecDeque;

/// Bytes of a turn.
pub(super) const QUANTUM: i64 = 1514;
/// Lists: new, four tiers.
pub(super) const LAST: usize = 4;

#[derive(Clone, Copy, Default, Hash)]
pub(super) struct Member {
    pub(super) age: u64,
    pub(super) deficit: i64,
    pub(super) reading: u64,
    pub(super) served: u64,
}

#[derive(Clone, Hash)]
pub(super) struct Stage<K> {
    pub(super) lists: [VecDeque<K>; 5],
    pub(super) owed: [i64; 5],
    /// What one more would have been served, in units of 2^-8 bytes.
    pub(super) clock: u64,
}

impl<K> Default for Stage<K> {
    fn default() -> Self {
        Self { lists: [const { VecDeque::new() }; 5], owed: [0; 5], clock: 0 }
    }
}

#[derive(Clone, Copy, Hash)]
pub(super) struct Rules {
    pub(super) ages: bool,
    pub(super) new_below: u64,
    pub(super) patience: i64,
    pub(super) half_life: Option<u64>,
    pub(super) part: bool,
    pub(super) floor: bool,
    /// Whether what was left of the last quantum is all there is for the next packets.
    pub(super) keeps_rest: bool,
}

pub(super) const OF_HOSTS: Rules = Rules {
    ages: false,
    new_below: 1,
    patience: 1,
    half_life: None,
    part: false,
    floor: false,
    keeps_rest: true,
};

impl Rules {
    pub(super) fn without(what: &str) -> Self {
        if what == "ages" {
            return Self { keeps_rest: false, ..OF_HOSTS };
        }
        Self {
            ages: true,
            new_below: if what == "new" { 0 } else { 3000 },
            patience: if what == "patience" { 1 } else { 4 },
            half_life: (what != "half-life").then_some(2_000_000_000),
            part: what != "part",
            floor: what != "floor",
            keeps_rest: false,
        }
    }

    fn list_of(age: u64) -> usize {
        match age {
            0..30_000 => 1,
            30_000..150_000 => 2,
            150_000..750_000 => 3,
            _ => LAST,
        }
    }

    pub(super) fn faded(&self, mut age: u64, mut idle: u64) -> u64 {
        let Some(half_life) = self.half_life else { return age };
        while age > 0 && idle >= half_life {
            (age, idle) = (age / 2, idle - half_life);
        }
        age - age * idle.min(half_life) / half_life / 2
    }
}

impl Member {
    fn forgive(&mut self, rules: &Rules, clock: u64, now: u64) {
        let share = clock.saturating_sub(self.reading) / 256;
        self.age = rules.faded(self.age.saturating_sub(share), now - self.served);
        (self.reading, self.served) = (clock, now);
    }
}

impl<K: Copy + PartialEq> Stage<K> {
    pub(super) fn listed(&self) -> usize {
        self.lists.iter().map(VecDeque::len).sum()
    }

    pub(super) fn list_of(&self, key: K) -> Option<usize> {
        self.lists.iter().position(|list| list.contains(&key))
    }

    fn occupied(&self) -> Vec<usize> {
        (0..self.lists.len()).filter(|list| !self.lists[*list].is_empty()).collect()
    }

    /// Takes the first from a list, which is owed nothing once it is empty.
    fn take_first(&mut self, list: usize) {
        self.lists[list].pop_front();
        if self.lists[list].is_empty() {
            self.owed[list] = 0;
        }
    }

    /// Returns whether it joined the new. `idle` is what the link could have sent, in all.
    pub(super) fn arrive(
        &mut self,
        key: K,
        member: &mut Member,
        idle: u64,
        rules: &Rules,
        now: u64,
    ) -> bool {
        member.forgive(rules, self.clock + idle, now);
        if self.list_of(key).is_some() {
            return false;
        }
        if !(rules.keeps_rest && member.deficit > 0) {
            member.deficit = QUANTUM;
        }
        let is_new = member.age < rules.new_below;
        self.lists[if is_new { 0 } else { Rules::list_of(member.age) }].push_back(key);
        is_new
    }

    pub(super) fn list_in_turn(&self, rules: &Rules) -> Option<usize> {
        let occupied = self.occupied();
        let first = *occupied.first()?;
        let due = 256 * QUANTUM * if first == 0 { rules.patience } else { 1 };
        let due = |list: &usize| rules.ages && *list > first && self.owed[*list] >= due;
        let owed = occupied.iter().copied().filter(due);
        // The last of those that are owed most, from the old to the young.
        Some(owed.rev().max_by_key(|list| self.owed[*list]).unwrap_or(first))
    }

    /// Whether the first of a list may send; if not, it has had its turn.
    pub(super) fn ready(
        &mut self,
        list: usize,
        member: &mut Member,
        is_empty: bool,
        rules: &Rules,
    ) -> bool {
        let key = self.lists[list][0];
        let (own, is_alone) = (Rules::list_of(member.age), self.lists[list].len() == 1);
        if member.deficit <= 0 {
            member.deficit += QUANTUM;
            if own != list || !is_alone {
                self.take_first(list);
                self.lists[own].push_back(key);
            }
            return false;
        }
        if is_empty {
            self.take_first(list);
            let would_gain = !rules.ages || member.age >= rules.new_below;
            if list == 0 && would_gain && self.occupied().iter().any(|list| *list > 0) {
                self.lists[own].push_back(key);
            }
        }
        !is_empty
    }

    pub(super) fn served(
        &mut self,
        list: usize,
        member: &mut Member,
        size: u64,
        idle: u64,
        rules: &Rules,
        now: u64,
    ) {
        let share = size * 256 / (self.listed() as u64 + 1);
        self.clock += share;
        member.deficit -= size as i64;
        member.age = if rules.ages { (member.age + size).min(1_500_000) } else { 0 };
        (member.reading, member.served) = (self.clock + idle, now);
        let occupied = self.occupied();
        if !rules.ages || occupied.len() < 2 {
            return;
        }
        self.owed[list] -= 256 * size as i64;
        if occupied[0] == list {
            self.owed[list] = self.owed[list].max(0);
        }
        for older in occupied.into_iter().filter(|other| *other > list) {
            let half = if rules.part { share * self.lists[older].len() as u64 / 2 } else { 0 };
            let least = if rules.floor { 256 * size / 32 } else { 0 };
            let owed = self.owed[older] + half.max(least) as i64;
            self.owed[older] = owed.min(256 * 8 * QUANTUM);
        }
    }
}
