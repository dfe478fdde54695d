//! What stands for `--filter` in a program without the feature `filter`.

use ottla::MessageRef;

use super::{Decoders, RecordParts};
use crate::failure::{Failure, Outcome};

/// The end of `--help`.
pub const FILTER_HELP: &str =
    "Filters (--filter) are not in this program: it was built without the feature `filter`";

/// An expression: there is none.
#[derive(Debug)]
pub enum Filter {}

impl Filter {
    /// Refuses every expression.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn parse(_: &str, _: &Decoders) -> Outcome<Filter> {
        Err(Failure::Usage("--filter: this program was built without the feature `filter`".to_owned()))
    }

    /// Is not called.
    pub fn passes_message(&self, _: &MessageRef<'_>) -> Outcome<bool> {
        match *self {}
    }

    /// Is not called.
    pub fn passes(&self, _: &RecordParts<'_>) -> Outcome<bool> {
        match *self {}
    }

    /// Is not called.
    pub fn warning(&self) -> Option<String> {
        match *self {}
    }
}
