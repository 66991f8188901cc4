//! Laws as text: `zipf:alpha=1.1,max=1000packets`, `0.85*exponential:mean=20kb+0.15*...`.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use units::{Amount, Nanos, Share};

use crate::law::{Bytes, Count, Law, PAYLOAD_BYTES, Shape, Time, Zipf};

const TAILS: &str = "a number above 1, at most 100 (at 1 and below, the mean is infinite)";

/// What a law is of, and how that is written.
pub trait Unit: Clone + fmt::Debug + PartialEq {
    /// "size", "time" or "count": begins messages, and names the parameter of `fixed`.
    const NAME: &'static str;
    /// The laws that there are.
    const LAWS: &'static str;
    /// What is accepted for a mean or a bound.
    const RANGE: &'static str;
    /// Written after a number.
    const SUFFIX: &'static str;
    /// Whether there is a law in packets.
    const PACKETS: bool;
    /// The number that a text stands for.
    fn read(text: &str) -> Option<u64>;
    /// The largest that is accepted for a mean or a bound.
    const LARGEST: u64;
}

impl Unit for Bytes {
    const NAME: &'static str = "size";
    const LAWS: &'static str = "zipf:alpha=1.1,max=1000packets,payload=1460b, \
        exponential:mean=SIZE, pareto:shape=N,mean=SIZE, lomax:shape=N,mean=SIZE, \
        bounded-pareto:shape=N,min=SIZE,max=SIZE, uniform:min=SIZE,max=SIZE, fixed:size=SIZE, \
        or a mixture such as 0.85*exponential:mean=20kb+0.15*pareto:shape=1.1,mean=1mb";
    const RANGE: &'static str = "1b to 1024gb with a unit (b, kb, mb, gb; k is 1024)";
    const SUFFIX: &'static str = "b";
    const PACKETS: bool = true;
    const LARGEST: u64 = 1 << 40;

    fn read(text: &str) -> Option<u64> {
        text.parse().ok().and_then(Amount::bytes).filter(|n| *n > 0)
    }
}

impl Unit for Time {
    const NAME: &'static str = "time";
    const LAWS: &'static str = "fixed:time=TIME, uniform:min=TIME,max=TIME, \
        exponential:mean=TIME, pareto:shape=N,mean=TIME, lomax:shape=N,mean=TIME, \
        bounded-pareto:shape=N,min=TIME,max=TIME, \
        or a mixture such as 0.9*exponential:mean=1s+0.1*fixed:time=60s";
    const RANGE: &'static str =
        "1ns to 24h with a unit (ns, us, ms, s, min), or 0s where it is fixed or uniform";
    const SUFFIX: &'static str = "ns";
    const PACKETS: bool = false;
    const LARGEST: u64 = 86_400_000_000_000;

    fn read(text: &str) -> Option<u64> {
        text.parse().ok().map(|Nanos(ns)| ns)
    }
}

impl Unit for Count {
    const NAME: &'static str = "count";
    const LAWS: &'static str = "fixed:count=N, uniform:min=N,max=N, exponential:mean=N, \
        pareto:shape=N,mean=N, lomax:shape=N,mean=N, bounded-pareto:shape=N,min=N,max=N, \
        or a mixture such as 0.5*fixed:count=1+0.5*uniform:min=2,max=7";
    const RANGE: &'static str = "1 to 1000000, or 0 where it is fixed or uniform";
    const SUFFIX: &'static str = "";
    const PACKETS: bool = false;
    const LARGEST: u64 = 1_000_000;

    fn read(text: &str) -> Option<u64> {
        text.parse().ok()
    }
}

/// Why a law was refused: what was found, and what is accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LawError {
    /// No law has this name.
    #[error("no {of} law is named '{found}'; accepted are {accepted}")]
    UnknownLaw {
        /// What it is a law of.
        of: &'static str,
        /// The laws that there are.
        accepted: &'static str,
        /// The name that was given.
        found: String,
    },
    /// Parameters are written `name=value`.
    #[error("{of} law {law}: '{found}' is not name=value")]
    NotAPair {
        /// What it is a law of.
        of: &'static str,
        /// The law.
        law: &'static str,
        /// What stands instead.
        found: String,
    },
    /// The law has no such parameter, or it was given twice.
    #[error("{of} law {law}: '{found}' is unknown or given twice; it has {accepted}")]
    UnknownParam {
        /// What it is a law of.
        of: &'static str,
        /// The law.
        law: &'static str,
        /// The name that was given.
        found: String,
        /// The names it has.
        accepted: &'static str,
    },
    /// A parameter without default is missing.
    #[error("{of} law {law} needs {accepted}")]
    Missing {
        /// What it is a law of.
        of: &'static str,
        /// The law.
        law: &'static str,
        /// What it needs.
        accepted: &'static str,
    },
    /// The value is malformed, lacks its unit, or is out of range.
    #[error("{of} law {law}: {param}={found} is not accepted; {param} takes {accepted}")]
    Value {
        /// What it is a law of.
        of: &'static str,
        /// The law.
        law: &'static str,
        /// The parameter.
        param: &'static str,
        /// The value that was given.
        found: String,
        /// What it accepts.
        accepted: &'static str,
    },
    /// A part of a mixture lacks its share, or the shares do not add up to 1.
    #[error("mixture '{found}': every part needs a share, SHARE*LAW, and shares add up to 1")]
    Shares {
        /// The mixture.
        found: String,
    },
}

