//! Requests: a method, a path and a query.

use serde_json::{Value, json};

use super::{lookups::guid, records::Change, refusal::Refusal, registry::Registry};
use crate::{Compatibility, Mode, Schema, wire::Guid};

/// A request.
#[derive(Debug, Default)]
pub struct Request {
    pub method: String,
    pub path: Vec<String>,
    pub query: Vec<(String, String)>,
    pub body: Vec<u8>,
}

type Answer = Result<Value, Refusal>;

impl Request {
    fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn flag(&self, name: &str) -> bool {
        self.parameter(name).is_some_and(|it| it.eq_ignore_ascii_case("true"))
    }

    /// The filter of lists: `None` for all.
    fn deleted(&self) -> Option<bool> {
        match (self.flag("deleted"), self.flag("deletedOnly")) {
            (_, true) => Some(true),
            (true, false) => None,
            (false, false) => Some(false),
        }
    }

    fn json(&self) -> Answer {
        serde_json::from_slice(&self.body)
            .map_err(|error| Refusal::new(422, format!("the body is not JSON: {error}")))
    }

    fn schema(&self) -> Result<(Schema, Value), Refusal> {
        let body = self.json()?;
        Ok((Schema::from_json(&body).map_err(Refusal::invalid_schema)?, body))
    }
}

/// Answers a request.
pub fn answer(registry: &mut Registry, mut request: Request) -> Answer {
    let mut context = super::registry::DEFAULT_CONTEXT.to_owned();
    if request.path.len() > 1 && request.path[0] == "contexts" {
        context = request.path[1].clone();
        request.path.drain(..2);
        qualify(&mut request, &context);
    }
    if let Some(subject) = request.parameter("subject") {
        context = super::registry::context(subject).to_owned();
    }
    let path = std::mem::take(&mut request.path);
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match (request.method.as_str(), path.as_slice()) {
        ("GET", [] | [""]) => Ok(json!({})),
        ("GET", ["contexts"]) => Ok(json!(registry.contexts())),
        (_, ["subjects", rest @ ..]) => subjects(registry, &request, rest, &context),
        ("GET", ["schemas", rest @ ..]) => schemas(registry, &request, rest, &context),
        (_, ["config", rest @ ..]) => config(registry, &request, rest.first().copied()),
        (_, ["mode", rest @ ..]) => mode(registry, &request, rest.first().copied()),
        ("POST", ["compatibility", "subjects", subject, "versions", rest @ ..]) => {
            compatibility(registry, &request, subject, rest.first().copied())
        }
        _ => Err(Refusal::new(404, "HTTP 404 Not Found")),
    }
}

/// Puts the context before the subject of a path.
fn qualify(request: &mut Request, context: &str) {
    let at = match request.path.first().map(String::as_str) {
        Some("subjects" | "config" | "mode") => 1,
        Some("compatibility") => 2,
        _ => return,
    };
    if let Some(subject) = request.path.get_mut(at).filter(|it| !it.starts_with(':'))
        && context != super::registry::DEFAULT_CONTEXT
    {
        *subject = format!(":{context}:{subject}");
    }
}

