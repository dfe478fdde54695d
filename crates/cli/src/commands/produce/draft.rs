//! A message before it is sent, and how a piece of the input becomes one.

use std::borrow::Cow;

use ottla::{HeaderRef, Record};
use serde_json::{Map, Value};

use super::pieces::find;

/// Names and values of headers.
pub type Headers<'a> = Vec<(Cow<'a, [u8]>, Option<Cow<'a, [u8]>>)>;

/// A message before it is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft<'a> {
    /// The topic; `None` for that of the command.
    pub topic: Option<Cow<'a, str>>,
    /// The partition; `None` for the partitioner's choice.
    pub partition: Option<i32>,
    /// The timestamp in milliseconds since 1970; `None` for the present.
    pub timestamp: Option<i64>,
    /// The key.
    pub key: Option<Cow<'a, [u8]>>,
    /// The value.
    pub value: Option<Cow<'a, [u8]>>,
    /// The headers, in order.
    pub headers: Headers<'a>,
}

impl Draft<'_> {
    /// Returns the record to send. With `nulls`, an empty key or value is null.
    pub fn record(&self, nulls: bool) -> Record<'_> {
        let is_sent = |bytes: &&[u8]| !(nulls && bytes.is_empty());
        let mut record = Record::new();
        if let Some(key) = self.key.as_deref().filter(is_sent) {
            record = record.key(key);
        }
        if let Some(value) = self.value.as_deref().filter(is_sent) {
            record = record.value(value);
        }
        if let Some(partition) = self.partition {
            record = record.partition(partition);
        }
        if let Some(timestamp) = self.timestamp {
            record = record.timestamp(timestamp);
        }
        for (name, value) in &self.headers {
            record = record.raw_header(HeaderRef { key: name, value: value.as_deref() });
        }
        record
    }
}

/// A field of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    Topic,
    Partition,
    Timestamp,
    Key,
    Value,
    Header(String),
    Ignored,
}

/// How a piece of the input becomes a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// The piece is the value.
    Value,
    /// Key and value, separated by this text.
    KeyAndValue(Vec<u8>),
    /// Fields, separated by this text. The last one has the rest.
    Fields(Vec<Field>, Vec<u8>),
    /// A line of `ottla consume -J`.
    Json(Structured),
}

/// Which fields of a line of JSON are values for `-s`; the others are texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Structured {
    pub key: bool,
    pub value: bool,
}

/// Parses the names of `--fields`.
///
/// # Errors
///
/// The name that is unknown, or the lack of a value.
pub fn parse_fields(names: &str) -> Result<Vec<Field>, String> {
    let field = |name: &str| match name {
        "topic" => Ok(Field::Topic),
        "partition" => Ok(Field::Partition),
        "timestamp" => Ok(Field::Timestamp),
        "key" => Ok(Field::Key),
        "value" => Ok(Field::Value),
        "-" => Ok(Field::Ignored),
        other => match other.strip_prefix("header:").filter(|name| !name.is_empty()) {
            Some(header) => Ok(Field::Header(header.to_owned())),
            None => Err(format!(
                "the field \"{other}\" is unknown; possible are topic, partition, timestamp, key, value, header:NAME and - for \
                 one to ignore"
            )),
        },
    };
    let fields = names.split(',').map(|name| field(name.trim())).collect::<Result<Vec<_>, _>>()?;
    match fields.contains(&Field::Value) {
        true => Ok(fields),
        false => Err("the field value is missing".to_owned()),
    }
}

impl Layout {
    /// Returns the message of a piece.
    ///
    /// # Errors
    ///
    /// What is wrong with the piece.
    pub fn read<'a>(&self, piece: &'a [u8]) -> Result<Draft<'a>, String> {
        match self {
            Layout::Value => Ok(Draft { value: Some(piece.into()), ..Draft::default() }),
            Layout::KeyAndValue(delimiter) => {
                let (key, value) = match find(piece, delimiter) {
                    Some(end) => (Some(&piece[..end]), &piece[end + delimiter.len()..]),
                    None => (None, piece),
                };
                Ok(Draft { key: key.map(Cow::from), value: Some(value.into()), ..Draft::default() })
            }
            Layout::Fields(fields, delimiter) => of_fields(piece, fields, delimiter),
            Layout::Json(structured) => of_json(piece, *structured),
        }
    }
}

