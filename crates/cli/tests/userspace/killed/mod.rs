//! Commands that are killed at a system call, or whose call fails: at every one of them with
//! `make test-killed`, at some of them otherwise. Traffic passes all the same, and the next command
//! leaves the device as it was. So does another command that comes in between.

mod cases;
mod run;
mod scene;
mod tracer;

use std::collections::BTreeSet;
use std::env;

use self::cases::{Case, Race, failures, has_effects};
use self::run::{run, run_race};
use self::scene::Scene;
use self::tracer::{Call, Fault};

/// One of so many calls, spread evenly.
fn step() -> usize {
    let step = env::var("KILLED_STEP").map(|step| step.parse().expect("KILLED_STEP is a number"));
    step.unwrap_or(60)
}

/// Whether calls that have an effect, and those after them, are tried whatever the step.
fn all_effects() -> bool {
    env::var_os("KILLED_EFFECTS").is_some_and(|word| !word.is_empty())
}

/// What is to befall the command: at one of `step` calls, and where much depends on it.
fn plan(calls: &[Call], step: usize, all_effects: bool) -> Vec<(usize, Fault)> {
    let mut plan = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        // What starts a process or thread is always tried: there are few.
        let starts = call.number as nix::libc::c_long == nix::libc::SYS_clone3;
        let follows = at > 0 && has_effects(calls[at - 1]);
        let faults = failures(*call).iter().map(|errno| Fault::Fail(call.number, *errno));
        for (kind, fault) in std::iter::once(Fault::Kill).chain(faults).enumerate() {
            let is_effect = has_effects(*call) || follows && fault == Fault::Kill;
            if starts || all_effects && is_effect || (at + 7 * kind) % step == 0 {
                plan.push((at, fault));
            }
        }
    }
    plan
}

/// A fault at any of its calls leaves traffic flowing and nothing behind.
fn faults(case: &Case) {
    let Some(scene) = Scene::new(case.kind) else { return };
    let calls = run(&scene, case, None).expect("without a fault nothing is left");
    let (mut killed, mut wrong) = (0, Vec::new());
    let plan = plan(&calls, step(), all_effects());
    println!("{}: {} calls, {} runs", case.name, calls.len(), plan.len());
    for (at, fault) in &plan {
        killed += usize::from(*fault == Fault::Kill);
        if let Err(why) = run(&scene, case, Some((*at, *fault))) {
            let number = calls[*at].number;
            println!("{}: call {at} ({number}), {fault:?}: {why}", case.name);
            wrong.push((*at, *fault));
        }
    }
    println!("{}: {killed} killed, {} failed", case.name, plan.len() - killed);
    assert!(wrong.is_empty(), "{}: {wrong:?}", case.name);
}

/// Two commands at once leave traffic flowing and nothing behind.
fn races(race: &Race) {
    let Some(scene) = Scene::new(race.case.kind) else { return };
    let (name, mut came, mut wrong) = (race.case.name, 0, Vec::new());
    let calls = run(&scene, &race.case, None).expect("alone nothing is left");
    let places = places(&calls, step(), all_effects());
    for at in &places {
        match run_race(&scene, race, *at) {
            Ok(rival) => came += usize::from(rival),
            Err(why) => {
                println!("{name}: call {at} ({}): {why}", calls[*at].number);
                wrong.push(*at);
            }
        }
    }
    println!("race {name}: {} calls, {} places, {came} came", calls.len(), places.len());
    assert!(wrong.is_empty(), "{name}: {wrong:?}");
}

/// Where the rival comes: at three places of a short command at least.
fn places(calls: &[Call], step: usize, all_effects: bool) -> BTreeSet<usize> {
    let step = (4 * step - 3).min(calls.len() / 3);
    let mut places: BTreeSet<_> = (step / 2..calls.len()).step_by(step).collect();
    if all_effects {
        places.extend((0..calls.len()).filter(|at| has_effects(calls[*at])));
    }
    places
}

/// A test for each: most of a run is waiting, so that they may as well wait side by side.
macro_rules! tests {
    ($($test:ident: $judge:ident($case:ident),)*) => {
        $(
            #[test]
            fn $test() {
                $judge(&cases::$case);
            }
        )*
    };
}

tests! {
    attach: faults(ATTACH_CASE),
    attach_both_directions: faults(BOTH_CASE),
    change: faults(CHANGE_CASE),
    show: faults(SHOW_CASE),
    detach: faults(DETACH_CASE),
    doctor: faults(DOCTOR_CASE),
    bridge: faults(BRIDGE_CASE),
    bridge_by_xdp: faults(XDP_BRIDGE_CASE),
    kernel_attach: faults(KERNEL_ATTACH_CASE),
    kernel_change: faults(KERNEL_CHANGE_CASE),
    kernel_detach: faults(KERNEL_DETACH_CASE),
    kernel_register: faults(REGISTER_CASE),
    kernel_unregister: faults(UNREGISTER_CASE),
    two_attach: races(TWO_ATTACH),
    attach_and_detach: races(ATTACH_AND_DETACH),
    change_and_detach: races(CHANGE_AND_DETACH),
    detach_and_attach: races(DETACH_AND_ATTACH),
    two_detach: races(TWO_DETACH),
    bridge_and_attach: races(BRIDGE_AND_ATTACH),
    bridge_and_detach: races(BRIDGE_AND_DETACH),
    kernel_two_register: races(TWO_REGISTER),
    kernel_register_and_unregister: races(REGISTER_AND_UNREGISTER),
    kernel_unregister_and_register: races(UNREGISTER_AND_REGISTER),
    kernel_two_unregister: races(TWO_UNREGISTER),
}
