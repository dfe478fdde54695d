//! Subjects and their versions.

use serde_json::Value;

use super::{Client, Registered, Version, http::Method, path::Path};
use crate::{Error, Result};

/// Which subjects or versions a list has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deleted {
    /// Those that are not deleted.
    #[default]
    Without,
    /// Also those that are deleted and can be restored.
    With,
    /// Only those that are deleted and can be restored.
    Only,
}

impl Deleted {
    fn on(self, path: Path) -> Path {
        path.flag("deleted", self == Deleted::With).flag("deletedOnly", self == Deleted::Only)
    }
}

impl Client {
    /// Returns the subjects that start with a prefix.
    ///
    /// # Errors
    ///
    /// The registry can't be reached or refuses.
    pub fn subjects(&self, prefix: &str, deleted: Deleted) -> Result<Vec<String>> {
        let mut path = Path::new("/subjects");
        if !prefix.is_empty() {
            path = path.query("subjectPrefix", prefix);
        }
        self.texts(&deleted.on(path))
    }

    /// Returns the versions of a subject.
    ///
    /// # Errors
    ///
    /// There is no such subject; the registry can't be reached or refuses.
    pub fn versions(&self, subject: &str, deleted: Deleted) -> Result<Vec<i32>> {
        self.numbers(Method::Get, &deleted.on(Path::new("/subjects").part(subject).part("versions")))
    }

    /// Deletes all versions of a subject and returns them. They can be registered again, and read by their ID, unless the deletion
    /// is permanent, which must follow one that is not.
    ///
    /// # Errors
    ///
    /// There is no such subject, a schema refers to it, or it must be deleted softly first.
    pub fn delete_subject(&self, subject: &str, is_permanent: bool) -> Result<Vec<i32>> {
        let path = Path::new("/subjects").part(subject).flag("permanent", is_permanent);
        let deleted = self.numbers(Method::Delete, &path);
        self.forget_subject(subject);
        deleted
    }

    /// Deletes a version of a subject and returns its number.
    ///
    /// # Errors
    ///
    /// As [`Client::delete_subject`].
    pub fn delete_version(&self, subject: &str, version: Version, is_permanent: bool) -> Result<i32> {
        let path = Path::new("/subjects").part(subject).part("versions").part(version);
        let path = path.flag("permanent", is_permanent);
        let answer = self.call(Method::Delete, &path, None)?;
        self.forget_subject(subject);
        let number = answer.as_i64().and_then(|it| it.try_into().ok());
        number.ok_or_else(|| self.strange(Method::Delete, &path, "a number was expected"))
    }

    /// Returns the IDs of the schemas that refer to a version.
    ///
    /// # Errors
    ///
    /// There is no such version; the registry can't be reached or refuses.
    pub fn referenced_by(&self, subject: &str, version: Version) -> Result<Vec<i32>> {
        let path = Path::new("/subjects").part(subject).part("versions").part(version).part("referencedby");
        self.numbers(Method::Get, &path)
    }

    /// Returns a version of a subject. The latest one is remembered for [`Config::latest_ttl`](super::Config::latest_ttl).
    ///
    /// # Errors
    ///
    /// There is no such version; the registry can't be reached or refuses.
    pub fn version(&self, subject: &str, version: Version) -> Result<Registered> {
        let path = Path::new("/subjects").part(subject).part("versions").part(version);
        let load = || {
            let answer = self.call(Method::Get, &path, None)?;
            let found = Registered::from_json(&answer, None)
                .ok_or_else(|| self.strange(Method::Get, &path, "a version of a subject was expected"))?;
            if matches!(version, Version::Number(number) if found.version != Some(number)) {
                return Err(self.strange(Method::Get, &path, "it is another version"));
            }
            Ok(found)
        };
        match version {
            Version::Latest => {
                let until = std::time::Instant::now() + self.inner.config.latest_ttl;
                self.inner.latest.get(&subject.to_owned(), Some(until), load)
            }
            Version::Number(number) => self.inner.versions.get(&(subject.to_owned(), number), None, load),
        }
    }

    /// Returns the contexts.
    ///
    /// # Errors
    ///
    /// The registry can't be reached or refuses.
    pub fn contexts(&self) -> Result<Vec<String>> {
        self.texts(&Path::new("/contexts"))
    }

    /// Returns the formats that the registry knows.
    ///
    /// # Errors
    ///
    /// The registry can't be reached or refuses.
    pub fn schema_types(&self) -> Result<Vec<String>> {
        self.texts(&Path::new("/schemas/types"))
    }

    fn forget_subject(&self, subject: &str) {
        self.inner.latest.forget(|it| it == subject);
        self.inner.versions.forget(|(it, _)| it == subject);
        self.inner.registered.forget(|(it, ..)| it == subject);
    }

    fn texts(&self, path: &Path) -> Result<Vec<String>> {
        let answer = self.call(Method::Get, path, None)?;
        let texts = answer.as_array().and_then(|list| {
            list.iter().map(|it| it.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        texts.ok_or_else(|| self.strange(Method::Get, path, "a list of names was expected"))
    }

    fn numbers(&self, method: Method, path: &Path) -> Result<Vec<i32>> {
        let answer = self.call(method, path, None)?;
        let numbers = answer.as_array().and_then(|list| {
            list.iter().map(|it| it.as_i64().and_then(|it| it.try_into().ok())).collect::<Option<Vec<i32>>>()
        });
        numbers.ok_or_else(|| self.strange(method, path, "a list of numbers was expected"))
    }

    /// Returns an error about an answer in JSON that is not what the API promises.
    pub(super) fn strange(&self, method: Method, path: &Path, why: &str) -> Error {
        let address = self.inner.addresses.in_order().next().map(|(_, it)| it.to_owned());
        Error::Answer {
            request: format!("{} {}", method.name(), path.as_str()),
            address: address.unwrap_or_default(),
            why: why.to_owned(),
        }
    }

    /// Returns a text of an answer.
    pub(super) fn text_of(&self, answer: &Value, key: &str, method: Method, path: &Path) -> Result<String> {
        let text = answer.get(key).and_then(Value::as_str).map(str::to_owned);
        text.ok_or_else(|| self.strange(method, path, &format!("{key:?} is missing")))
    }
}
