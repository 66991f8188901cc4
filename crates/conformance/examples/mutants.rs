//! Shows that the suite notices: applies each mutant of `mutants.txt` to a copy of the workspace
//! and runs the suite on it, which must fail. Prints a line for each, and fails if one survives.
//!
//! `cargo run -p shortlane-conformance --example mutants [NAME]...`

use std::error::Error;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use conformance::mutant;

/// Packages that the suite is built from.
const PACKAGES: [&str; 3] = ["units", "sched", "conformance"];
/// The tests of the suite that look at disciplines, the quick ones first.
const TESTS: [&str; 6] = ["golden", "models", "generic", "statistics", "reductions", "exhaustive"];
/// A mutant that makes a test run this long has made it loop.
const PATIENCE: Duration = Duration::from_secs(180);

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let mutants = mutant::all()?;
    let copy = root.join("target/mutants");
    copy_workspace(&root, &copy)?;
    if let Some(test) = first_failing_test(&copy)? {
        return Err(format!("{test} fails without a mutant").into());
    }
    let mut survivors = 0;
    for mutant in mutants.iter().filter(|m| wanted.is_empty() || wanted.contains(&m.name)) {
        let path = copy.join(&mutant.file);
        let source = fs::read_to_string(&path)?;
        fs::write(&path, mutant.apply(&source)?)?;
        let outcome = match first_failing_test(&copy)? {
            Some(test) => format!("caught by {test}"),
            None => {
                survivors += 1;
                "SURVIVED".to_owned()
            }
        };
        println!("| {} | {} | {outcome} |", mutant.name, mutant.effect);
        fs::write(&path, source)?;
    }
    Ok(if survivors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Copies what the suite is built from, without what has been built.
fn copy_workspace(root: &Path, copy: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(copy)?;
    // Of the workspace's members, only those below crates/ are in the copy.
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let members = manifest.lines().find(|line| line.starts_with("members")).unwrap_or_default();
    let manifest = manifest.replace(members, "members = [\"crates/*\"]");
    fs::write(copy.join("Cargo.toml"), manifest)?;
    fs::copy(root.join("Cargo.lock"), copy.join("Cargo.lock"))?;
    for package in PACKAGES {
        let target = copy.join("crates").join(package);
        if target.exists() {
            fs::remove_dir_all(&target)?;
        }
        copy_directory(&root.join("crates").join(package), &target)?;
    }
    let corpus = copy.join("fuzz/corpus");
    copy_directory(&root.join("fuzz/corpus"), &corpus)
}

fn copy_directory(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_directory(&path, &target)?;
        } else {
            fs::copy(&path, &target)?;
        }
    }
    Ok(())
}

/// Builds the suite in `workspace` and runs it up to its first failing test.
fn first_failing_test(workspace: &Path) -> Result<Option<&'static str>, Box<dyn Error>> {
    let cargo = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(workspace).args(["test", "--offline", "-p", "shortlane-conformance"]);
        command.args(arguments).env("RUST_BACKTRACE", "0").env("PROPTEST_MAX_SHRINK_ITERS", "0");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    if !cargo(&["--tests", "--no-run"]).status()?.success() {
        return Err(format!("the copy in {} does not build", workspace.display()).into());
    }
    for test in TESTS {
        // A process group of its own, so that a test that hangs can be ended with its cargo.
        let mut running = cargo(&["--test", test]).process_group(0).spawn()?;
        let begin = Instant::now();
        let passed = loop {
            if let Some(status) = running.try_wait()? {
                break status.success();
            }
            if begin.elapsed() > PATIENCE {
                let group = format!("-{}", running.id());
                Command::new("kill").args(["-KILL", "--", &group]).status()?;
                running.wait()?;
                break false;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        if !passed {
            return Ok(Some(test));
        }
    }
    Ok(None)
}
