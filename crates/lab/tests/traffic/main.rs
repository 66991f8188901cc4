//! Both roles of the lab's traffic, over the loopback interface of a namespace of its own.
//!
//! Not libtest's harness: this program is also the agents that the tests start and kill, and
//! it must enter its namespace before it has a second thread.

mod agents;
mod faults;
mod narrow;
mod setup;
mod traffic;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

fn status(went_well: bool) -> ExitCode {
    if went_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("serve-agent") => return status(lab::traffic::serve_agent()),
        Some("client-agent") => return status(lab::traffic::client_agent()),
        Some("parent-of-agent") => return agents::be_parent_of_agent(),
        _ => {}
    }
    if let Err(error) = setup::enter_first_namespace() {
        eprintln!("no network namespace: {error}; run as root or allow user namespaces");
        return ExitCode::FAILURE;
    }
    let tests: &[(&str, fn())] = &[
        ("all_kinds_of_traffic_arrive", traffic::all_kinds_of_traffic_arrive),
        ("ipv6_carries_it_too", traffic::ipv6_carries_it_too),
        ("a_thousand_transfers_at_once", traffic::a_thousand_transfers_at_once),
        ("loss_and_queueing_show_in_both_reports", narrow::loss_and_queueing_show_in_both_reports),
        ("what_the_hard_stop_cuts_is_incomplete", faults::what_the_hard_stop_cuts_is_incomplete),
        ("ports_used_up_fail_transfers_only", faults::ports_used_up_fail_transfers_only),
        ("strangers_are_counted_and_ignored", faults::strangers_are_counted_and_ignored),
        ("a_role_that_cannot_begin_says_why", faults::a_role_that_cannot_begin_says_why),
        ("agents_run_a_plan", agents::agents_run_a_plan),
        ("an_agent_refuses_what_is_no_plan", agents::an_agent_refuses_what_is_no_plan),
        ("files_used_up_fail_transfers_only", agents::files_used_up_fail_transfers_only),
        (
            "a_server_out_of_files_serves_whom_it_can",
            agents::a_server_out_of_files_serves_whom_it_can,
        ),
        ("the_client_survives_a_killed_server", agents::the_client_survives_a_killed_server),
        ("the_server_survives_a_killed_client", agents::the_server_survives_a_killed_client),
        ("an_agent_dies_at_end_of_input", agents::an_agent_dies_at_end_of_input),
        ("an_agent_dies_with_its_parent", agents::an_agent_dies_with_its_parent),
    ];
    let trials = tests.iter().map(|&(name, test)| {
        Trial::test(name, move || {
            setup::in_namespace(test);
            Ok::<(), Failed>(())
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
