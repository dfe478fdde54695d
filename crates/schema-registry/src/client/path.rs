//! Paths of the API.

use std::fmt::Write as _;

use crate::percent::encoded;

/// A path with its query.
#[derive(Debug)]
pub struct Path {
    text: String,
    has_query: bool,
}

impl Path {
    /// Starts with fixed parts, for example `/subjects`.
    pub fn new(fixed: &str) -> Self {
        Self { text: fixed.to_owned(), has_query: false }
    }

    /// Adds a part.
    pub fn part(mut self, part: impl std::fmt::Display) -> Self {
        self.text.push('/');
        self.text.push_str(&encoded(&part.to_string()));
        self
    }

    /// Adds a parameter if its value is not the default.
    pub fn flag(self, name: &str, is_set: bool) -> Self {
        if is_set { self.query(name, "true") } else { self }
    }

    /// Adds a parameter.
    pub fn query(mut self, name: &str, value: &str) -> Self {
        let separator = if self.has_query { '&' } else { '?' };
        let _ = write!(self.text, "{separator}{name}={}", encoded(value));
        self.has_query = true;
        self
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subject_with_a_slash_is_one_part() {
        let path = Path::new("/subjects").part("a/b c:.ä").part("versions").part(3).flag("deleted", true);
        assert_eq!(
            path.flag("normalize", false).as_str(),
            "/subjects/a%2Fb%20c:.%C3%A4/versions/3?deleted=true"
        );
    }
}
