//! `rd_kafka_ottla_request_t`: the arguments of a call, as rows of named texts.

use std::{fmt::Display, ptr, str::FromStr};

use ottla::Secret;
use ottla_protocol::vocabulary::TopicPartition;
use ottla_sorted::SortedMap;

use crate::{
    client::event::Failure,
    ffi::{
        argument::{Given, Ref, RefMut, Text},
        boundary::{Handle, Tag},
        codes::{RespErr, code},
        export,
    },
};

/// `rd_kafka_ottla_request_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Request {
    tag: Tag,
    /// The rows; values may be secrets.
    rows: Vec<SortedMap<String, Secret>>,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for Request {
    const KIND: u32 = 0x6f74_4120;
}

/// The most rows of a request.
const MOST_ROWS: usize = 1_000_000;

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_ottla_request_new() -> *mut Request {
        Box::into_raw(Box::new(Request { tag: Tag::of::<Request>(), rows: Vec::new() }))
    }
);

export!(
    #[local(())]
    fn rd_kafka_ottla_request_destroy(request: Given<Request>) {
        request.retire();
    }
);

export!(
    #[local(code::_FATAL)]
    fn rd_kafka_ottla_request_add(request: RefMut<Request>) -> RespErr {
        match request.get() {
            Some(request) if request.rows.len() < MOST_ROWS => {
                request.rows.push(SortedMap::new());
                code::NO_ERROR
            }
            _ => code::_INVALID_ARG,
        }
    }
);

export!(
    #[local(code::_FATAL)]
    fn rd_kafka_ottla_request_set(request: RefMut<Request>, field: Text, value: Text) -> RespErr {
        let (Some(request), Some(field), Some(value)) = (request.get(), field.get(), value.get()) else {
            return code::_INVALID_ARG;
        };
        let Some(row) = request.rows.last_mut().filter(|_| !field.is_empty()) else {
            return code::_INVALID_ARG;
        };
        row.insert(field.into_owned(), Secret::from(&*value));
        code::NO_ERROR
    }
);

/// The rows of a request whose fields are known.
pub(super) struct Rows<'a>(Vec<Fields<'a>>);

/// A row.
pub(super) struct Fields<'a> {
    number: usize,
    fields: &'a SortedMap<String, Secret>,
}

/// Returns the rows of a request; none for NULL.
///
/// # Errors
///
/// A row has another field, or the request is none.
pub(in crate::admin) fn rows_of<'a>(request: Ref<'a, Request>, known: &[&str]) -> Result<Rows<'a>, Failure> {
    if request.is_null() {
        return Ok(Rows(Vec::new()));
    }
    let request =
        request.get().ok_or_else(|| Failure::misuse("the request is destroyed, or of another kind"))?;
    let rows = request.rows.iter().enumerate().map(|(number, fields)| {
        match fields.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) if known.is_empty() => Err(Failure::misuse(format!(
                "row {number} has the field \"{name}\", but this call has no fields"
            ))),
            Some(name) => {
                let known = known.join(", ");
                Err(Failure::misuse(format!(
                    "row {number} has the unknown field \"{name}\"; this call has: {known}"
                )))
            }
            None => Ok(Fields { number, fields }),
        }
    });
    rows.collect::<Result<_, _>>().map(Rows)
}

impl<'a> Rows<'a> {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Fields<'a>> {
        self.0.iter()
    }

    /// Returns the rows, of which there is at least one.
    pub(super) fn some(&self) -> Result<&[Fields<'a>], Failure> {
        match self.0.as_slice() {
            [] => Err(Failure::misuse("the request has no rows; rd_kafka_ottla_request_add() begins one")),
            rows => Ok(rows),
        }
    }

    /// Returns the only row.
    pub(super) fn only(&self) -> Result<&Fields<'a>, Failure> {
        match self.some()? {
            [row] => Ok(row),
            rows => Err(Failure::misuse(format!("the request has {} rows; this call takes one", rows.len()))),
        }
    }

    /// Returns a value of each row.
    pub(super) fn each<T>(
        &self,
        value: impl FnMut(&Fields<'a>) -> Result<T, Failure>,
    ) -> Result<Vec<T>, Failure> {
        self.0.iter().map(value).collect()
    }
}

impl<'a> Fields<'a> {
    /// Returns the failure of a call because of this row.
    pub(super) fn wrong(&self, why: impl Display) -> Failure {
        Failure::misuse(format!("row {}: {why}", self.number))
    }

    pub(super) fn secret(&self, field: &str) -> Result<&'a Secret, Failure> {
        self.fields.get(field).ok_or_else(|| self.wrong(format_args!("the field \"{field}\" is missing")))
    }

    pub(super) fn text(&self, field: &str) -> Result<&'a str, Failure> {
        self.optional(field).ok_or_else(|| self.wrong(format_args!("the field \"{field}\" is missing")))
    }

    pub(super) fn optional(&self, field: &str) -> Option<&'a str> {
        // Texts are made of texts.
        self.fields.get(field).and_then(|value| std::str::from_utf8(value.expose()).ok())
    }

    pub(super) fn number<T: FromStr>(&self, field: &str) -> Result<T, Failure> {
        self.parsed(field, self.text(field)?)
    }

    pub(super) fn optional_number<T: FromStr>(&self, field: &str) -> Result<Option<T>, Failure> {
        self.optional(field).map(|text| self.parsed(field, text)).transpose()
    }

    /// Returns numbers that are separated by commas.
    pub(super) fn numbers<T: FromStr>(&self, field: &str) -> Result<Option<Vec<T>>, Failure> {
        let list = |text: &str| text.split(',').map(|number| self.parsed(field, number.trim())).collect();
        self.optional(field).map(list).transpose()
    }

    /// Returns the value of one of these words.
    pub(super) fn choice<T: Copy>(&self, field: &str, words: &[(&str, T)]) -> Result<Option<T>, Failure> {
        let Some(text) = self.optional(field) else { return Ok(None) };
        match words.iter().find(|(word, _)| *word == text) {
            Some((_, value)) => Ok(Some(*value)),
            None => {
                let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                Err(self.wrong(format_args!("\"{field}\" must be one of: {}", known.join(", "))))
            }
        }
    }

    /// Returns the fields `topic` and `partition`.
    pub(super) fn partition(&self) -> Result<TopicPartition, Failure> {
        Ok(TopicPartition::new(self.text("topic")?, self.number("partition")?))
    }

    fn parsed<T: FromStr>(&self, field: &str, text: &str) -> Result<T, Failure> {
        text.parse().map_err(|_| {
            let shown: String = text.chars().take(100).collect();
            self.wrong(format_args!(
                "\"{field}\" is \"{}\", which is not a number of its range",
                shown.escape_debug()
            ))
        })
    }
}
