//! Protobuf: files are compiled by protox, and messages read and written by prost-reflect.

mod compatibility;
mod files;
mod folders;

use std::path::{Path, PathBuf};

use prost::Message;
use prost_reflect::{
    DescriptorPool, DeserializeOptions, DynamicMessage, FileDescriptor, MessageDescriptor, SerializeOptions,
};
use serde_json::Value;

use crate::{Error, Result, wire::MessageIndexes};

/// A compiled file.
#[derive(Clone, Debug)]
pub struct ProtobufSchema {
    file: FileDescriptor,
}

impl ProtobufSchema {
    /// Compiles a file. `references` are the names and the texts of the files that it imports; those of `google/protobuf/` are
    /// known. Each text may also be a serialized `FileDescriptorProto` in base64.
    ///
    /// # Errors
    ///
    /// A text is too large, is not valid, or imports an unknown file.
    pub fn parse(text: &str, references: &[(String, String)]) -> Result<Self> {
        Ok(Self { file: files::compile(text, references)? })
    }

    /// Compiles a file of the file system. Those that it imports are in its folder or in one of `folders`; those of
    /// `google/protobuf/` are known.
    ///
    /// # Errors
    ///
    /// A file can't be read, is too large or not valid, or imports an unknown file.
    pub fn open(path: &Path, folders: &[PathBuf]) -> Result<Self> {
        Ok(Self { file: folders::open(path, folders)? })
    }

    /// Reads a serialized `FileDescriptorSet`, as `protoc --include_imports --descriptor_set_out` writes it. The file is the last one
    /// with messages.
    ///
    /// # Errors
    ///
    /// It is too large, not valid, or lacks an imported file.
    pub fn from_descriptor_set(bytes: &[u8]) -> Result<Self> {
        Ok(Self { file: folders::from_descriptor_set(bytes)? })
    }

    /// All files and messages, for a use that this crate has not.
    #[must_use]
    pub fn pool(&self) -> &DescriptorPool {
        self.file.parent_pool()
    }

    /// Returns a message of the file by its name, with or without the package, or the first one.
    ///
    /// # Errors
    ///
    /// There is no such message.
    pub fn message(&self, name: Option<&str>) -> Result<MessageDescriptor> {
        let found = match name {
            None => self.file.messages().next(),
            Some(name) => {
                let full = format!("{}.{name}", self.file.package_name());
                let pool = self.file.parent_pool();
                pool.get_message_by_name(name).or_else(|| pool.get_message_by_name(&full))
            }
        };
        found.ok_or_else(|| {
            let names: Vec<String> = self.file.messages().map(|it| it.full_name().to_owned()).collect();
            Error::schema(format!(
                "it has no message {}; it has {}",
                name.unwrap_or_default(),
                if names.is_empty() { "none".to_owned() } else { names.join(", ") }
            ))
        })
    }

    /// Returns the message with these indexes.
    ///
    /// # Errors
    ///
    /// There is no such message.
    pub fn message_at(&self, indexes: &MessageIndexes) -> Result<MessageDescriptor> {
        let mut found: Option<MessageDescriptor> = None;
        for index in &indexes.0 {
            let index = usize::try_from(*index).unwrap_or(usize::MAX);
            let next = match &found {
                None => self.file.messages().nth(index),
                Some(outer) => outer.child_messages().nth(index),
            };
            let Some(next) = next else {
                return Err(Error::record(
                    0,
                    format!(
                        "the schema has no message with the indexes {:?}; is it another schema's ID?",
                        indexes.0
                    ),
                ));
            };
            found = Some(next);
        }
        found.ok_or_else(|| Error::record(0, "the indexes of the message are missing"))
    }

    /// Returns the indexes of a message.
    #[must_use]
    pub fn indexes(message: &MessageDescriptor) -> MessageIndexes {
        let mut indexes = Vec::new();
        let mut at = Some(message.clone());
        while let Some(message) = at {
            let outer = message.parent_message();
            let is_it = |it: &MessageDescriptor| it.full_name() == message.full_name();
            let index = match &outer {
                Some(outer) => outer.child_messages().position(|it| is_it(&it)),
                None => message.parent_file().messages().position(|it| is_it(&it)),
            };
            indexes.push(index.and_then(|it| it.try_into().ok()).unwrap_or_default());
            at = outer;
        }
        indexes.reverse();
        MessageIndexes(indexes)
    }

    /// Returns the encoding of a message in JSON.
    ///
    /// # Errors
    ///
    /// The JSON does not fit the message.
    pub fn encode_json(message: &MessageDescriptor, value: &Value) -> Result<Vec<u8>> {
        let options = DeserializeOptions::new().deny_unknown_fields(true);
        let message = DynamicMessage::deserialize_with_options(message.clone(), value, &options)
            .map_err(|error| Error::value(error.to_string()))?;
        Ok(message.encode_to_vec())
    }

    /// Decodes a message into JSON, with the fields that are not set.
    ///
    /// # Errors
    ///
    /// The bytes are not a message.
    pub fn decode_json(message: &MessageDescriptor, bytes: &[u8]) -> Result<Value> {
        let message = Self::decode_dynamic(message, bytes)?;
        let options = SerializeOptions::new().skip_default_fields(false);
        message
            .serialize_with_options(serde_json::value::Serializer, &options)
            .map_err(|error| Error::record(0, error.to_string()))
    }

    /// Decodes a message whose type is known at run time only.
    ///
    /// # Errors
    ///
    /// The bytes are not a message.
    pub fn decode_dynamic(message: &MessageDescriptor, bytes: &[u8]) -> Result<DynamicMessage> {
        DynamicMessage::decode(message.clone(), bytes).map_err(|error| {
            Error::record(0, format!("it is not a message {}: {error}", message.full_name()))
        })
    }

    /// Says why this file can't read everything that the writer's file writes; nothing if it can.
    #[must_use]
    pub fn incompatibilities(&self, writer: &ProtobufSchema) -> Vec<String> {
        compatibility::incompatibilities(&self.file, &writer.file)
    }

    /// The file as a serialized descriptor in base64.
    #[must_use]
    pub fn to_base64(&self) -> String {
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.encode(self.file.encode_to_vec())
    }
}

#[cfg(test)]
mod tests;
