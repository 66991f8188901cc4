//! The suite after RFC 7928: every file is read, names its section, and runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use scenario::{Observer, Overrides, Progress, Row, Scenario, Summary, Wanted};
use sched::Nanos;

struct Nobody;

impl Observer for Nobody {
    fn row(&mut self, _: Row) {}

    fn progress(&mut self, _: &Progress) {}
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/rfc7928");
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn every_file_names_its_section_and_runs_under_every_discipline() {
    let disciplines = ["fifo", "codel", "fq-codel", "cake", "efd", "las", "fq-lanes"];
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/suite.md");
    let page = fs::read_to_string(page).unwrap();
    assert!(files().len() >= 15);
    for file in files() {
        let text = fs::read_to_string(&file).unwrap();
        let name = file.display().to_string();
        // The warm-up and a second.
        let overrides = Overrides {
            seeds: Some(vec![1]),
            duration: Some(Nanos::from_secs(6)),
            ..Overrides::default()
        };
        let scenario = Scenario::parse(&text, &name, file.parent(), &overrides);
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
        assert!(scenario.title.starts_with("RFC 7928, "), "{name}: {}", scenario.title);
        let names: Vec<&str> = scenario.schedulers.iter().map(|spec| spec.info().name).collect();
        assert_eq!(names, disciplines, "{name}");
        let stop = AtomicBool::new(false);
        let finished = scenario::run(&scenario, 2, Wanted::default(), &stop, &mut Nobody).unwrap();
        assert_eq!(finished.ended_early, None, "{name}");
        for scheduler in &Summary::of(&scenario, &finished).schedulers {
            let used = scheduler.links[0].utilisation.as_ref().unwrap().value;
            assert!((0.2..1.01).contains(&used), "{name}, {}: {used}", scheduler.scheduler);
        }
        let stem = file.file_stem().unwrap().to_str().unwrap();
        assert!(page.contains(&format!("`{stem}`")), "docs/suite.md has no row of {stem}");
    }
}
