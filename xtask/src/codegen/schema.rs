//! Parses the notation of `schema/` into a tree of fields. `schema/README.md` explains the notation.

use std::fmt;

/// A schema file: an API with a request and a response, or a data structure.
#[derive(Debug)]
pub struct Schema {
    /// The file's name without its extension.
    pub stem: String,
    /// The name as Kafka writes it: `FindCoordinator`.
    pub name: String,
    /// The API key; `None` for a data structure.
    pub api_key: Option<i16>,
    /// The versions that Ottla reads and writes.
    pub versions: Versions,
    /// The versions that Apache Kafka 4.4.0 serves.
    pub served: Versions,
    /// The first flexible version, if any.
    pub flexible_from: Option<i16>,
    /// The request and the response, or the data structure.
    pub messages: Vec<Message>,
}

/// A request, a response, or a data structure.
#[derive(Debug)]
pub struct Message {
    /// `request`, `response`, `data`.
    pub kind: String,
    /// True if it can also be read without copying.
    pub borrowed: bool,
    /// The fields in the order of the wire.
    pub fields: Vec<Field>,
}

/// A field of a message or of a nested struct.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The name in snake case.
    pub name: String,
    /// True if the field is an array.
    pub is_array: bool,
    /// The type, or that of the elements.
    pub base: Base,
    /// The versions that have the field.
    pub versions: Versions,
    /// The versions in which the field may be null.
    pub nullable: Option<Versions>,
    /// The tag, if it is a tagged field.
    pub tag: Option<u32>,
    /// The default, if it is not zero or empty.
    pub default: Option<String>,
    /// True if the field may be omitted without an error in versions that do not have it.
    pub is_ignorable: bool,
}

/// The type of a field, or of an array's elements.
#[derive(Clone, Debug, PartialEq)]
pub enum Base {
    /// `int32`, `string`, ...
    Primitive(Primitive),
    /// A struct with these fields.
    Struct(Vec<Field>),
}

/// Kafka's primitive types.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Primitive {
    Bool,
    Int8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Float64,
    String,
    Uuid,
    Bytes,
    Records,
}

/// An inclusive range of versions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Versions {
    /// The first.
    pub low: i16,
    /// The last.
    pub high: i16,
}

type Result<T> = std::result::Result<T, String>;

impl Schema {
    /// Parses the text of a schema file.
    pub fn parse(stem: &str, text: &str) -> Result<Self> {
        let mut schema = Self {
            stem: stem.to_owned(),
            name: String::new(),
            api_key: None,
            versions: Versions { low: 0, high: 0 },
            served: Versions { low: 0, high: 0 },
            flexible_from: None,
            messages: Vec::new(),
        };
        let mut borrowed = Vec::new();
        let mut lines = text.lines().enumerate().peekable();
        while let Some((index, line)) = lines.next() {
            let at = |error: String| format!("line {}: {error}", index + 1);
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [] => {}
                ["api", name, key] => {
                    schema.name = name.to_owned();
                    schema.api_key = Some(number(key).map_err(at)?);
                }
                ["data", name] => schema.name = name.to_owned(),
                ["versions", range] => {
                    schema.versions = Versions::parse(range, i16::MAX).map_err(at)?;
                    schema.served = schema.versions;
                }
                ["served", range] => schema.served = Versions::parse(range, i16::MAX).map_err(at)?,
                ["flexible", "none"] => {}
                ["flexible", from] => {
                    schema.flexible_from = Some(number(from.trim_end_matches('+')).map_err(at)?);
                }
                ["listeners", ..] => {}
                ["borrowed", ref kinds @ ..] => borrowed = kinds.to_vec(),
                [kind @ ("request" | "response" | "data")] => {
                    let mut body = Vec::new();
                    while let Some((index, line)) = lines.next_if(|(_, line)| line.starts_with(' ')) {
                        body.push((index + 1, line));
                    }
                    let fields = fields(&mut &body[..], 1, schema.versions)?;
                    let is_borrowed = borrowed.contains(&kind);
                    schema.messages.push(Message { kind: kind.to_owned(), borrowed: is_borrowed, fields });
                }
                _ => return Err(at(format!("not understood: {line}"))),
            }
        }
        Ok(schema)
    }

    /// Returns the type name of a message.
    pub fn message_name(&self, message: &Message) -> String {
        match message.kind.as_str() {
            "request" => format!("{}Request", self.name),
            "response" => format!("{}Response", self.name),
            _ => self.name.clone(),
        }
    }

    /// Returns the name of the Rust module.
    pub fn module(&self) -> &str {
        self.stem.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '_')
    }
}

impl Field {
    /// True if the field is a struct, not an array of structs.
    pub fn is_struct(&self) -> bool {
        !self.is_array && matches!(self.base, Base::Struct(_))
    }
}

impl Versions {
    /// Parses `3-7`, `3+` (up to `latest`) or `3`.
    pub fn parse(text: &str, latest: i16) -> Result<Self> {
        let (low, high) = match text.split_once('-') {
            Some((low, high)) => (number(low)?, number(high)?),
            None => match text.strip_suffix('+') {
                Some(low) => (number(low)?, latest),
                None => (number(text)?, number(text)?),
            },
        };
        if low > high { Err(format!("empty range {text}")) } else { Ok(Self { low, high }) }
    }

