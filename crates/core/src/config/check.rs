//! The check of one value: by the kind and the range of its row.

use super::{
    error::{ConfigError, ConfigErrorKind},
    java::{classes, reading},
    patterns::TopicPatterns,
    raw::Profile,
    servers::ServerAddress,
    table::{Conversion, Kind, Property, Status},
};

/// Returns the value in its canonical spelling, if the property accepts it.
pub(super) fn check(
    profile: Profile,
    property: &'static Property,
    name: &str,
    value: &str,
) -> Result<String, ConfigError> {
    let check = Check { profile, property, name, value };
    let checked = check.kind()?;
    check.meaning(&checked)?;
    match property.status {
        Status::Refused(reason) => {
            let value = if property.kind == Kind::Text { String::new() } else { shortened(&checked) };
            Err(ConfigError::new(name, ConfigErrorKind::Refused { value, reason }))
        }
        _ => Ok(checked),
    }
}

/// A value that is checked.
#[derive(Clone, Copy)]
struct Check<'a> {
    profile: Profile,
    property: &'static Property,
    /// The name that the application used.
    name: &'a str,
    value: &'a str,
}

impl Check<'_> {
    /// Returns the canonical spelling of a value that the property's kind accepts.
    fn kind(self) -> Result<String, ConfigError> {
        let trimmed = self.value.trim();
        match self.property.kind {
            Kind::Boolean => match trimmed.to_ascii_lowercase().as_str() {
                "true" | "t" | "1" => Ok("true".to_string()),
                "false" | "f" | "0" => Ok("false".to_string()),
                _ => Err(self.malformed("true or false".into())),
            },
            Kind::Integer { min, max, names } => self.integer(min, max, names),
            Kind::Float { auto: true, .. } if trimmed.eq_ignore_ascii_case("auto") => Ok("auto".to_string()),
            Kind::Float { min, max, .. } => self.float(min, max),
            Kind::OneOf(words) => match words.iter().find(|word| word.eq_ignore_ascii_case(trimmed)) {
                Some(word) => Ok(word.to_string()),
                None if self.profile == Profile::Rust && reading::is_duration(self.property, trimmed) => {
                    Ok(trimmed.to_string())
                }
                None => Err(self.not_one_of(trimmed)),
            },
            Kind::Flags(words) => self.flags(words),
            Kind::Text | Kind::Call => Ok(self.value.to_string()),
        }
    }

    fn integer(self, min: i64, max: i64, names: &[(&str, i64)]) -> Result<String, ConfigError> {
        let trimmed = self.value.trim();
        let named = names.iter().find(|(word, _)| word.eq_ignore_ascii_case(trimmed));
        let number = match named.map(|(_, number)| *number).or_else(|| whole_number(trimmed)) {
            Some(number) => number,
            None if is_integral(trimmed) => return Err(self.out_of_range()),
            None => return Err(self.malformed(format!("a whole number in {}", self.range()))),
        };
        if !(min..=self.property.integer_max(self.profile, max)).contains(&number) {
            return Err(self.out_of_range());
        }
        Ok(number.to_string())
    }

    fn float(self, min: f64, max: f64) -> Result<String, ConfigError> {
        let trimmed = self.value.trim();
        let number = trimmed.parse::<f64>().ok().or(whole_number(trimmed).map(|number| number as f64));
        let number = number.ok_or_else(|| self.malformed(format!("a number in {}", self.range())))?;
        if !(min..=max).contains(&number) {
            return Err(self.out_of_range());
        }
        Ok(number.to_string())
    }

    fn flags(self, words: &[&str]) -> Result<String, ConfigError> {
        let mut flags = Vec::new();
        for flag in self.value.split(',').map(str::trim).filter(|flag| !flag.is_empty()) {
            // A minus disables a flag; a plus enables it, like no sign.
            let (sign, bare) = match flag.strip_prefix('-') {
                Some(bare) => ("-", bare),
                None => ("", flag.strip_prefix('+').unwrap_or(flag)),
            };
            let Some(word) = words.iter().find(|word| word.eq_ignore_ascii_case(bare)) else {
                return Err(self.not_one_of(flag));
            };
            flags.push(format!("{sign}{word}"));
        }
        Ok(flags.join(","))
    }

    /// Checks text that has a syntax of its own.
    fn meaning(self, checked: &str) -> Result<(), ConfigError> {
        if self.property.canonical().name == "metadata.broker.list" {
            ServerAddress::parse_list(checked)
                .map_err(|sentence| ConfigError::new(self.name, ConfigErrorKind::BadServer { sentence }))?;
        }
        if self.property.name == "topic.blacklist" {
            TopicPatterns::parse(checked).map_err(|error| self.malformed(error.to_string()))?;
        }
        if self.property.name == "partitioner.class"
            && !checked.is_empty()
            && classes::partitioner(checked).is_none()
        {
            let reason = "this client has DefaultPartitioner, RoundRobinPartitioner and UniformStickyPartitioner; set `partitioner` \
                          for others, or pass a function";
            let value = shortened(checked);
            return Err(ConfigError::new(self.name, ConfigErrorKind::Refused { value, reason }));
        }
        Ok(())
    }

    fn range(self) -> String {
        self.property.range_for(self.profile)
    }

    fn malformed(self, expected: String) -> ConfigError {
        let kind = ConfigErrorKind::Malformed { value: shortened(self.value), expected };
        ConfigError::new(self.name, kind)
    }

    fn out_of_range(self) -> ConfigError {
        let kind = ConfigErrorKind::OutOfRange { value: shortened(self.value), range: self.range() };
        ConfigError::new(self.name, kind)
    }

    fn not_one_of(self, word: &str) -> ConfigError {
        let kind = ConfigErrorKind::NotOneOf { value: shortened(word), allowed: self.range() };
        ConfigError::new(self.name, kind)
    }
}

