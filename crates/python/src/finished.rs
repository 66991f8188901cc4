//! What came of a run, on its way to Python.

use measure::AnyRow;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::columns::Columns;
use crate::errors::RunError;
use crate::table::Table;

/// What came of a run; `info` and `summary` are for `json.loads`.
#[pyclass(frozen, get_all, module = "shortlane._native")]
pub struct Finished {
    /// Content of `run.json`.
    info: String,
    /// The summary.
    summary: String,
    /// What the command prints.
    text: String,
    /// Why it ended before its time.
    ended_early: Option<String>,
    /// What should be known before the figures are believed.
    warnings: Vec<String>,
    /// The tables that were kept, by name.
    tables: Py<PyDict>,
}

/// The same before it is Python's.
pub(crate) struct Done {
    pub(crate) kept: Kept,
    pub(crate) info: String,
    pub(crate) summary: String,
    pub(crate) text: String,
    pub(crate) ended_early: Option<String>,
    pub(crate) warnings: Vec<String>,
}

impl Done {
    pub(crate) fn into_finished(self, py: Python<'_>) -> PyResult<Finished> {
        let Self { kept, info, summary, text, ended_early, warnings } = self;
        let tables = kept.into_tables(py)?;
        Ok(Finished { info, summary, text, ended_early, warnings, tables })
    }
}

/// The tables that are kept, each at its place in [`measure::tables`].
pub(crate) struct Kept(Vec<(&'static str, Option<Columns>)>);

impl Kept {
    pub(crate) fn new(wanted: &[String]) -> Self {
        let tables = measure::tables().into_iter().map(|table| {
            let is_wanted = wanted.iter().any(|name| name == table.name);
            (table.name, is_wanted.then(|| Columns::new(&table.columns)))
        });
        Self(tables.collect())
    }

    /// Whether rows of packets are kept.
    pub(crate) fn has_events(&self) -> bool {
        self.0.iter().any(|(name, columns)| *name == "events" && columns.is_some())
    }

    /// Whether other rows are.
    pub(crate) fn has_tables(&self) -> bool {
        self.0.iter().any(|(name, columns)| *name != "events" && columns.is_some())
    }

    pub(crate) fn push(&mut self, row: AnyRow<'_>) {
        if let Some(columns) = &mut self.0[row.table()].1 {
            columns.push(|put| row.cells(put));
        }
    }

    fn into_tables(self, py: Python<'_>) -> PyResult<Py<PyDict>> {
        let tables = PyDict::new(py);
        for (name, columns) in self.0 {
            if let Some(columns) = columns {
                tables.set_item(name, Py::new(py, Table::from(columns))?)?;
            }
        }
        Ok(tables.unbind())
    }
}

pub(crate) fn json(document: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(document).map_err(|error| RunError::new_err(error.to_string()))
}
