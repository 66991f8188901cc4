//! Assertions on the state of a connection: the few words of Python that scripts use for them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The text of a `%{ }%`, read.
#[derive(Clone, PartialEq, Debug)]
pub struct Check {
    statements: Vec<Statement>,
}

#[derive(Clone, PartialEq, Debug)]
enum Statement {
    /// With its text, for the message.
    Assert(Term, String),
    Assign(String, Term),
}

#[derive(Clone, PartialEq, Debug)]
enum Term {
    Number(i64),
    Name(String),
    /// `a < b <= c`
    Compare(Box<Term>, Vec<(String, Term)>),
    /// `+`, `-`, `*`, `and`, `or`
    Pair(Box<Term>, String, Box<Term>),
}

/// The names that a check reads, and those it writes.
pub type Values = BTreeMap<String, i64>;

/// Why a check did not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Broken {
    /// This assertion is false; with the values it has read.
    False(String, String),
    /// Nobody knows this name.
    NoValue(String),
}

impl Check {
    /// Reads it. The error names what the harness has no words for.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut statements = Vec::new();
        let joined = text.replace("\\\n", " ");
        let lines = joined.lines().map(|line| line.split('#').next().unwrap_or_default());
        for text in lines.flat_map(|line| line.split(';')).map(str::trim) {
            if text.is_empty() || text.starts_with("print") {
                continue;
            }
            let read = statement(text).ok_or_else(|| format!("code `{text}`"))?;
            statements.push(read);
        }
        Ok(Self { statements })
    }

    /// The names that have to have a value before it.
    #[must_use]
    pub fn names(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        let mut known = BTreeSet::new();
        for statement in &self.statements {
            let (Statement::Assert(term, _) | Statement::Assign(_, term)) = statement;
            term.names(&mut |name| {
                if !known.contains(name) {
                    names.insert(name);
                }
            });
            if let Statement::Assign(name, _) = statement {
                known.insert(name.as_str());
            }
        }
        names
    }

    /// The names it gives a value to.
    pub fn assigned(&self) -> impl Iterator<Item = &str> {
        self.statements.iter().filter_map(|statement| match statement {
            Statement::Assign(name, _) => Some(name.as_str()),
            Statement::Assert(..) => None,
        })
    }

    /// Runs it, up to the first assertion that is false.
    pub fn run(&self, values: &mut Values) -> Result<(), Broken> {
        for statement in &self.statements {
            match statement {
                Statement::Assign(name, term) => {
                    let value = term.value(values)?;
                    values.insert(name.clone(), value);
                }
                Statement::Assert(term, text) => {
                    if term.value(values)? == 0 {
                        let mut seen = Vec::new();
                        term.names(&mut |name| seen.push(name));
                        seen.retain(|name| !name.starts_with("TCP_"));
                        seen.dedup();
                        let seen = seen.iter().map(|name| format!("{name} = {}", values[*name]));
                        return Err(Broken::False(
                            text.clone(),
                            seen.collect::<Vec<_>>().join(", "),
                        ));
                    }
                }
            }
        }
        Ok(())
    }
}

fn statement(text: &str) -> Option<Statement> {
    let mut reader = Reader { tokens: tokens(text)?, at: 0 };
    if reader.take("assert") {
        let term = reader.any()?;
        let text = text.trim_start_matches("assert").trim();
        // What follows the comma is what Python would print.
        let end = if reader.done() { text.len() } else { text.rfind(',')? };
        if !reader.done() && reader.tokens[reader.at] != "," {
            return None;
        }
        return Some(Statement::Assert(term, text[..end].trim().to_owned()));
    }
    let name = reader.tokens.first()?.clone();
    reader.at = 1;
    let operator = reader.tokens.get(1)?.clone();
    reader.at = 2;
    let term = reader.any()?;
    let term = match operator.as_str() {
        "=" => term,
        "+=" | "-=" => {
            let old = Box::new(Term::Name(name.clone()));
            Term::Pair(old, operator[..1].to_owned(), Box::new(term))
        }
        _ => return None,
    };
    (is_name(&name) && reader.done()).then_some(Statement::Assign(name, term))
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Words, numbers and signs; strings are one token each.
fn tokens(text: &str) -> Option<Vec<String>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let len = if word(first) {
            rest.find(|c| !word(c)).unwrap_or(rest.len())
        } else if first == '\'' || first == '"' {
            rest[1..].find(first)? + 2
        } else if ["==", "!=", "<=", ">=", "+=", "-="].iter().any(|sign| rest.starts_with(sign)) {
            2
        } else if "<>=+-*(),%/".contains(first) {
            1
        } else {
            return None;
        };
        tokens.push(rest[..len].to_owned());
        rest = rest[len..].trim_start();
    }
    Some(tokens)
}

struct Reader {
    tokens: Vec<String>,
    at: usize,
}

impl Reader {
    fn done(&self) -> bool {
        self.at == self.tokens.len()
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.tokens.get(self.at).is_some_and(|found| found == token);
        self.at += usize::from(found);
        found
    }

    fn one_of(&mut self, tokens: &[&str]) -> Option<String> {
        let token = *tokens.iter().find(|token| self.take(token))?;
        Some(token.to_owned())
    }