impl<U: Unit> FromStr for Law<U> {
    type Err = LawError;

    fn from_str(text: &str) -> Result<Self, LawError> {
        let shape = if text.contains(['*', '+']) { mixture::<U>(text) } else { single::<U>(text) };
        shape.map(Self::new)
    }
}

fn mixture<U: Unit>(text: &str) -> Result<Shape, LawError> {
    let error = || LawError::Shares { found: text.to_string() };
    let mut parts = Vec::new();
    for part in text.split('+') {
        let (share, law) = part.split_once('*').ok_or_else(error)?;
        let share = share.trim().parse().ok().filter(|s: &Share| s.ppb() > 0).ok_or_else(error)?;
        parts.push((share, single::<U>(law.trim())?));
    }
    let total: u64 = parts.iter().map(|(share, _)| u64::from(share.ppb())).sum();
    if total != u64::from(Share::ONE.ppb()) {
        return Err(error());
    }
    let as_fraction = |share: Share| f64::from(share.ppb()) / total as f64;
    Ok(Shape::Mixture(parts.into_iter().map(|(share, law)| (as_fraction(share), law)).collect()))
}

fn single<U: Unit>(text: &str) -> Result<Shape, LawError> {
    let (name, params) = text.split_once(':').unwrap_or((text, ""));
    match name {
        "fixed" => fixed::<U>(params),
        "uniform" => {
            let args = Args::<U>::new("uniform", params, &["min", "max"], "min, max")?;
            let needed = || args.missing("min and max");
            let min = args.size_or_none("min")?.ok_or_else(needed)?;
            let max = args.size("max")?.ok_or_else(needed)?;
            if max < min {
                return Err(args.refused("max", "min and above"));
            }
            Ok(Shape::Uniform { min, max })
        }
        "exponential" => {
            let args = Args::<U>::new("exponential", params, &["mean"], "mean")?;
            let mean = args.size("mean")?.ok_or_else(|| args.missing("mean"))?;
            Ok(Shape::Exponential { mean: mean as f64 })
        }
        "pareto" => {
            let (shape, mean) = tail::<U>("pareto", params)?;
            Ok(Shape::Pareto { shape, mean })
        }
        "lomax" => {
            let (shape, mean) = tail::<U>("lomax", params)?;
            Ok(Shape::Lomax { shape, mean })
        }
        "bounded-pareto" => bounded_pareto::<U>(params),
        "zipf" if U::PACKETS => zipf::<U>(params),
        _ => {
            let (of, accepted) = (U::NAME, U::LAWS);
            Err(LawError::UnknownLaw { of, found: name.to_string(), accepted })
        }
    }
}

fn fixed<U: Unit>(params: &str) -> Result<Shape, LawError> {
    let args = Args::<U>::new("fixed", params, &[U::NAME], U::NAME)?;
    let size = args.size_or_none(U::NAME)?.ok_or_else(|| args.missing(U::NAME))?;
    Ok(Shape::Fixed { size })
}

/// The exponent of a power tail without end, and the mean.
fn tail<U: Unit>(law: &'static str, params: &str) -> Result<(f64, f64), LawError> {
    let args = Args::<U>::new(law, params, &["shape", "mean"], "shape, mean")?;
    let needed = || args.missing("shape and mean");
    let shape = args.number("shape", 1.0, 100.0, TAILS)?.ok_or_else(needed)?;
    let mean = args.size("mean")?.ok_or_else(needed)?;
    Ok((shape, mean as f64))
}

fn bounded_pareto<U: Unit>(params: &str) -> Result<Shape, LawError> {
    let args =
        Args::<U>::new("bounded-pareto", params, &["shape", "min", "max"], "shape, min, max")?;
    let needed = || args.missing("shape, min and max");
    let shape = args.number("shape", 0.0, 100.0, "a number above 0, at most 100")?;
    let shape = shape.ok_or_else(needed)?;
    let min = args.size("min")?.ok_or_else(needed)?;
    let max = args.size("max")?.ok_or_else(needed)?;
    if max <= min {
        return Err(args.refused("max", "a size above min"));
    }
    Ok(Shape::BoundedPareto { shape, min: min as f64, max: max as f64 })
}

