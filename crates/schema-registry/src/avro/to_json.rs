//! Decodes into the text of JSON.

use std::fmt::Write as _;

use super::{
    JsonStyle,
    bytes::Input,
    decode::{Read, mismatch},
    steps::{RecordSteps, Step, StepId, Steps},
};
use crate::Result;

/// Decodes a whole record.
pub fn decode(steps: &Steps, bytes: &[u8], style: JsonStyle) -> Result<String> {
    let mut input = Input::new(bytes);
    let mut out = String::with_capacity(bytes.len() * 2);
    Writer { steps, style, out: &mut out }.value(steps.root, &mut input)?;
    input.end()?;
    Ok(out)
}

struct Writer<'a> {
    steps: &'a Steps,
    style: JsonStyle,
    out: &'a mut String,
}

impl Writer<'_> {
    fn value(&mut self, id: StepId, input: &mut Input<'_>) -> Result<()> {
        let steps = self.steps;
        match &steps.list[id] {
            Step::Null => self.out.push_str("null"),
            Step::Boolean => self.out.push_str(if input.boolean()? { "true" } else { "false" }),
            Step::Number { from, to } => self.number(&Read::number(input, *from, *to)?),
            Step::Text { to_text: true } => write_text(self.out, input.text()?),
            Step::Text { to_text: false } => write_latin1(self.out, input.bytes()?),
            Step::Fixed(size) => write_latin1(self.out, input.take(*size)?),
            Step::Enum(symbols) => {
                let symbol = &symbols[input.index(symbols.len(), "symbol of the enum")?];
                if !symbol.is_known {
                    return Err(mismatch(format!("the reader's enum has no symbol {}", symbol.text)));
                }
                write_text(self.out, &symbol.text);
            }
            Step::Array(items) => self.items(*items, input, false)?,
            Step::Map(values) => self.items(*values, input, true)?,
            Step::Union(branches) => {
                let branch = branches[input.index(branches.len(), "branch of the union")?];
                self.value(branch, input)?;
            }
            Step::Branch(name, inner) => {
                let has_name = self.style == JsonStyle::Tagged && !matches!(steps.list[*inner], Step::Null);
                if has_name {
                    self.out.push('{');
                    write_text(self.out, name);
                    self.out.push(':');
                }
                self.value(*inner, input)?;
                if has_name {
                    self.out.push('}');
                }
            }
            Step::Record(record) => self.record(record, input)?,
            Step::Mismatch(why) => return Err(mismatch(why)),
        }
        Ok(())
    }

    fn number(&mut self, value: &Read) {
        let (text, shown) = match value {
            Read::Integer(value) => {
                let _ = write!(self.out, "{value}");
                return;
            }
            Read::Float(value) => {
                (f64::from(*value), serde_json::Number::from_f64((*value).into()).map(|_| value.to_string()))
            }
            Read::Double(value) => (*value, serde_json::Number::from_f64(*value).map(|it| it.to_string())),
        };
        match shown {
            Some(shown) => {
                self.out.push_str(&shown);
                if !shown.contains(['.', 'e', 'E']) {
                    self.out.push_str(".0");
                }
            }
            None if text.is_nan() => self.out.push_str("\"NaN\""),
            None if text > 0.0 => self.out.push_str("\"Infinity\""),
            None => self.out.push_str("\"-Infinity\""),
        }
    }

    fn items(&mut self, id: StepId, input: &mut Input<'_>, is_map: bool) -> Result<()> {
        input.enter()?;
        self.out.push(if is_map { '{' } else { '[' });
        let mut is_first = true;
        loop {
            let count = input.block()?;
            if count == 0 {
                break;
            }
            for _ in 0..count {
                if !is_first {
                    self.out.push(',');
                }
                is_first = false;
                if is_map {
                    write_text(self.out, input.text()?);
                    self.out.push(':');
                }
                self.value(id, input)?;
            }
        }
        self.out.push(if is_map { '}' } else { ']' });
        input.leave();
        Ok(())
    }

    fn record(&mut self, record: &RecordSteps, input: &mut Input<'_>) -> Result<()> {
        input.enter()?;
        self.out.push('{');
        let mut is_first = true;
        for (name, id) in &record.fields {
            let Some(name) = name else {
                let mut dropped = String::new();
                Writer { steps: self.steps, style: JsonStyle::Plain, out: &mut dropped }.value(*id, input)?;
                continue;
            };
            self.key(name, &mut is_first);
            self.value(*id, input).map_err(|error| error.within(name))?;
        }
        for (name, bytes, id) in &record.defaults {
            self.key(name, &mut is_first);
            self.value(*id, &mut Input::new(bytes))?;
        }
        self.out.push('}');
        input.leave();
        Ok(())
    }

    fn key(&mut self, name: &str, is_first: &mut bool) {
        if !*is_first {
            self.out.push(',');
        }
        *is_first = false;
        write_text(self.out, name);
        self.out.push(':');
    }
}

fn write_text(out: &mut String, text: &str) {
    out.push('"');
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(&text[plain..at]);
        plain = at + 1;
        let _ = match byte {
            b'"' | b'\\' => write!(out, "\\{}", char::from(byte)),
            b'\n' => out.write_str("\\n"),
            b'\t' => out.write_str("\\t"),
            b'\r' => out.write_str("\\r"),
            other => write!(out, "\\u{other:04x}"),
        };
    }
    out.push_str(&text[plain..]);
    out.push('"');
}

/// Writes bytes as characters U+0000 to U+00FF.
fn write_latin1(out: &mut String, bytes: &[u8]) {
    let text: String = bytes.iter().copied().map(char::from).collect();
    write_text(out, &text);
}
