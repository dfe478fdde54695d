//! One row per property: its names, the clients that use it, its values, its default, and its status in this client.
//!
//! The parser, the range check, "did you mean", `-X list` and CONFIGURATION.md all read these rows, so a property with
//! a row is supported by all of them. The rows are in three files by the origin of the name: `librdkafka` has the 199
//! documented rows of librdkafka 2.16, `ottla` our own, `java` the names that only the Java client has.

use std::fmt;

use super::raw::Profile;

mod index;
mod java;
mod librdkafka;
mod ottla;

/// One property.
#[derive(Clone, Copy, Debug)]
pub struct Property {
    /// The name, exactly as it is written in a configuration.
    pub name: &'static str,
    /// The scope: the client or a topic.
    pub scope: Scope,
    /// The kind of client that uses it.
    pub side: Side,
    /// The permitted values.
    pub kind: Kind,
    /// The default in librdkafka and in the C library.
    pub default: &'static str,
    /// The default in Rust, if it differs.
    pub rust_default: Option<&'static str>,
    /// The largest integer in the C library, if it is not that of `kind`.
    pub librdkafka_max: Option<i64>,
    /// How often users need to consider it.
    pub importance: Importance,
    /// The property for which this is another name.
    pub alias: Option<Alias>,
    /// Kept for old configurations only.
    pub deprecated: bool,
    /// The origin of the name.
    pub origin: Origin,
    /// The status in this client.
    pub status: Status,
    /// The description. Empty for an alias, which has that of its property.
    pub doc: &'static str,
}

/// The scope of a property: the client or a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One value for the whole client.
    Global,
    /// May differ between topics; the client's value is the default of all topics.
    Topic,
}

/// The kind of client that uses a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Every client.
    Both,
    /// Consumers only.
    Consumer,
    /// Producers only.
    Producer,
}

/// The values that a property permits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// `true` or `false`.
    Boolean,
    /// A whole number in a range, or one of a few names for a number.
    Integer {
        /// The smallest value.
        min: i64,
        /// The largest value.
        max: i64,
        /// Names for some numbers.
        names: &'static [(&'static str, i64)],
    },
    /// A number in a range, fractions allowed.
    Float {
        /// The smallest value.
        min: f64,
        /// The largest value.
        max: f64,
        /// True if the word `auto` is permitted instead of a number.
        auto: bool,
    },
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Any of these words, comma-separated.
    Flags(&'static [&'static str]),
    /// Any text.
    Text,
    /// A callback or a pointer, which can't be written as text.
    Call,
}

/// How often users need to consider a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Importance {
    /// Consider it for every new program.
    High,
    /// Worth knowing.
    Medium,
    /// Only for special cases.
    Low,
}

/// Another name for a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The property's own name.
    pub of: &'static str,
    /// The conversion of a value to that of the property.
    pub conversion: Conversion,
}

/// The conversion of an alias's value to the value of its property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// The same value.
    Same,
    /// From bytes to KiB, rounded up.
    BytesToKibibytes,
    /// -1, "the system's default", becomes 0.
    MinusOneToZero,
}

/// The origin of a property's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Documented by librdkafka 2.16.
    Librdkafka,
    /// Ours, or not documented by any client.
    Ottla,
    /// Only in the Java client.
    Java,
}

/// The status of a property in this client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It has the documented effect.
    Used,
    /// Any value is accepted without effect, for this reason.
    Accepted(&'static str),
    /// Every value is accepted while `security.protocol` is `plaintext`, because programs share configurations; a client
    /// with another protocol is refused, for this reason.
    Unbuilt(&'static str),
    /// Every value is an error, for this reason.
    Refused(&'static str),
}

/// Iterates over all properties: librdkafka's 199 documented rows in their documented order, then ours, then Java's.
pub fn properties() -> impl Iterator<Item = &'static Property> + Clone {
    librdkafka::ROWS.iter().chain(ottla::ROWS).chain(java::ROWS)
}

/// Returns the row with this name in this scope, or else in the other scope.
pub fn find(scope: Scope, name: &str) -> Option<&'static Property> {
    let mut named = index::named(name);
    named.clone().find(|property| property.scope == scope).or_else(|| named.next())
}

