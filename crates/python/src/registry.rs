//! What there is: disciplines, ready scenarios, tables.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// Every discipline, as JSON.
#[pyfunction]
pub fn schedulers() -> String {
    cli::disciplines().to_string()
}

/// Every section of a scenario with its keys, as JSON.
#[pyfunction]
pub fn sections() -> String {
    scenario::reference().to_string()
}

/// The ready scenarios: name and TOML text.
#[pyfunction]
pub fn scenarios() -> Vec<(&'static str, &'static str)> {
    scenario::library::ALL.iter().map(|ready| (ready.name, ready.text)).collect()
}

/// Every table of results with its columns, in order.
#[pyfunction]
pub fn schema(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let tables = PyDict::new(py);
    for table in measure::tables() {
        let columns = PyList::empty(py);
        for column in &table.columns {
            let entry = PyDict::new(py);
            entry.set_item("name", column.name)?;
            entry.set_item("kind", column.kind.name())?;
            entry.set_item("nullable", column.nullable)?;
            entry.set_item("unit", column.unit)?;
            entry.set_item("meaning", column.meaning())?;
            columns.append(entry)?;
        }
        tables.set_item(table.name, columns)?;
    }
    Ok(tables)
}
