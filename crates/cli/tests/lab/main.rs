//! `shortlane lab` as a user runs it, small: that it works, and what it leaves when it does not.
//!
//! Not libtest's harness: labs must not run side by side, for they need the processor to be on
//! time, and where no network namespaces can be had the tests count as ignored, not as passed.

mod faults;
mod run;
mod works;

use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};

/// The command under test.
const SHORTLANE: &str = env!("CARGO_BIN_EXE_shortlane");

fn main() -> ExitCode {
    let possible = works("unshare", &["--net", "true"])
        || works("unshare", &["--net", "--map-root-user", "true"]);
    if !possible {
        eprintln!("SKIPPED: no network namespaces here; run as root or allow user namespaces");
    }
    let has_tc = works("tc", &["-V"]);
    if !has_tc {
        eprintln!(
            "SKIPPED: no --local-sender and --engine kernel here; install iproute2 for the command tc"
        );
    }
    let trial = |name: &str, test: fn()| {
        let own = name.to_owned();
        let trial = Trial::test(name, move || patiently(&own, test));
        let by_tc = ["local_sender", "a_scenario_in_the_kernel"].contains(&name);
        trial.with_ignored_flag(!possible || (by_tc && !has_tc))
    };
    let trials = vec![
        trial("mixed_traffic", works::mixed_traffic),
        trial("listed_transfers_over_a_long_way", works::listed_transfers_over_a_long_way),
        trial("a_scenario_in_both_engines", works::a_scenario_in_both_engines),
        trial("a_scenario_of_everything", works::a_scenario_of_everything),
        trial("a_scenario_in_the_kernel", works::a_scenario_in_the_kernel),
        trial("local_sender", works::local_sender),
        trial("an_ordinary_user", works::an_ordinary_user),
        trial("sweep", works::sweep),
        trial("ctrl_c_shows_whole_rounds", faults::ctrl_c_shows_whole_rounds),
        trial("sigterm_in_the_first_round", faults::sigterm_in_the_first_round),
        trial("kill_leaves_nothing", faults::kill_leaves_nothing),
        trial("a_client_that_dies_once", faults::a_client_that_dies_once),
        trial("a_server_that_always_dies", faults::a_server_that_always_dies),
        trial("a_full_disk", faults::a_full_disk),
        trial("no_namespaces", faults::no_namespaces),
    ];
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Tries a test again if the machine was too busy to measure anything: that is not what is tested.
fn patiently(name: &str, test: fn()) -> Result<(), Failed> {
    for _ in 0..3 {
        let Err(panic) = std::panic::catch_unwind(test) else { return Ok(()) };
        let text = panic.downcast_ref::<String>();
        if !text.is_some_and(|text| text.contains("in a row were void")) {
            std::panic::resume_unwind(panic);
        }
    }
    eprintln!("SKIPPED: lab, {name}: this machine is too busy for any block to count");
    Ok(())
}

fn works(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}
