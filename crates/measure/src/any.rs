//! Tables and rows whose type is known only at run time.

use crate::events::PacketEvent;
use crate::schema::{Advance, Block, DropCount, Flow, LinkUse, Probe, Sample};
use crate::table::{Column, Row, Value};

/// The definition of a table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name, and that of its file.
    pub name: &'static str,
    /// What a row stands for, as lines of text.
    pub about: &'static [&'static str],
    /// Its columns, in order.
    pub columns: Vec<Column>,
}

impl Table {
    /// The table of these rows.
    #[must_use]
    pub fn of<R: Row>() -> Self {
        Self { name: R::TABLE, about: R::ABOUT, columns: R::columns() }
    }
}

macro_rules! tables {
    ($($variant:ident),*) => {
        /// A row of some table.
        #[derive(Clone, Copy, Debug)]
        pub enum AnyRow<'a> {
            $(
                #[doc = concat!("A row of the table of [`", stringify!($variant), "`].")]
                $variant(&'a $variant),
            )*
        }

        /// Every table, in the order of the documentation; the one of `--events` last.
        #[must_use]
        pub fn tables() -> Vec<Table> {
            vec![$(Table::of::<$variant>()),*]
        }

        impl AnyRow<'_> {
            /// The place of its table in [`tables`].
            #[must_use]
            pub const fn table(&self) -> usize {
                enum Place { $($variant),* }
                match self { $(Self::$variant(_) => Place::$variant as usize),* }
            }

            /// Hands out one value per column, in order.
            pub fn cells(&self, put: &mut dyn FnMut(Value)) {
                match self { $(Self::$variant(row) => row.cells(put)),* }
            }
        }
    };
}

tables![Block, LinkUse, Flow, Advance, Probe, Sample, DropCount, PacketEvent];
