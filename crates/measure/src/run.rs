//! A directory of results: the tables, and `run.json` beside them.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::any::{AnyRow, Table};
use crate::file::{NewFile, WriteError, json_file};
use crate::schema::{Advance, Block, DropCount, Flow, LinkUse, Probe, Sample};
use crate::table::Row;
use crate::writer::{AnyWriter, Format, TableWriter};

/// Changes when a column changes its meaning or goes; new columns leave it alone.
pub const SCHEMA_VERSION: u32 = 1;

/// What was run, where, and on what: the content of `run.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// The run's name, as in column `run`.
    pub run: String,
    /// What the queues were: `simulator`, `userspace`, `kernel`; not told of a replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// [`SCHEMA_VERSION`].
    pub schema: u32,
    /// The command line.
    pub command: Vec<String>,
    /// Version of Shortlane.
    pub version: String,
    /// When it started, RFC 3339; not told of simulations, whose results depend on neither clock
    /// nor machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// The machine; likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// Why it ended before its time; what is there is what was complete by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<String>,
    /// The seed that all others derive from.
    pub seed: u64,
    /// Everything that was set, explicitly or by default.
    pub scenario: serde_json::Value,
}

/// The machine that a run was done on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Kernel release; empty where unknown.
    pub kernel: String,
    /// CPU model; empty where unknown.
    pub cpu: String,
    /// Processors that this process may use.
    pub processors: usize,
}

impl Machine {
    /// This machine.
    #[must_use]
    pub fn here() -> Self {
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Self {
            kernel: kernel.trim().to_string(),
            cpu: cpu_model(&cpu),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

fn cpu_model(cpuinfo: &str) -> String {
    let model = cpuinfo
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| matches!(key.trim(), "model name" | "Model" | "cpu model"));
    model.map_or_else(String::new, |(_, name)| name.trim().to_string())
}

/// A directory of results under way: a writer per table. Files appear when
/// [`Results::finish`] has succeeded; dropped before, nothing is left.
pub struct Results {
    directory: PathBuf,
    /// Table `blocks`.
    pub blocks: TableWriter<Block>,
    /// Table `links`.
    pub links: TableWriter<LinkUse>,
    /// Table `flows`.
    pub flows: TableWriter<Flow>,
    /// Table `progress`.
    pub progress: TableWriter<Advance>,
    /// Table `probes`.
    pub probes: TableWriter<Probe>,
    /// Table `samples`.
    pub samples: TableWriter<Sample>,
    /// Table `drops`.
    pub drops: TableWriter<DropCount>,
}

impl Results {
    /// Makes the directory if need be, and opens a temporary file per table: a directory that
    /// cannot be written is found out before the run, not after.
    ///
    /// # Errors
    /// If that is not possible.
    pub fn create(directory: &Path, format: Format) -> Result<Self, WriteError> {
        fs::create_dir_all(directory)
            .map_err(|source| WriteError { path: directory.into(), source })?;
        Ok(Self {
            directory: directory.into(),
            blocks: table(directory, format)?,
            links: table(directory, format)?,
            flows: table(directory, format)?,
            progress: table(directory, format)?,
            probes: table(directory, format)?,
            samples: table(directory, format)?,
            drops: table(directory, format)?,
        })
    }

    /// Adds a row to its table; the rows of [`crate::PacketEvent`] have a file of their own, and
    /// are none of these.
    ///
    /// # Errors
    /// If the file cannot be written; the directory is of no more use then.
    pub fn push(&mut self, row: AnyRow<'_>) -> Result<(), WriteError> {
        match row {
            AnyRow::Block(row) => self.blocks.push(row),
            AnyRow::LinkUse(row) => self.links.push(row),
            AnyRow::Flow(row) => self.flows.push(row),
            AnyRow::Advance(row) => self.progress.push(row),
            AnyRow::Probe(row) => self.probes.push(row),
            AnyRow::Sample(row) => self.samples.push(row),
            AnyRow::DropCount(row) => self.drops.push(row),
            AnyRow::PacketEvent(_) => Ok(()),
        }
    }

    /// Completes all tables, then gives them their names, `run.json` last: a directory with
    /// `run.json` is complete.
    ///
    /// # Errors
    /// If a file cannot be written; no table has its name then, unless the renaming itself failed.
    pub fn finish(self, info: &RunInfo) -> Result<(), WriteError> {
        let files = [
            self.blocks.close()?,
            self.links.close()?,
            self.flows.close()?,
            self.progress.close()?,
            self.probes.close()?,
            self.samples.close()?,
            self.drops.close()?,
            json_file(&self.directory.join("run.json"), info)?,
        ];
        files.into_iter().try_for_each(NewFile::publish)
    }
}

/// A directory of results under way, of tables that are known only at run time.
pub struct AnyResults {
    directory: PathBuf,
    format: Format,
    files: Vec<NewFile>,
}

impl AnyResults {
    /// Makes the directory if need be.
    ///
    /// # Errors
    /// If that is not possible.
    pub fn create(directory: &Path, format: Format) -> Result<Self, WriteError> {
        fs::create_dir_all(directory)
            .map_err(|source| WriteError { path: directory.into(), source })?;
        Ok(Self { directory: directory.into(), format, files: Vec::new() })
    }

    /// Adds a table; `write` is to push its rows.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add(
        &mut self,
        table: &Table,
        write: impl FnOnce(&mut AnyWriter) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        let path = self.directory.join(format!("{}.{}", table.name, self.format.extension()));
        let mut writer = AnyWriter::create(&path, self.format, table)?;
        write(&mut writer)?;
        self.files.push(writer.close()?);
        Ok(())
    }

    /// Gives all tables their names, `run.json` last: a directory with `run.json` is complete.
    ///
    /// # Errors
    /// If a file cannot be written; no table has its name then, unless the renaming itself failed.
    pub fn finish(mut self, info: &RunInfo) -> Result<(), WriteError> {
        self.files.push(json_file(&self.directory.join("run.json"), info)?);
        self.files.into_iter().try_for_each(NewFile::publish)
    }
}

fn table<R: Row>(directory: &Path, format: Format) -> Result<TableWriter<R>, WriteError> {
    let name = format!("{}.{}", R::TABLE, format.extension());
    TableWriter::create(&directory.join(name), format)
}
