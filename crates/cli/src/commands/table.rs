//! Rows of named columns, printed as Kafka's tools do or as JSON.

use std::io::{self, IsTerminal, Write};

use serde_json::{Map, Value};

use crate::failure::Outcome;
use crate::standard_error::note;

/// The columns: heading, name in JSON, and least width.
pub type Columns = &'static [(&'static str, &'static str, usize)];

/// A table that is printed at the end.
#[derive(Debug)]
pub struct Table {
    columns: Columns,
    rows: Vec<Vec<Value>>,
}

impl Table {
    /// Creates an empty table.
    pub fn new(columns: Columns) -> Table {
        Table { columns, rows: Vec::new() }
    }

    /// Adds a row: a value for each column, null for an unknown one.
    pub fn add(&mut self, row: impl IntoIterator<Item = Value>) {
        self.rows.push(row.into_iter().collect());
    }

    /// Prints an array of objects if `as_json` is set, otherwise aligned columns with headings after an empty line.
    pub fn print(&self, as_json: bool) -> Outcome {
        let mut out = io::stdout().lock();
        if as_json {
            writeln!(out, "{}", Value::Array(self.rows.iter().map(|row| self.object(row)).collect()))?;
            return Ok(());
        }
        if self.rows.is_empty() {
            // In a pipe, nothing is what a script expects.
            if out.is_terminal() {
                note!("% there is nothing to list");
            }
            return Ok(());
        }
        writeln!(out, "\n{}", self.line(self.columns.iter().map(|(heading, ..)| (*heading).to_owned())))?;
        for row in &self.rows {
            writeln!(out, "{}", self.line(row.iter().map(shown)))?;
        }
        Ok(())
    }

    fn object(&self, row: &[Value]) -> Value {
        let names = self.columns.iter().map(|(_, name, _)| (*name).to_owned());
        Value::Object(names.zip(row.iter().cloned()).collect::<Map<_, _>>())
    }

    /// Aligns a line; the last column is not padded.
    fn line(&self, cells: impl Iterator<Item = String>) -> String {
        let mut line = String::new();
        for (index, cell) in cells.enumerate() {
            let is_last = index + 1 == self.columns.len();
            let width = if is_last { 0 } else { self.width(index) };
            line.push_str(&format!("{cell:<width$}"));
            if !is_last {
                line.push(' ');
            }
        }
        line.trim_end().to_owned()
    }

    fn width(&self, column: usize) -> usize {
        let widest = self.rows.iter().map(|row| shown(&row[column]).chars().count()).max();
        let (heading, _, least) = self.columns[column];
        widest.unwrap_or(0).max(heading.len()).max(least)
    }
}

/// A value as text: `-` if it is unknown.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_unknown_values_are_dashes() {
        let mut table = Table::new(&[("GROUP", "group", 8), ("LAG", "lag", 0), ("HOST", "host", 5)]);
        table.add(["a-long-group".into(), 5.into(), Value::Null]);
        assert_eq!(
            table.line(["GROUP", "LAG", "HOST"].map(str::to_owned).into_iter()),
            "GROUP        LAG HOST"
        );
        assert_eq!(table.line(table.rows[0].iter().map(shown)), "a-long-group 5   -");
        let expected = serde_json::json!({"group": "a-long-group", "lag": 5, "host": null});
        assert_eq!(table.object(&table.rows[0]), expected);
    }
}
