//! Reads tables of a TOML document key by key; every refusal names file, line, key, what was
//! found and what is accepted. Keys that a section does not define are refused here, and only here.

mod values;

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::error::ScenarioError;
use crate::key::{Default, KeyDef, Section, Takes, names};
use values::Written;

/// The text of a scenario, for the lines of errors.
pub(crate) struct Source<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
    /// Stands for tables that are not written.
    nothing: DeTable<'a>,
}

impl<'a> Source<'a> {
    pub(crate) fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, text, nothing: DeTable::new() }
    }

    fn line(&self, at: usize) -> usize {
        self.text.as_bytes()[..at.min(self.text.len())].iter().filter(|b| **b == b'\n').count() + 1
    }

    pub(crate) fn error(&self, span: &Range<usize>, what: String) -> ScenarioError {
        ScenarioError::at(self.file, self.line(span.start), what)
    }

    /// The first line of what stands there.
    pub(crate) fn found(&self, span: &Range<usize>) -> String {
        const LONGEST: usize = 60;
        let found = self.text.get(span.clone()).unwrap_or_default();
        let line = found.lines().next().unwrap_or_default().trim();
        if line.chars().count() <= LONGEST && line.len() == found.trim().len() {
            return line.to_owned();
        }
        line.chars().take(LONGEST).chain("...".chars()).collect()
    }
}

/// Parses a document.
pub(crate) fn parse<'a>(source: &Source<'a>) -> Result<toml::Spanned<DeTable<'a>>, ScenarioError> {
    DeTable::parse(source.text).map_err(|error| {
        let what = format!("not TOML: {}", error.message().replace('\n', " "));
        source.error(&error.span().unwrap_or(0..0), what)
    })
}

/// One table of the document under the definition of its keys.
pub(crate) struct Table<'a> {
    source: &'a Source<'a>,
    section: &'static Section,
    table: &'a DeTable<'a>,
    span: Range<usize>,
    path: String,
}

impl<'a> Table<'a> {
    /// The document itself.
    pub(crate) fn root(
        source: &'a Source<'a>,
        section: &'static Section,
        document: &'a toml::Spanned<DeTable<'a>>,
    ) -> Result<Self, ScenarioError> {
        Self::new(source, section, document.get_ref(), document.span(), String::new())
    }

    fn new(
        source: &'a Source<'a>,
        section: &'static Section,
        table: &'a DeTable<'a>,
        span: Range<usize>,
        path: String,
    ) -> Result<Self, ScenarioError> {
        let this = Self { source, section, table, span, path };
        match table.keys().find(|key| section.defs().all(|def| *def.name != **key.get_ref())) {
            None => Ok(this),
            Some(key) => Err(source.error(&key.span(), this.unknown(key.get_ref()))),
        }
    }

    fn unknown(&self, found: &str) -> String {
        let distance = |def: &&'static KeyDef| strsim::damerau_levenshtein(def.name, found);
        let hint = self.section.defs().min_by_key(distance).filter(|def| distance(def) <= 2);
        let hint = hint.map_or(String::new(), |def| format!("; did you mean '{}'?", def.name));
        let place = if self.path.is_empty() { "a scenario" } else { &self.path };
        format!("{place} has no key '{found}'{hint}; it takes {}", names(self.section))
    }