fn subjects(registry: &mut Registry, request: &Request, path: &[&str], of: &str) -> Answer {
    let is_permanent = request.flag("permanent");
    match (request.method.as_str(), path) {
        ("GET", []) => {
            let prefix = request.parameter("subjectPrefix").unwrap_or_default();
            let deleted = request.deleted();
            let names = registry.subjects.keys().filter(|name| {
                let is_of_context =
                    super::registry::context(name) == of || request.parameter("subjectPrefix").is_some();
                is_of_context && name.starts_with(prefix) && registry.versions(name, deleted).is_ok()
            });
            Ok(json!(names.collect::<Vec<_>>()))
        }
        ("POST", [subject]) => {
            let (schema, _) = request.schema()?;
            if !registry.subjects.contains_key(*subject) {
                return Err(Refusal::no_subject(subject));
            }
            registry.compiled(&schema)?;
            let found = registry.find(subject, &schema, request.flag("deleted"));
            let (version, entry) = found.ok_or_else(Refusal::no_schema)?;
            Ok(registry.shown(subject, version, &entry))
        }
        ("DELETE", [subject]) => Ok(json!(registry.delete_subject(subject, is_permanent)?)),
        ("GET", [subject, "versions"]) => Ok(json!(registry.versions(subject, request.deleted())?)),
        ("POST", [subject, "versions"]) => {
            let (schema, body) = request.schema()?;
            let number = |key: &str| {
                let number = body.get(key).and_then(Value::as_i64).and_then(|it| i32::try_from(it).ok());
                number.filter(|it| *it > 0)
            };
            let (version, entry) = registry.register(subject, &schema, (number("id"), number("version")))?;
            let mut shown = registry.shown(subject, version, &entry);
            if let Some(map) = shown.as_object_mut() {
                map.remove("subject");
            }
            Ok(shown)
        }
        ("GET", [subject, "versions", version]) => {
            let (version, entry) = registry.version(subject, version, request.flag("deleted"))?;
            let shown = registry.shown(subject, version, &entry);
            registry.with_format(shown, &entry.schema, request.parameter("format"))
        }
        ("DELETE", [subject, "versions", version]) => {
            Ok(json!(registry.delete_version(subject, version, is_permanent)?))
        }
        ("GET", [subject, "versions", version, "schema"]) => {
            let (_, entry) = registry.version(subject, version, request.flag("deleted"))?;
            Ok(text_or_json(&entry.schema))
        }
        ("GET", [subject, "versions", version, "referencedby"]) => {
            let (version, _) = registry.version(subject, version, false)?;
            Ok(json!(registry.referenced_by(subject, version)))
        }
        _ => Err(Refusal::new(404, "HTTP 404 Not Found")),
    }
}

/// The text of a schema by itself: JSON is answered as it is.
fn text_or_json(schema: &Schema) -> Value {
    serde_json::from_str(&schema.text).unwrap_or_else(|_| json!(schema.text))
}

fn schemas(registry: &Registry, request: &Request, path: &[&str], of: &str) -> Answer {
    let by_id = |id: &str| {
        let id: i32 = id.parse().map_err(|_| Refusal::new(404, "HTTP 404 Not Found"))?;
        let schema = registry.ids.get(&(of.to_owned(), id)).ok_or_else(Refusal::no_schema)?;
        Ok::<_, Refusal>((id, schema))
    };
    let by_guid = |text: &str| {
        let wanted: Guid = text.parse().map_err(|_| Refusal::no_schema())?;
        let found = registry.ids.iter().find(|(_, schema)| guid(schema) == wanted);
        found.ok_or_else(Refusal::no_schema)
    };
    match path {
        ["types"] => Ok(json!(["JSON", "PROTOBUF", "AVRO"])),
        ["ids", id] => {
            let (_, schema) = by_id(id)?;
            registry.with_format(registry.schema_shown(schema), schema, request.parameter("format"))
        }
        ["ids", id, "schema"] => by_id(id).map(|(_, schema)| text_or_json(schema)),
        ["ids", id, "subjects"] => {
            let found = registry.versions_with_id(of, by_id(id)?.0, request.flag("deleted"))?;
            Ok(json!(found.into_iter().map(|(subject, _)| subject).collect::<Vec<_>>()))
        }
        ["ids", id, "versions"] => {
            let found = registry.versions_with_id(of, by_id(id)?.0, request.flag("deleted"))?;
            let shown =
                found.into_iter().map(|(subject, version)| json!({"subject": subject, "version": version}));
            Ok(shown.collect())
        }
        ["guids", guid] => {
            let (_, schema) = by_guid(guid)?;
            registry.with_format(registry.schema_shown(schema), schema, request.parameter("format"))
        }
        ["guids", guid, "ids"] => {
            let ((context, id), _) = by_guid(guid)?;
            Ok(json!([{"context": context, "id": id}]))
        }
        _ => Err(Refusal::new(404, "HTTP 404 Not Found")),
    }
}