fn of_fields<'a>(piece: &'a [u8], fields: &[Field], delimiter: &[u8]) -> Result<Draft<'a>, String> {
    let (mut draft, mut rest) = (Draft::default(), piece);
    for (index, field) in fields.iter().enumerate() {
        let is_last = index + 1 == fields.len();
        let text = match (is_last, find(rest, delimiter)) {
            (true, _) => rest,
            (false, Some(end)) => {
                let text = &rest[..end];
                rest = &rest[end + delimiter.len()..];
                text
            }
            (false, None) => return Err(format!("it has {} fields instead of {}", index + 1, fields.len())),
        };
        let utf8 = || std::str::from_utf8(text).map_err(|_| "a field is not UTF-8".to_owned());
        match field {
            Field::Topic => draft.topic = Some(utf8()?.into()),
            Field::Partition => draft.partition = Some(partition_of(utf8()?)?),
            Field::Timestamp => {
                draft.timestamp = Some(crate::times::parse_time(utf8()?, crate::times::now_ms())?)
            }
            Field::Key => draft.key = Some(text.into()),
            Field::Value => draft.value = Some(text.into()),
            Field::Header(name) => draft.headers.push((name.clone().into_bytes().into(), Some(text.into()))),
            Field::Ignored => {}
        }
    }
    Ok(draft)
}

/// Parses the number of a partition.
///
/// # Errors
///
/// The text is none.
pub fn partition_of(text: &str) -> Result<i32, String> {
    match text.trim().parse() {
        Ok(number @ 0..) => Ok(number),
        _ => Err(format!("\"{text}\" is not a partition")),
    }
}

/// Reads a line of `ottla consume -J`, or of kcat's `-J`.
fn of_json<'a>(piece: &[u8], structured: Structured) -> Result<Draft<'a>, String> {
    let mut object: Map<String, Value> =
        serde_json::from_slice(piece).map_err(|error| format!("it is not a JSON object: {error}"))?;
    for name in ["key_error", "payload_error"] {
        if let Some(error) = object.get(name).and_then(Value::as_str) {
            return Err(format!("its bytes are lost: {name} is \"{error}\"; consume it without -s"));
        }
    }
    let is_known = |name: &&String| {
        matches!(
            name.as_str(),
            "topic" | "partition" | "offset" | "ts" | "tstype" | "broker" | "key" | "payload" | "headers"
        ) || name.ends_with("_encoding")
            || name.ends_with("_schema_id")
    };
    if let Some(unknown) = object.keys().find(|name| !is_known(name)) {
        return Err(format!(
            "the field \"{unknown}\" is unknown; possible are topic, partition, ts, key, payload and headers"
        ));
    }
    let headers_encoding = object.remove("headers_encoding").unwrap_or_default();
    let headers = headers(object.remove("headers"), &headers_encoding)?;
    let mut field = |name: &str, is_structured: bool| {
        let encoding = object.remove(&format!("{name}_encoding")).unwrap_or_default();
        let value = object.remove(name).unwrap_or_default();
        match (is_structured, &value, &encoding) {
            (false, ..) => bytes(value, &encoding).map_err(|error| format!("{name}: {error}")),
            (true, Value::Null, _) => Ok(None),
            (true, _, Value::Null) => Ok(Some(value.to_string().into_bytes().into())),
            (true, ..) => Err(format!("{name}: -s writes JSON values, not bytes in {encoding}")),
        }
    };
    let (key, value) = (field("key", structured.key)?, field("payload", structured.value)?);
    let number = |name: &str| match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| format!("{name} is not an integer")),
    };
    let partition = match number("partition")? {
        Some(partition) => Some(i32::try_from(partition).map_err(|_| "partition is too large".to_owned())?),
        None => None,
    };
    let topic = match object.get("topic") {
        None | Some(Value::Null) => None,
        Some(Value::String(topic)) => Some(topic.clone().into()),
        Some(_) => return Err("topic is not a string".to_owned()),
    };
    Ok(Draft {
        topic,
        partition: partition.filter(|partition| *partition >= 0),
        timestamp: number("ts")?.filter(|ms| *ms >= 0),
        key,
        value,
        headers,
    })
}

/// Reads a list of names and values, or an object.
fn headers<'a>(value: Option<Value>, encoding: &Value) -> Result<Headers<'a>, String> {
    let strings = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(Value::Object(object)) => {
            object.into_iter().flat_map(|(name, value)| [Value::String(name), value]).collect()
        }
        Some(_) => return Err("headers is neither a list nor an object".to_owned()),
    };
    if !strings.len().is_multiple_of(2) {
        return Err("headers has a name without a value".to_owned());
    }
    let mut all = Vec::with_capacity(strings.len() / 2);
    let mut strings = strings.into_iter().enumerate();
    while let (Some((index, name)), Some((_, value))) = (strings.next(), strings.next()) {
        let wrong = |error: String| format!("headers: {error}");
        let name = bytes(name, &encoding[index]).map_err(wrong)?.ok_or("headers: a name is null")?;
        all.push((name, bytes(value, &encoding[index + 1]).map_err(wrong)?));
    }
    Ok(all)
}

/// Returns the bytes of a string, or of a value with a structure as JSON.
fn bytes<'a>(value: Value, encoding: &Value) -> Result<Option<Cow<'a, [u8]>>, String> {
    let text = match value {
        Value::Null => return Ok(None),
        Value::String(text) => text,
        other => other.to_string(),
    };
    match encoding {
        Value::Null => Ok(Some(text.into_bytes().into())),
        Value::String(name) if name == "hex" => unhex(&text).map(|bytes| Some(bytes.into())),
        Value::String(name) if name == "base64" => {
            use base64::Engine as _;
            let bytes = base64::engine::general_purpose::STANDARD.decode(text);
            bytes.map(|bytes| Some(bytes.into())).map_err(|error| format!("it is not base64: {error}"))
        }
        other => Err(format!("the encoding {other} is unknown; possible are hex and base64")),
    }
}

