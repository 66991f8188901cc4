//! `shortlane doctor`: what keeps a discipline from working, each with its remedy.

#[cfg(feature = "kernel")]
mod judge;

use clap::Args;
use serde::Serialize;

use crate::{Failure, attach, print};

/// The options of `shortlane doctor`.
#[derive(Args)]
pub(crate) struct Options {
    /// Check only this device, and the machine itself
    device: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Something that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    /// The device; none if it is the machine's.
    device: Option<String>,
    /// What was looked at.
    check: &'static str,
    result: Verdict,
    /// What was found.
    found: String,
    /// What to do, unless all is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(not(feature = "kernel"), allow(dead_code, reason = "there is only the one problem"))]
enum Verdict {
    /// As it should be.
    Ok,
    /// Worth knowing; it works.
    Note,
    /// It does not work as it should.
    Problem,
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let findings = look(options.device.as_deref())?;
    let problems = findings.iter().filter(|finding| finding.result == Verdict::Problem).count();
    if options.json {
        let document = serde_json::json!({ "findings": findings, "problems": problems });
        print(&format!("{document:#}\n"))?;
    } else {
        print(&findings.iter().map(text).collect::<String>())?;
    }
    match problems {
        0 => Ok(()),
        1 => Err(Failure::Failed("there is a problem".into())),
        _ => Err(Failure::Failed(format!("there are {problems} problems"))),
    }
}

#[cfg(feature = "kernel")]
fn look(name: Option<&str>) -> Result<Vec<Finding>, Failure> {
    use engine::kernel::inspect;

    let devices = inspect::devices(name)?;
    let mut findings = judge::machine(&inspect::machine());
    for facts in &devices {
        // Who may not see a qdisc's counters can still see what is wrong around it.
        let attached = attach::attached(Some(&facts.name)).unwrap_or_default();
        findings.extend(judge::device(facts, &attached));
    }
    Ok(findings)
}

/// Of a program without engines, which is the problem: nothing else matters until it has them.
#[cfg(not(feature = "kernel"))]
fn look(name: Option<&str>) -> Result<Vec<Finding>, Failure> {
    if let Some(device) = name {
        attach::index_of(device)?;
    }
    let [found, remedy] = attach::MISSING.map(String::from);
    let result = Verdict::Problem;
    Ok(vec![Finding { device: None, check: "engines", result, found, remedy: Some(remedy) }])
}

fn text(finding: &Finding) -> String {
    let Finding { device, check, result, found, remedy } = finding;
    let mark = match result {
        Verdict::Ok => "ok     ",
        Verdict::Note => "note   ",
        Verdict::Problem => "PROBLEM",
    };
    let device = device.as_ref().map_or(String::new(), |device| format!("{device}: "));
    let remedy = remedy.as_ref().map_or(String::new(), |remedy| format!("        -> {remedy}\n"));
    format!("{mark} {device}{check}: {found}\n{remedy}")
}
