//! `--filter`: an expression in the Common Expression Language (CEL) that chooses records.
//!
//! Variables are computed when the expression reads them: a filter on `partition` never looks into the value.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cel::common::types::CelString;
use cel::common::value::CowVal;
use cel::context::VariableResolver;
use cel::objects::{Key, Map};
use cel::{Context, ExecutionError, Program, Value};
use ottla::MessageRef;
use regex_automata::meta::Regex;

use super::decoder::{Decoded, Decoders};
use super::{RecordParts, with_parts};
use crate::failure::{Failure, Outcome};
use crate::times::{now_ms, parse_time};

/// The variables and functions, for `--help`.
pub const FILTER_HELP: &str = "\
Filters (--filter, CEL): topic, partition, offset, timestamp (ms since 1970), key, value, headers
  key and value are text, or a map or list if they are JSON; null if there is none, bytes if they are not UTF-8
  value.customer.id == 7 && value.items.exists(item, item.price > 10.0)   has(value.error)   'trace' in headers
  headers['type'] == 'order'   key.startsWith('a')   key.matches('^[0-9]+$')   size(key) > 3   timestamp >= time('-1h')
  A record for which the expression fails, such as one without a field that it names, is left out and counted";

/// The longest text of a filter, in bytes.
const MAX_BYTES: usize = 4 << 10;
/// The deepest nesting: the parser calls itself for each level, and the evaluation for each operator.
const MAX_DEPTH: usize = 50;
/// The largest number of letters of operators.
const MAX_OPERATORS: usize = 100;
/// The number of compiled patterns that are kept.
const MAX_PATTERNS: usize = 100;

/// An expression, and how often it failed.
pub struct Filter {
    program: Program,
    context: Context<'static, 'static>,
    decoders: Decoders,
    tested: Cell<u64>,
    failed: Cell<u64>,
    first_failure: OnceLock<String>,
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter")
            .field("program", &self.program)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

impl Filter {
    /// Parses an expression.
    ///
    /// # Errors
    ///
    /// [`Failure::Usage`] if it does not parse, or names a variable that does not exist.
    pub fn parse(text: &str, decoders: &Decoders) -> Outcome<Filter> {
        let wrong = |error: &str| Failure::Usage(format!("--filter {text}: {error}\n\n{FILTER_HELP}"));
        if text.len() > MAX_BYTES {
            return Err(Failure::Usage(format!("--filter: the expression is longer than {MAX_BYTES} bytes")));
        }
        let operators = text.chars().filter(|letter| "+-*/%&|?.".contains(*letter)).count();
        if operators > MAX_OPERATORS {
            return Err(Failure::Usage(format!(
                "--filter: the expression has more than {MAX_OPERATORS} letters of operators"
            )));
        }
        if depth(text) > MAX_DEPTH {
            return Err(Failure::Usage(format!(
                "--filter: the expression is nested deeper than {MAX_DEPTH} levels"
            )));
        }
        let program = Program::compile(text).map_err(|error| wrong(error.to_string().trim()))?;
        let filter = Filter {
            program,
            context: context().map_err(|error| wrong(&error))?,
            decoders: decoders.clone(),
            tested: Cell::new(0),
            failed: Cell::new(0),
            first_failure: OnceLock::new(),
        };
        // A name that does not exist is noticed before the first record.
        let sample = RecordParts {
            topic: "",
            partition: 0,
            offset: 0,
            timestamp: 0,
            key: None,
            value: None,
            headers: &[],
        };
        match filter.evaluate(&sample) {
            Err(ExecutionError::UndeclaredReference(name)) => {
                Err(wrong(&format!("\"{name}\" does not exist")))
            }
            _ => Ok(filter),
        }
    }

    /// Returns true if the message passes. See [`Filter::passes`].
    ///
    /// # Errors
    ///
    /// Those of [`Filter::passes`].
    pub fn passes_message(&self, message: &MessageRef<'_>) -> Outcome<bool> {
        with_parts!(message, |parts| self.passes(parts))
    }

    /// Returns true if the record passes. One for which the expression fails does not, and is counted.
    ///
    /// # Errors
    ///
    /// [`Failure::Usage`] if the expression names a variable that does not exist.
    pub fn passes(&self, parts: &RecordParts<'_>) -> Outcome<bool> {
        self.tested.set(self.tested.get() + 1);
        let error = match self.evaluate(parts) {
            Ok(Value::Bool(passes)) => return Ok(passes),
            Ok(other) => format!("the result is of type {}, not bool", other.type_of()),
            Err(ExecutionError::UndeclaredReference(name)) => {
                return Err(Failure::Usage(format!("--filter: \"{name}\" does not exist\n\n{FILTER_HELP}")));
            }
            Err(error) => shortened(&error.to_string()),
        };
        self.failed.set(self.failed.get() + 1);
        self.first_failure.get_or_init(|| {
            format!("{} [{}] at offset {}: {error}", parts.topic, parts.partition, parts.offset)
        });
        Ok(false)
    }

