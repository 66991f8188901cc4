//! What a table is: rows of typed cells under columns that are defined once.

use std::sync::Arc;

/// Shared text: thousands of rows name the same scheduler.
pub type Text = Arc<str>;

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name; ends in its unit where it has one.
    pub name: &'static str,
    /// What its cells hold.
    pub kind: Kind,
    /// Whether cells may be empty.
    pub nullable: bool,
    /// The unit, in words.
    pub unit: &'static str,
    /// What it means, as lines of text.
    pub meaning: &'static [&'static str],
}

impl Column {
    /// What it means, as one line.
    #[must_use]
    pub fn meaning(&self) -> String {
        joined(self.meaning)
    }
}

/// Lines of documentation as one.
pub(crate) fn joined(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// What the cells of a column hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Boolean,
    /// A signed 64-bit number.
    Integer,
    /// A 64-bit floating-point number.
    Float,
    /// UTF-8 text.
    Text,
}

impl Kind {
    /// Its name in documentation.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Float => "float",
            Self::Text => "text",
        }
    }
}

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Empty: not known, or not applicable.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A number.
    Float(f64),
    /// Text.
    Text(Text),
}

/// A row of a table.
pub trait Row {
    /// The table's name, and that of its file.
    const TABLE: &'static str;
    /// What a row stands for, as lines of text.
    const ABOUT: &'static [&'static str];

    /// The columns, in order.
    fn columns() -> Vec<Column>;

    /// Hands out one value per column, in order.
    fn cells(&self, put: &mut dyn FnMut(Value));
}

/// A type that fits in a cell.
pub trait Cell {
    /// What the column holds.
    const KIND: Kind;
    /// Whether the cell may be empty.
    const NULLABLE: bool = false;

    /// The cell.
    fn value(&self) -> Value;
}

impl Cell for bool {
    const KIND: Kind = Kind::Boolean;
    fn value(&self) -> Value {
        Value::Boolean(*self)
    }
}

/// Numbers above 2^63 - 1 ("never") are written as 2^63 - 1: signed columns are what readers
/// subtract safely.
impl Cell for u64 {
    const KIND: Kind = Kind::Integer;
    fn value(&self) -> Value {
        Value::Integer(i64::try_from(*self).unwrap_or(i64::MAX))
    }
}

impl Cell for f64 {
    const KIND: Kind = Kind::Float;
    fn value(&self) -> Value {
        Value::Float(*self)
    }
}

impl Cell for Text {
    const KIND: Kind = Kind::Text;
    fn value(&self) -> Value {
        Value::Text(Self::clone(self))
    }
}

impl<T: Cell> Cell for Option<T> {
    const KIND: Kind = T::KIND;
    const NULLABLE: bool = true;
    fn value(&self) -> Value {
        self.as_ref().map_or(Value::Null, Cell::value)
    }
}

/// Defines a record: each field is a column, its doc comment the meaning. With the name of a
/// table, the record is a row of it, and begins with the columns of [`crate::Key`].
macro_rules! table {
    (
        $(#[doc = $about:literal])+
        $name:ident {
            $($(#[doc = $meaning:literal])+ $column:ident: $type:ty [$unit:literal],)+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
        pub struct $name {
            $($(#[doc = $meaning])+ pub $column: $type,)+
        }

        $crate::table::record! { $name { $($(#[doc = $meaning])+ $column: $type [$unit],)+ } }
    };
    (
        $(#[doc = $about:literal])+
        $table:literal $name:ident {
            $($(#[doc = $meaning:literal])+ $column:ident: $type:ty [$unit:literal],)+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
        pub struct $name {
            /// Which run of what the row belongs to.
            #[serde(flatten)]
            pub key: $crate::Key,
            $($(#[doc = $meaning])+ pub $column: $type,)+
        }

        $crate::table::record! { $name { $($(#[doc = $meaning])+ $column: $type [$unit],)+ } }

        impl $crate::Row for $name {
            const TABLE: &'static str = $table;
            const ABOUT: &'static [&'static str] = &[$($about),+];

            fn columns() -> Vec<$crate::Column> {
                [&$crate::Key::OWN_COLUMNS[..], Self::OWN_COLUMNS].concat()
            }

            fn cells(&self, put: &mut dyn FnMut($crate::Value)) {
                self.key.own_cells(put);
                self.own_cells(put);
            }
        }
    };
}
pub(crate) use table;

/// The columns and cells of a record's own fields.
macro_rules! record {
    ($name:ident {
        $($(#[doc = $meaning:literal])+ $column:ident: $type:ty [$unit:literal],)+
    }) => {
        impl $name {
            pub(crate) const OWN_COLUMNS: &'static [$crate::Column] = &[$($crate::Column {
                name: stringify!($column),
                kind: <$type as $crate::Cell>::KIND,
                nullable: <$type as $crate::Cell>::NULLABLE,
                unit: $unit,
                meaning: &[$($meaning),+],
            }),+];

            pub(crate) fn own_cells(&self, put: &mut dyn FnMut($crate::Value)) {
                $(put($crate::Cell::value(&self.$column));)+
            }
        }
    };
}
pub(crate) use record;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_is_the_largest_number() {
        assert_eq!(5u64.value(), Value::Integer(5));
        assert_eq!(u64::MAX.value(), Value::Integer(i64::MAX));
        assert_eq!(None::<u64>.value(), Value::Null);
    }
}
