//! The encoder of keys and values, as `produce -s` chooses it: the other direction of the decoders.

use serde_json::Value;

use super::part_format::{PartFormat, PartFormats};
use super::registry::WriterOptions;
use super::registry::Writers;
use super::{Part, registry};
use crate::client_options::ClientOptions;
use crate::failure::Outcome;

/// A key or value as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The bytes.
    pub payload: Vec<u8>,
    /// The header that names the schema, if it is not before the bytes.
    pub id: Option<Vec<u8>>,
}

/// The encoders of a command.
pub struct Encoders {
    formats: PartFormats,
    writers: Option<Writers>,
}

impl Encoders {
    /// Returns the encoders of formats; `client` chooses the profile that may name the registry.
    ///
    /// # Errors
    ///
    /// What they need of the registry is wrong or missing.
    pub fn new(formats: PartFormats, options: &WriterOptions, client: &ClientOptions) -> Outcome<Encoders> {
        Ok(Encoders { writers: Writers::new(options, &formats, client)?, formats })
    }

    /// True if the bytes of a part are sent as they are.
    pub fn is_plain(&self, part: Part) -> bool {
        *self.format(part) == PartFormat::Plain
    }

    /// The name of the header that names the schema of a part, if its format has one.
    pub fn id_header(&self, part: Part) -> Option<&'static str> {
        matches!(self.format(part), PartFormat::Registered(_)).then(|| registry::id_header(part))
    }

    fn format(&self, part: Part) -> &PartFormat {
        match part {
            Part::Key => &self.formats.key,
            Part::Value => &self.formats.value,
        }
    }

    /// Returns what is sent for the text of a key or value.
    ///
    /// # Errors
    ///
    /// The text is not JSON, or does not fit the format.
    pub fn encode(&self, part: Part, topic: &str, text: &[u8]) -> Result<Encoded, String> {
        let plain = |payload: Vec<u8>| Ok(Encoded { payload, id: None });
        let json = || {
            serde_json::from_slice::<Value>(text)
                .map_err(|error| format!("it is not JSON: {error}; a text needs quotes"))
        };
        match (self.format(part), &self.writers) {
            (PartFormat::Plain, _) => plain(text.to_vec()),
            (PartFormat::Json, _) => json().and_then(|_| plain(text.to_vec())),
            (PartFormat::Pack(pack), _) => plain(match json() {
                Ok(value) => pack.pack(&value)?,
                Err(_) => pack.pack_text(&String::from_utf8_lossy(text))?,
            }),
            (PartFormat::Local(local), _) => plain(local.encode(&json()?)?),
            (PartFormat::Registered(_), Some(writers)) => writers.write(part, topic, &json()?),
            (PartFormat::Registered(_), None) => {
                Err("the format is not connected with a registry".to_owned())
            }
        }
    }
}