fn config(registry: &mut Registry, request: &Request, subject: Option<&str>) -> Answer {
    let key = subject.map(str::to_owned);
    match request.method.as_str() {
        "GET" => match (registry.levels.get(&key), subject) {
            (Some(level), _) => Ok(json!({"compatibilityLevel": level.name()})),
            (None, Some(subject)) if !request.flag("defaultToGlobal") => Err(Refusal::new(
                40408,
                format!("Subject '{subject}' does not have subject-level compatibility configured"),
            )),
            (None, subject) => {
                Ok(json!({"compatibilityLevel": registry.level(subject.unwrap_or_default()).name()}))
            }
        },
        "PUT" => {
            let body = request.json()?;
            let level = body.get("compatibility").and_then(Value::as_str).unwrap_or_default();
            let level: Compatibility = level.parse().map_err(|_| {
                let names: Vec<&str> = Compatibility::ALL.iter().map(|it| it.name()).collect();
                Refusal::new(
                    42203,
                    format!("Invalid compatibility level. Valid values are {}", names.join(", ")),
                )
            })?;
            registry.change(Change::Level { subject: key, level: Some(level) })?;
            Ok(json!({"compatibility": level.name()}))
        }
        "DELETE" => {
            let before = registry.levels.get(&key).copied();
            let before = match (before, subject) {
                (None, Some(subject)) => return Err(Refusal::no_subject(subject)),
                (before, _) => before.unwrap_or(Compatibility::Backward),
            };
            registry.change(Change::Level { subject: key, level: None })?;
            Ok(json!({"compatibilityLevel": before.name()}))
        }
        _ => Err(Refusal::new(405, "HTTP 405 Method Not Allowed")),
    }
}

fn mode(registry: &mut Registry, request: &Request, subject: Option<&str>) -> Answer {
    let key = subject.map(str::to_owned);
    match request.method.as_str() {
        "GET" => match (registry.modes.get(&key), subject) {
            (Some(mode), _) => Ok(json!({"mode": mode.name()})),
            (None, Some(subject)) if !request.flag("defaultToGlobal") => Err(Refusal::new(
                40409,
                format!("Subject '{subject}' does not have subject-level mode configured"),
            )),
            (None, subject) => Ok(json!({"mode": registry.mode(subject.unwrap_or_default()).name()})),
        },
        "PUT" => {
            let body = request.json()?;
            let mode = body.get("mode").and_then(Value::as_str).unwrap_or_default();
            let mode: Mode = mode.parse().map_err(|_| {
                let names: Vec<&str> = Mode::ALL.iter().map(|it| it.name()).collect();
                Refusal::new(42204, format!("Invalid mode. Valid values are {}", names.join(", ")))
            })?;
            let has_schemas = match subject {
                Some(subject) => registry.versions(subject, Some(false)).is_ok(),
                None => registry.subjects.keys().any(|it| registry.versions(it, Some(false)).is_ok()),
            };
            if mode == Mode::Import && has_schemas && !request.flag("force") {
                return Err(Refusal::new(42205, "Cannot import since found existing subjects"));
            }
            registry.change(Change::Mode { subject: key, mode: Some(mode) })?;
            Ok(json!({"mode": mode.name()}))
        }
        "DELETE" => {
            let Some(subject) = subject else { return Err(Refusal::new(405, "HTTP 405 Method Not Allowed")) };
            let before = registry.modes.get(&key).copied().ok_or_else(|| Refusal::no_subject(subject))?;
            registry.change(Change::Mode { subject: key, mode: None })?;
            Ok(json!({"mode": before.name()}))
        }
        _ => Err(Refusal::new(405, "HTTP 405 Method Not Allowed")),
    }
}

fn compatibility(registry: &Registry, request: &Request, subject: &str, version: Option<&str>) -> Answer {
    let (schema, _) = request.schema()?;
    let compiled = registry.compiled(&schema)?;
    let version = version.map(|it| registry.version(subject, it, false)).transpose()?;
    let messages = registry.incompatibilities(subject, &compiled, version.map(|(number, _)| number))?;
    let mut answer = json!({"is_compatible": messages.is_empty()});
    if request.flag("verbose") {
        answer["messages"] = json!(messages);
    }
    Ok(answer)
}
