//! One row per property: its names, who it is for, what it takes, what it is when nothing is said, and what this
//! client does with it.
//!
//! The parser, the range check, "did you mean", `-X list` and CONFIGURATION.md all read these rows, so a property that
//! has a row has all of that. The rows stand in three files by where the name comes from: `librdkafka` has the 199
//! documented rows of librdkafka 2.15, `ottla` our own, `java` the names that only the Java client knows.

use std::fmt;

mod java;
mod librdkafka;
mod ottla;

/// One property.
#[derive(Clone, Copy, Debug)]
pub struct Property {
    /// The name, exactly as it is written in a configuration.
    pub name: &'static str,
    /// Whether it belongs to the client or to a topic.
    pub scope: Scope,
    /// Which kind of client looks at it.
    pub side: Side,
    /// What values it takes.
    pub kind: Kind,
    /// The value when nothing was said, in librdkafka and so in the C library.
    pub default: &'static str,
    /// The value when nothing was said in Rust, where it differs.
    pub rust_default: Option<&'static str>,
    /// How often it needs a thought.
    pub importance: Importance,
    /// The property that this is another name of.
    pub alias: Option<Alias>,
    /// Kept for old configurations only.
    pub deprecated: bool,
    /// Who gave it its name.
    pub origin: Origin,
    /// What this client does with it.
    pub status: Status,
    /// What it means. Empty for an alias, which has the text of the other.
    pub doc: &'static str,
}

/// Whether a property belongs to the client or to a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One value for the whole client.
    Global,
    /// May differ from topic to topic; set on the client it is the default of all topics.
    Topic,
}

/// Which kind of client looks at a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Every client.
    Both,
    /// Consumers only.
    Consumer,
    /// Producers only.
    Producer,
}

/// What values a property takes.
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
        /// Names that may stand for a number.
        names: &'static [(&'static str, i64)],
    },
    /// A number in a range, fractions allowed.
    Float {
        /// The smallest value.
        min: f64,
        /// The largest value.
        max: f64,
        /// Whether the word `auto` may stand for a number.
        auto: bool,
    },
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Any of these words, comma-separated.
    Flags(&'static [&'static str]),
    /// Any text.
    Text,
    /// Nothing that could be written as text: a callback or a pointer.
    Call,
}

/// How often a property needs a thought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Importance {
    /// Look at it once for every new program.
    High,
    /// Worth knowing.
    Medium,
    /// For special cases.
    Low,
}

/// Another name for a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The property's own name.
    pub of: &'static str,
    /// How a value has to be changed to be the other's value.
    pub conversion: Conversion,
}

/// How an alias's value becomes the value of the property it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// As it is.
    Same,
    /// From bytes to KiB, rounded up.
    BytesToKibibytes,
    /// -1, "what the system gives", is 0 in the other.
    MinusOneToZero,
}

/// Who gave a property its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// librdkafka 2.15 documents it.
    Librdkafka,
    /// It is ours, or no client documents it.
    Ottla,
    /// Only the Java client has it.
    Java,
}

/// What this client does with a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It does what the text says.
    Used,
    /// Any value is fine and changes nothing, for this reason.
    Accepted(&'static str),
    /// Every value but the default is an error, for this reason.
    Refused(&'static str),
}

/// All properties: librdkafka's 199 documented rows in their documented order, then ours, then Java's.
pub fn properties() -> impl Iterator<Item = &'static Property> + Clone {
    librdkafka::ROWS.iter().chain(ottla::ROWS).chain(java::ROWS)
}

/// The row of this name in this scope, or in the other if there is none.
pub fn find(scope: Scope, name: &str) -> Option<&'static Property> {
    let mut named = properties().filter(|property| property.name == name);
    named.clone().find(|property| property.scope == scope).or_else(|| named.next())
}

impl Property {
    /// The row that holds the value: itself, or the one it is an alias of.
    pub fn canonical(&'static self) -> &'static Property {
        match self.alias {
            Some(alias) => find(self.scope, alias.of).unwrap_or(self),
            None => self,
        }
    }

    /// What it means, also for an alias.
    pub fn text(&'static self) -> &'static str {
        if self.doc.is_empty() { self.canonical().doc } else { self.doc }
    }

    /// Whether a producer looks at it.
    pub fn is_for_producers(&self) -> bool {
        self.side != Side::Consumer
    }

    /// Whether a consumer looks at it.
    pub fn is_for_consumers(&self) -> bool {
        self.side != Side::Producer
    }

    /// The values it takes, in words: `0 .. 900000`, `none, gzip`, or nothing where any text goes.
    pub fn range(&self) -> String {
        match self.kind {
            Kind::Boolean => "true, false".into(),
            Kind::Integer { min, max, names } => {
                let names: String = names.iter().map(|(name, _)| format!(", {name}")).collect();
                format!("{min} .. {max}{names}")
            }
            Kind::Float { min, max, auto } => format!("{min} .. {max}{}", if auto { ", auto" } else { "" }),
            Kind::OneOf(words) | Kind::Flags(words) => words.join(", "),
            Kind::Text | Kind::Call => String::new(),
        }
    }
}

// The rows are written with these, so that a row says only what is special about it.
impl Property {
    const fn new(name: &'static str, scope: Scope, origin: Origin) -> Property {
        Property {
            name,
            scope,
            side: Side::Both,
            kind: Kind::Text,
            default: "",
            rust_default: None,
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

    const fn refused(self, reason: &'static str) -> Property {
        Property { status: Status::Refused(reason), ..self }
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

const TLS: &str = "TLS isn't built yet";
const SASL: &str = "SASL isn't built yet";
const GROUPS: &str = "consumer groups aren't built yet";

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_documented_property_of_librdkafka_has_a_row() {
        assert_eq!(librdkafka::ROWS.len(), 199);
        assert_eq!(librdkafka::ROWS.iter().filter(|row| row.scope == Scope::Global).count(), 177);
        let names: BTreeSet<_> = librdkafka::ROWS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), 193, "six names exist in both scopes");
    }

    #[test]
    fn no_name_stands_twice_in_a_scope() {
        let mut seen = BTreeSet::new();
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
