//! Records as comma-separated values (RFC 4180), with a line of headings.

use std::io::{self, Write};

use super::decoder::Decoded;
use super::{DecodedRecord, hex};
use crate::times::iso_time;

/// The columns without `--csv=COLUMNS`.
pub const COLUMNS: &str = "topic,partition,offset,timestamp,key,value,headers";

#[derive(Clone, Debug, PartialEq, Eq)]
enum Column {
    Topic,
    Partition,
    Offset,
    Timestamp,
    Time,
    Key,
    Value,
    Headers,
    Header(String),
}

/// The columns to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Csv {
    columns: Vec<Column>,
    /// False until the headings are printed.
    began: bool,
}

impl Csv {
    /// Parses the names of columns, separated by commas.
    ///
    /// # Errors
    ///
    /// A text that names the unknown column.
    pub fn parse(names: &str) -> Result<Csv, String> {
        let column = |name: &str| match name {
            "topic" => Ok(Column::Topic),
            "partition" => Ok(Column::Partition),
            "offset" => Ok(Column::Offset),
            "timestamp" => Ok(Column::Timestamp),
            "time" => Ok(Column::Time),
            "key" => Ok(Column::Key),
            "value" => Ok(Column::Value),
            "headers" => Ok(Column::Headers),
            other => match other.strip_prefix("header:").filter(|header| !header.is_empty()) {
                Some(header) => Ok(Column::Header(header.to_owned())),
                None => Err(format!(
                    "--csv: the column \"{other}\" is unknown; possible are {COLUMNS},time,header:NAME"
                )),
            },
        };
        let columns = names.split(',').map(|name| column(name.trim())).collect::<Result<_, _>>()?;
        Ok(Csv { columns, began: false })
    }

    /// Prints a record, and before the first one the headings.
    ///
    /// # Errors
    ///
    /// That of the output.
    pub fn write(&mut self, record: &DecodedRecord<'_>, out: &mut impl Write) -> io::Result<()> {
        self.begin(out)?;
        for (index, column) in self.columns.iter().enumerate() {
            out.write_all(if index == 0 { b"" } else { b"," })?;
            cell(column, record, out)?;
        }
        out.write_all(b"\n")
    }

    /// Prints the headings if that was not done.
    ///
    /// # Errors
    ///
    /// That of the output.
    pub fn begin(&mut self, out: &mut impl Write) -> io::Result<()> {
        if std::mem::replace(&mut self.began, true) {
            return Ok(());
        }
        for (index, column) in self.columns.iter().enumerate() {
            out.write_all(if index == 0 { b"" } else { b"," })?;
            match column {
                Column::Header(name) => quoted(&format!("header:{name}"), out)?,
                other => out.write_all(format!("{other:?}").to_lowercase().as_bytes())?,
            }
        }
        out.write_all(b"\n")
    }
}

/// Prints a cell: nothing for null, `""` for an empty string, 0x and hexadecimal digits for bytes that are not UTF-8.
fn cell(column: &Column, record: &DecodedRecord<'_>, out: &mut impl Write) -> io::Result<()> {
    let parts = &record.parts;
    match column {
        Column::Topic => quoted(parts.topic, out),
        Column::Partition => write!(out, "{}", parts.partition),
        Column::Offset => write!(out, "{}", parts.offset),
        Column::Timestamp => write!(out, "{}", parts.timestamp),
        Column::Time => out.write_all(iso_time(parts.timestamp).as_bytes()),
        Column::Key => field(&record.key, out),
        Column::Value => field(&record.value, out),
        Column::Headers if parts.headers.is_empty() => Ok(()),
        Column::Headers => {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let list: Vec<_> =
                parts.headers.iter().flat_map(|(name, value)| [Some(text(name)), value.map(text)]).collect();
            quoted(&serde_json::to_string(&list)?, out)
        }
        Column::Header(name) => {
            let last = parts.headers.iter().rev().find(|(key, _)| *key == name.as_bytes());
            last.and_then(|(_, value)| *value).map_or(Ok(()), |value| bytes(value, out))
        }
    }
}

fn field(field: &Result<super::Decoded<'_>, String>, out: &mut impl Write) -> io::Result<()> {
    match field {
        Ok(None) | Err(_) => Ok(()),
        Ok(Some(Decoded::Bytes(raw))) => bytes(raw, out),
        Ok(Some(Decoded::Packed(text, _))) => bytes(text, out),
        Ok(Some(Decoded::Json(text))) => quoted(text, out),
        Ok(Some(Decoded::Value(value))) => quoted(&value.to_string(), out),
    }
}

fn bytes(bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
    match std::str::from_utf8(bytes) {
        Ok(text) => quoted(text, out),
        Err(_) => write!(out, "0x{}", hex(bytes)),
    }
}

fn quoted(text: &str, out: &mut impl Write) -> io::Result<()> {
    match text.is_empty() || text.contains(['"', ',', '\n', '\r']) {
        true => write!(out, "\"{}\"", text.replace('"', "\"\"")),
        false => out.write_all(text.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{RECORD, RecordParts, plain};
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let (mut csv, mut out) = (Csv::parse(COLUMNS).unwrap(), Vec::new());
        csv.write(&plain(RECORD), &mut out).unwrap();
        let other = RecordParts { key: None, value: Some(b"a\"b,\nc"), headers: &[], ..RECORD };
        csv.write(&plain(other), &mut out).unwrap();
        csv.write(&plain(RecordParts { value: Some(b""), key: Some(b"\xff"), ..other }), &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "topic,partition,offset,timestamp,key,value,headers\n\
             demo,3,42,1700000000000,k,hello,\"[\"\"a\"\",\"\"1\"\",\"\"a\"\",null]\"\n\
             demo,3,42,1700000000000,,\"a\"\"b,\nc\",\n\
             demo,3,42,1700000000000,0xff,\"\",\n"
        );
    }

    #[test]
    fn columns_are_chosen_by_name() {
        let (mut csv, mut out) = (Csv::parse("time,header:a,value").unwrap(), Vec::new());
        csv.write(&plain(RecordParts { headers: &[(b"a", Some(b"1"))], ..RECORD }), &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "time,header:a,value\n2023-11-14T22:13:20.000Z,1,hello\n"
        );
        for wrong in ["", "key,", "size", "header:"] {
            assert!(Csv::parse(wrong).unwrap_err().contains("possible are"), "{wrong}");
        }
    }
}
