//! Tests of the embedded registry, through the client.

use crate::{
    Compatibility, Error, Mode, Reference, Schema,
    client::{Client, Config, Deleted, Version},
    server::{EmbeddedRegistry, MemoryStorage},
};

fn start() -> (EmbeddedRegistry, Client) {
    let registry = EmbeddedRegistry::start("127.0.0.1:0", MemoryStorage::default()).unwrap();
    let client = Client::new(Config::new(&registry.url())).unwrap();
    (registry, client)
}

fn record(fields: &str) -> Schema {
    Schema::avro(format!(r#"{{"type": "record", "name": "R", "fields": [{fields}]}}"#))
}

const A: &str = r#"{"name": "a", "type": "int"}"#;
const B: &str = r#"{"name": "b", "type": "int", "default": 1}"#;
const C: &str = r#"{"name": "c", "type": "int"}"#;

fn code<T: std::fmt::Debug>(result: crate::Result<T>) -> u32 {
    result.unwrap_err().code().unwrap()
}

#[test]
fn schema_is_registered_found_and_deleted() {
    let (_registry, client) = start();
    let (one, two) = (record(A), record(&format!("{A}, {B}")));
    let first = client.register("s", &one, false).unwrap();
    let second = client.register("s", &two, false).unwrap();
    assert_eq!((first.id, first.version, second.id, second.version), (1, Some(1), 2, Some(2)));
    assert_eq!(client.register("other", &one, false).unwrap().id, 1);
    assert_eq!(client.subjects("", Deleted::Without).unwrap(), ["other", "s"]);
    assert_eq!(client.subjects("o", Deleted::Without).unwrap(), ["other"]);
    assert_eq!(client.versions("s", Deleted::Without).unwrap(), [1, 2]);
    assert_eq!(client.version("s", Version::Latest).unwrap().id, 2);
    assert_eq!(client.lookup("s", &one, false).unwrap().version, Some(1));
    assert_eq!(client.versions_with_id(1).unwrap(), [("other".to_owned(), 1), ("s".to_owned(), 1)]);
    let guid = first.guid.unwrap();
    assert_eq!(client.schema_by_guid(guid).unwrap(), client.schema_by_id(1).unwrap());

    assert_eq!(code(client.delete_version("s", Version::Number(1), true)), 40407);
    assert_eq!(client.delete_version("s", Version::Number(1), false).unwrap(), 1);
    assert_eq!(client.versions("s", Deleted::Without).unwrap(), [2]);
    assert_eq!(client.versions("s", Deleted::With).unwrap(), [1, 2]);
    assert_eq!(client.versions("s", Deleted::Only).unwrap(), [1]);
    assert_eq!(code(client.delete_subject("s", true)), 40405);
    assert_eq!(client.delete_subject("s", false).unwrap(), [2]);
    assert_eq!(code(client.delete_subject("s", false)), 40404);
    assert_eq!(client.delete_subject("s", true).unwrap(), [1, 2]);
    assert_eq!(code(client.versions("s", Deleted::With)), 40401);
}

#[test]
fn what_is_not_there_has_its_code() {
    let (_registry, client) = start();
    client.register("s", &record(A), false).unwrap();
    assert_eq!(code(client.versions("x", Deleted::Without)), 40401);
    assert_eq!(code(client.version("s", Version::Number(7))), 40402);
    assert_eq!(code(client.schema_by_id(7)), 40403);
    assert_eq!(code(client.lookup("s", &record(B), false)), 40403);
    assert_eq!(code(client.register("s", &Schema::avro("{"), false)), 42201);
    assert_eq!(code(client.delete_compatibility("s")), 40401);
    let error = client.schema_by_id(7).unwrap_err();
    assert!(error.is_not_found());
    assert!(error.to_string().contains("register the schema"), "{error}");
}

#[test]
fn level_decides_what_may_follow() {
    let (_registry, client) = start();
    client.register("s", &record(A), false).unwrap();
    let (adds, removes) = (record(&format!("{A}, {C}")), record(B));
    assert_eq!(client.compatibility(Some("s")).unwrap(), Compatibility::Backward);
    let report = client.check_compatibility("s", Some(Version::Latest), &adds).unwrap();
    assert!(!report.is_compatible);
    assert!(report.messages[0].contains("the reader's field c"), "{:?}", report.messages);
    assert_eq!(code(client.register("s", &adds, false)), 409);
    assert!(client.check_compatibility("s", None, &removes).unwrap().is_compatible);
    client.set_compatibility(Some("s"), Compatibility::Forward).unwrap();
    assert!(!client.check_compatibility("s", None, &removes).unwrap().is_compatible);
    client.register("s", &adds, false).unwrap();
    client.delete_compatibility("s").unwrap();
    assert_eq!(client.compatibility(Some("s")).unwrap(), Compatibility::Backward);
    client.set_compatibility(None, Compatibility::None).unwrap();
    client.register("s", &Schema::avro("\"string\""), false).unwrap();
}

#[test]
fn mode_decides_what_may_be_written() {
    let (_registry, client) = start();
    client.set_mode(Some("s"), Mode::ReadOnly, false).unwrap();
    assert_eq!(client.mode(Some("s")).unwrap(), Mode::ReadOnly);
    assert_eq!(code(client.register("s", &record(A), false)), 42205);
    client.delete_mode("s").unwrap();
    client.register("s", &record(A), false).unwrap();
    assert_eq!(code(client.set_mode(None, Mode::Import, false)), 42205);
    client.set_mode(None, Mode::Import, true).unwrap();
    assert_eq!(client.mode(None).unwrap(), Mode::Import);
}

#[test]
fn reference_is_resolved_and_protected() {
    let (_registry, client) = start();
    client.register("used", &record(A), false).unwrap();
    let user = Schema::avro(r#"{"type": "array", "items": "R"}"#);
    assert_eq!(code(client.register("user", &user, false)), 42201);
    let user = user.with_reference(Reference::new("R", "used", 1));
    let id = client.register("user", &user, false).unwrap().id;
    assert_eq!(client.referenced_by("used", Version::Latest).unwrap(), [id as i32]);
    assert_eq!(code(client.delete_subject("used", false)), 42206);
    let texts = client.references(&user).unwrap();
    assert_eq!(texts.len(), 1);
    assert_eq!(texts[0].0, "R");
}

#[test]
fn contexts_have_their_own_ids() {
    let (registry, client) = start();
    client.register("s", &record(A), false).unwrap();
    let staging = Client::new(Config::new(&registry.url()).in_context(".staging")).unwrap();
    assert_eq!(staging.register("s", &Schema::avro("\"string\""), false).unwrap().id, 1);
    assert_eq!(*staging.schema_by_id(1).unwrap(), Schema::avro("\"string\""));
    assert_eq!(client.subjects("", Deleted::Without).unwrap(), ["s"]);
    assert_eq!(staging.subjects("", Deleted::Without).unwrap(), [":.staging:s"]);
    assert_eq!(client.subjects(":.staging:", Deleted::Without).unwrap(), [":.staging:s"]);
    assert_eq!(client.contexts().unwrap(), [".", ".staging"]);
}

#[test]
fn state_is_there_after_a_restart() {
    let storage = MemoryStorage::default();
    let registry = EmbeddedRegistry::start("127.0.0.1:0", storage.clone()).unwrap();
    let client = Client::new(Config::new(&registry.url())).unwrap();
    client.register("a", &record(A), false).unwrap();
    client.register("b", &record(&format!("{A}, {B}")), false).unwrap();
    client.delete_subject("a", false).unwrap();
    client.set_compatibility(Some("b"), Compatibility::Full).unwrap();
    client.set_mode(Some("b"), Mode::ReadOnly, false).unwrap();
    drop(registry);
    let registry = EmbeddedRegistry::start("127.0.0.1:0", storage).unwrap();
    let client = Client::new(Config::new(&registry.url())).unwrap();
    assert_eq!(client.subjects("", Deleted::Without).unwrap(), ["b"]);
    assert_eq!(client.subjects("", Deleted::With).unwrap(), ["a", "b"]);
    assert_eq!(client.version("b", Version::Latest).unwrap().id, 2);
    assert_eq!(client.compatibility(Some("b")).unwrap(), Compatibility::Full);
    assert_eq!(client.mode(Some("b")).unwrap(), Mode::ReadOnly);
}

#[test]
fn threads_ask_once_for_a_schema() {
    let (registry, client) = start();
    client.register("s", &record(A), false).unwrap();
    let fresh = Client::new(Config::new(&registry.url())).unwrap();
    let before = registry.requests();
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| fresh.schema_by_id(1).unwrap());
        }
    });
    assert_eq!(registry.requests() - before, 1);
}

#[test]
fn stopped_registry_is_unreachable_and_the_next_address_is_tried() {
    let (first, client) = start();
    client.register("s", &record(A), false).unwrap();
    let (second, other) = start();
    other.register("s", &record(A), false).unwrap();
    let gone = first.url();
    drop(first);
    let both = Client::new(Config::new(&format!("{gone},{}", second.url()))).unwrap();
    assert_eq!(both.versions("s", Deleted::Without).unwrap(), [1]);
    let mut config = Config::new(&gone);
    config.retries = 0;
    let error = Client::new(config).unwrap().subjects("", Deleted::Without).unwrap_err();
    assert!(matches!(&error, Error::Unreachable { attempts, .. } if attempts.len() == 1), "{error}");
    assert!(error.is_transient());
}