    /// Returns the condition that `version`, which is in `self`, is also in `part`; none if it always is.
    pub fn condition(self, part: Self) -> Option<String> {
        match (part.low > self.low, part.high < self.high) {
            (false, false) => None,
            (true, false) => Some(format!("version >= {}", part.low)),
            (false, true) => Some(format!("version <= {}", part.high)),
            (true, true) if part.low == part.high => Some(format!("version == {}", part.low)),
            (true, true) => Some(format!("({}..={}).contains(&version)", part.low, part.high)),
        }
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.low == self.high {
            write!(f, "{}", self.low)
        } else {
            write!(f, "{} to {}", self.low, self.high)
        }
    }
}

/// Removes the fields at `depth` from the front of `lines` and returns them.
fn fields(lines: &mut &[(usize, &str)], depth: usize, parent: Versions) -> Result<Vec<Field>> {
    let mut fields_here = Vec::new();
    while let Some(((number, line), rest)) = lines.split_first() {
        let indent = (line.len() - line.trim_start().len()) / 2;
        if indent < depth {
            break;
        }
        let at = |error: String| format!("line {number}: {error}");
        if indent > depth {
            return Err(at("indented too far".to_owned()));
        }
        *lines = rest;
        let mut field = field(line, parent).map_err(at)?;
        if let Base::Struct(inner) = &mut field.base {
            *inner = fields(lines, depth + 1, field.versions)?;
        }
        fields_here.push(field);
    }
    Ok(fields_here)
}

fn field(line: &str, parent: Versions) -> Result<Field> {
    let mut words = line.split_whitespace().peekable();
    let name = words.next().ok_or("a field without a name")?.to_owned();
    let of = words.next().ok_or("a field without a type")?;
    let (of, null) = match of.split_once('?') {
        Some((of, range)) => (of, Some(range)),
        None => (of, None),
    };
    let (is_array, of) = match of.strip_prefix("[]") {
        Some(of) => (true, of),
        None => (false, of),
    };
    let base = if of == "{}" { Base::Struct(Vec::new()) } else { Base::Primitive(Primitive::parse(of)?) };
    let versions = match words.next_if(|word| word.starts_with(|letter: char| letter.is_ascii_digit())) {
        Some(range) => Versions::parse(range, parent.high)?,
        None => parent,
    };
    let nullable = match null {
        Some("") => Some(versions),
        Some(range) => Some(Versions::parse(range, versions.high)?),
        None => None,
    };
    let mut field =
        Field { name, is_array, base, versions, nullable, tag: None, default: None, is_ignorable: false };
    while let Some(word) = words.next() {
        match word {
            "tag" => field.tag = Some(number(words.next().unwrap_or_default())?),
            "=" => field.default = words.next().map(str::to_owned),
            "ignorable" => field.is_ignorable = true,
            _ => return Err(format!("not understood: {word}")),
        }
    }
    Ok(field)
}

impl Primitive {
    fn parse(name: &str) -> Result<Self> {
        Ok(match name {
            "bool" => Self::Bool,
            "int8" => Self::Int8,
            "int16" => Self::Int16,
            "uint16" => Self::Uint16,
            "int32" => Self::Int32,
            "uint32" => Self::Uint32,
            "int64" => Self::Int64,
            "float64" => Self::Float64,
            "string" => Self::String,
            "uuid" => Self::Uuid,
            "bytes" => Self::Bytes,
            "records" => Self::Records,
            _ => return Err(format!("no such type: {name}")),
        })
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T> {
    text.parse().map_err(|_| format!("not a number: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_line_defines_a_field() {
        let parent = Versions { low: 2, high: 9 };
        let field = field("  rack_id string?5+ 3+ tag 1 = null ignorable", parent).unwrap();
        assert_eq!(field.versions, Versions { low: 3, high: 9 });
        assert_eq!(field.nullable, Some(Versions { low: 5, high: 9 }));
        assert_eq!((field.tag, field.default.as_deref(), field.is_ignorable), (Some(1), Some("null"), true));
    }

    #[test]
    fn fields_nest_by_their_indentation() {
        let text =
            "api Demo 7\nversions 0-2\nflexible 2+\n\nrequest\n  a []{} 1+\n    b int32\n  c bool 0-1\n";
        let schema = Schema::parse("07_demo", text).unwrap();
        assert_eq!((schema.api_key, schema.flexible_from, schema.module()), (Some(7), Some(2), "demo"));
        let [a, c] = &schema.messages[0].fields[..] else { panic!("two fields") };
        let Base::Struct(inner) = &a.base else { panic!("a struct") };
        assert_eq!(inner[0].versions, Versions { low: 1, high: 2 });
        assert_eq!(schema.versions.condition(c.versions).as_deref(), Some("version <= 1"));
    }

    #[test]
    fn invalid_line_is_named() {
        let error = Schema::parse("x", "api Demo 7\nversions 0-2\nrequest\n  a int33\n").unwrap_err();
        assert_eq!(error, "line 4: no such type: int33");
        let error = Schema::parse("x", "garbage\n").unwrap_err();
        assert_eq!(error, "line 1: not understood: garbage");
    }
}
