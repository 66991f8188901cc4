//! A table to a file, row by row.

use std::io::{self, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use crate::any::Table;
use crate::file::{NewFile, WriteError};
use crate::run::SCHEMA_VERSION;
use crate::table::{Column, Kind, Row, Value};

/// A file format of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Parquet, compressed with zstd.
    #[default]
    Parquet,
    /// CSV with a header line; empty cells are empty.
    Csv,
}

impl Format {
    /// The end of file names.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Csv => "csv",
        }
    }

    /// The format that a file name asks for: `.parquet` or `.csv`.
    #[must_use]
    pub fn of_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?;
        [Self::Parquet, Self::Csv].into_iter().find(|format| extension == format.extension())
    }
}

/// Writes the rows of one table to one file, which appears when [`TableWriter::finish`] has
/// succeeded. A writer that failed, or is dropped, leaves nothing.
pub struct TableWriter<R> {
    writer: AnyWriter,
    row: PhantomData<fn(R)>,
}

/// The same for rows whose type is known only at run time.
pub struct AnyWriter {
    sink: Sink,
    rows: u64,
}

enum Sink {
    Parquet(ParquetSink),
    Csv(csv::Writer<NewFile>),
}

impl<R: Row> TableWriter<R> {
    /// Opens a temporary file beside `path`.
    ///
    /// # Errors
    /// If that is not possible: no such directory, no permission.
    pub fn create(path: &Path, format: Format) -> Result<Self, WriteError> {
        let writer = AnyWriter::create(path, format, &Table::of::<R>())?;
        Ok(Self { writer, row: PhantomData })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If the file cannot be written; the writer is of no more use then.
    pub fn push(&mut self, row: &R) -> Result<(), WriteError> {
        self.writer.push(|put| row.cells(put))
    }

    /// Rows so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.writer.rows
    }

    /// Completes the file and gives it its name.
    ///
    /// # Errors
    /// If the file cannot be written; nothing has changed under its name then.
    pub fn finish(self) -> Result<(), WriteError> {
        self.close()?.publish()
    }

    /// Completes the file and gives it another name in the same directory.
    ///
    /// # Errors
    /// If the file cannot be written; nothing has changed under either name then.
    pub fn finish_as(self, name: impl FnOnce(&Path) -> PathBuf) -> Result<(), WriteError> {
        let mut file = self.close()?;
        file.rename(name(file.path()));
        file.publish()
    }

    /// Completes the file under its temporary name.
    pub(crate) fn close(self) -> Result<NewFile, WriteError> {
        self.writer.close()
    }
}

impl AnyWriter {
    /// Opens a temporary file beside `path`.
    ///
    /// # Errors
    /// If that is not possible: no such directory, no permission.
    pub fn create(path: &Path, format: Format, table: &Table) -> Result<Self, WriteError> {
        let file = NewFile::create(path)?;
        let sink = match format {
            Format::Parquet => Sink::Parquet(ParquetSink::new(file, &table.columns, table.name)?),
            Format::Csv => {
                let mut csv = csv::Writer::from_writer(file);
                let header = csv.write_record(table.columns.iter().map(|column| column.name));
                header.map_err(|e| csv.get_ref().error(csv_error(e)))?;
                Sink::Csv(csv)
            }
        };
        Ok(Self { sink, rows: 0 })
    }

    /// Adds a row, whose cells `cells` hands out in the order of the columns.
    ///
    /// # Errors
    /// If the file cannot be written; the writer is of no more use then.
    pub fn push(&mut self, cells: impl FnOnce(&mut dyn FnMut(Value))) -> Result<(), WriteError> {
        self.rows += 1;
        match &mut self.sink {
            Sink::Parquet(parquet) => parquet.push(cells),
            Sink::Csv(csv) => {
                let mut written = Ok(());
                cells(&mut |value| {
                    if written.is_ok() {
                        written = write_cell(csv, &value);
                    }
                });
                written
                    .and_then(|()| csv.write_record(None::<&[u8]>))
                    .map_err(|e| csv.get_ref().error(csv_error(e)))
            }
        }
    }

    /// Completes the file under its temporary name.
    pub(crate) fn close(self) -> Result<NewFile, WriteError> {
        let file = match self.sink {
            Sink::Parquet(parquet) => parquet.close()?,
            Sink::Csv(mut csv) => {
                csv.flush().map_err(|source| csv.get_ref().error(source))?;
                let path = csv.get_ref().path().to_path_buf();
                csv.into_inner().map_err(|error| WriteError { path, source: error.into_error() })?
            }
        };
        file.sync()?;
        Ok(file)
    }
}

fn write_cell(csv: &mut csv::Writer<NewFile>, value: &Value) -> csv::Result<()> {
    match value {
        Value::Null => csv.write_field(""),
        Value::Boolean(value) => csv.write_field(if *value { "true" } else { "false" }),
        Value::Integer(value) => {
            // The longest number has 20 characters.
            let mut digits = [0; 20];
            let mut rest = &mut digits[..];
            write!(rest, "{value}")?;
            let unused = rest.len();
            csv.write_field(&digits[..20 - unused])
        }
        Value::Float(value) => csv.write_field(value.to_string()),
        Value::Text(value) => csv.write_field(&**value),
    }
}

