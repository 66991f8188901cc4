//! Files that appear whole or not at all.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tempfile::NamedTempFile;

/// A file of results that could not be written. Nothing stands under its name that did not
/// stand there before, and no temporary file is left.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// A file under a temporary name in the directory of its final one. Dropped, it is removed.
pub(crate) struct NewFile {
    path: PathBuf,
    temporary: NamedTempFile,
}

impl NewFile {
    pub(crate) fn create(path: &Path) -> Result<Self, WriteError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = tempfile::Builder::new()
            .prefix(&format!(".{name}."))
            .suffix(".tmp")
            // Unlike the default, leaves permissions to the umask and names of errors to us.
            .make_in(directory(path), |path| File::create_new(path))
            .map_err(|source| WriteError { path: path.into(), source })?;
        Ok(Self { path: path.into(), temporary })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Has it another name at the end, in the same directory.
    pub(crate) fn rename(&mut self, path: PathBuf) {
        self.path = path;
    }

    /// Has the content reach the disk, so that only the renaming is left to do.
    pub(crate) fn sync(&self) -> Result<(), WriteError> {
        self.temporary.as_file().sync_all().map_err(|source| self.error(source))
    }

    /// Gives the file its name.
    pub(crate) fn publish(self) -> Result<(), WriteError> {
        let Self { path, temporary } = self;
        match temporary.persist(&path) {
            Ok(_) => Ok(()),
            Err(error) => Err(WriteError { path, source: error.error }),
        }
    }

    pub(crate) fn error(&self, source: io::Error) -> WriteError {
        WriteError { path: self.path.clone(), source }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.temporary.as_file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.temporary.as_file_mut().flush()
    }
}

/// The directory in which a path's last name stands.
fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Writes `document` as indented JSON.
///
/// # Errors
/// If the file cannot be written; nothing has changed under its name then.
pub fn write_json(path: &Path, document: &impl Serialize) -> Result<(), WriteError> {
    let file = json_file(path, document)?;
    file.publish()
}

pub(crate) fn json_file(path: &Path, document: &impl Serialize) -> Result<NewFile, WriteError> {
    let mut file = NewFile::create(path)?;
    let text = serde_json::to_string_pretty(document).map_err(|e| file.error(e.into()))?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.write_all(b"\n"))
        .map_err(|source| file.error(source))?;
    file.sync()?;
    Ok(file)
}
