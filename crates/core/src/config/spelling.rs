//! Reads a value as librdkafka does where this crate's own profile is stricter or more lenient.
//!
//! [`read`] changes the spelling of a value, so that the check of its row, which knows kinds and ranges, sees the value
//! that librdkafka would see. The cases `properties.*` of `tests/abi/side_by_side` compare the outcome with the
//! original, spelling by spelling.
//!
//! # Pitfalls
//!
//! - A leading 0 makes a whole number octal, as in C (`c_library_reads_octal_numbers`).
//! - White space alone changes nothing where a word is expected, but is an error where a truth value or a number is
//!   (`blanks_are_refused_where_librdkafka_refuses_them`).

use std::borrow::Cow;

use super::table::{Kind, Property};

/// The spelling of a value that is passed to the check.
#[derive(Debug, PartialEq)]
pub(super) enum Spelling<'a> {
    /// The row checks this text.
    Checked(Cow<'a, str>),
    /// Any text is valid; this is the value.
    Unchecked(&'a str),
    /// The property loses its value.
    Unset,
    /// The property keeps its current value.
    Unchanged,
    /// The value is refused; the text says what the property takes.
    Refused(&'static str),
}

/// Reads a value as librdkafka does.
pub(super) fn read<'a>(property: &'static Property, value: &'a str) -> Spelling<'a> {
    let trimmed_start = value.trim_start();
    match property.kind {
        Kind::Text => text(property, value),
        Kind::Boolean if value != value.trim() => Spelling::Refused("true or false, without blanks"),
        // librdkafka compares this word exactly.
        Kind::OneOf(words) if property.name == "partitioner" && !words.contains(&trimmed_start) => {
            Spelling::Refused("the name of a partitioner, in lower case")
        }
        Kind::OneOf(_) if !value.is_empty() && trimmed_start.is_empty() => Spelling::Unchanged,
        Kind::OneOf(_) if trimmed_start != value.trim() => {
            Spelling::Refused("a word without blanks behind it")
        }
        Kind::OneOf(_) if is_unknown_here(property, trimmed_start) => {
            Spelling::Refused("smallest, earliest, beginning, largest, latest, end, error")
        }
        Kind::Flags(_) if value.split(',').any(ends_with_blanks) => {
            Spelling::Refused("words without blanks behind them, separated by commas")
        }
        Kind::Integer { .. } => Spelling::Checked(whole_number(value)),
        Kind::OneOf(_) | Kind::Flags(_) | Kind::Boolean | Kind::Float { .. } | Kind::Call => {
            Spelling::Checked(Cow::Borrowed(value))
        }
    }
}

/// Reads the value of a property that holds text.
fn text<'a>(property: &'static Property, value: &'a str) -> Spelling<'a> {
    let name = property.canonical().name;
    let start = value.trim_start();
    match name {
        "ssl.ca.certificate.stores" => {
            Spelling::Refused("ignored, because only Windows has certificate stores")
        }
        "sasl.mechanisms" if value.is_empty() || start.contains([',', ' ']) => {
            Spelling::Refused("the name of one mechanism")
        }
        "broker.version.fallback" if value.is_empty() => Spelling::Refused("a version, such as 0.10.0"),
        _ if value.is_empty() => Spelling::Unset,
        // Entries that a client can't use are skipped when it is created.
        "metadata.broker.list" => Spelling::Unchecked(start),
        "client.rack" | "group.protocol.type" | "topic.blacklist" => Spelling::Checked(Cow::Borrowed(value)),
        _ => Spelling::Checked(Cow::Borrowed(start)),
    }
}

/// Returns whether the row has a word that only the Java client knows.
fn is_unknown_here(property: &'static Property, word: &str) -> bool {
    property.name == "auto.offset.reset" && word.eq_ignore_ascii_case("none")
}

fn ends_with_blanks(word: &str) -> bool {
    let word = word.trim_start();
    word != word.trim_end()
}

/// Returns the decimal digits of a number as C reads it: octal behind a leading 0, and without a fraction of zeros, which
/// programs in Python write ("60.0"). Other texts are returned as they are, for the check to refuse.
fn whole_number(value: &str) -> Cow<'_, str> {
    let number = value.trim();
    let (number, is_changed) = match number.split_once('.') {
        Some((whole, zeros)) if whole.ends_with(is_digit) && zeros.bytes().all(|digit| digit == b'0') => {
            (whole, true)
        }
        _ => (number, false),
    };
    let (sign, digits) = match number.strip_prefix(['-', '+']) {
        Some(digits) => (&number[..1], digits),
        None => ("", number),
    };
    let is_octal =
        digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|digit| digit.is_ascii_digit());
    match i64::from_str_radix(digits, 8) {
        Ok(octal) if is_octal => Cow::Owned(format!("{sign}{octal}")),
        // C's parser reads "08" as 0 followed by "8", and text after a number is refused.
        Err(_) if is_octal => Cow::Owned(format!("{number}, which begins like an octal number")),
        _ if is_changed => Cow::Borrowed(number),
        _ => Cow::Borrowed(value),
    }
}

