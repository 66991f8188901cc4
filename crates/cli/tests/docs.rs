//! The documentation agrees with the program: discipline pages with the registry, pages of
//! commands with their options, relative links with files, and the front page with the pages.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use sched::{Info, registry};

const HEADINGS: [&str; 7] = [
    "## What it does",
    "## When to use",
    "## When not",
    "## Parameters",
    "## Cost",
    "## Validation",
    "## Source",
];

/// What `make worst-pages` puts before the validation; a new discipline has none yet.
const SEARCHED: &str = "## Worst case";

/// What a section has until somebody writes it.
const UNWRITTEN: &str = "(to be written)";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn pages() -> PathBuf {
    root().join("docs/disciplines")
}

fn markdown_in(directory: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    let paths = entries.map(|entry| entry.expect("a directory can be listed").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// The cells of the first table below `heading` whose first column is a name in backticks.
fn table_below(page: &str, heading: &str) -> Vec<Vec<String>> {
    let below = page.split(heading).nth(1).unwrap_or_default();
    let section = below.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let cells = |row: &str| {
        let inner = row.trim().trim_start_matches('|').trim_end_matches('|');
        inner.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    rows.map(cells).collect()
}

/// What the registry knows of a discipline, as the page that its author goes on with.
fn skeleton(info: &Info) -> String {
    let mut page = format!("# {}: {}\n", info.name, info.summary);
    for heading in HEADINGS {
        let text = match heading {
            "## Parameters" => parameter_table(info),
            "## Source" => info.source.to_owned(),
            _ => UNWRITTEN.to_owned(),
        };
        page += &format!("\n{heading}\n\n{text}\n");
    }
    page
}

fn parameter_table(info: &Info) -> String {
    let mut table = "| name | unit | default | effect | live |\n|---|---|---|---|---|".to_owned();
    for (def, default) in info.defaults().iter() {
        let (name, unit, effect) = (def.name, def.kind.unit(), def.effect);
        let live = if def.live { "yes" } else { "no" };
        table += &format!("\n| `{name}` | {unit} | `{default}` | {effect} | {live} |");
    }
    table
}

#[test]
fn every_discipline_has_a_page_and_every_page_a_discipline() {
    if env::var_os("UPDATE_DOCS").is_some() {
        for info in registry::ALL {
            let path = pages().join(format!("{}.md", info.name));
            if !path.exists() {
                fs::write(path, skeleton(info)).expect("docs can be written");
            }
        }
    }
    let registered: BTreeSet<String> = registry::ALL.iter().map(|i| i.name.to_owned()).collect();
    let described: BTreeSet<String> = markdown_in(&pages())
        .iter()
        .map(|path| path.file_stem().expect("a file has a name").to_string_lossy().into_owned())
        .collect();
    assert_eq!(described, registered, "UPDATE_DOCS=1 begins a page that is missing");
}

#[test]
fn every_page_has_the_headings_in_their_order() {
    for path in markdown_in(&pages()) {
        let page = read(&path);
        let is_written = |line: &&str| line.starts_with("## ") && *line != SEARCHED;
        let found: Vec<&str> = page.lines().filter(is_written).collect();
        assert_eq!(found, HEADINGS, "{}", path.display());
        assert!(!page.contains(UNWRITTEN), "{} has an empty section", path.display());
    }
}

#[test]
fn parameter_tables_are_those_of_the_registry() {
    for info in registry::ALL {
        let page = read(&pages().join(format!("{}.md", info.name)));
        let defaults = info.defaults();
        let mut described = BTreeSet::new();
        for row in table_below(&page, "## Parameters") {
            let [name, _unit, default, _effect, live] = row.as_slice() else {
                panic!("{}: five columns are expected in {row:?}", info.name);
            };
            let name = name.replace('`', "");
            // 32mb and 33554432b are the same default.
            let mut with_default = defaults.clone();
            let set = with_default.set(&name, &default.replace('`', ""));
            set.unwrap_or_else(|error| panic!("{}: {error}", info.name));
            assert_eq!(with_default, defaults, "{}: default of {name}", info.name);
            described.insert((name, live.clone()));
        }
        let live = |live| if live { "yes" } else { "no" }.to_owned();
        let registered: BTreeSet<(String, String)> =
            info.params.iter().map(|def| (def.name.to_owned(), live(def.live))).collect();
        assert_eq!(described, registered, "{}", info.name);
    }
}

#[test]
fn every_option_is_described() {
    described("lab.md", &["lab", "--help"]);
    described("lab.md", &["lab", "sweep", "--help"]);
    described("replay.md", &["replay", "--help"]);
    described("attach.md", &["attach", "--help"]);
    described("attach.md", &["change", "--help"]);
}

/// Checks that a page names every option that the help does.
fn described(page: &str, arguments: &[&str]) {
    let page = read(&root().join("docs").join(page));
    let output = Command::new(env!("CARGO_BIN_EXE_shortlane")).args(arguments).output();
    let help = String::from_utf8(output.expect("the program starts").stdout).expect("text");
    let first_words = help.lines().filter_map(|line| line.split_whitespace().next());
    // `--edge[=<EDGE>]` is an option whose value may be left out.
    let names = first_words.filter_map(|word| word.split('[').next());
    let options: Vec<&str> = names.filter(|word| word.starts_with("--")).collect();
    assert!(options.contains(&"--scheduler"), "{help}");
    for option in options {
        assert!(page.contains(&format!("`{option}")), "{arguments:?}: {option} is not described");
    }
}

#[test]
fn every_option_of_the_simulator_and_every_ready_scenario_is_described() {
    let page = read(&root().join("docs/sim.md"));
    let output = Command::new(env!("CARGO_BIN_EXE_shortlane")).args(["sim", "--help"]).output();
    let help = String::from_utf8(output.expect("the program starts").stdout).expect("text");
    let first_words = help.lines().filter_map(|line| line.split_whitespace().next());
    let options: Vec<&str> = first_words.filter(|word| word.starts_with("--")).collect();
    assert!(options.contains(&"--events"), "{help}");
    let names = scenario::library::ALL.iter().map(|ready| ready.name);
    for word in options.into_iter().chain(names) {
        assert!(page.contains(&format!("`{word}")), "{word} is not described");
    }
    let mut files: Vec<String> = fs::read_dir(root().join("scenarios"))
        .expect("there are scenarios")
        .map(|entry| entry.expect("a directory can be listed").path())
        .filter(|path| path.is_file())
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    files.sort();
    let mut built_in: Vec<&str> = scenario::library::ALL.iter().map(|ready| ready.name).collect();
    built_in.sort_unstable();
    assert_eq!(files, built_in, "every file of scenarios/ is built in");
}

/// The targets of `[text](target)` that are neither on the web nor on the same page.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files = targets.filter(|target| !target.contains("://") && !target.starts_with('#'));
    files.map(|target| target.split('#').next().unwrap_or_default())
}

#[test]
fn relative_links_lead_to_files() {
    let mut paths = markdown_in(&root());
    paths.extend(markdown_in(&root().join("docs")));
    paths.extend(markdown_in(&pages()));
    paths.extend(markdown_in(&root().join("docs/operators")));
    assert!(paths.len() > registry::ALL.len());
    for path in paths {
        let text = read(&path);
        for link in links(&text) {
            let target = path.parent().expect("a file is in a directory").join(link);
            assert!(target.exists(), "{}: {link} leads nowhere", path.display());
        }
    }
}

/// The cells of a line of a table, without marks of emphasis.
fn cells(line: &str) -> Vec<String> {
    line.split('|').map(|cell| cell.replace('*', "").trim().to_owned()).collect()
}

/// Counts on the front page, which no command writes, are those that commands wrote into the pages.
#[test]
fn the_front_page_counts_as_the_pages_do() {
    let read = |page: &str| read(&root().join(page));
    let front = read("README.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let must_say = |text: &str| assert!(front.contains(text), "the map has: {text}");

    let suite = read("docs/suite.md");
    let map = suite.split("suite.py, map -->").nth(1).and_then(|rest| rest.split("<!--").next());
    let map: Vec<&str> = map.expect("a map").lines().filter(|line| line.starts_with('|')).collect();
    let files = map.iter().filter(|line| line.starts_with("| `")).count();
    let (heading, letters) = (cells(map[0]), cells(map[map.len() - 1]));
    let counts = |discipline: &str| {
        let column = heading.iter().position(|name| name == discipline).expect("a column");
        let of = |letter| {
            let word = letters[column].split(' ').find(|word| word.starts_with(letter));
            word.expect("a count")[1..].to_owned()
        };
        [of('S'), of('C'), of('L')]
    };
    let [short, call, long] = counts("fq-lanes");
    let call = if call == files.to_string() { "all" } else { &call };
    must_say(&format!("in {short} of {files} files for short transfers, in {call} for a call"));
    must_say(&format!("for a call, and in {long} for the rate of long flows"));
    for (name, discipline) in [("FQ-CoDel is", "fq-codel"), ("CAKE", "cake")] {
        let [short, call, long] = counts(discipline);
        must_say(&format!("{name} in {short}, {call} and {long}"));
    }

    let kernel = read("docs/benchmarks/kernel.md");
    let row = kernel.lines().find(|line| line.starts_with("| fq-lanes | "));
    let row = cells(row.expect("the first row of fq-lanes is that of the counts"));
    let [better, even, little, worse] =
        [2, 3, 4, 5].map(|column| row[column].parse::<u64>().expect("a count"));
    let lost = little + worse;
    must_say(&format!("Of {} comparisons with the better of CAKE and", better + even + lost));
    must_say(&format!(
        "wins {better} and [loses](docs/benchmarks/kernel.md#what-came-out) {lost},"
    ));
}