    /// Returns the warning about records for which the expression failed.
    pub fn warning(&self) -> Option<String> {
        let first = self.first_failure.get()?;
        Some(format!(
            "--filter failed for {} of {} messages, which were left out; the first: {first}",
            self.failed.get(),
            self.tested.get()
        ))
    }

    fn evaluate(&self, parts: &RecordParts<'_>) -> Result<Value, ExecutionError> {
        let variables = Variables { parts, decoders: &self.decoders };
        // The context is not bound to a record; the scope of one is.
        let mut scope = narrowed(&self.context).new_inner_scope();
        scope.set_variable_resolver(&variables);
        self.program.execute(&scope)
    }
}

/// Returns the depth of nesting, or more: brackets in strings count, too.
fn depth(text: &str) -> usize {
    let (mut open, mut unary, mut deepest) = (0_usize, 0, 0);
    for letter in text.chars() {
        match letter {
            '(' | '[' | '{' | '?' => open += 1,
            ')' | ']' | '}' => open = open.saturating_sub(1),
            _ => {}
        }
        unary = match letter {
            '!' | '-' => unary + 1,
            ' ' => unary,
            _ => 0,
        };
        deepest = deepest.max(open + unary);
    }
    deepest
}

/// Shortens the lifetime of the values in a context.
fn narrowed<'a>(context: &'a Context<'static, 'static>) -> &'a Context<'a, 'a> {
    context
}

/// Returns the standard functions and ours.
fn context() -> Result<Context<'static, 'static>, String> {
    let mut context = Context::default();
    let now = now_ms();
    let time = move |text: Arc<String>| {
        parse_time(&text, now).map_err(|error| ExecutionError::function_error("time", error))
    };
    context.add_function("time", time).map_err(|error| error.to_string())?;
    let patterns = Mutex::new(HashMap::<Arc<String>, Regex>::new());
    let matches = move |cel::extractors::This(text): cel::extractors::This<Arc<String>>,
                        pattern: Arc<String>| {
        let mut known = patterns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(regex) = known.get(&pattern) {
            return Ok(regex.is_match(text.as_bytes()));
        }
        let regex = Regex::new(&pattern).map_err(|error| {
            ExecutionError::function_error(
                "matches",
                format!("\"{pattern}\" is not a regular expression: {error}"),
            )
        })?;
        let is_match = regex.is_match(text.as_bytes());
        if known.len() == MAX_PATTERNS {
            known.clear();
        }
        known.insert(pattern, regex);
        Ok(is_match)
    };
    context.add_function("matches", matches).map_err(|error| error.to_string())?;
    Ok(context)
}

/// Limits an error's text, which can contain a value.
fn shortened(text: &str) -> String {
    const MAX: usize = 200;
    match text.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// The variables of a record.
struct Variables<'a> {
    parts: &'a RecordParts<'a>,
    decoders: &'a Decoders,
}

impl VariableResolver for Variables<'_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        let parts = self.parts;
        let value = match variable {
            "topic" => return Some(CowVal::owned(CelString::from(parts.topic))),
            "partition" => Value::Int(parts.partition.into()),
            "offset" => Value::Int(parts.offset),
            "timestamp" => Value::Int(parts.timestamp),
            "key" => field(parts.key, self.decoders.key_of(parts)),
            "value" => field(parts.value, self.decoders.value_of(parts)),
            "headers" => {
                let name = |name: &[u8]| Key::String(Arc::new(String::from_utf8_lossy(name).into_owned()));
                let headers = parts.headers.iter().map(|(key, value)| (name(key), text(*value)));
                Value::Map(Map { map: Arc::new(headers.collect()) })
            }
            _ => return None,
        };
        value.try_into().ok().map(CowVal::Owned)
    }
}

/// Returns a key or value: what its decoder returns, or else JSON if it is a map or list, or else text.
fn field(bytes: Option<&[u8]>, decoded: Result<super::Decoded<'_>, String>) -> Value {
    let Some(raw) = bytes else { return Value::Null };
    match decoded {
        Ok(Some(Decoded::Value(value) | Decoded::Packed(_, value))) => of_json(value),
        Ok(Some(Decoded::Json(json))) => serde_json::from_str(&json).map_or_else(|_| text(bytes), of_json),
        Ok(Some(Decoded::Bytes(_)) | None) | Err(_) => {
            let begins = raw.iter().find(|byte| !byte.is_ascii_whitespace());
            match begins {
                Some(b'{' | b'[') => serde_json::from_slice(raw).map_or_else(|_| text(bytes), of_json),
                _ => text(bytes),
            }
        }
    }
}