impl Property {
    /// Returns the row that holds the value: itself, or the property that it is an alias of.
    pub fn canonical(&'static self) -> &'static Property {
        match self.alias {
            Some(alias) => find(self.scope, alias.of).unwrap_or(self),
            None => self,
        }
    }

    /// Returns the description, also for an alias.
    pub fn text(&'static self) -> &'static str {
        if self.doc.is_empty() { self.canonical().doc } else { self.doc }
    }

    /// Returns whether producers use it.
    pub fn is_for_producers(&self) -> bool {
        self.side != Side::Consumer
    }

    /// Returns whether consumers use it.
    pub fn is_for_consumers(&self) -> bool {
        self.side != Side::Producer
    }

    /// Returns the permitted values in words: `0 .. 900000`, `none, gzip`, or nothing if any text is valid.
    pub fn range(&self) -> String {
        self.range_for(Profile::Rust)
    }

    /// Returns the largest integer that the API with this profile accepts, where the row has `max`.
    pub(super) const fn integer_max(&self, profile: Profile, max: i64) -> i64 {
        match (profile, self.librdkafka_max) {
            (Profile::Librdkafka, Some(max)) => max,
            _ => max,
        }
    }

    /// Returns the permitted values in words, for the API with this profile.
    pub fn range_for(&self, profile: Profile) -> String {
        match self.kind {
            Kind::Boolean => "true, false".into(),
            Kind::Integer { min, max, names } => {
                let max = self.integer_max(profile, max);
                let names: String = names.iter().map(|(name, _)| format!(", {name}")).collect();
                format!("{min} .. {max}{names}")
            }
            Kind::Float { min, max, auto } => format!("{min} .. {max}{}", if auto { ", auto" } else { "" }),
            Kind::OneOf(words) | Kind::Flags(words) => words.join(", "),
            Kind::Text | Kind::Call => String::new(),
        }
    }
}

// Helpers that keep each row to its special properties.
impl Property {
    const fn new(name: &'static str, scope: Scope, origin: Origin) -> Property {
        Property {
            name,
            scope,
            side: Side::Both,
            kind: Kind::Text,
            default: "",
            rust_default: None,
            librdkafka_max: None,
            importance: Importance::Low,
            alias: None,
            deprecated: false,
            origin,
            status: Status::Used,
            doc: "",
        }
    }

    const fn global(name: &'static str) -> Property {
        Property::new(name, Scope::Global, Origin::Librdkafka)
    }

    const fn topic(name: &'static str) -> Property {
        Property::new(name, Scope::Topic, Origin::Librdkafka)
    }

    const fn ottla(name: &'static str) -> Property {
        Property::new(name, Scope::Global, Origin::Ottla)
    }

    const fn of_topics(self) -> Property {
        Property { scope: Scope::Topic, ..self }
    }

    const fn java(name: &'static str) -> Property {
        Property::new(name, Scope::Global, Origin::Java)
    }

    const fn consumer(self) -> Property {
        Property { side: Side::Consumer, ..self }
    }

    const fn producer(self) -> Property {
        Property { side: Side::Producer, ..self }
    }

    const fn boolean(self, default: &'static str) -> Property {
        Property { kind: Kind::Boolean, default, ..self }
    }

    const fn integer(self, min: i64, max: i64, default: &'static str) -> Property {
        Property { kind: Kind::Integer { min, max, names: &[] }, default, ..self }
    }

    const fn named_integer(
        self,
        min: i64,
        max: i64,
        names: &'static [(&'static str, i64)],
        default: &'static str,
    ) -> Property {
        Property { kind: Kind::Integer { min, max, names }, default, ..self }
    }

