//! The references of a schema, and theirs.

use std::collections::HashSet;

use super::{Client, Version};
use crate::{Error, Result, Schema};

/// The largest number of schemas that one uses.
const MAX_REFERENCES: usize = 1000;
/// The largest size of all of them together, in bytes.
const MAX_BYTES: usize = 16 << 20;
/// The longest chain of references.
const MAX_DEPTH: usize = 50;

/// The schemas that one uses: each comes after those that it uses itself.
#[derive(Debug, Default)]
struct Found {
    list: Vec<(String, String)>,
    known: HashSet<(String, i32, String)>,
    bytes: usize,
}

impl Client {
    /// Returns the names and the texts of all schemas that this one uses, each after those that it uses itself.
    ///
    /// # Errors
    ///
    /// A reference is missing, they are cyclic, too many or too large; the registry can't be reached or refuses.
    pub fn references(&self, schema: &Schema) -> Result<Vec<(String, String)>> {
        let mut found = Found::default();
        self.collect(schema, &mut found, &mut Vec::new())?;
        Ok(found.list)
    }

    fn collect(&self, schema: &Schema, found: &mut Found, chain: &mut Vec<(String, i32)>) -> Result<()> {
        for reference in &schema.references {
            let at = (reference.subject.clone(), reference.version);
            if chain.contains(&at) {
                let names: Vec<String> =
                    chain.iter().map(|(subject, version)| format!("{subject} {version}")).collect();
                return Err(Error::schema(format!(
                    "its references are cyclic: {} refers to {} {}",
                    names.join(", "),
                    at.0,
                    at.1
                )));
            }
            if !found.known.insert((at.0.clone(), at.1, reference.name.clone())) {
                continue;
            }
            if chain.len() >= MAX_DEPTH || found.known.len() > MAX_REFERENCES {
                return Err(Error::schema(format!(
                    "it uses more than {MAX_REFERENCES} schemas, or a chain of more than {MAX_DEPTH}"
                )));
            }
            let used =
                self.version(&reference.subject, Version::Number(reference.version)).map_err(|error| {
                    match error.is_not_found() {
                        true => {
                            Error::schema(format!("the reference {:?} is missing: {error}", reference.name))
                        }
                        false => error,
                    }
                })?;
            found.bytes += used.schema.text.len();
            if found.bytes > MAX_BYTES {
                return Err(Error::schema(format!(
                    "the schemas that it uses have more than {MAX_BYTES} bytes"
                )));
            }
            chain.push(at);
            self.collect(&used.schema, found, chain)?;
            chain.pop();
            found.list.push((reference.name.clone(), used.schema.text.clone()));
        }
        Ok(())
    }
}
