//! `cargo xtask codegen --compare JAR`: compares `schema/` with the message definitions inside a Kafka client jar.
//!
//! A jar of `kafka-clients` has a JSON file per request and response in `common/message`, in Kafka's own notation: with
//! comments, and with structs that several fields share. [`messages_of`] reads them; [`Layout`] is the common form of both
//! notations, in which each version of a message is one line.

use std::{collections::BTreeMap, path::Path, process::Command, time::Duration};

use serde_json::{Deserializer, Value};

use super::schema::{Base, Field, Message, Schema, Versions};
use crate::{Result, install, shell};

/// The APIs between brokers and controllers, which neither a client nor the embedded broker has.
const OF_THE_CLUSTER: [i16; 12] = [52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82];

/// Compares the schemas with the definitions in the jar at `path`. Returns a line per difference.
///
/// # Errors
///
/// The file is not a jar, or has no message definitions.
pub fn differences(schemas: &[Schema], path: &Path) -> Result<Vec<String>> {
    let messages = messages_of(path)?;
    let mut found = Vec::new();
    for schema in schemas {
        for message in &schema.messages {
            let name = schema.message_name(message);
            match messages.get(&name) {
                Some(theirs) => compare(schema, message, theirs, &mut found),
                None => found.push(format!("{name}: the jar has no such message")),
            }
        }
    }
    for (name, theirs) in &messages {
        // Definitions of APIs that were removed have the versions `none`.
        let is_removed = theirs["validVersions"].as_str().and_then(versions).is_none();
        let Some(key) = theirs["apiKey"].as_i64().filter(|_| !is_removed) else { continue };
        let is_known = schemas.iter().any(|schema| schema.api_key.is_some_and(|own| i64::from(own) == key));
        if !is_known && !OF_THE_CLUSTER.iter().any(|other| i64::from(*other) == key) {
            found.push(format!("{name}: API {key} is not in schema/"));
        }
    }
    found.sort();
    Ok(found)
}

/// Reads the message definitions in a jar, by the name of the message.
fn messages_of(path: &Path) -> Result<BTreeMap<String, Value>> {
    install::debian("unzip", "unzip")?;
    let mut unzip = Command::new("unzip");
    unzip.arg("-p").arg(path).arg("common/message/*.json");
    let done = shell::run(&mut unzip, Duration::from_secs(60), false)?;
    if !done.success {
        return Err(format!(
            "{} is not a jar with message definitions: {}",
            path.display(),
            done.output.trim()
        )
        .into());
    }
    let mut messages = BTreeMap::new();
    for message in Deserializer::from_str(&without_comments(&done.output)).into_iter::<Value>() {
        let message = message.map_err(|error| format!("{}: {error}", path.display()))?;
        let name = message["name"].as_str().ok_or("a message definition has no name")?.to_owned();
        messages.insert(name, message);
    }
    if messages.is_empty() {
        Err(format!("{} has no message definitions", path.display()).into())
    } else {
        Ok(messages)
    }
}

/// Removes `//` comments outside of strings.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    for line in text.lines() {
        let mut is_quoted = false;
        let mut before = '\0';
        let mut end = line.len();
        for (at, letter) in line.char_indices() {
            match letter {
                '"' if before != '\\' => is_quoted = !is_quoted,
                '/' if before == '/' && !is_quoted => {
                    end = at - 1;
                    break;
                }
                _ => {}
            }
            before = letter;
        }
        kept.push_str(&line[..end]);
        kept.push('\n');
    }
    kept
}

fn compare(schema: &Schema, message: &Message, theirs: &Value, found: &mut Vec<String>) {
    let name = schema.message_name(message);
    let Some(valid) = theirs["validVersions"].as_str().and_then(versions) else {
        return found.push(format!("{name}: the jar's message has no versions"));
    };
    // A request may have a last version that is not stable, which brokers do not serve by default.
    let is_unstable = theirs["latestVersionUnstable"].as_bool().unwrap_or_default();
    let stable = Versions { high: valid.high - i16::from(is_unstable), ..valid };
    if message.kind == "request" && schema.served != stable {
        found.push(format!("{name}: versions {stable} are served, but schema/ has {}", schema.served));
    }
    let flexible = theirs["flexibleVersions"].as_str().and_then(versions).map(|versions| versions.low);
    let first = |from: Option<i16>| from.map(|from| from.max(stable.low)).filter(|from| *from <= valid.high);
    if first(flexible) != first(schema.flexible_from) {
        found.push(format!(
            "{name}: flexible from version {flexible:?} on, but schema/ has {:?}",
            schema.flexible_from
        ));
    }
    let layout = Layout { shared: theirs["commonStructs"].as_array().map_or(&[][..], Vec::as_slice) };
    for version in valid.low.max(schema.versions.low)..=valid.high.min(schema.versions.high) {
        let is_flexible = flexible.is_some_and(|from| version >= from);
        let theirs = layout.of_json(&theirs["fields"], version, is_flexible);
        let own = of_schema(&message.fields, version, is_flexible);
        if own != theirs {
            found.push(format!("{name} {version}: the jar has\n    {theirs}\n  and schema/\n    {own}"));
        }
    }
}

/// The definitions that the fields of a message share.
struct Layout<'a> {
    shared: &'a [Value],
}

