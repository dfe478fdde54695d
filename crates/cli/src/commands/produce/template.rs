//! Texts with parts in double braces, which are filled in for each message.

use serde_json::Value;

use super::draft::Draft;
use crate::times::{iso_time, now_ms, parse_time};

/// The parts, for `--help`.
pub const TEMPLATE_HELP: &str = "\
Templates of --generate, -k, -H, -p and --timestamp:
  {{number}} from 0 on   {{now}} as 2026-11-29T10:00:05.250Z   {{time -1h}} a time in ms since 1970   {{uuid}}
  {{random 1 100}} an integer, both included   {{choice red green blue}}   {{string 20}} letters
  {{value}} {{value.customer.id}} {{value.items.0}} {{key}} the message itself, and fields of its JSON; not in --generate";

/// The longest result of `{{string N}}`, in letters.
const MAX_STRING: usize = 1 << 20;

/// A parsed text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Number,
    Now,
    Time(String),
    Uuid,
    Random(i64, i64),
    Choice(Vec<String>),
    Letters(usize),
    Key,
    /// A path in the value; empty for all of it.
    Value(Vec<String>),
}

/// The state from which templates are filled in.
#[derive(Debug)]
pub struct Generator {
    /// The number of the message.
    pub number: u64,
    random: u64,
}

impl Generator {
    /// Creates a generator. The same seed makes the same messages.
    pub fn new(seed: u64) -> Generator {
        Generator { number: 0, random: seed }
    }

    /// Returns the next random number (SplitMix64).
    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `count`.
    fn below(&mut self, count: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(count)) >> 64) as u64
    }
}

impl Template {
    /// Parses a text. One without braces is itself.
    ///
    /// # Errors
    ///
    /// The part that is wrong.
    pub fn parse(text: &str) -> Result<Template, String> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((inner, after)) = after.split_once("}}") else {
                return Err(format!("\"}}}}\" is missing after {{{{{after}"));
            };
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            parts.push(
                part(inner.trim())
                    .ok_or_else(|| format!("{{{{{inner}}}}} is unknown or wrong\n\n{TEMPLATE_HELP}"))?,
            );
            rest = after;
        }
        if !rest.is_empty() || parts.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Template(parts))
    }

    /// Returns the text if nothing is to be filled in.
    pub fn constant(&self) -> Option<&str> {
        match &self.0[..] {
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// True if a part is about the message itself.
    pub fn needs_message(&self) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Key | Part::Value(_)))
    }

    /// Fills the parts in.
    ///
    /// # Errors
    ///
    /// The value has no such field.
    pub fn fill(&self, generator: &mut Generator, draft: &Draft<'_>) -> Result<String, String> {
        let mut out = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Number => out.push_str(&generator.number.to_string()),
                Part::Now => out.push_str(&iso_time(now_ms())),
                Part::Time(text) => out.push_str(&parse_time(text, now_ms())?.to_string()),
                Part::Uuid => out.push_str(&uuid(generator.next(), generator.next())),
                Part::Random(low, high) => {
                    let count = high.wrapping_sub(*low) as u64;
                    let offset =
                        if count == u64::MAX { generator.next() } else { generator.below(count + 1) };
                    out.push_str(&low.wrapping_add(offset as i64).to_string());
                }
                Part::Choice(words) => out.push_str(&words[generator.below(words.len() as u64) as usize]),
                Part::Letters(count) => {
                    out.extend((0..*count).map(|_| char::from(b'a' + generator.below(26) as u8)));
                }
                Part::Key => out.push_str(&String::from_utf8_lossy(draft.key.as_deref().unwrap_or_default())),
                Part::Value(path) => out.push_str(&value_at(draft, path)?),
            }
        }
        Ok(out)
    }
}