fn text(bytes: Option<&[u8]>) -> Value {
    bytes.map_or(Value::Null, |bytes| match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => bytes.to_vec().into(),
    })
}

fn of_json(value: serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match value {
        Json::Null => Value::Null,
        Json::Bool(bool) => Value::Bool(bool),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::Int(number),
            (None, Some(number)) => Value::UInt(number),
            (None, None) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => text.into(),
        Json::Array(items) => Value::List(Arc::new(items.into_iter().map(of_json).collect())),
        Json::Object(fields) => {
            let fields =
                fields.into_iter().map(|(name, value)| (Key::String(Arc::new(name)), of_json(value)));
            Value::Map(Map { map: Arc::new(fields.collect()) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::RECORD;
    use super::*;

    fn filter(text: &str) -> Filter {
        Filter::parse(text, &Decoders::default()).unwrap_or_else(|error| panic!("{text}: {error:?}"))
    }

    fn passes(text: &str, value: &[u8]) -> bool {
        let filter = filter(text);
        let passes = filter.passes(&RecordParts { value: Some(value), ..RECORD }).unwrap();
        assert_eq!(filter.warning(), None, "{text}");
        passes
    }

    #[test]
    fn filter_reads_all_parts_of_a_record() {
        for text in [
            "topic == 'demo' && partition == 3 && offset in [42]",
            "timestamp >= time('2023-11-14') && timestamp < time('now')",
            "key == 'k' && size(key) == 1 && key.startsWith('k')",
            "'a' in headers && headers['a'] == null && !('b' in headers)",
            "value.matches('^h[a-z]+o$')",
            "value.contains('ell')",
        ] {
            assert!(passes(text, b"hello"), "{text}");
        }
        assert!(!passes("partition == 4", b"hello"));
    }

    #[test]
    fn filter_follows_paths_of_json() {
        let value =
            br#"{"id": 7, "price": 9.5, "big": 18446744073709551615, "items": [{"n": "x"}], "none": null}"#;
        for text in [
            "value.id == 7 && value.id > 6 && value.price < 10.0 && value.price > 9",
            "value.big > 7",
            "value.items[0].n == 'x' && value.items.exists(item, item.n == 'x')",
            "!has(value.absent) && value.none == null",
        ] {
            assert!(passes(text, value), "{text}");
        }
        assert!(passes("value[1] == 2", b" [1, 2]"));
    }

    #[test]
    fn expressions_that_fail_are_counted_once_for_all() {
        for (text, error) in [
            ("value.absent == 1", "absent"),
            ("value + 1 == 2", "operator 'add'"),
            ("offset", "the result is of type int, not bool"),
            ("key.matches('(')", "not a regular expression"),
            ("1 / (partition - 3) == 1", "zero"),
        ] {
            let filter = filter(text);
            for _ in 0..3 {
                assert_eq!(filter.passes(&RecordParts { value: Some(b"{}"), ..RECORD }), Ok(false), "{text}");
            }
            let warning = filter.warning().unwrap();
            assert!(warning.starts_with("--filter failed for 3 of 3 messages"), "{warning}");
            assert!(warning.contains("demo [3] at offset 42") && warning.contains(error), "{warning}");
        }
    }

    #[test]
    fn long_expressions_are_evaluated() {
        // The stack of a program's main thread, which is larger than that of a test.
        let evaluate = || {
            let sum = format!("partition{} == 93", " + 1".repeat(90));
            let all = format!("true{}", " && true".repeat(45));
            passes(&sum, b"") && passes(&all, b"")
        };
        let thread = std::thread::Builder::new().stack_size(8 << 20).spawn(evaluate).unwrap();
        assert!(thread.join().unwrap());
    }

    #[test]
    fn wrong_expressions_are_refused_at_the_start() {
        let deep = format!("{}true{}", "(".repeat(1000), ")".repeat(1000));
        let (nots, long, sum) = ("!".repeat(1000), "x".repeat(100_000), format!("1{}", " + 1".repeat(900)));
        for text in ["", "value.", "partition = 1", "valu.x == 1", "unknown(1)", &deep, &nots, &long, &sum] {
            let refused = Filter::parse(text, &Decoders::default()).map(drop);
            assert!(matches!(refused, Err(Failure::Usage(_))), "{}", &text[..text.len().min(20)]);
        }
    }
}