    /// Sets the largest integer of the C library, which is librdkafka's.
    const fn up_to_in_c(self, max: i64) -> Property {
        Property { librdkafka_max: Some(max), ..self }
    }

    const fn float(self, min: f64, max: f64, default: &'static str) -> Property {
        Property { kind: Kind::Float { min, max, auto: false }, default, ..self }
    }

    const fn float_or_auto(self, min: f64, max: f64, default: &'static str) -> Property {
        Property { kind: Kind::Float { min, max, auto: true }, default, ..self }
    }

    const fn one_of(self, words: &'static [&'static str], default: &'static str) -> Property {
        Property { kind: Kind::OneOf(words), default, ..self }
    }

    const fn flags(self, words: &'static [&'static str], default: &'static str) -> Property {
        Property { kind: Kind::Flags(words), default, ..self }
    }

    const fn string(self, default: &'static str) -> Property {
        Property { kind: Kind::Text, default, ..self }
    }

    const fn by_call(self) -> Property {
        const REASON: &str = "a callback or a pointer can't be written as text; it is set by a call";
        Property { kind: Kind::Call, status: Status::Refused(REASON), ..self }
    }

    const fn rust_default(self, value: &'static str) -> Property {
        Property { rust_default: Some(value), ..self }
    }

    const fn medium(self) -> Property {
        Property { importance: Importance::Medium, ..self }
    }

    const fn high(self) -> Property {
        Property { importance: Importance::High, ..self }
    }

    const fn alias_of(self, of: &'static str) -> Property {
        self.converted_to(of, Conversion::Same)
    }

    const fn converted_to(self, of: &'static str, conversion: Conversion) -> Property {
        Property { alias: Some(Alias { of, conversion }), ..self }
    }

    const fn deprecated(self) -> Property {
        Property { deprecated: true, ..self }
    }

    const fn accepted(self, reason: &'static str) -> Property {
        Property { status: Status::Accepted(reason), ..self }
    }

    const fn unbuilt(self, reason: &'static str) -> Property {
        Property { status: Status::Unbuilt(reason), ..self }
    }

    const fn doc(self, doc: &'static str) -> Property {
        Property { doc, ..self }
    }
}

impl fmt::Display for Importance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Importance::High => "high",
            Importance::Medium => "medium",
            Importance::Low => "low",
        })
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Both => "*",
            Side::Consumer => "C",
            Side::Producer => "P",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ottla_sorted::SortedSet;

    #[test]
    fn every_documented_property_of_librdkafka_has_a_row() {
        assert_eq!(librdkafka::ROWS.len(), 199);
        assert_eq!(librdkafka::ROWS.iter().filter(|row| row.scope == Scope::Global).count(), 177);
        let names: SortedSet<_> = librdkafka::ROWS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), 193, "six names exist in both scopes");
    }

    #[test]
    fn no_name_stands_twice_in_a_scope() {
        let mut seen = SortedSet::new();
        for row in properties() {
            assert!(seen.insert((row.scope == Scope::Topic, row.name)), "{} stands twice", row.name);
        }
    }

    #[test]
    fn every_alias_leads_to_a_row_that_holds_a_value_and_every_row_has_a_text() {
        for row in properties() {
            let canonical = row.canonical();
            assert!(canonical.alias.is_none(), "{} is an alias of an alias", row.name);
            if let Some(alias) = row.alias {
                assert_eq!(alias.of, canonical.name, "{} leads nowhere", row.name);
            }
            assert!(row.text().ends_with('.'), "{} has no text", row.name);
        }
    }

    #[test]
    fn a_name_of_both_scopes_is_found_in_the_scope_that_is_asked_for() {
        assert_eq!(find(Scope::Global, "compression.type").unwrap().scope, Scope::Global);
        assert_eq!(find(Scope::Topic, "compression.type").unwrap().scope, Scope::Topic);
        assert_eq!(find(Scope::Global, "acks").unwrap().scope, Scope::Topic);
        assert!(find(Scope::Global, "no.such").is_none());
    }
}
