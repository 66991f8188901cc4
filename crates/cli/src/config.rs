//! The configuration file of `attach`: a table for each device, with the options as keys.
//!
//! What a key takes is what the option takes: a table is read as if it stood on the command line,
//! before what does stand there.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs;
use std::ops::Range;
use std::path::Path;

use clap::{Args, Command, FromArgMatches};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::attach::AttachOptions;
use crate::{Failure, usage};

/// Where it is looked for if no other place is named.
pub(crate) const DEFAULT: &str = "/etc/shortlane.toml";
/// Options that say how the command runs, not what is attached.
const NOT_KEYS: [&str; 3] = ["config", "foreground", "help"];

/// The options of each device of the file, or of one that is named; `words` of the command line
/// override the file.
pub(crate) fn attachments(
    path: &Path,
    device: Option<&str>,
    words: &[OsString],
) -> Result<Vec<AttachOptions>, Failure> {
    let name = path.display().to_string();
    let text =
        fs::read_to_string(path).map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
    read(&text, &name, device, words)
}

/// The same of a text; `name` is what errors call it.
pub(crate) fn read(
    text: &str,
    name: &str,
    device: Option<&str>,
    words: &[OsString],
) -> Result<Vec<AttachOptions>, Failure> {
    let file = File { name: name.to_owned(), text };
    let tables = file.tables()?;
    if let Some(device) = device.filter(|device| !tables.iter().any(|t| t.device == *device)) {
        let known: Vec<&str> = tables.iter().map(|table| table.device.as_ref()).collect();
        return Err(Failure::Usage(format!(
            "{}: it has no table [{device}]; it has {}",
            file.name,
            if known.is_empty() { "none".into() } else { known.join(", ") }
        )));
    }
    let wanted = tables.iter().filter(|table| device.is_none_or(|device| table.device == device));
    wanted.map(|table| table.below(words, device.is_none())).collect()
}

/// The options of `attach`.
fn options() -> Command {
    AttachOptions::augment_args(Command::new("attach")).args_override_self(true)
}

struct File<'a> {
    name: String,
    text: &'a str,
}

/// A device and its options, as on the command line.
struct Table<'a> {
    device: Cow<'a, str>,
    words: Vec<OsString>,
}

impl<'a> File<'a> {
    fn error(&self, at: &Range<usize>, what: &str) -> Failure {
        let before = &self.text.as_bytes()[..at.start.min(self.text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        Failure::Usage(format!("{}:{line}: {what}", self.name))
    }

    fn tables(&self) -> Result<Vec<Table<'a>>, Failure> {
        let document = DeTable::parse(self.text).map_err(|error| {
            let what = format!("not TOML: {}", error.message().replace('\n', " "));
            self.error(&error.span().unwrap_or(0..0), &what)
        })?;
        let mut entries: Vec<_> = document.into_inner().into_iter().collect();
        entries.sort_by_key(|(device, _)| device.span().start);
        entries.into_iter().map(|(device, value)| self.table(device, value)).collect()
    }

    fn table(
        &self,
        device: Spanned<Cow<'a, str>>,
        value: Spanned<DeValue<'a>>,
    ) -> Result<Table<'a>, Failure> {
        let (at, device) = (device.span(), device.into_inner());
        let DeValue::Table(table) = value.into_inner() else {
            let what =
                format!("'{device}' is not a table: options stand below their device, [eth0]");
            return Err(self.error(&at, &what));
        };
        let mut words = Vec::new();
        for (key, value) in &table {
            words.extend(self.option(&device, key, value)?);
        }
        Ok(Table { device, words })
    }

    /// The words that a key and its value stand for.
    fn option(
        &self,
        device: &str,
        key: &Spanned<Cow<'a, str>>,
        value: &Spanned<DeValue<'a>>,
    ) -> Result<Vec<OsString>, Failure> {
        let name = key.get_ref();
        let options = options();
        let known = options.get_arguments().filter_map(|known| Some((known.get_long()?, known)));
        let keys: Vec<_> = known.filter(|(long, _)| !NOT_KEYS.contains(long)).collect();
        let Some((_, option)) = keys.iter().find(|(long, _)| long == name) else {
            let accepted: Vec<&str> = keys.iter().map(|(long, _)| *long).collect();
            let what = match value.get_ref() {
                DeValue::Table(_) => {
                    format!(
                        "a device with a dot in its name stands in quotes: [\"{device}.{name}\"]"
                    )
                }
                _ => format!(
                    "[{device}] has no key '{name}'; a device takes {}",
                    accepted.join(", ")
                ),
            };
            return Err(self.error(&key.span(), &what));
        };
        let bad = |accepted: &str| {
            let found = self.text.get(value.span()).unwrap_or_default();
            self.error(&value.span(), &format!("{name} = {found} is not accepted: {accepted}"))
        };
        let takes_value = option.get_action().takes_values();
        let words: Vec<OsString> = match (value.get_ref(), takes_value) {
            (DeValue::Boolean(true), false) => vec![format!("--{name}").into()],
            (DeValue::Boolean(false), false) => Vec::new(),
            (DeValue::String(text), true) => vec![format!("--{name}={text}").into()],
            (DeValue::Integer(number), true) if number.radix() == 10 => {
                vec![format!("--{name}={}", number.as_str().replace('_', "")).into()]
            }
            (_, true) => return Err(bad("it takes a text in quotes, or a number")),
            (_, false) => return Err(bad("it takes true or false")),
        };
        let tried = ["attach".into(), "device".into()].into_iter().chain(words.clone());
        match options.clone().try_get_matches_from(tried) {
            Ok(_) => Ok(words),
            Err(error) => {
                Err(bad(&usage::accepted(&error).unwrap_or_else(|| usage::one_line(&error))))
            }
        }
    }
}

impl Table<'_> {
    /// Its options, with those of the command line on top.
    fn below(&self, line: &[OsString], name_it: bool) -> Result<AttachOptions, Failure> {
        let mut words = vec![OsString::from("attach")];
        words.extend(self.words.iter().cloned());
        words.extend(line.iter().cloned());
        if name_it {
            // After `--` nothing is taken for the file's name.
            words.extend(["--".into(), OsString::from(self.device.as_ref())]);
        }
        let matches = options().try_get_matches_from(words);
        matches
            .and_then(|matches| AttachOptions::from_arg_matches(&matches))
            .map_err(|error| Failure::Usage(usage::one_line(&error)))
    }
}

/// That every option but a few is a key, by its own name: the command has one definition.
#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_options_are_those_of_the_command() {
        let command = crate::Command::command();
        let attach = command.find_subcommand("attach").expect("attach is a command");
        let longs = |command: &Command| -> Vec<String> {
            command.get_arguments().filter_map(|a| a.get_long().map(str::to_owned)).collect()
        };
        let found = longs(&options());
        assert!(longs(attach).iter().all(|long| found.contains(long) || long == "help"));
    }
}