fn zipf<U: Unit>(params: &str) -> Result<Shape, LawError> {
    let args = Args::<U>::new("zipf", params, &["alpha", "max", "payload"], "alpha, max, payload")?;
    let alpha = args.number("alpha", 0.0, 10.0, "a number above 0, at most 10")?;
    let max = match args.get("max") {
        None => 1000,
        Some(found) => match found.parse() {
            Ok(Amount::Packets(n @ 1..=1_000_000)) => n,
            _ => return Err(args.refused("max", "1packets to 1000000packets")),
        },
    };
    let payload = args.size("payload")?.unwrap_or(PAYLOAD_BYTES);
    if payload > 65_535 {
        return Err(args.refused("payload", "1b to 65535b"));
    }
    Ok(Shape::Zipf(Zipf::new(alpha.unwrap_or(1.1), max, payload)))
}

/// The parameters of one law as they were given.
struct Args<'a, U> {
    law: &'static str,
    pairs: Vec<(&'static str, &'a str)>,
    unit: PhantomData<U>,
}

impl<'a, U: Unit> Args<'a, U> {
    fn new(
        law: &'static str,
        text: &'a str,
        names: &[&'static str],
        accepted: &'static str,
    ) -> Result<Self, LawError> {
        let mut pairs: Vec<(&'static str, &str)> = Vec::new();
        for pair in text.split(',').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(|| LawError::NotAPair {
                of: U::NAME,
                law,
                found: pair.to_string(),
            })?;
            let known = names.iter().copied().find(|known| *known == name.trim());
            match known {
                Some(name) if pairs.iter().all(|(given, _)| *given != name) => {
                    pairs.push((name, value.trim()));
                }
                _ => {
                    let found = name.trim().to_string();
                    let of = U::NAME;
                    return Err(LawError::UnknownParam { of, law, found, accepted });
                }
            }
        }
        Ok(Self { law, pairs, unit: PhantomData })
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.pairs.iter().find(|(given, _)| *given == name).map(|(_, value)| *value)
    }

    fn size(&self, name: &'static str) -> Result<Option<u64>, LawError> {
        match self.size_or_none(name)? {
            Some(0) => Err(self.refused(name, U::RANGE)),
            size => Ok(size),
        }
    }

    /// As [`Args::size`], or 0.
    fn size_or_none(&self, name: &'static str) -> Result<Option<u64>, LawError> {
        let Some(found) = self.get(name) else { return Ok(None) };
        match U::read(found).filter(|n| *n <= U::LARGEST) {
            Some(n) => Ok(Some(n)),
            None => Err(self.refused(name, U::RANGE)),
        }
    }

    /// A number in `(above, max]`.
    fn number(
        &self,
        name: &'static str,
        above: f64,
        max: f64,
        accepted: &'static str,
    ) -> Result<Option<f64>, LawError> {
        let Some(found) = self.get(name) else { return Ok(None) };
        match found.parse::<f64>() {
            Ok(n) if n > above && n <= max => Ok(Some(n)),
            _ => Err(self.refused(name, accepted)),
        }
    }

    fn missing(&self, accepted: &'static str) -> LawError {
        LawError::Missing { of: U::NAME, law: self.law, accepted }
    }

    fn refused(&self, param: &'static str, accepted: &'static str) -> LawError {
        let found = self.get(param).unwrap_or_default().to_string();
        LawError::Value { of: U::NAME, law: self.law, param, found, accepted }
    }
}

/// As it is read, with every parameter; sizes in bytes, times in nanoseconds.
impl<U: Unit> fmt::Display for Law<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_shape::<U>(&self.0, f)
    }
}

fn write_shape<U: Unit>(shape: &Shape, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let unit = U::SUFFIX;
    match shape {
        Shape::Fixed { size } => write!(f, "fixed:{}={size}{unit}", U::NAME),
        Shape::Uniform { min, max } => write!(f, "uniform:min={min}{unit},max={max}{unit}"),
        Shape::Exponential { mean } => write!(f, "exponential:mean={mean}{unit}"),
        Shape::Pareto { shape, mean } => write!(f, "pareto:shape={shape},mean={mean}{unit}"),
        Shape::Lomax { shape, mean } => write!(f, "lomax:shape={shape},mean={mean}{unit}"),
        Shape::BoundedPareto { shape, min, max } => {
            write!(f, "bounded-pareto:shape={shape},min={min}{unit},max={max}{unit}")
        }
        Shape::Zipf(zipf) => {
            let (alpha, max, payload) = (zipf.alpha, zipf.max(), zipf.payload);
            write!(f, "zipf:alpha={alpha},max={max}packets,payload={payload}b")
        }
        Shape::Mixture(parts) => {
            for (index, (share, part)) in parts.iter().enumerate() {
                let plus = if index == 0 { "" } else { "+" };
                write!(f, "{plus}{share}*")?;
                write_shape::<U>(part, f)?;
            }
            Ok(())
        }
    }
}
