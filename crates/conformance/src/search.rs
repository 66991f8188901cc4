//! Every sequence of operations up to a length, but no state twice.
//!
//! A sequence that leads where another one has led goes on as that one does, so it is not
//! followed further. A state is all that decides what comes: the discipline's, its model's,
//! the [`Ledger`]'s, the parameters in force and the time. Packets have names, which nobody looks into but to compare
//! them: states that differ in names alone, and not in their order, are equal.
//!
//! Of a state 128 bits of its hash are kept, so that two could be taken for one with a probability
//! of less than 2^-80 at a million million of them.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use sched::Spec;

use crate::ledger::{Ledger, Violation};
use crate::naive::{Model, follow, model};
use crate::operation::Operation;
use crate::run::Run;

/// Names of packets begin with these bits, as no other number does that a state has.
const NAME: u64 = 0x5a17_c0de << 32;
const NAME_MASK: u64 = u64::MAX << 32;

/// What was walked through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// States that were met first by a sequence of so many operations; none, one, two...
    pub states: Vec<usize>,
    /// Operations that were done in a state met before: the states' times the alphabet's.
    pub steps: usize,
}

impl Walked {
    /// All states.
    #[must_use]
    pub fn all(&self) -> usize {
        self.states.iter().sum()
    }
}

/// Runs `spec` and its model through every sequence of at most `depth` operations of `alphabet`.
///
/// # Errors
/// The first contradiction, with the sequence, one of the shortest.
///
/// # Panics
/// If the discipline or its model does not tell its state.
pub fn walk(spec: &Spec, alphabet: &[Operation], depth: usize) -> Result<Walked, Violation> {
    walk_beside(spec, spec, alphabet, depth)
}

/// The same beside the model of another spec.
fn walk_beside(
    spec: &Spec,
    other: &Spec,
    alphabet: &[Operation],
    depth: usize,
) -> Result<Walked, Violation> {
    let mut met = HashSet::from([Pair::new(spec, other).state()]);
    let mut walked = Walked { states: vec![1], steps: 0 };
    let mut last: Vec<Vec<u8>> = vec![Vec::new()];
    for length in 1..=depth {
        let mut next = Vec::new();
        let mut states = 0;
        for path in &last {
            for letter in 0..alphabet.len() {
                let path: Vec<_> = path.iter().copied().chain([letter as u8]).collect();
                let operations = || path.iter().map(|letter| &alphabet[usize::from(*letter)]);
                let mut pair = Pair::new(spec, other);
                operations().try_for_each(|operation| pair.step(operation)).map_err(
                    |violation| {
                        format!(
                            "{spec}: {violation}\nafter {:#?}",
                            operations().collect::<Vec<_>>()
                        )
                    },
                )?;
                walked.steps += 1;
                if met.insert(pair.state()) {
                    states += 1;
                    if length < depth {
                        next.push(path);
                    }
                }
            }
        }
        walked.states.push(states);
        last = next;
        if states == 0 {
            break;
        }
    }
    Ok(walked)
}

/// A discipline and its model, step by step.
struct Pair {
    run: Run,
    model: Box<dyn Model>,
    ledger: Ledger,
    arrivals: u64,
}

impl Pair {
    fn new(spec: &Spec, other: &Spec) -> Self {
        let model = model(other).unwrap_or_else(|| panic!("no model of {other}"));
        let ledger = Ledger::default();
        Self { run: Run::new(spec, 1), model, ledger, arrivals: 0 }
    }

    fn step(&mut self, operation: &Operation) -> Result<(), Violation> {
        let Self { run, model, ledger, arrivals } = self;
        let step = run.step(operation, || {
            let Operation::Enqueue(arrival) = operation else { unreachable!("only arrivals ask") };
            *arrivals += 1;
            arrival.packet(NAME | *arrivals)
        });
        ledger.enter(&step)?;
        // What left last decides nothing here.
        ledger.on_wire = None;
        follow(model.as_mut(), &step)
    }

    /// The state, hashed.
    fn state(&self) -> u128 {
        let mut words = Words(Vec::with_capacity(2048));
        let told = self.run.queue.digest(&mut words) && self.model.digest(&mut words);
        assert!(told, "the discipline and its model must tell their states");
        self.ledger.hash(&mut words);
        self.run.now.hash(&mut words);
        let params: Vec<_> = self.run.params.iter().map(|(_, value)| value).collect();
        params.hash(&mut words);
        words.digest()
    }
}

/// What a state hashes, number by number.
struct Words(Vec<u64>);

impl Words {
    /// Two hashes of all numbers, with the names of packets replaced by their ranks.
    fn digest(mut self) -> u128 {
        let is_name = |word: &u64| word & NAME_MASK == NAME;
        let mut names: Vec<_> = self.0.iter().copied().filter(is_name).collect();
        names.sort_unstable();
        names.dedup();
        for word in self.0.iter_mut().filter(|word| is_name(word)) {
            *word = NAME | names.binary_search(word).expect("it is there") as u64;
        }
        let half = |salt: u64| {
            let mut hasher = DefaultHasher::new();
            (salt, &self.0).hash(&mut hasher);
            u128::from(hasher.finish())
        };
        half(1) << 64 | half(2)
    }
}

impl Hasher for Words {
    fn finish(&self) -> u64 {
        unreachable!("a state is hashed at its end")
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.push(bytes.len() as u64);
        self.0.extend(bytes.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        }));
    }

    fn write_u8(&mut self, number: u8) {
        self.0.push(number.into());
    }

    fn write_u16(&mut self, number: u16) {
        self.0.push(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.0.push(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.0.push(number);
    }

    fn write_usize(&mut self, number: usize) {
        self.0.push(number as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> Spec {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    /// A flow's second packet is long here and short there, which shows once another flow's waits
    /// behind it; no shorter sequence shows it.
    #[test]
    fn a_contradiction_is_found_by_a_shortest_sequence() {
        let alphabet = [Operation::arrival(0, 100), Operation::arrival(1, 100), Operation::Dequeue];
        let (one, two) = (spec("efd:threshold=1packets"), spec("efd:threshold=2packets"));
        assert!(walk_beside(&one, &two, &alphabet, 4).is_ok());
        let found = walk_beside(&one, &two, &alphabet, 5).expect_err("they differ");
        assert!(found.contains("left, in the model"), "{found}");
    }

    /// Names are compared, never read.
    #[test]
    fn states_that_differ_in_names_alone_are_equal() {
        let digest = |words: [u64; 3]| Words(words.to_vec()).digest();
        assert_eq!(digest([NAME | 7, 5, NAME | 9]), digest([NAME | 1, 5, NAME | 2]));
        assert_ne!(digest([NAME | 7, 5, NAME | 9]), digest([NAME | 9, 5, NAME | 7]));
        assert_ne!(digest([NAME | 7, 5, NAME | 9]), digest([NAME | 7, 6, NAME | 9]));
    }
}
