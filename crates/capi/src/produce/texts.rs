//! The texts of failed messages, which `rd_kafka_message_produce_errstr` returns: the broker's error message for a
//! batch or for one of its records (KIP-467).
//!
//! A message has no room for a pointer to its text. A report registers its texts, and writes their numbers into its messages
//! instead of a leader epoch, which produced messages do not have.

use std::{
    ffi::{CString, c_char},
    ptr,
};

use ottla_core::{
    error::{Error, ErrorKind},
    produce::report::DeliveryBatch,
};
use ottla_net::process::{Generation, PerProcess};
use ottla_sorted::SortedMap;

use crate::ffi::{boundary::c_text, lock::Mutex};

/// The number of a message without a text: the leader epoch of a produced message.
pub(crate) const NO_TEXT: i32 = -1;

static REGISTRY: PerProcess<Mutex<Registry>> = PerProcess::new();

/// The texts of all reports that exist, by numbers below [`NO_TEXT`].
struct Registry {
    texts: SortedMap<i32, CString>,
    next: i32,
}

impl Default for Registry {
    fn default() -> Self {
        Self { texts: SortedMap::new(), next: NO_TEXT - 1 }
    }
}

impl Registry {
    fn add(&mut self, text: CString) -> i32 {
        while self.texts.contains_key(&self.next) {
            self.step();
        }
        let number = self.next;
        self.step();
        self.texts.insert(number, text);
        number
    }

    const fn step(&mut self) {
        self.next = if self.next == i32::MIN { NO_TEXT - 1 } else { self.next - 1 };
    }
}

/// The texts of a report. They are removed with it, unless the process was forked since.
#[derive(Debug)]
pub(crate) struct Texts {
    numbers: Vec<(String, i32)>,
    process: Generation,
}

impl Default for Texts {
    fn default() -> Self {
        Self { numbers: Vec::new(), process: Generation::current() }
    }
}

impl Texts {
    /// Registers the texts of a batch that failed.
    pub(crate) fn of(batch: &DeliveryBatch) -> Self {
        let mut texts = Self::default();
        if batch.error().is_some() {
            let places = if batch.has_invalid_records() { 0..batch.len() } else { 0..1 };
            for text in places.filter_map(|place| text_of(batch.error_at(place)?)) {
                if !texts.numbers.iter().any(|(known, _)| *known == text) {
                    let number = REGISTRY.get().lock().add(c_text(&text));
                    texts.numbers.push((text, number));
                }
            }
        }
        texts
    }

    /// Returns the number of an error's text.
    pub(crate) fn number_of(&self, error: Option<&Error>) -> i32 {
        let Some(text) = error.filter(|_| !self.numbers.is_empty()).and_then(text_of) else { return NO_TEXT };
        self.numbers.iter().find(|(known, _)| *known == text).map_or(NO_TEXT, |(_, number)| *number)
    }
}

impl Drop for Texts {
    fn drop(&mut self) {
        for (_, number) in self.numbers.iter().filter(|_| self.process.is_current()) {
            REGISTRY.get().lock().texts.remove(number);
        }
    }
}

/// Returns the text with this number, which lives as long as its report, or NULL.
pub(crate) fn text(number: i32) -> *const c_char {
    REGISTRY.get().lock().texts.get(&number).map_or(ptr::null(), |text| text.as_ptr())
}

/// Returns the broker's error message; `None` if it returned only a code, or if the error did not come from the broker.
fn text_of(error: &Error) -> Option<String> {
    match error.kind() {
        ErrorKind::Broker(_) => Some(error.context().detail.clone()).filter(|text| !text.is_empty()),
        kind @ ErrorKind::InvalidDifferentRecord => Some(kind.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_reused_from_the_lowest_one() {
        let mut registry = Registry { texts: SortedMap::new(), next: i32::MIN };
        assert_eq!(registry.add(c_text("a")), i32::MIN);
        assert_eq!(registry.add(c_text("b")), -2);
        registry.next = -2;
        assert_eq!(registry.add(c_text("c")), -3, "-2 is in use");
    }
}