/// Returns whether a text is a whole number, however large.
fn is_integral(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(|number| number.is_finite() && number.fract() == 0.0)
}

/// Returns the enabled flags after a change, in the order of the table. `all` stands for every word.
pub(super) fn flags_with(words: &[&str], current: &str, change: &str) -> String {
    const ALL: &str = "all";
    let mut on: Vec<&str> = current.split(',').filter(|word| !word.is_empty()).collect();
    for flag in change.split(',').filter(|flag| !flag.is_empty()) {
        match flag.strip_prefix('-') {
            Some(ALL) => on.clear(),
            Some(word) => on.retain(|other| *other != word && *other != ALL),
            None if flag == ALL => on = words.to_vec(),
            None => on.push(flag),
        }
    }
    let on: Vec<&str> = words.iter().copied().filter(|word| on.contains(word)).collect();
    on.join(",")
}

/// Converts the value of an alias to the value of its property.
pub(super) fn convert(
    profile: Profile,
    property: &'static Property,
    name: &str,
    value: String,
) -> Result<String, ConfigError> {
    let number = || whole_number(&value).unwrap_or(0);
    let converted = match property.alias.map(|alias| alias.conversion) {
        None => return Ok(value),
        // Checked again, because the other row may have a narrower range.
        Some(Conversion::Same) => value,
        Some(Conversion::BytesToKibibytes) => (number() as u64).div_ceil(1024).to_string(),
        Some(Conversion::MinusOneToZero) => number().max(0).to_string(),
    };
    check(profile, property.canonical(), name, &converted)
}

/// Parses a number as in C: decimal, or hexadecimal after 0x.
fn whole_number(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let number = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) if hex.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
            i64::from_str_radix(hex, 16).ok()?
        }
        Some(_) => return None,
        None if digits.bytes().all(|digit| digit.is_ascii_digit()) => digits.parse().ok()?,
        None => return None,
    };
    Some(if negative { -number } else { number })
}

/// Shortens a value for an error text, because values may be megabytes long.
pub(super) fn shortened(value: &str) -> String {
    match value.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_string(),
    }
}
