//! `rd_kafka_ottla_row_t`: a part of a result, as named texts with an error.

use std::{
    ffi::{CString, c_char},
    fmt::Display,
    ptr,
};

use ottla_core::error::Error;
use ottla_protocol::vocabulary::TopicPartition;

use crate::{
    admin::call::{Listed, code_in_result, error_text},
    client::event::Event,
    ffi::{
        argument::{Part, Place, Ref, Text},
        boundary::c_text,
        codes::{RespErr, code},
        export, getters, text_or_null,
    },
};

/// `rd_kafka_ottla_row_t`.
#[derive(Debug)]
pub struct Row {
    fields: Vec<(CString, CString)>,
    code: RespErr,
    text: CString,
}

impl Row {
    pub(super) fn new() -> Self {
        Self { fields: Vec::new(), code: code::NO_ERROR, text: CString::default() }
    }

    /// Creates the row of a partition.
    pub(super) fn of(key: &TopicPartition) -> Self {
        Self::new().with("topic", &key.topic).with("partition", key.partition)
    }

    #[must_use]
    pub(super) fn with(mut self, field: &str, value: impl Display) -> Self {
        self.fields.push((c_text(field), c_text(&value.to_string())));
        self
    }

    /// Adds a field if it has a value.
    #[must_use]
    pub(super) fn with_some(self, field: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.with(field, value),
            None => self,
        }
    }

    /// Adds values that are separated by commas.
    #[must_use]
    pub(super) fn with_list<T: ToString>(self, field: &str, values: impl IntoIterator<Item = T>) -> Self {
        let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
        self.with(field, values.join(","))
    }

    /// Adds an error, if there is one.
    #[must_use]
    pub(super) fn failed(mut self, error: Option<&Error>) -> Self {
        self.code = error.map_or(code::NO_ERROR, code_in_result);
        self.text = error_text(error);
        self
    }
}

export!(
    #[local(ptr::null())]
    fn rd_kafka_ottla_event_rows(rkev: Ref<Event>, cntp: Place<usize>) -> *const *const Row {
        Listed::show(rkev.get().and_then(Event::result::<Listed<Row>>), cntp)
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_ottla_row_get(row: Part<Row>, field: Text) -> *const c_char {
        let (Some(row), Some(field)) = (row.get(), field.c_str()) else { return ptr::null() };
        let found = row.fields.iter().find(|(name, _)| name.as_c_str() == field);
        text_or_null(found.map(|(_, value)| value))
    }
);

export!(
    #[local(default)]
    fn rd_kafka_ottla_row_number(row: Part<Row>, field: Text, default: i64) -> i64 {
        let (Some(row), Some(field)) = (row.get(), field.c_str()) else { return default };
        let found = row.fields.iter().find(|(name, _)| name.as_c_str() == field);
        found.and_then(|(_, value)| value.to_str().ok()?.parse().ok()).unwrap_or(default)
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_ottla_row_field(row: Part<Row>, idx: usize) -> *const c_char {
        text_or_null(row.get().and_then(|row| row.fields.get(idx)).map(|(name, _)| name))
    }
);

getters! {
    fn rd_kafka_ottla_row_error(row: Part<Row>) -> RespErr { code::_INVALID_ARG; row.code }
    fn rd_kafka_ottla_row_error_string(row: Part<Row>) -> *const c_char { ptr::null(); row.text.as_ptr() }
}
