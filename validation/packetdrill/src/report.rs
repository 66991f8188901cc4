//! What became of the scripts of a folder.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use crate::play::{Difference, play};
use crate::setup::setting;
use crate::{parse, play};

/// What became of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The model does all that the script expects.
    Passed,
    /// Up to a line.
    Differs(Difference),
    /// It asks for what the model does not have, first on this line.
    DoesNotApply {
        /// The line, 0 if it is all of the script.
        line: usize,
        /// What it asks for.
        what: String,
        /// If all that is missing is only looked at: whether the packets are those expected.
        packets: Option<Result<(), play::Difference>>,
    },
}

/// Plays a script, given as text.
#[must_use]
pub fn outcome(text: &str) -> Outcome {
    let script = match parse::script(text) {
        Ok(script) => script,
        Err(what) => return Outcome::DoesNotApply { line: 0, what, packets: None },
    };
    let (setting, reasons) = setting(&script);
    let Some(first) = reasons.iter().find(|reason| !reason.only_looked_at).or(reasons.first())
    else {
        return match play(&script, &setting) {
            Ok(()) => Outcome::Passed,
            Err(difference) => Outcome::Differs(difference),
        };
    };
    let packets = first.only_looked_at.then(|| play(&script, &setting));
    Outcome::DoesNotApply { line: first.line, what: first.what.clone(), packets }
}

/// A script by its path within the folder, and what became of it.
pub type Played = (String, Outcome);

/// Plays every `.pkt` file of a folder and the folders in it, in the order of their names.
pub fn folder(root: &Path) -> Result<Vec<Played>, String> {
    let mut files = Vec::new();
    find(root, &mut files)?;
    files.sort();
    let mut played = Vec::new();
    for file in files {
        let text = fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        played.push((name, outcome(&String::from_utf8_lossy(&text))));
    }
    Ok(played)
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            files.push(path);
        }
    }
    Ok(())
}

/// How many scripts passed, of how many that apply.
#[must_use]
pub fn passed(played: &[Played]) -> (usize, usize) {
    let passed = played.iter().filter(|(_, outcome)| *outcome == Outcome::Passed).count();
    let differ = played.iter().filter(|(_, outcome)| matches!(outcome, Outcome::Differs(_)));
    (passed, passed + differ.count())
}

/// The report, in Markdown: counts by folder, what differs, what does not apply and for which reason.
#[must_use]
pub fn markdown(played: &[Played]) -> String {
    let mut kinds: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for (name, outcome) in played {
        let kind = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        let counts = kinds.entry(kind).or_default();
        counts[match outcome {
            Outcome::Passed => 0,
            Outcome::Differs(_) => 1,
            Outcome::DoesNotApply { .. } => 2,
        }] += 1;
    }
    let mut text = String::from("| folder | pass | differ | do not apply |\n|---|---|---|---|\n");
    let mut all = [0; 3];
    for (kind, counts) in &kinds {
        let [pass, differ, other] = counts;
        let _ = writeln!(text, "| {kind} | {pass} | {differ} | {other} |");
        all.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
    }
    let [pass, differ, other] = all;
    let _ = writeln!(text, "| **all** | **{pass}** | **{differ}** | **{other}** |");
    let (passed, apply) = passed(played);
    let share = passed as f64 / apply.max(1) as f64 * 100.0;
    let _ = writeln!(text, "\n{passed} of the {apply} that apply pass: {share:.0} %.");

    text.push_str(
        "\n### What differs\n\n| script | line | expected | found |\n|---|---|---|---|\n",
    );
    for (name, outcome) in played {
        if let Outcome::Differs(Difference { line, expected, found }) = outcome {
            let _ = writeln!(text, "| {name} | {line} | `{expected}` | `{found}` |");
        }
    }
    text.push_str("\n### What does not apply\n\n| asks for | scripts |\n|---|---|\n");
    let mut reasons: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, outcome) in played {
        if let Outcome::DoesNotApply { what, packets, .. } = outcome {
            let packets = match packets {
                None => String::new(),
                Some(Ok(())) => "; the packets are as expected".into(),
                Some(Err(Difference { line, expected, found })) => {
                    format!("; besides, line {line} expects `{expected}`, found `{found}`")
                }
            };
            let name = name.strip_suffix(".pkt").unwrap_or(name);
            reasons.entry(format!("{what}{packets}")).or_default().push(name);
        }
    }
    for (reason, names) in reasons {
        let _ = writeln!(text, "| {reason} | {} |", names.join(", "));
    }
    text
}

const START: &str = "<!-- played: start -->\n";
const END: &str = "<!-- played: end -->\n";

/// Puts a report between the marks of a page.
pub fn replace(page: &str, report: &str) -> Result<String, String> {
    let start = page.find(START).ok_or("no place for the report")? + START.len();
    let end = page.find(END).filter(|end| *end >= start).ok_or("no end of the report")?;
    Ok(format!("{}\n{report}\n{}", &page[..start], &page[end..]))
}
