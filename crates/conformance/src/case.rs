//! A whole test as bytes: what a fuzzer feeds.

use arbitrary::{Arbitrary, Result, Unstructured};
use sched::{Ecn, Nanos, Spec, registry};

use crate::global;
use crate::label;
use crate::ledger::Violation;
use crate::naive;
use crate::operation::{Arrival, Offset, Operation};
use crate::values;

/// A discipline with parameters, a sequence of operations, and a seed.
#[derive(Clone, Debug)]
pub struct Case {
    /// The discipline.
    pub spec: Spec,
    /// What is done to it.
    pub operations: Vec<Operation>,
    /// The seed of its generator.
    pub seed: u64,
}

/// Longer sequences cost the fuzzer more than they find.
const MOST_OPERATIONS: usize = 400;

impl<'a> Arbitrary<'a> for Case {
    /// Two bytes for the discipline ([`label`]), one for the seed, one for the number of parameters; five
    /// bytes a parameter; then one to six bytes an operation, to the end.
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let info = label::find(u.arbitrary()?, registry::ALL);
        let seed = u64::from(u.arbitrary::<u8>()?);
        let mut spec = Spec::named(info.name).expect("a name from the registry");
        for _ in 0..u.arbitrary::<u8>()? % 8 {
            if let Some((name, value)) = setting(&spec, u)? {
                spec = values::set_if_accepted(spec, name, &value);
            }
        }
        let mut operations = Vec::new();
        while !u.is_empty() && operations.len() < MOST_OPERATIONS {
            operations.push(operation(&spec, u)?);
        }
        Ok(Self { spec, operations, seed })
    }
}

impl Case {
    /// Checks everything that must hold: the global invariants, the discipline's own, and that it
    /// behaves as its model where it has one.
    ///
    /// # Errors
    /// The first violation.
    pub fn check(&self) -> std::result::Result<(), Violation> {
        let Self { spec, operations, seed } = self;
        global::check(spec, operations, *seed)?;
        if naive::covers(spec, operations) {
            naive::compare(spec, operations, *seed)
        } else {
            Ok(())
        }
    }
}

fn setting(spec: &Spec, u: &mut Unstructured<'_>) -> Result<Option<(&'static str, String)>> {
    let random = u64::from(u.arbitrary::<u8>()?) << 32 | u64::from(u.arbitrary::<u32>()?);
    Ok(values::draw_setting(spec.info(), &[], random))
}

fn operation(spec: &Spec, u: &mut Unstructured<'_>) -> Result<Operation> {
    let kind = u.arbitrary::<u8>()?;
    Ok(match kind {
        0..=95 => Operation::Dequeue,
        96..=223 => Operation::Enqueue(arrival(kind, u)?),
        224..=247 => Operation::Advance(span(u)?),
        _ => match setting(spec, u)? {
            Some((name, value)) => Operation::Change(name, value),
            None => Operation::Dequeue,
        },
    })
}

/// The low bits of `kind` are the flow; then a byte for the size, and one for all that is rare.
fn arrival(kind: u8, u: &mut Unstructured<'_>) -> Result<Arrival> {
    let (size, rare) = (u.arbitrary::<u8>()?, u.arbitrary::<u8>()?);
    let segments = if rare & 0xc0 == 0xc0 { u16::from(rare & 15) + 2 } else { 1 };
    let size = if segments > 1 { u32::from(segments) * 1448 } else { 40 + u32::from(size) * 7 };
    let ecn = Ecn::from_bits(rare >> 4);
    let offset = match rare % 8 {
        6 => Offset::First,
        7 => Offset::Unknown,
        _ => Offset::Next,
    };
    Ok(Arrival { flow: kind % 8, size, segments, ecn, offset, tagged: rare & 8 != 0 })
}

/// From nanoseconds to minutes.
fn span(u: &mut Unstructured<'_>) -> Result<Nanos> {
    let (mantissa, exponent) = (u.arbitrary::<u8>()?, u.arbitrary::<u8>()? % 32);
    Ok(Nanos(u64::from(mantissa) << exponent))
}
