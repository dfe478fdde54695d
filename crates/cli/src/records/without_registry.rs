//! What stands for schemas in a program without the feature `schemas`.

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;

use super::part_format::PartFormats;
use super::{Encoded, Part, RecordParts};
use crate::client_options::ClientOptions;
use crate::failure::{Failure, Outcome};

/// Why a format can't be used.
const MISSING: &str = "this program was built without the feature `schemas`";

/// A format whose schema is in the registry: there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registered {}

impl Registered {
    /// True if the feature would have the format.
    pub fn is_format(name: &str) -> bool {
        let name = name.split('#').next().unwrap_or_default();
        ["avro", "avro-json", "protobuf", "jsonschema"].contains(&name)
    }

    /// Refuses the format.
    pub fn parse(_: &str) -> Result<Registered, String> {
        Err(MISSING.to_owned())
    }
}

/// A schema in a file: there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Local {}

impl Local {
    /// Refuses the format.
    pub fn open(_: &str, _: &str, _: &[PathBuf]) -> Result<Local, String> {
        Err(MISSING.to_owned())
    }

    /// Is not called.
    pub fn decode(&self, _: &[u8]) -> Result<String, String> {
        match *self {}
    }

    /// Is not called.
    pub fn encode(&self, _: &Value) -> Result<Vec<u8>, String> {
        match *self {}
    }
}

/// The options of a registry.
#[derive(Args, Debug)]
pub struct RegistryOptions {}

/// The options of a registry to write with.
#[derive(Args, Debug)]
pub struct WriterOptions {}

/// A registry: there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registry {}

impl Registry {
    /// Is not called, because no format needs it.
    pub fn new(_: &RegistryOptions, _: &ClientOptions) -> Outcome<Registry> {
        Err(Failure::Usage(MISSING.to_owned()))
    }

    /// Is not called.
    pub(super) fn decode(&self, _: &Registered, _: Part, _: &RecordParts<'_>) -> Result<String, String> {
        match *self {}
    }
}

/// Serializers of a registry: there are none.
pub enum Writers {}

impl Writers {
    /// Returns none.
    pub fn new(_: &WriterOptions, _: &PartFormats, _: &ClientOptions) -> Outcome<Option<Writers>> {
        Ok(None)
    }

    /// Is not called.
    pub fn write(&self, _: Part, _: &str, _: &Value) -> Result<Encoded, String> {
        match *self {}
    }
}

/// Is not called, because no format has such a header.
pub fn id_header(_: Part) -> &'static str {
    ""
}
