//! What stands for a schema registry in a program without the feature `schemas`.

use clap::Args;

use super::{Part, RecordParts};
use crate::client_options::ClientOptions;
use crate::failure::Outcome;

/// A format of a registry: there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaType {}

/// The formats, with their names.
pub const FORMATS: [(&str, SchemaType); 0] = [];

/// The options of a registry.
#[derive(Args, Debug)]
pub struct RegistryOptions {}

/// A registry: there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registry {}

impl Registry {
    /// Is not called, because no decoder needs it.
    pub fn new(_: &RegistryOptions, _: &ClientOptions) -> Outcome<Registry> {
        Err(crate::failure::Failure::Usage("this program was built without the feature `schemas`".to_owned()))
    }

    /// Is not called.
    pub(super) fn decode(&self, _: SchemaType, _: Part, _: &RecordParts<'_>) -> Result<String, String> {
        match *self {}
    }
}
