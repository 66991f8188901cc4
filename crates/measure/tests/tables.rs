//! Tables with a row per scheduler.

use measure::SizeClass;
use measure::text::SchedulerTable;

struct Found {
    scheduler: &'static str,
    classes: &'static [(SizeClass, u64)],
}

#[test]
fn a_class_has_a_column_if_any_scheduler_has_it_and_a_dash_where_one_has_not() {
    let found = [
        Found { scheduler: "efd:threshold=9packets", classes: &[(SizeClass::UpTo20, 7)] },
        Found { scheduler: "fifo", classes: &[(SizeClass::Over1000, 8), (SizeClass::UpTo20, 9)] },
    ];
    let of_class = |found: &Found, class| {
        let mut classes = found.classes.iter();
        classes.find(|(found, _)| *found == class).map(|(_, n)| n.to_string())
    };
    let table = SchedulerTable::new(&found, |found| found.scheduler)
        .column("classes", |found| found.classes.len().to_string())
        .classes(|class| class.name().into(), of_class)
        .to_string();
    let cells: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .filter(|cells: &Vec<&str>| cells.len() > 1 || cells[0].starts_with("thr"))
        .collect();
    let expected: [&[&str]; 4] = [
        &["scheduler", "classes", "<=20", ">1000"],
        &["efd:", "1", "7", "-"],
        &["threshold=9packets"],
        &["fifo", "2", "9", "8"],
    ];
    assert_eq!(cells, expected, "{table}");
}
