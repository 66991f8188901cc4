//! The extension module of the Python package: it converts, and decides nothing.
//!
//! What is written for people is in `python/shortlane`; this module is `shortlane._native`, private
//! to that package.
// Macros of the bindings make items that no other crate sees.
#![allow(unreachable_pub)]

mod columns;
mod command;
mod finished;
mod packet;
mod queue;
mod registry;
mod replay;
mod simulate;
mod stats;
mod table;
mod watch;
mod write;

use pyo3::prelude::*;

mod errors {
    pyo3::import_exception!(shortlane.errors, InputError);
    pyo3::import_exception!(shortlane.errors, RunError);
    pyo3::import_exception!(shortlane.errors, ScenarioError);
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add("SCHEMA_VERSION", measure::SCHEMA_VERSION)?;
    module.add_class::<table::Table>()?;
    module.add_class::<finished::Finished>()?;
    module.add_class::<packet::Packet>()?;
    module.add_class::<queue::Backlog>()?;
    module.add_class::<queue::Dropped>()?;
    module.add_class::<queue::Event>()?;
    module.add_class::<queue::Queue>()?;
    module.add_class::<queue::Wait>()?;
    module.add_function(wrap_pyfunction!(command::command_line, module)?)?;
    module.add_function(wrap_pyfunction!(registry::schedulers, module)?)?;
    module.add_function(wrap_pyfunction!(registry::scenarios, module)?)?;
    module.add_function(wrap_pyfunction!(registry::schema, module)?)?;
    module.add_function(wrap_pyfunction!(registry::sections, module)?)?;
    module.add_function(wrap_pyfunction!(write::write, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(replay::replay, module)?)?;
    module.add_function(wrap_pyfunction!(stats::mean, module)?)?;
    module.add_function(wrap_pyfunction!(stats::quantile, module)?)?;
    module.add_function(wrap_pyfunction!(stats::geometric_ratio, module)?)?;
    module.add_function(wrap_pyfunction!(stats::ratio_of_sums, module)?)?;
    module.add_function(wrap_pyfunction!(stats::bca, module)?)
}