/// Rows are held by column until they fill a row group.
struct ParquetSink {
    writer: SerializedFileWriter<NewFile>,
    columns: Vec<Buffer>,
    rows: usize,
}

const ROW_GROUP: usize = 1 << 16;

/// The cells of one column: values of those that are not empty, and which those are.
struct Buffer {
    values: Values,
    /// 1 for a value, 0 for none; stays empty where the column is not nullable.
    levels: Option<Vec<i16>>,
}

enum Values {
    Boolean(Vec<bool>),
    Integer(Vec<i64>),
    Float(Vec<f64>),
    Text(Vec<ByteArray>),
}

impl ParquetSink {
    fn new(file: NewFile, columns: &[Column], table: &str) -> Result<Self, WriteError> {
        let path = file.path().to_path_buf();
        let open = || {
            let version = KeyValue::new("shortlane.schema".into(), SCHEMA_VERSION.to_string());
            let properties = WriterProperties::builder()
                .set_compression(Compression::ZSTD(ZstdLevel::default()))
                .set_created_by(concat!("shortlane ", env!("CARGO_PKG_VERSION")).into())
                .set_key_value_metadata(Some(vec![version]))
                .build();
            let schema = Arc::new(parquet_schema(columns, table)?);
            SerializedFileWriter::new(file, schema, Arc::new(properties))
        };
        let writer = open().map_err(|e| WriteError { path, source: io_error(e) })?;
        Ok(Self { writer, columns: columns.iter().map(Buffer::new).collect(), rows: 0 })
    }

    fn push(&mut self, cells: impl FnOnce(&mut dyn FnMut(Value))) -> Result<(), WriteError> {
        let mut columns = self.columns.iter_mut();
        cells(&mut |value| columns.next().expect("a column for every cell").push(value));
        self.rows += 1;
        if self.rows == ROW_GROUP { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        self.rows = 0;
        let Self { writer, columns, .. } = self;
        let write = || {
            let mut group = writer.next_row_group()?;
            for buffer in columns {
                let mut column = group.next_column()?.expect("the schema has every column");
                buffer.drain_into(&mut column)?;
                column.close()?;
            }
            group.close().map(drop)
        };
        write().map_err(|e| self.writer.inner().error(io_error(e)))
    }

    fn close(mut self) -> Result<NewFile, WriteError> {
        if self.rows > 0 {
            self.flush()?;
        }
        let path = self.writer.inner().path().to_path_buf();
        self.writer.into_inner().map_err(|e| WriteError { path, source: io_error(e) })
    }
}

impl Buffer {
    fn new(column: &Column) -> Self {
        let values = match column.kind {
            Kind::Boolean => Values::Boolean(Vec::new()),
            Kind::Integer => Values::Integer(Vec::new()),
            Kind::Float => Values::Float(Vec::new()),
            Kind::Text => Values::Text(Vec::new()),
        };
        Self { values, levels: column.nullable.then(Vec::new) }
    }

    fn push(&mut self, value: Value) {
        if let Some(levels) = &mut self.levels {
            levels.push(i16::from(value != Value::Null));
        }
        match (&mut self.values, value) {
            (_, Value::Null) => assert!(self.levels.is_some(), "an empty cell where none may be"),
            (Values::Boolean(values), Value::Boolean(value)) => values.push(value),
            (Values::Integer(values), Value::Integer(value)) => values.push(value),
            (Values::Float(values), Value::Float(value)) => values.push(value),
            (Values::Text(values), Value::Text(value)) => values.push(ByteArray::from(&*value)),
            (_, value) => unreachable!("{value:?} in a column of another kind"),
        }
    }

    fn drain_into(&mut self, column: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = self.levels.as_deref();
        match &mut self.values {
            Values::Boolean(values) => {
                column.typed::<BoolType>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Integer(values) => {
                column.typed::<Int64Type>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Float(values) => {
                column.typed::<DoubleType>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Text(values) => {
                column.typed::<ByteArrayType>().write_batch(values, levels, None)?;
                values.clear();
            }
        }
        if let Some(levels) = &mut self.levels {
            levels.clear();
        }
        Ok(())
    }
}

fn parquet_schema(columns: &[Column], table: &str) -> Result<Type, ParquetError> {
    let field = |column: &Column| {
        let (physical, logical) = match column.kind {
            Kind::Boolean => (Physical::BOOLEAN, None),
            Kind::Integer => (Physical::INT64, None),
            Kind::Float => (Physical::DOUBLE, None),
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = if column.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        Type::primitive_type_builder(column.name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build()
            .map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
    Type::group_type_builder(table).with_fields(fields).build()
}

fn csv_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// The system's error where one is at the bottom of it.
fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}
