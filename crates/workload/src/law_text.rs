//! Laws as text: `zipf:alpha=1.1,max=1000packets`, `0.85*exponential:mean=20kb+0.15*...`.

use std::fmt;
use std::str::FromStr;

use sched::Amount;
use sched::params::text;

use crate::law::{PAYLOAD_BYTES, Shape, SizeLaw, Zipf};

const LAWS: &str = "zipf:alpha=1.1,max=1000packets,payload=1460b, exponential:mean=SIZE, \
    pareto:shape=N,mean=SIZE, lomax:shape=N,mean=SIZE, \
    bounded-pareto:shape=N,min=SIZE,max=SIZE, fixed:size=SIZE, \
    or a mixture such as 0.85*exponential:mean=20kb+0.15*pareto:shape=1.1,mean=1mb";
const SIZES: &str = "1b to 1024gb with a unit (b, kb, mb, gb; k is 1024)";
const LARGEST_SIZE: u64 = 1 << 40;
const TAILS: &str = "a number above 1, at most 100 (at 1 and below, the mean is infinite)";

/// Why a law was refused: what was found, and what is accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LawError {
    /// No law has this name.
    #[error("no size law is named '{found}'; accepted are {LAWS}")]
    UnknownLaw {
        /// The name that was given.
        found: String,
    },
    /// Parameters are written `name=value`.
    #[error("size law {law}: '{found}' is not name=value")]
    NotAPair {
        /// The law.
        law: &'static str,
        /// What stands instead.
        found: String,
    },
    /// The law has no such parameter, or it was given twice.
    #[error("size law {law}: '{found}' is unknown or given twice; it has {accepted}")]
    UnknownParam {
        /// The law.
        law: &'static str,
        /// The name that was given.
        found: String,
        /// The names it has.
        accepted: &'static str,
    },
    /// A parameter without default is missing.
    #[error("size law {law} needs {accepted}")]
    Missing {
        /// The law.
        law: &'static str,
        /// What it needs.
        accepted: &'static str,
    },
    /// The value is malformed, lacks its unit, or is out of range.
    #[error("size law {law}: {param}={found} is not accepted; {param} takes {accepted}")]
    Value {
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

impl FromStr for SizeLaw {
    type Err = LawError;

    fn from_str(text: &str) -> Result<Self, LawError> {
        if text.contains(['*', '+']) { mixture(text) } else { single(text) }.map(Self)
    }
}

fn mixture(text: &str) -> Result<Shape, LawError> {
    let error = || LawError::Shares { found: text.to_string() };
    let mut parts = Vec::new();
    for part in text.split('+') {
        let (share, law) = part.split_once('*').ok_or_else(error)?;
        let share = text::share(share.trim()).filter(|s| s.ppb() > 0).ok_or_else(error)?;
        parts.push((share, single(law.trim())?));
    }
    let total: u64 = parts.iter().map(|(share, _)| u64::from(share.ppb())).sum();
    if total != u64::from(sched::Share::ONE.ppb()) {
        return Err(error());
    }
    let as_fraction = |share: sched::Share| f64::from(share.ppb()) / total as f64;
    Ok(Shape::Mixture(parts.into_iter().map(|(share, law)| (as_fraction(share), law)).collect()))
}

fn single(text: &str) -> Result<Shape, LawError> {
    let (name, params) = text.split_once(':').unwrap_or((text, ""));
    match name {
        "fixed" => {
            let args = Args::new("fixed", params, &["size"], "size")?;
            Ok(Shape::Fixed { size: args.size("size")?.ok_or_else(|| args.missing("size=SIZE"))? })
        }
        "exponential" => {
            let args = Args::new("exponential", params, &["mean"], "mean")?;
            let mean = args.size("mean")?.ok_or_else(|| args.missing("mean=SIZE"))?;
            Ok(Shape::Exponential { mean: mean as f64 })
        }
        "pareto" => {
            let (shape, mean) = tail("pareto", params)?;
            Ok(Shape::Pareto { shape, mean })
        }
        "lomax" => {
            let (shape, mean) = tail("lomax", params)?;
            Ok(Shape::Lomax { shape, mean })
        }
        "bounded-pareto" => bounded_pareto(params),
        "zipf" => zipf(params),
        _ => Err(LawError::UnknownLaw { found: name.to_string() }),
    }
}

/// The exponent of a power tail without end, and the mean.
fn tail(law: &'static str, params: &str) -> Result<(f64, f64), LawError> {
    let args = Args::new(law, params, &["shape", "mean"], "shape, mean")?;
    let needed = || args.missing("shape=N and mean=SIZE");
    let shape = args.number("shape", 1.0, 100.0, TAILS)?.ok_or_else(needed)?;
    let mean = args.size("mean")?.ok_or_else(needed)?;
    Ok((shape, mean as f64))
}

fn bounded_pareto(params: &str) -> Result<Shape, LawError> {
    let args = Args::new("bounded-pareto", params, &["shape", "min", "max"], "shape, min, max")?;
    let needed = || args.missing("shape=N, min=SIZE and max=SIZE");
    let shape = args.number("shape", 0.0, 100.0, "a number above 0, at most 100")?;
    let shape = shape.ok_or_else(needed)?;
    let min = args.size("min")?.ok_or_else(needed)?;
    let max = args.size("max")?.ok_or_else(needed)?;
    if max <= min {
        return Err(args.refused("max", "a size above min"));
    }
    Ok(Shape::BoundedPareto { shape, min: min as f64, max: max as f64 })
}

fn zipf(params: &str) -> Result<Shape, LawError> {
    let args = Args::new("zipf", params, &["alpha", "max", "payload"], "alpha, max, payload")?;
    let alpha = args.number("alpha", 0.0, 10.0, "a number above 0, at most 10")?;
    let max = match args.get("max") {
        None => 1000,
        Some(found) => match text::amount(found) {
            Some(Amount::Packets(n @ 1..=1_000_000)) => n,
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
struct Args<'a> {
    law: &'static str,
    pairs: Vec<(&'static str, &'a str)>,
}

impl<'a> Args<'a> {
    fn new(
        law: &'static str,
        text: &'a str,
        names: &[&'static str],
        accepted: &'static str,
    ) -> Result<Self, LawError> {
        let mut pairs: Vec<(&'static str, &str)> = Vec::new();
        for pair in text.split(',').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| LawError::NotAPair { law, found: pair.to_string() })?;
            let known = names.iter().copied().find(|known| *known == name.trim());
            match known {
                Some(name) if pairs.iter().all(|(given, _)| *given != name) => {
                    pairs.push((name, value.trim()));
                }
                _ => {
                    let found = name.trim().to_string();
                    return Err(LawError::UnknownParam { law, found, accepted });
                }
            }
        }
        Ok(Self { law, pairs })
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.pairs.iter().find(|(given, _)| *given == name).map(|(_, value)| *value)
    }

    fn size(&self, name: &'static str) -> Result<Option<u64>, LawError> {
        let Some(found) = self.get(name) else { return Ok(None) };
        match text::amount(found) {
            Some(Amount::Bytes(n @ 1..=LARGEST_SIZE)) => Ok(Some(n)),
            _ => Err(self.refused(name, SIZES)),
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
        LawError::Missing { law: self.law, accepted }
    }

    fn refused(&self, param: &'static str, accepted: &'static str) -> LawError {
        let found = self.get(param).unwrap_or_default().to_string();
        LawError::Value { law: self.law, param, found, accepted }
    }
}

/// As it is read, with every parameter; sizes in bytes.
impl fmt::Display for SizeLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed { size } => write!(f, "fixed:size={size}b"),
            Self::Exponential { mean } => write!(f, "exponential:mean={mean}b"),
            Self::Pareto { shape, mean } => write!(f, "pareto:shape={shape},mean={mean}b"),
            Self::Lomax { shape, mean } => write!(f, "lomax:shape={shape},mean={mean}b"),
            Self::BoundedPareto { shape, min, max } => {
                write!(f, "bounded-pareto:shape={shape},min={min}b,max={max}b")
            }
            Self::Zipf(zipf) => {
                let (alpha, max, payload) = (zipf.alpha, zipf.max(), zipf.payload);
                write!(f, "zipf:alpha={alpha},max={max}packets,payload={payload}b")
            }
            Self::Mixture(parts) => {
                for (index, (share, part)) in parts.iter().enumerate() {
                    let plus = if index == 0 { "" } else { "+" };
                    write!(f, "{plus}{share}*{part}")?;
                }
                Ok(())
            }
        }
    }
}
