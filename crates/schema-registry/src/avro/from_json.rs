//! Encodes JSON.

use serde_json::{Map, Value};

use super::{
    bytes::{write_bytes, write_long},
    plan::{Node, NodeId, Plan, RecordNode, simple},
};
use crate::{Error, Result, error::shortened};

/// Appends the encoding of a value.
pub fn encode(plan: &Plan, value: &Value, out: &mut Vec<u8>) -> Result<()> {
    Encoder { plan, has_names: true, depth: 0 }.value(plan.root, value, out)
}

/// Appends the encoding of a field's default, whose unions have no names.
pub fn encode_default(plan: &Plan, node: NodeId, value: &Value, out: &mut Vec<u8>) -> Result<()> {
    Encoder { plan, has_names: false, depth: 0 }.value(node, value, out)
}

/// The deepest value.
const MAX_DEPTH: usize = 128;

struct Encoder<'a> {
    plan: &'a Plan,
    /// Whether branches of unions may have their names.
    has_names: bool,
    depth: usize,
}

impl Encoder<'_> {
    fn value(&mut self, id: NodeId, value: &Value, out: &mut Vec<u8>) -> Result<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error::value(format!("values are nested more than {MAX_DEPTH} deep")));
        }
        let unfit = || Err(Error::value(format!("{} is not {}", shown(value), described(self.plan, id))));
        match (&self.plan.nodes[id], value) {
            (Node::Null, Value::Null) => {}
            (Node::Boolean, Value::Bool(it)) => out.push(u8::from(*it)),
            (Node::Int, Value::Number(it)) => match it.as_i64().map(i32::try_from) {
                Some(Ok(it)) => write_long(out, it.into()),
                _ => return unfit(),
            },
            (Node::Long, Value::Number(it)) => match it.as_i64() {
                Some(it) => write_long(out, it),
                None => return unfit(),
            },
            (Node::Float, _) => match number(value) {
                Some(it) => out.extend_from_slice(&(it as f32).to_le_bytes()),
                None => return unfit(),
            },
            (Node::Double, _) => match number(value) {
                Some(it) => out.extend_from_slice(&it.to_le_bytes()),
                None => return unfit(),
            },
            (Node::String, Value::String(it)) => write_bytes(out, it.as_bytes()),
            (Node::Bytes, Value::String(it)) => match latin1(it) {
                Some(bytes) => write_bytes(out, &bytes),
                None => return unfit(),
            },
            (Node::Fixed(_, size), Value::String(it)) => match latin1(it) {
                Some(bytes) if bytes.len() == *size => out.extend_from_slice(&bytes),
                _ => return unfit(),
            },
            (Node::Enum(it), Value::String(symbol)) => match it.symbols.iter().position(|s| s == symbol) {
                Some(index) => write_long(out, index as i64),
                None => return unfit(),
            },
            (Node::Array(items), Value::Array(list)) => self.array(*items, list, out)?,
            (Node::Map(values), Value::Object(map)) => self.map(*values, map, out)?,
            (Node::Record(record), Value::Object(map)) => self.record(record, map, out)?,
            (Node::Union(branches), _) => self.union(branches, value, out)?,
            _ => return unfit(),
        }
        self.depth -= 1;
        Ok(())
    }

    fn array(&mut self, items: NodeId, list: &[Value], out: &mut Vec<u8>) -> Result<()> {
        if !list.is_empty() {
            write_long(out, list.len() as i64);
        }
        for (at, item) in list.iter().enumerate() {
            self.value(items, item, out).map_err(|error| error.within(format_args!("[{at}]")))?;
        }
        write_long(out, 0);
        Ok(())
    }

    fn map(&mut self, values: NodeId, map: &Map<String, Value>, out: &mut Vec<u8>) -> Result<()> {
        if !map.is_empty() {
            write_long(out, map.len() as i64);
        }
        for (key, value) in map {
            write_bytes(out, key.as_bytes());
            self.value(values, value, out).map_err(|error| error.within(key))?;
        }
        write_long(out, 0);
        Ok(())
    }

    fn record(&mut self, record: &RecordNode, map: &Map<String, Value>, out: &mut Vec<u8>) -> Result<()> {
        for field in &record.fields {
            match (map.get(&field.name), &field.encoded_default, &field.default) {
                (Some(value), ..) => {
                    self.value(field.node, value, out).map_err(|error| error.within(&field.name))?;
                }
                (None, Some(encoded), _) => out.extend_from_slice(encoded),
                // Within the default of another field.
                (None, None, Some(default)) => self.value(field.node, default, out)?,
                (None, None, None) => {
                    return Err(Error::value("the field is missing, and has no default").within(&field.name));
                }
            }
        }
        match map.keys().find(|key| record.fields.iter().all(|field| field.name != **key)) {
            Some(key) => Err(Error::value(format!("{} has no such field", record.names.full)).within(key)),
            None => Ok(()),
        }
    }

    fn union(&mut self, branches: &[NodeId], value: &Value, out: &mut Vec<u8>) -> Result<()> {
        if self.has_names
            && let Value::Object(map) = value
            && let (1, Some((name, inner))) = (map.len(), map.iter().next())
        {
            let names = |id: NodeId| self.plan.type_name(id);
            let full = branches.iter().position(|id| names(*id) == name);
            let found = full.or_else(|| branches.iter().position(|id| simple(names(*id)) == name));
            if let Some(index) = found {
                write_long(out, index as i64);
                return self.value(branches[index], inner, out).map_err(|error| error.within(name));
            }
        }
        match branches.iter().position(|id| self.fits(*id, value)) {
            Some(index) => {
                write_long(out, index as i64);
                self.value(branches[index], value, out)
            }
            None => {
                let names: Vec<&str> = branches.iter().map(|id| self.plan.type_name(*id)).collect();
                Err(Error::value(format!("{} is none of {}", shown(value), names.join(", "))))
            }
        }
    }

    /// Whether a branch of a union can take a value, as far as one sees without looking into it.
    fn fits(&self, id: NodeId, value: &Value) -> bool {
        match (&self.plan.nodes[id], value) {
            (Node::Null, Value::Null)
            | (Node::Boolean, Value::Bool(_))
            | (Node::String, Value::String(_))
            | (Node::Array(_), Value::Array(_))
            | (Node::Map(_), Value::Object(_)) => true,
            (Node::Int, Value::Number(it)) => it.as_i64().is_some_and(|it| i32::try_from(it).is_ok()),
            (Node::Long, Value::Number(it)) => it.as_i64().is_some(),
            (Node::Float | Node::Double, _) => number(value).is_some(),
            (Node::Bytes, Value::String(it)) => latin1(it).is_some(),
            (Node::Fixed(_, size), Value::String(it)) => latin1(it).is_some_and(|it| it.len() == *size),
            (Node::Enum(it), Value::String(symbol)) => it.symbols.contains(symbol),
            (Node::Record(record), Value::Object(map)) => {
                map.keys().all(|key| record.fields.iter().any(|field| field.name == *key))
                    && record
                        .fields
                        .iter()
                        .all(|field| field.default.is_some() || map.contains_key(&field.name))
            }
            _ => false,
        }
    }
}

/// JSON has no number for these, so they are texts.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(it) => it.as_f64(),
        Value::String(it) if it == "NaN" => Some(f64::NAN),
        Value::String(it) if it == "Infinity" => Some(f64::INFINITY),
        Value::String(it) if it == "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

fn latin1(text: &str) -> Option<Vec<u8>> {
    text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect()
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.len() > 60 {
        format!("{}...", shortened(&text).chars().take(60).collect::<String>())
    } else {
        text
    }
}

/// Describes a type in an error.
pub fn described(plan: &Plan, id: NodeId) -> String {
    let name = plan.type_name(id);
    match &plan.nodes[id] {
        Node::Null => "null".to_owned(),
        Node::Fixed(_, size) => format!("{name}, which is a fixed of {size} bytes"),
        Node::Enum(_) => format!("a symbol of the enum {name}"),
        Node::Record(_) => format!("the record {name}"),
        Node::Bytes => "bytes, a string of characters up to U+00FF".to_owned(),
        Node::Array(_) | Node::Int => format!("an {name}"),
        _ => format!("a {name}"),
    }
}