impl Layout<'_> {
    fn of_json(&self, fields: &Value, version: i16, is_flexible: bool) -> String {
        let mut parts = Vec::new();
        let mut tagged = BTreeMap::new();
        for field in fields.as_array().into_iter().flatten() {
            if !has(&field["versions"], version) {
                continue;
            }
            let part = format!(
                "{}:{}",
                snake_case(field["name"].as_str().unwrap_or_default()),
                self.type_of(field, version, is_flexible)
            );
            match field["tag"].as_u64().filter(|_| has(&field["taggedVersions"], version)) {
                Some(tag) => drop(tagged.insert(tag, part)),
                None => parts.push(part),
            }
        }
        joined(parts, tagged, is_flexible)
    }

    fn type_of(&self, field: &Value, version: i16, is_flexible: bool) -> String {
        let of = field["type"].as_str().unwrap_or_default();
        let (array, base) = of.strip_prefix("[]").map_or(("", of), |base| ("[]", base));
        let null = if has(&field["nullableVersions"], version) { "?" } else { "" };
        if base.starts_with(|letter: char| letter.is_ascii_lowercase()) {
            return format!("{array}{base}{null}");
        }
        let shared = self.shared.iter().find(|shared| shared["name"] == base);
        let fields = shared.map_or(&field["fields"], |shared| &shared["fields"]);
        format!("{array}{{{}}}{null}", self.of_json(fields, version, is_flexible))
    }
}

fn of_schema(fields: &[Field], version: i16, is_flexible: bool) -> String {
    let has = |versions: Versions| (versions.low..=versions.high).contains(&version);
    let mut parts = Vec::new();
    let mut tagged = BTreeMap::new();
    for field in fields.iter().filter(|field| has(field.versions)) {
        let array = if field.is_array { "[]" } else { "" };
        let null = if field.nullable.is_some_and(has) { "?" } else { "" };
        let base = match &field.base {
            Base::Struct(fields) => format!("{{{}}}", of_schema(fields, version, is_flexible)),
            Base::Primitive(primitive) => format!("{primitive:?}").to_lowercase(),
        };
        let part = format!("{}:{array}{base}{null}", field.name);
        match field.tag {
            Some(tag) => drop(tagged.insert(u64::from(tag), part)),
            None => parts.push(part),
        }
    }
    joined(parts, tagged, is_flexible)
}

fn joined(mut parts: Vec<String>, tagged: BTreeMap<u64, String>, is_flexible: bool) -> String {
    if is_flexible {
        let tagged: Vec<String> = tagged.into_iter().map(|(tag, part)| format!("{tag}={part}")).collect();
        parts.push(format!("<{}>", tagged.join(" ")));
    }
    parts.join(" ")
}

fn has(range: &Value, version: i16) -> bool {
    range.as_str().and_then(versions).is_some_and(|range| (range.low..=range.high).contains(&version))
}

fn versions(text: &str) -> Option<Versions> {
    Versions::parse(text, i16::MAX).ok()
}

/// Returns a name of Kafka's definitions in the form of `schema/`.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    let letters: Vec<char> = name.chars().collect();
    for (at, letter) in letters.iter().enumerate() {
        let begins = letter.is_uppercase()
            && at > 0
            && (!letters[at - 1].is_uppercase()
                || letters.get(at + 1).is_some_and(|next| next.is_lowercase()));
        if begins {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    const KAFKAS: &str = r#"// A comment.
        { "apiKey": 7, "name": "DemoRequest", // its name, "quoted"
          "validVersions": "0-2", "flexibleVersions": "2+", "fields": [
            { "name": "TopicId", "type": "[]Pair", "versions": "1+", "nullableVersions": "2+" },
            { "name": "ErrorCode", "type": "int16", "versions": "0+", "about": "see http://example.org" },
            { "name": "Late", "type": "bool", "versions": "2+", "tag": 0, "taggedVersions": "2+" } ],
          "commonStructs": [ { "name": "Pair", "fields": [
            { "name": "Id", "type": "uuid", "versions": "0+" } ] } ] }"#;

    fn found(own: &str) -> Vec<String> {
        let schema = Schema::parse("07_demo", own).unwrap();
        let kafkas: Value = serde_json::from_str(&without_comments(KAFKAS)).unwrap();
        let mut found = Vec::new();
        compare(&schema, &schema.messages[0], &kafkas, &mut found);
        found
    }

    #[test]
    fn schema_that_equals_the_jar_has_no_difference() {
        let own = "api Demo 7\nversions 0-2\nflexible 2+\nrequest\n  topic_id []{}?2+ 1+\n    id uuid\n  \
                   error_code int16\n  late bool 2+ tag 0\n";
        assert_eq!(found(own), Vec::<String>::new());
    }

    #[test]
    fn differences_name_the_message_and_its_version() {
        let own = "api Demo 7\nversions 0-1\nflexible none\nrequest\n  topic_id []{} 1+\n    id int64\n  \
                   error_code int16\n";
        let found = found(own);
        assert_eq!(found[0], "DemoRequest: versions 0 to 2 are served, but schema/ has 0 to 1");
        assert_eq!(found[1], "DemoRequest: flexible from version Some(2) on, but schema/ has None");
        assert!(found[2].starts_with("DemoRequest 1: the jar has\n    topic_id:[]{id:uuid}"), "{}", found[2]);
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn file_that_is_not_a_jar_is_an_error() {
        let error = differences(&[], Path::new("Cargo.toml")).unwrap_err().to_string();
        assert!(error.contains("Cargo.toml is not a jar"), "{error}");
    }

    #[test]
    fn abbreviations_in_names_stay_together() {
        assert_eq!(snake_case("TopicId"), "topic_id");
        assert_eq!(snake_case("LastStableOffsetLSO"), "last_stable_offset_lso");
        assert_eq!(snake_case("UUIDs"), "uui_ds");
    }
}
