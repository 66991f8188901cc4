//! Rows of results into Arrow arrays, by the definitions of their columns.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringViewArray,
    builder::make_view,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use measure::{Column, Kind, Text, Value};

/// A batch has at most so many rows: enough that readers lose nothing by the number of batches.
const BATCH: usize = 1 << 20;

/// Bytes of text that a batch may hold: places in it are 32-bit numbers.
const MOST_TEXT: usize = 1 << 30;

/// A table that grows by rows.
pub(crate) struct Columns {
    schema: SchemaRef,
    columns: Vec<Growing>,
    rows: usize,
    batches: Vec<RecordBatch>,
}

impl Columns {
    pub(crate) fn new(columns: &[Column]) -> Self {
        Self {
            schema: Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>())),
            columns: columns.iter().map(Growing::new).collect(),
            rows: 0,
            batches: Vec::new(),
        }
    }

    /// Adds a row, whose cells `cells` hands out in order.
    pub(crate) fn push(&mut self, cells: impl FnOnce(&mut dyn FnMut(Value))) {
        let mut columns = self.columns.iter_mut();
        cells(&mut |value| columns.next().expect("a column for every cell").push(value));
        self.rows += 1;
        if self.rows == BATCH || self.columns.iter().any(Growing::is_full) {
            self.seal();
        }
    }

    /// The schema and the batches of all rows.
    pub(crate) fn finish(mut self) -> (SchemaRef, Vec<RecordBatch>) {
        if self.rows > 0 {
            self.seal();
        }
        (self.schema, self.batches)
    }

    fn seal(&mut self) {
        self.rows = 0;
        let arrays = self.columns.iter_mut().map(Growing::seal).collect::<Result<Vec<_>, _>>();
        let batch = arrays.and_then(|arrays| RecordBatch::try_new(self.schema.clone(), arrays));
        self.batches.push(batch.expect("columns are of one length and of their kinds"));
    }
}

fn field(column: &Column) -> Field {
    let kind = match column.kind {
        Kind::Boolean => DataType::Boolean,
        Kind::Integer => DataType::Int64,
        Kind::Float => DataType::Float64,
        Kind::Text => DataType::Utf8View,
    };
    Field::new(column.name, kind, column.nullable)
}

/// A column that grows by cells.
struct Growing {
    values: Values,
    /// Whether each cell has a value; `None` where every cell must have one.
    present: Option<Vec<bool>>,
}

enum Values {
    Boolean(Vec<bool>),
    Integer(Vec<i64>),
    Float(Vec<f64>),
    Text(Texts),
}

impl Growing {
    fn new(column: &Column) -> Self {
        let values = match column.kind {
            Kind::Boolean => Values::Boolean(Vec::new()),
            Kind::Integer => Values::Integer(Vec::new()),
            Kind::Float => Values::Float(Vec::new()),
            Kind::Text => Values::Text(Texts::default()),
        };
        Self { values, present: column.nullable.then(Vec::new) }
    }

    fn push(&mut self, value: Value) {
        if let Some(present) = &mut self.present {
            present.push(value != Value::Null);
        }
        match (&mut self.values, value) {
            (Values::Boolean(values), Value::Boolean(value)) => values.push(value),
            (Values::Integer(values), Value::Integer(value)) => values.push(value),
            (Values::Float(values), Value::Float(value)) => values.push(value),
            (Values::Text(values), Value::Text(value)) => values.push(value),
            (values, Value::Null) => {
                assert!(self.present.is_some(), "an empty cell where none may be");
                match values {
                    Values::Boolean(values) => values.push(false),
                    Values::Integer(values) => values.push(0),
                    Values::Float(values) => values.push(0.0),
                    Values::Text(values) => values.views.push(0),
                }
            }
            (_, value) => unreachable!("{value:?} in a column of another kind"),
        }
    }

    fn is_full(&self) -> bool {
        matches!(&self.values, Values::Text(texts) if texts.bytes.len() > MOST_TEXT)
    }

    /// The cells so far as an array; the column is empty then.
    fn seal(&mut self) -> Result<ArrayRef, ArrowError> {
        let present = self.present.as_mut().map(std::mem::take);
        let nulls = present.map(|present| NullBuffer::new(BooleanBuffer::from(present)));
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        Ok(match &mut self.values {
            Values::Boolean(values) => {
                let values = BooleanBuffer::from(std::mem::take(values));
                Arc::new(BooleanArray::new(values, nulls))
            }
            Values::Integer(values) => {
                Arc::new(Int64Array::try_new(std::mem::take(values).into(), nulls)?)
            }
            Values::Float(values) => {
                Arc::new(Float64Array::try_new(std::mem::take(values).into(), nulls)?)
            }
            Values::Text(texts) => {
                let Texts { views, bytes, .. } = std::mem::take(texts);
                let bytes: Arc<[Buffer]> = [Buffer::from_vec(bytes)].into();
                Arc::new(StringViewArray::try_new(ScalarBuffer::from(views), bytes, nulls)?)
            }
        })
    }
}

/// Texts as Arrow's string views. Thousands of rows in a row name the same scheduler: a text that
/// is the very one before takes no more than its view.
#[derive(Default)]
struct Texts {
    views: Vec<u128>,
    bytes: Vec<u8>,
    last: Option<(Text, u128)>,
}

impl Texts {
    fn push(&mut self, text: Text) {
        if let Some((last, view)) = &self.last
            && Arc::ptr_eq(last, &text)
        {
            self.views.push(*view);
            return;
        }
        let view = make_view(text.as_bytes(), 0, self.bytes.len() as u32);
        // Up to twelve bytes are in the view itself.
        if text.len() > 12 {
            self.bytes.extend_from_slice(text.as_bytes());
        }
        self.views.push(view);
        self.last = Some((text, view));
    }
}