fn part(text: &str) -> Option<Part> {
    if text == "value" {
        return Some(Part::Value(Vec::new()));
    }
    if let Some(path) = text.strip_prefix("value.") {
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        return path.iter().all(|name| !name.is_empty()).then_some(Part::Value(path));
    }
    let mut words = text.split_whitespace();
    let part = match words.next()? {
        "number" => Part::Number,
        "now" => Part::Now,
        "uuid" => Part::Uuid,
        "key" => Part::Key,
        "time" => {
            let time = words.next()?;
            parse_time(time, now_ms()).ok()?;
            Part::Time(time.to_owned())
        }
        "random" => {
            let (low, high) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            (low <= high).then_some(Part::Random(low, high))?
        }
        "string" => Part::Letters(words.next()?.parse().ok().filter(|count| *count <= MAX_STRING)?),
        "choice" => {
            let choices: Vec<String> = words.by_ref().map(str::to_owned).collect();
            (!choices.is_empty()).then_some(Part::Choice(choices))?
        }
        _ => return None,
    };
    words.next().is_none().then_some(part)
}

/// Formats random bits as a UUID of version 4.
fn uuid(high: u64, low: u64) -> String {
    let (high, low) = (high & !0xf000 | 0x4000, low & !(0b11 << 62) | 0b10 << 62);
    let (time_low, time_mid, version) = (high >> 32, high >> 16 & 0xffff, high & 0xffff);
    format!("{time_low:08x}-{time_mid:04x}-{version:04x}-{:04x}-{:012x}", low >> 48, low & 0xffff_ffff_ffff)
}

fn value_at(draft: &Draft<'_>, path: &[String]) -> Result<String, String> {
    let bytes = draft.value.as_deref().unwrap_or_default();
    if path.is_empty() {
        return Ok(String::from_utf8_lossy(bytes).into_owned());
    }
    let name = path.join(".");
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|error| format!("{{{{value.{name}}}}}: the value is not JSON: {error}"))?;
    let found = path.iter().try_fold(&value, |value, key| match value {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        other => other.get(key),
    });
    match found {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Ok(other.to_string()),
        None => Err(format!("{{{{value.{name}}}}}: the value has no such field")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(text: &str) -> Result<String, String> {
        let draft = Draft {
            key: Some(b"k"[..].into()),
            value: Some(br#"{"id": 7, "tags": ["a", {"b": null}]}"#[..].into()),
            ..Draft::default()
        };
        Template::parse(text)?.fill(&mut Generator::new(1), &draft)
    }

    #[test]
    fn parts_are_filled_in() {
        assert_eq!(fill("n={{number}} {{value.id}} {{value.tags.0}}{{ key }}"), Ok("n=0 7 ak".into()));
        assert_eq!(fill("{{value.tags.1}}"), Ok("{\"b\":null}".into()));
        assert_eq!(fill("plain { } }}"), Ok("plain { } }}".into()));
        assert_eq!(fill("{{choice x}}{{random 5 5}}{{string 0}}{{time @5}}"), Ok("x55".into()));
        let uuid = fill("{{uuid}}").unwrap();
        assert!(uuid.len() == 36 && uuid.as_bytes()[14] == b'4', "{uuid}");
        assert_eq!(fill("{{string 8}}").unwrap().len(), 8);
        for _ in 0..3 {
            let number: i64 =
                fill("{{random -9223372036854775808 9223372036854775807}}").unwrap().parse().unwrap();
            assert_ne!(number, 0);
        }
    }

    #[test]
    fn same_seed_makes_the_same_messages() {
        let template = Template::parse("{{random 1 1000}} {{uuid}}").unwrap();
        let all = |seed| {
            let mut generator = Generator::new(seed);
            (0..5).map(|_| template.fill(&mut generator, &Draft::default()).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(all(7), all(7));
        assert_ne!(all(7), all(8));
    }

    #[test]
    fn wrong_parts_are_named() {
        for wrong in [
            "{{",
            "{{}}",
            "{{nmber}}",
            "{{random 2 1}}",
            "{{random 1}}",
            "{{choice}}",
            "{{string -1}}",
            "{{string 99999999}}",
            "{{now 1}}",
            "{{value.}}",
            "{{time soon}}",
        ] {
            assert!(Template::parse(wrong).is_err(), "{wrong}");
        }
        assert!(fill("{{value.absent}}").unwrap_err().contains("no such field"));
    }
}