    /// The key as it is written in full: `topology.bottleneck.rate`.
    fn full(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Where it stands: `topology.bottleneck`.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Whether the section has such a key.
    pub(crate) fn defines(&self, key: &str) -> bool {
        self.section.defs().any(|def| def.name == key)
    }

    /// Whether the key is written.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// The refusal of a key's value; `accepted` continues "it takes".
    pub(crate) fn refuse(&self, key: &str, accepted: &str) -> ScenarioError {
        self.wrong(key, &format!("is not accepted; it takes {accepted}"))
    }

    /// What is wrong with a key's value, in other words.
    pub(crate) fn wrong(&self, key: &str, what: &str) -> ScenarioError {
        let full = self.full(key);
        match self.table.get(key) {
            Some(value) => {
                let found = self.source.found(&value.span());
                self.source.error(&value.span(), format!("{full} = {found} {what}"))
            }
            None => self.source.error(&self.span, format!("{full}, which is not given, {what}")),
        }
    }

    /// What is wrong with the table as a whole.
    pub(crate) fn error(&self, what: impl Into<String>) -> ScenarioError {
        let place = if self.path.is_empty() { "the scenario" } else { &self.path };
        self.source.error(&self.span, format!("{place} {}", what.into()))
    }

    /// The error of a key that must be given.
    pub(crate) fn missing(&self, key: &str) -> ScenarioError {
        self.error(format!("needs '{key}'; it takes {}", self.section.key(key).takes))
    }

    /// Reads a key or its default with `parse`, which is to check the range as well.
    fn read<T>(
        &self,
        key: &str,
        parse: impl FnOnce(&Takes, Written<'a>) -> Option<T>,
    ) -> Result<Option<T>, ScenarioError> {
        let def = self.section.key(key);
        let written = match (self.table.get(key), def.default) {
            (Some(value), _) => Written::Toml(value.get_ref()),
            (None, Default::Is(text)) => Written::Default(text),
            (None, Default::Needed) => return Err(self.missing(key)),
            (None, Default::Words(_)) => return Ok(None),
        };
        let value = parse(&def.takes, written);
        value.map(Some).ok_or_else(|| self.refuse(key, &def.takes.to_string()))
    }

    /// The value of a key that is needed, or has a default.
    pub(crate) fn needed<T>(
        &self,
        key: &str,
        value: Result<Option<T>, ScenarioError>,
    ) -> Result<T, ScenarioError> {
        value?.ok_or_else(|| self.missing(key))
    }

    /// A table inside this one; where it is not written, one of nothing but defaults.
    pub(crate) fn table_or_defaults(&self, key: &str) -> Result<Table<'a>, ScenarioError> {
        if let Some(table) = self.table(key)? {
            return Ok(table);
        }
        let takes = &self.section.key(key).takes;
        let Takes::Table(section) = takes else { mistaken(key, takes) };
        Table::new(self.source, section, &self.source.nothing, self.span.clone(), self.full(key))
    }

    /// A table inside this one.
    pub(crate) fn table(&self, key: &str) -> Result<Option<Table<'a>>, ScenarioError> {
        let def = self.section.key(key);
        let Takes::Table(section) = def.takes else { mistaken(key, &def.takes) };
        match self.table.get(key) {
            None if def.default == Default::Needed => Err(self.missing(key)),
            None => Ok(None),
            Some(value) => match value.get_ref() {
                DeValue::Table(table) => {
                    Table::new(self.source, section, table, value.span(), self.full(key)).map(Some)
                }
                _ => Err(self.refuse(key, &def.takes.to_string())),
            },
        }
    }

    /// A list of tables inside this one. Each is read under the section that `choose` names, which
    /// may look at it first.
    pub(crate) fn tables(
        &self,
        key: &str,
        choose: impl Fn(&Chooser<'_, 'a>) -> Result<&'static Section, ScenarioError>,
    ) -> Result<Vec<Table<'a>>, ScenarioError> {
        let def = self.section.key(key);
        let items = match self.table.get(key) {
            None if def.default == Default::Needed => return Err(self.missing(key)),
            None => return Ok(Vec::new()),
            Some(value) => match value.get_ref() {
                DeValue::Array(items) => items,
                _ => return Err(self.refuse(key, &def.takes.to_string())),
            },
        };
        let one = |(index, item): (usize, &'a toml::Spanned<DeValue<'a>>)| {
            let path = format!("{}[{index}]", self.full(key));
            let DeValue::Table(table) = item.get_ref() else {
                return Err(self.refuse(key, &def.takes.to_string()));
            };
            let chooser = Chooser { parent: self, table, span: item.span(), path: path.clone() };
            Table::new(self.source, choose(&chooser)?, table, item.span(), path)
        };
        items.iter().enumerate().map(one).collect()
    }

    /// This table under another section, for tables whose keys depend on one of them.
    pub(crate) fn chooser(&self, key: &str) -> Result<Chooser<'_, 'a>, ScenarioError> {
        let value = self.table.get(key).ok_or_else(|| self.missing(key))?;
        let DeValue::Table(table) = value.get_ref() else {
            return Err(self.refuse(key, &self.section.key(key).takes.to_string()));
        };
        Ok(Chooser { parent: self, table, span: value.span(), path: self.full(key) })
    }
}

/// A table of which one word decides what else it takes.
pub(crate) struct Chooser<'t, 'a> {
    parent: &'t Table<'a>,
    table: &'a DeTable<'a>,
    span: Range<usize>,
    path: String,
}

impl<'a> Chooser<'_, 'a> {
    /// The section that the word under `key` stands for.
    pub(crate) fn by_word(
        &self,
        key: &str,
        choices: &[(&'static str, &'static Section)],
    ) -> Result<&'static Section, ScenarioError> {
        let source = self.parent.source;
        let words: Vec<String> = choices.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let words = words.join(", ");
        let Some(value) = self.table.get(key) else {
            let what = format!("{} needs '{key}'; it takes {words}", self.path);
            return Err(source.error(&self.span, what));
        };
        let chosen = choices.iter().find(|(word, _)| value.get_ref().as_str() == Some(word));
        chosen.map(|(_, section)| *section).ok_or_else(|| {
            let found = source.found(&value.span());
            let full = format!("{}.{key}", self.path);
            let what = format!("{full} = {found} is not accepted; it takes {words}");
            source.error(&value.span(), what)
        })
    }

    /// The table under a section.
    pub(crate) fn under(self, section: &'static Section) -> Result<Table<'a>, ScenarioError> {
        Table::new(self.parent.source, section, self.table, self.span, self.path)
    }
}

fn mistaken(key: &str, takes: &Takes) -> ! {
    panic!("{key} is read as another kind than {takes:?}")
}
