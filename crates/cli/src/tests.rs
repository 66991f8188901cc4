//! What the command line says of itself.

use clap::{CommandFactory, Parser};

/// What a help text may begin with.
const VERBS: &str = "Allow Attach Bridge Build Change Check Choose Compare Count Derive Detach Diagnose \
     Draw End Hold Join Leave Let List Listen Look Make Map Mark Maximise Measure Negotiate Ping Print Put \
     Read Receive Refresh Register Repeat Replace Replay Run Search Seed Send Serve Set Shape Show \
     Simulate Stay Tag Take Test Try Unregister Use Watch Write";

/// That a help text tells what to do: an option is said to somebody who types it.
#[test]
fn help_begins_with_a_verb() {
    let mut texts = Vec::new();
    crate::Command::command().get_subcommands().for_each(|command| collect(command, &mut texts));
    assert!(texts.len() > 100, "{}", texts.len());
    let begins = |text: &str| {
        let first = text.split([' ', ',']).next().unwrap_or_default();
        VERBS.split_whitespace().any(|verb| verb == first)
    };
    let others: Vec<_> = texts.into_iter().filter(|text| !begins(text)).collect();
    assert!(others.is_empty(), "{others:#?}");
}

/// That a list of several lines reads as one.
#[test]
fn missing_arguments_are_listed_in_one_line() {
    let said = |arguments: &[&str]| {
        let parsed = crate::Command::try_parse_from(arguments.iter().copied());
        parsed.err().map(|error| crate::usage::one_line(&error))
    };
    let text = "the following required arguments were not provided: --of <OF>; --help says what is \
                accepted";
    assert_eq!(said(&["shortlane", "worst", "fq-lanes"]).as_deref(), Some(text));
    let text = "the following required arguments were not provided: --rate <RATE>, <RIGHT>; --help \
                says what is accepted";
    assert_eq!(said(&["shortlane", "bridge", "eth0"]).as_deref(), Some(text));
}

fn collect(command: &clap::Command, texts: &mut Vec<String>) {
    if command.is_hide_set() {
        return;
    }
    texts.extend(command.get_about().map(ToString::to_string));
    for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
        texts.extend(argument.get_help().map(ToString::to_string));
        for value in argument.get_possible_values() {
            texts.extend(value.get_help().map(ToString::to_string));
        }
    }
    command.get_subcommands().for_each(|command| collect(command, texts));
}