    fn any(&mut self) -> Option<Term> {
        self.chain(&["or"], |reader| reader.chain(&["and"], Self::comparison))
    }

    fn comparison(&mut self) -> Option<Term> {
        let first = self.sum()?;
        let mut rest = Vec::new();
        while let Some(sign) = self.one_of(&["==", "!=", "<=", ">=", "<", ">"]) {
            rest.push((sign, self.sum()?));
        }
        Some(if rest.is_empty() { first } else { Term::Compare(Box::new(first), rest) })
    }

    fn sum(&mut self) -> Option<Term> {
        self.chain(&["+", "-"], |reader| reader.chain(&["*"], Self::atom))
    }

    fn chain(&mut self, signs: &[&str], next: impl Fn(&mut Self) -> Option<Term>) -> Option<Term> {
        let mut term = next(self)?;
        while let Some(sign) = self.one_of(signs) {
            term = Term::Pair(Box::new(term), sign, Box::new(next(self)?));
        }
        Some(term)
    }

    fn atom(&mut self) -> Option<Term> {
        if self.take("(") {
            let term = self.any()?;
            return self.take(")").then_some(term);
        }
        let token = self.tokens.get(self.at)?.clone();
        self.at += 1;
        if is_name(&token) {
            return Some(Term::Name(token));
        }
        crate::script::integer(&token).map(Term::Number)
    }
}

impl Term {
    fn names<'a>(&'a self, tell: &mut impl FnMut(&'a str)) {
        match self {
            Self::Number(_) => {}
            Self::Name(name) => tell(name),
            Self::Compare(first, rest) => {
                first.names(tell);
                rest.iter().for_each(|(_, term)| term.names(tell));
            }
            Self::Pair(left, _, right) => {
                left.names(tell);
                right.names(tell);
            }
        }
    }

    fn value(&self, values: &Values) -> Result<i64, Broken> {
        Ok(match self {
            Self::Number(number) => *number,
            Self::Name(name) => *values.get(name).ok_or_else(|| Broken::NoValue(name.clone()))?,
            Self::Compare(first, rest) => {
                let mut left = first.value(values)?;
                let mut holds = true;
                for (sign, term) in rest {
                    let right = term.value(values)?;
                    holds &= match sign.as_str() {
                        "==" => left == right,
                        "!=" => left != right,
                        "<=" => left <= right,
                        ">=" => left >= right,
                        "<" => left < right,
                        _ => left > right,
                    };
                    left = right;
                }
                i64::from(holds)
            }
            Self::Pair(left, sign, right) => {
                let (left, right) = (left.value(values)?, right.value(values)?);
                match sign.as_str() {
                    "+" => left.saturating_add(right),
                    "-" => left.saturating_sub(right),
                    "*" => left.saturating_mul(right),
                    "and" => i64::from(left != 0 && right != 0),
                    _ => i64::from(left != 0 || right != 0),
                }
            }
        })
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::False(_, seen) => f.write_str(seen),
            Self::NoValue(name) => write!(f, "no value of {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str) -> Result<(), Broken> {
        let known = [("tcpi_snd_cwnd", 10), ("tcpi_lost", 3), ("TCP_CA_Open", 0)];
        let mut values = known.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Check::read(text).unwrap().run(&mut values)
    }

    #[test]
    fn assertions_hold_or_tell_what_they_found() {
        for text in [
            " assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd ",
            "assert tcpi_snd_cwnd == 10, 'cwnd=%d' % tcpi_snd_cwnd",
            "\nassert 9 <= tcpi_snd_cwnd <= 11, (tcpi_snd_cwnd, 3)\nassert tcpi_lost == 3 # why\n",
            "print(tcpi_snd_cwnd); cwnd = 4; cwnd += 6; assert tcpi_snd_cwnd == cwnd",
            "assert tcpi_snd_cwnd == 2 + 2 * (5 - 1) and TCP_CA_Open != 0x1",
            "assert tcpi_lost == 9 or tcpi_lost < 4; \\\n  assert tcpi_lost >= 3",
        ] {
            assert_eq!(run(text), Ok(()), "{text}");
        }
        let broken = run("cwnd = 9; assert tcpi_snd_cwnd == cwnd, 1").unwrap_err();
        let expected =
            Broken::False("tcpi_snd_cwnd == cwnd".into(), "tcpi_snd_cwnd = 10, cwnd = 9".into());
        assert_eq!(broken, expected);
        assert!(run("assert 9 <= tcpi_snd_cwnd < 10").is_err());
        assert_eq!(run("assert tcpi_rto == 1"), Err(Broken::NoValue("tcpi_rto".into())));
    }

    #[test]
    fn what_it_needs_is_known_before() {
        let check = Check::read("a = tcpi_lost; b += 1; assert a < tcpi_rtt, tcpi_rto").unwrap();
        assert_eq!(check.names().into_iter().collect::<Vec<_>>(), ["b", "tcpi_lost", "tcpi_rtt"]);
        assert_eq!(check.assigned().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn other_code_is_refused() {
        for text in ["import os", "assert len(x) == 3", "if a: b", "x = [1]"] {
            assert_eq!(Check::read(text).unwrap_err(), format!("code `{text}`"));
        }
    }
}