fn is_digit(letter: char) -> bool {
    letter.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::super::{Profile, RawConfig};

    /// Sets a property in the C library's profile and returns its value, or nothing if the value was refused.
    fn set(name: &str, value: &str) -> Option<String> {
        let mut config = RawConfig::new(Profile::Librdkafka);
        config.set(name, value).ok()?;
        Some(config.get(name).unwrap().to_owned())
    }

    #[test]
    fn c_library_reads_octal_numbers() {
        assert_eq!(set("socket.timeout.ms", "0100").unwrap(), "64");
        assert_eq!(set("log_level", "00").unwrap(), "0");
        assert_eq!(set("acks", "-01").unwrap(), "-1");
        assert_eq!(set("socket.timeout.ms", "080"), None);
        assert_eq!(set("linger.ms", "010").unwrap(), "10", "numbers with a fraction are decimal");
        let mut ours = RawConfig::new(Profile::Rust);
        ours.set("socket.timeout.ms", "0100").unwrap();
        assert_eq!(ours.get("socket.timeout.ms").unwrap(), "100");
    }

    #[test]
    fn c_library_takes_whole_numbers_with_a_fraction_of_zeros() {
        assert_eq!(set("socket.timeout.ms", "60.0").unwrap(), "60");
        assert_eq!(set("socket.timeout.ms", "60.").unwrap(), "60");
        for bad in ["60.5", ".0", "60.0.0", "60.0k", "x.0", "1e3"] {
            assert_eq!(set("socket.timeout.ms", bad), None, "{bad}");
        }
    }

    #[test]
    fn blanks_are_refused_where_librdkafka_refuses_them() {
        for (name, value) in [
            ("check.crcs", " true"),
            ("check.crcs", "true "),
            ("check.crcs", " "),
            ("compression.codec", "gzip "),
            ("debug", "broker ,msg"),
            ("sasl.mechanisms", "PLAIN, GSSAPI"),
        ] {
            assert_eq!(set(name, value), None, "{name}={value}");
        }
        assert_eq!(set("compression.codec", " GZIP").unwrap(), "gzip");
        assert_eq!(set("partitioner", "Murmur2"), None);
        assert_eq!(set("partitioner", " murmur2").unwrap(), "murmur2");
        assert_eq!(set("compression.codec", " ").unwrap(), "none");
        assert_eq!(set("debug", " msg, broker").unwrap(), "broker,msg");
    }

    #[test]
    fn words_of_java_alone_are_unknown_to_the_c_library() {
        assert_eq!(set("auto.offset.reset", "none"), None);
        let mut ours = RawConfig::new(Profile::Rust);
        ours.set("auto.offset.reset", "none").unwrap();
    }

    #[test]
    fn values_that_can_not_be_unset_are_kept_by_the_c_library() {
        let mut config = RawConfig::new(Profile::Librdkafka);
        for (name, value) in [("broker.version.fallback", "0.9.0"), ("sasl.mechanisms", "PLAIN")] {
            config.set(name, value).unwrap();
            config.set(name, "").unwrap_err();
            assert_eq!(config.get(name).unwrap(), value);
        }
        config.set("ssl.ca.certificate.stores", "Root").unwrap_err();
    }
}