fn unhex(text: &str) -> Result<Vec<u8>, String> {
    let wrong = || "it is not hexadecimal".to_owned();
    if !text.is_ascii() || !text.len().is_multiple_of(2) || text.contains('+') {
        return Err(wrong());
    }
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| wrong()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Result<Draft<'_>, String> {
        Layout::Json(Structured::default()).read(text.as_bytes())
    }

    #[test]
    fn lines_of_consume_become_the_same_messages() {
        let draft = json(
            r#"{"headers":["a","1","a",null,"b","ff"],"headers_encoding":[null,null,null,null,null,"hex"],"key":"00ff",
            "key_encoding":"hex","offset":42,"partition":3,"payload":{"x":1},"topic":"demo","ts":1700000000000}"#,
        )
        .unwrap();
        assert_eq!(
            (draft.topic.as_deref(), draft.partition, draft.timestamp),
            (Some("demo"), Some(3), Some(1_700_000_000_000))
        );
        assert_eq!(
            (draft.key.as_deref(), draft.value.as_deref()),
            (Some(&b"\x00\xff"[..]), Some(&br#"{"x":1}"#[..]))
        );
        let headers: Vec<_> = draft.headers.iter().map(|(name, value)| (&**name, value.as_deref())).collect();
        assert_eq!(headers, [(&b"a"[..], Some(&b"1"[..])), (b"a", None), (b"b", Some(b"\xff"))]);
        assert_eq!(json(r#"{"payload": null, "ts": -1}"#), Ok(Draft::default()));
        assert_eq!(json(r#"{"headers": {"a": "1"}}"#).unwrap().headers.len(), 1, "kcat's form");
    }

    #[test]
    fn values_for_a_format_keep_their_quotes() {
        let layout = Layout::Json(Structured { key: true, value: true });
        let draft = layout.read(br#"{"key": "k", "payload": {"b": [1.5]}}"#).unwrap();
        assert_eq!(
            (draft.key.as_deref(), draft.value.as_deref()),
            (Some(&b"\"k\""[..]), Some(&b"{\"b\":[1.5]}"[..]))
        );
        assert_eq!(layout.read(br#"{"key": null}"#), Ok(Draft::default()));
        let refused = layout.read(br#"{"payload": "ff", "payload_encoding": "hex"}"#).unwrap_err();
        assert!(refused.contains("payload: -s writes JSON values, not bytes in \"hex\""), "{refused}");
    }

    #[test]
    fn wrong_lines_are_refused_with_the_field() {
        for (line, error) in [
            ("[1]", "not a JSON object"),
            ("{", "not a JSON object"),
            (r#"{"value": "x"}"#, "\"value\" is unknown"),
            (r#"{"key": "0g", "key_encoding": "hex"}"#, "key: it is not hexadecimal"),
            (r#"{"key": "é", "key_encoding": "hex"}"#, "key: it is not hexadecimal"),
            (r#"{"payload": "x", "payload_encoding": "gzip"}"#, "payload: the encoding"),
            (r#"{"payload": null, "payload_error": "short"}"#, "its bytes are lost"),
            (r#"{"headers": ["a"]}"#, "a name without a value"),
            (r#"{"headers": [null, "a"]}"#, "a name is null"),
            (r#"{"partition": 99999999999}"#, "partition is too large"),
            (r#"{"ts": "now"}"#, "ts is not an integer"),
            (r#"{"topic": 1}"#, "topic is not a string"),
        ] {
            let refused = json(line).unwrap_err();
            assert!(refused.contains(error), "{line}: {refused}");
        }
    }

    #[test]
    fn fields_of_lines_fill_the_message() {
        let fields = parse_fields("key,header:h,partition,timestamp,-,value").unwrap();
        let layout = Layout::Fields(fields, b"\t".to_vec());
        let draft = layout.read(b"k\tx\t3\t1700000000000\tskipped\tv\tw").unwrap();
        assert_eq!((draft.partition, draft.timestamp), (Some(3), Some(1_700_000_000_000)));
        assert_eq!((draft.key.as_deref(), draft.value.as_deref()), (Some(&b"k"[..]), Some(&b"v\tw"[..])));
        assert_eq!(draft.headers[0].1.as_deref(), Some(&b"x"[..]));
        assert!(layout.read(b"k\tx").unwrap_err().contains("2 fields instead of 6"));
        assert!(layout.read(b"k\tx\t-1\t1\t\tv").unwrap_err().contains("not a partition"));
        for wrong in ["", "key", "value,size", "value,header:"] {
            assert!(parse_fields(wrong).is_err(), "{wrong}");
        }
    }
}
