//! Which changes of a JSON Schema leave old values valid.

use serde_json::{Map, Value};

/// The deepest schema that is compared.
const MAX_DEPTH: usize = 64;

/// Says why the reader's schema refuses values that the writer's schema accepts.
pub fn incompatibilities(reader: &Value, writer: &Value) -> Vec<String> {
    let mut comparison = Comparison { reader, writer, found: Vec::new() };
    comparison.schemas(reader, writer, "#", 0);
    comparison.found
}

struct Comparison<'a> {
    reader: &'a Value,
    writer: &'a Value,
    found: Vec<String>,
}

impl Comparison<'_> {
    fn schemas(&mut self, reader: &Value, writer: &Value, path: &str, depth: usize) {
        let (reader, writer) = (resolved(self.reader, reader), resolved(self.writer, writer));
        if depth > MAX_DEPTH || reader == writer {
            return;
        }
        let (to, from) = match (reader, writer) {
            (Value::Bool(true), _) | (_, Value::Bool(false)) => return,
            (Value::Object(to), _) if to.is_empty() => return,
            (Value::Bool(false), _) => return self.report(path, "nothing is accepted any more"),
            (Value::Object(to), Value::Object(from)) => (to, from),
            (Value::Object(to), _) => (to, &Map::new()),
            _ => return,
        };
        self.types(to, from, path);
        self.enums(to, from, path);
        self.limits(to, from, path);
        self.objects(to, from, path, depth);
        if let (Some(to), Some(from)) = (to.get("items"), from.get("items")) {
            self.schemas(to, from, &format!("{path}/items"), depth + 1);
        }
        self.combined(to, from, path, depth);
    }

    fn report(&mut self, path: &str, why: &str) {
        self.found.push(format!("{path}: {why}"));
    }

    fn types(&mut self, to: &Map<String, Value>, from: &Map<String, Value>, path: &str) {
        let Some(accepted) = to.get("type").map(names) else { return };
        let written = from.get("type").map(names).unwrap_or_default();
        let is_accepted =
            |it: &&str| accepted.contains(it) || (**it == *"integer" && accepted.contains(&"number"));
        if written.is_empty() && !from.contains_key("enum") && !from.contains_key("const") {
            self.report(path, &format!("the type is now {}", accepted.join(" or ")));
        } else if let Some(refused) = written.iter().find(|it| !is_accepted(it)) {
            self.report(path, &format!("the type {refused} is not accepted any more"));
        }
    }

    fn enums(&mut self, to: &Map<String, Value>, from: &Map<String, Value>, path: &str) {
        let values = |map: &Map<String, Value>| match (map.get("enum"), map.get("const")) {
            (Some(Value::Array(list)), _) => Some(list.clone()),
            (_, Some(value)) => Some(vec![value.clone()]),
            _ => None,
        };
        match (values(to), values(from)) {
            (Some(_), None) => self.report(path, "only some values are accepted now"),
            (Some(to), Some(from)) => {
                if let Some(gone) = from.iter().find(|it| !to.contains(it)) {
                    self.report(path, &format!("the value {gone} is not accepted any more"));
                }
            }
            (None, _) => {}
        }
    }

    fn limits(&mut self, to: &Map<String, Value>, from: &Map<String, Value>, path: &str) {
        const UPPER: [&str; 5] = ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"];
        const LOWER: [&str; 5] = ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"];
        let number = |map: &Map<String, Value>, key: &str| map.get(key).and_then(Value::as_f64);
        for key in UPPER.into_iter().chain(LOWER) {
            let is_upper = UPPER.contains(&key);
            match (number(to, key), number(from, key)) {
                (Some(_), None) => self.report(path, &format!("{key} is new")),
                (Some(to), Some(from)) if (is_upper && to < from) || (!is_upper && to > from) => {
                    self.report(path, &format!("{key} is stricter"));
                }
                _ => {}
            }
        }
        for key in ["pattern", "multipleOf", "format"] {
            if to.get(key).is_some_and(|it| from.get(key) != Some(it)) && key != "format" {
                self.report(path, &format!("{key} is new or another"));
            }
        }
        if to.get("uniqueItems") == Some(&Value::Bool(true))
            && from.get("uniqueItems") != to.get("uniqueItems")
        {
            self.report(path, "items must be unique now");
        }
    }

    fn objects(&mut self, to: &Map<String, Value>, from: &Map<String, Value>, path: &str, depth: usize) {
        let properties = |map: &Map<String, Value>| match map.get("properties") {
            Some(Value::Object(properties)) => properties.clone(),
            _ => Map::new(),
        };
        let (reads, writes) = (properties(to), properties(from));
        let required = |map: &Map<String, Value>| map.get("required").map(names_owned).unwrap_or_default();
        let was_required = required(from);
        for name in required(to).iter().filter(|it| !was_required.contains(it)) {
            let has_default = reads.get(name).is_some_and(|it| it.get("default").is_some());
            if !has_default {
                self.report(path, &format!("the property {name} is required now"));
            }
        }
        let (is_open, was_open) = (additional(to), additional(from));
        for (name, read) in &reads {
            let at = format!("{path}/properties/{name}");
            match (writes.get(name), was_open) {
                (Some(written), _) => self.schemas(read, written, &at, depth + 1),
                // Any value could have been there.
                (None, Some(Value::Bool(true))) if read != &Value::Bool(true) && !is_empty(read) => {
                    self.report(&at, "the property is new, and any value of that name was accepted before");
                }
                (None, Some(schema)) if !schema.is_boolean() => self.schemas(read, schema, &at, depth + 1),
                _ => {}
            }
        }
        for (name, written) in writes.iter().filter(|(name, _)| !reads.contains_key(*name)) {
            let at = format!("{path}/properties/{name}");
            match is_open {
                Some(Value::Bool(false)) if written != &Value::Bool(false) => {
                    self.report(&at, "the property is gone, and no others are accepted");
                }
                Some(schema) if !schema.is_boolean() => self.schemas(schema, written, &at, depth + 1),
                _ => {}
            }
        }
        let is_object = |map: &Map<String, Value>| {
            map.contains_key("properties") || map.contains_key("additionalProperties")
        };
        if is_open == Some(&Value::Bool(false)) && was_open != is_open && is_object(from) {
            self.report(path, "no further properties are accepted now");
        }
    }

    fn combined(&mut self, to: &Map<String, Value>, from: &Map<String, Value>, path: &str, depth: usize) {
        for key in ["oneOf", "anyOf"] {
            let Some(Value::Array(accepts)) = to.get(key) else { continue };
            let alone = [Value::Object(from.clone())];
            let written = match from.get(key) {
                Some(Value::Array(list)) => list.as_slice(),
                _ => &alone,
            };
            for (number, one) in written.iter().enumerate() {
                let is_accepted = accepts.iter().any(|accept| {
                    let mut inner =
                        Comparison { reader: self.reader, writer: self.writer, found: Vec::new() };
                    inner.schemas(accept, one, path, depth + 1);
                    inner.found.is_empty()
                });
                if !is_accepted {
                    self.report(&format!("{path}/{key}/{number}"), "no alternative accepts it any more");
                }
            }
        }
        if let (Some(Value::Array(to)), Some(Value::Array(from))) = (to.get("allOf"), from.get("allOf")) {
            if to.len() > from.len() {
                self.report(&format!("{path}/allOf"), "a further condition is new");
            }
            for (to, from) in to.iter().zip(from) {
                self.schemas(to, from, &format!("{path}/allOf"), depth + 1);
            }
        } else if to.contains_key("allOf") && !from.contains_key("allOf") {
            self.report(&format!("{path}/allOf"), "conditions are new");
        }
    }
}

/// What `additionalProperties` accepts; everything if it is missing.
fn additional(map: &Map<String, Value>) -> Option<&Value> {
    Some(map.get("additionalProperties").unwrap_or(&Value::Bool(true)))
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

fn names(value: &Value) -> Vec<&str> {
    match value {
        Value::String(name) => vec![name],
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn names_owned(value: &Value) -> Vec<String> {
    names(value).into_iter().map(str::to_owned).collect()
}

/// Follows a reference within a document.
fn resolved<'a>(root: &'a Value, mut schema: &'a Value) -> &'a Value {
    for _ in 0..MAX_DEPTH {
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|it| it.strip_prefix('#'));
        match target.and_then(|pointer| root.pointer(pointer)) {
            Some(next) => schema = next,
            None => break,
        }
    }
    schema
}
