//! Weights of flows by the DSCP of their packets, and the unit of virtual time that suits them.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::marks::{self, ByCode};
use crate::interface::{Form, Packet, Param, Params, Takes};

/// Weights, and virtual time in units of which every weight takes a whole number a byte.
pub(crate) struct Weights {
    by_code: ByCode,
    weights: Vec<u64>,
    unit: u64,
}

/// `weights`: who gets more than others.
pub(crate) const WEIGHTS: Param<Box<str>> = Param {
    name: "weights",
    kind: Takes::form(&Form {
        name: "weights by DSCP",
        pattern: "weights from 1 to 1000, with the DSCP they are for: 1+4@ef+2@af41/af42",
        examples: &["3", "1+4@ef", "2+7@be", "1+4@ef+2@af41/af42", "1000@cs1+1"],
        check: |text| parse(text).map(|_| ()),
    }),
    default: "1",
    effect: "a flow's share, by the DSCP of the packet that brought it; without @ that of all others",
    source: "ours",
    live: false,
};

/// Units are at least so many to a byte, and at most twice as many.
const LEAST_UNIT: u64 = 1 << 19;

impl Weights {
    pub(crate) fn from_params(params: &Params) -> Self {
        // Checked when the parameter was set.
        parse(&params.get(WEIGHTS)).unwrap_or_else(|reason| panic!("weights: {reason}"))
    }

    /// Units of virtual time to a byte at weight 1.
    pub(crate) const fn unit(&self) -> u64 {
        self.unit
    }

    /// The weight of a flow that this packet brings.
    #[inline]
    pub(crate) fn of(&self, packet: &Packet) -> u32 {
        self.weights[usize::from(self.by_code.of(packet))] as u32
    }

    /// What a packet takes in virtual time. Exact, and no division where all weights are 1.
    #[inline]
    pub(crate) const fn cost(&self, size: u32, weight: u32) -> u64 {
        let cost = size as u64 * self.unit;
        if weight == 1 { cost } else { cost / weight as u64 }
    }
}

fn parse(text: &str) -> Result<Weights, String> {
    let mut weights = Weights { by_code: ByCode::NONE, weights: [1].into(), unit: 1 };
    for marked in marks::list(text)? {
        let weight = marks::number("weight", marked.what, 1..=1000)?;
        weights.unit = common_multiple(weights.unit, weight);
        if weights.unit > 2 * LEAST_UNIT {
            return Err(format!("the weights have no common multiple up to {}", 2 * LEAST_UNIT));
        }
        match marked.codes[..] {
            [] => weights.weights[0] = weight,
            _ => {
                weights.by_code.set(&marked.codes, weights.weights.len() as u8);
                weights.weights.push(weight);
            }
        }
    }
    while weights.unit <= LEAST_UNIT {
        weights.unit *= 2;
    }
    Ok(weights)
}

fn common_multiple(a: u64, b: u64) -> u64 {
    let (mut divisor, mut rest) = (a, b);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    a / divisor * b
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::FlowId;

    #[test]
    fn every_weight_divides_the_unit() {
        for text in ["1", "7", "1+2@0+3@1+4@2+5@3+6@4+7@5+8@6+9@7+10@8", "1+1000@ef", "19+1@le"] {
            let weights = parse(text).unwrap();
            assert!((LEAST_UNIT + 1..=2 * LEAST_UNIT).contains(&weights.unit), "{text}");
            assert!(
                weights.weights.iter().all(|weight| weights.unit.is_multiple_of(*weight)),
                "{text}"
            );
        }
    }

    #[test]
    fn a_packet_has_the_weight_of_its_code() {
        let weights = parse("3+4@ef+2@af41/af42").unwrap();
        let of = |dscp| {
            let mut packet = Packet::new(FlowId::new(1), 100);
            packet.dscp = dscp;
            weights.of(&packet)
        };
        assert_eq!([of(0), of(46), of(34), of(36), of(38)], [3, 4, 2, 2, 3]);
        assert_eq!(weights.cost(1500, 4) * 4, weights.cost(1500, 1));
    }

    #[test]
    fn what_is_no_weight_is_refused() {
        for text in
            ["", "0", "-1", "1.5", "1001", "x", "2@", "2@ef/", "1+0@ef", "997+991@ef+983@le"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
