//! What the command line's parser refuses, in one line: the option, what was found, what is accepted.

use std::error::Error as _;

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::say;

/// Prints the help that was asked for, or says what was wrong. Returns the exit status.
pub(crate) fn answer(error: &Error) -> u8 {
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // Nobody is left to tell that the help could not be printed.
            let _ = error.print();
        }
        _ => say(&format!("shortlane: {}", one_line(error))),
    }
    error.exit_code() as u8
}

/// What was found, and what is accepted.
pub(crate) fn one_line(error: &Error) -> String {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let accepted = accepted(error);
    let (option, found) = (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue));
    match (option, found, accepted) {
        (Some(option), Some(found), Some(accepted)) if !found.is_empty() => {
            // Without the name of its value.
            let option = option.split(' ').next().unwrap_or(option);
            format!("{option} {found} is not accepted: {accepted}")
        }
        _ => {
            // What was wrong and the tip, without the usage.
            let said = error.to_string();
            let said = said.split("\n\nUsage:").next().unwrap_or(&said);
            let said = said.split("\n\nFor more").next().unwrap_or(said);
            let said = said.trim_start_matches("error: ").lines().map(str::trim);
            let said: Vec<&str> = said.filter(|line| !line.is_empty()).collect();
            format!("{}; --help says what is accepted", joined(&said))
        }
    }
}

/// Lines as one; what follows a colon is a list, such as of the arguments that are missing.
fn joined(lines: &[&str]) -> String {
    match lines.split_first() {
        Some((head, list)) if head.ends_with(':') => format!("{head} {}", list.join(", ")),
        _ => lines.join("; "),
    }
}

/// What an option takes, if a value of one was refused.
pub(crate) fn accepted(error: &Error) -> Option<String> {
    match (error.source(), error.get(ContextKind::ValidValue)) {
        (Some(reason), _) => Some(reason.to_string()),
        (_, Some(ContextValue::Strings(values))) => Some(format!("it takes {}", values.join(", "))),
        _ => None,
    }
}
