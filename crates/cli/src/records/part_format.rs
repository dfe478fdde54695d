//! `-s`: the formats of keys and values, for `consume` and `produce` alike.

use std::path::PathBuf;

use super::pack::Pack;
use super::registry::{Local, Registered};

/// The formats, for `--help`; what differs between the commands stands before and after it.
pub const FORMAT_LIST: &str = "\
  string        the bytes as they are (default)
  json          a JSON value: an object in -J, and paths in --filter
  avro, protobuf, jsonschema
                JSON of what a schema of the registry describes (--registry); avro-json has the names of union branches.
                protobuf#shop.Order names the message, if it is not the first one of the schema, to produce
  avro:FILE, protobuf:FILE, protobuf:FILE#shop.Order, jsonschema:FILE
                JSON of what the schema in a file describes, without a registry: the bytes have no ID before them. Files of
                Protobuf are .proto, or what protoc --descriptor_set_out writes; -I names folders, and files with types of Avro
  PACK          numbers of fixed size, in the letters of kcat:
                < little-endian, > big-endian (default), b B 8-bit integer, h H 16-bit, i I 32-bit, q Q 64-bit (capitals are
                unsigned), c a character, s the rest as a string, $ the end is required; a space prints a space";

/// The format of keys or of values.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum PartFormat {
    /// The bytes as they are.
    #[default]
    Plain,
    /// A JSON value.
    Json,
    /// Numbers and strings in kcat's pack format.
    Pack(Pack),
    /// What a schema of the registry describes.
    Registered(Registered),
    /// What a schema in a file describes.
    Local(Local),
}

/// The formats of keys and values.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PartFormats {
    /// That of keys.
    pub key: PartFormat,
    /// That of values.
    pub value: PartFormat,
}

impl PartFormats {
    /// Parses the values of `-s`: `key=FORMAT`, `value=FORMAT`, both with a comma between them, or a format for both. A later one
    /// replaces an earlier one. `includes` are the values of `-I`.
    ///
    /// # Errors
    ///
    /// A text that names the wrong part, or a format that is unknown or whose file can't be used.
    pub fn parse(texts: &[String], includes: &[PathBuf]) -> Result<PartFormats, String> {
        let mut formats = PartFormats::default();
        for text in texts.iter().flat_map(|text| halves(text)) {
            let of =
                |name: &str| PartFormat::parse(name, includes).map_err(|error| format!("-s {text}: {error}"));
            match text.split_once('=') {
                Some(("key", name)) => formats.key = of(name)?,
                Some(("value", name)) => formats.value = of(name)?,
                // An equals sign may also be in the name of a file.
                Some((name, _)) if !name.contains(':') => {
                    return Err(format!(
                        "-s {text}: write key=FORMAT or value=FORMAT\n\nFormats:\n{FORMAT_LIST}"
                    ));
                }
                _ => {
                    let both = of(text)?;
                    formats = PartFormats { key: both.clone(), value: both };
                }
            }
        }
        Ok(formats)
    }

    /// True if a part needs a registry.
    pub fn need_registry(&self) -> bool {
        [&self.key, &self.value].into_iter().any(|format| matches!(format, PartFormat::Registered(_)))
    }
}

/// Divides a text at the commas before `key=` and `value=`; others may be in the name of a file.
fn halves(text: &str) -> Vec<&str> {
    let (mut found, mut start) = (Vec::new(), 0);
    for (at, _) in text.match_indices(',') {
        let rest = &text[at + 1..];
        if rest.starts_with("key=") || rest.starts_with("value=") {
            found.push(&text[start..at]);
            start = at + 1;
        }
    }
    found.push(&text[start..]);
    found
}

impl PartFormat {
    fn parse(name: &str, includes: &[PathBuf]) -> Result<PartFormat, String> {
        let (format, file) = match name.split_once(':') {
            Some((format, file)) => (format, Some(file)),
            None => (name, None),
        };
        if let (Some(file), true) = (file, Registered::is_format(format)) {
            return Local::open(format, file, includes).map(PartFormat::Local);
        }
        match name {
            "string" => Ok(PartFormat::Plain),
            "json" => Ok(PartFormat::Json),
            name if Registered::is_format(name) => Registered::parse(name).map(PartFormat::Registered),
            name => Pack::parse(name)
                .map(PartFormat::Pack)
                .map_err(|error| format!("{error}\n\nFormats:\n{FORMAT_LIST}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(texts: &[&str]) -> Result<PartFormats, String> {
        PartFormats::parse(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>(), &[])
    }

    #[test]
    fn formats_are_chosen_for_key_value_or_both() {
        assert_eq!(parse(&[]), Ok(PartFormats::default()));
        let both = parse(&["json"]).unwrap();
        assert_eq!((both.key, both.value), (PartFormat::Json, PartFormat::Json));
        for texts in [&["value=json", "key=>q"][..], &["key=>q,value=json"], &["string", "value=json,key=>q"]]
        {
            let one = parse(texts).unwrap();
            assert!(
                matches!(one, PartFormats { key: PartFormat::Pack(_), value: PartFormat::Json }),
                "{texts:?}"
            );
        }
        for wrong in ["keys=json", "value=", "xml", "value=avrox", "key=json,xml", "json,value=json,"] {
            assert!(parse(&[wrong]).unwrap_err().contains("Formats:"), "{wrong}");
        }
    }

    #[cfg(feature = "schemas")]
    #[test]
    fn schemas_are_of_the_registry_or_in_files() {
        assert!(parse(&["value=avro"]).unwrap().need_registry());
        assert!(parse(&["value=protobuf#a.B"]).unwrap().need_registry());
        let error = parse(&["value=avro:/no/such,file=x.avsc"]).unwrap_err();
        assert!(error.contains("/no/such,file=x.avsc can't be read"), "{error}");
        assert!(parse(&["avro#a.B"]).is_err());
    }
}
