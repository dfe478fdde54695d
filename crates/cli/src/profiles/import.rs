//! Profiles from the files of other clients.

use std::path::Path;

use ottla::Config;
use ottla_sorted::SortedMap;
use saphyr::{LoadableYamlNode, Yaml};

use super::{Profile, REGISTRY_URL};
use crate::failure::{Failure, Outcome};

/// The formats of files, for `--format`.
pub const FORMATS: [&str; 4] = ["java", "librdkafka", "kcat", "rpk"];

/// The largest file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Reads a file of another client. Returns profiles with their names; `None` for that of a file without names.
///
/// # Errors
///
/// The file can't be read, or has something that is unknown.
pub fn import(file: &Path, format: Option<&str>) -> Outcome<Vec<(Option<String>, Profile)>> {
    let shown = file.display();
    let unread = |error: String| Failure::Usage(format!("{shown} can't be read: {error}"));
    let size = std::fs::metadata(file).map_err(|error| unread(error.to_string()))?.len();
    if size > MAX_BYTES {
        return Err(unread(format!("it has {size} bytes, more than {MAX_BYTES}")));
    }
    let text = std::fs::read_to_string(file).map_err(|error| unread(error.to_string()))?;
    let is_yaml = file.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    match format {
        Some("rpk") => rpk(&text).map_err(|error| Failure::Usage(format!("{shown}: {error}"))),
        None if is_yaml => rpk(&text).map_err(|error| Failure::Usage(format!("{shown}: {error}"))),
        _ => Ok(vec![(None, properties(&shown.to_string(), &text)?)]),
    }
}

/// Reads `name=value` lines, which the files of the Java client, of librdkafka and of kcat have.
fn properties(file: &str, text: &str) -> Outcome<Profile> {
    let mut config = Config::new();
    let (text, registry) = without_registry(text);
    config.load(file, &text)?;
    Ok(Profile { registry, ..Profile::of(&config) })
}

/// The beginnings of the names that belong to the registry's client in the files of Java's serializers.
const OF_REGISTRY: [&str; 3] = ["schema.registry.", "basic.auth.", "bearer.auth."];

/// Takes the properties of a schema registry out of a text, whose other lines keep their numbers.
fn without_registry(text: &str) -> (String, SortedMap<String, String>) {
    let (mut rest, mut registry) = (String::with_capacity(text.len()), SortedMap::default());
    for line in text.lines() {
        match line.split_once(['=', ':']) {
            Some((name, value)) if OF_REGISTRY.iter().any(|start| name.trim().starts_with(start)) => {
                let name = name.trim();
                // Java's clients have the credentials under either name.
                let short =
                    name.strip_prefix("schema.registry.").filter(|short| short.starts_with("basic.auth."));
                registry.insert(short.unwrap_or(name).to_owned(), value.trim().to_owned());
            }
            _ => rest.push_str(line),
        }
        rest.push('\n');
    }
    (rest, registry)
}

/// Reads `rpk.yaml`: a list of profiles.
fn rpk(text: &str) -> Result<Vec<(Option<String>, Profile)>, String> {
    let documents = Yaml::load_from_str(text).map_err(|error| format!("it is not YAML: {error}"))?;
    let root = documents.first().ok_or("it is empty")?;
    let at = |node: &Yaml<'_>, path: &[&str]| -> Option<String> {
        let found = path.iter().try_fold(node, |node, key| node.as_mapping_get(key))?;
        found.as_str().map(str::to_owned)
    };
    let profiles = root.as_mapping_get("profiles").and_then(Yaml::as_vec);
    let profiles: Vec<&Yaml<'_>> = match profiles {
        Some(profiles) => profiles.iter().collect(),
        // The file of a single profile, or of older versions, has its parts at the top.
        None if root.as_mapping_get("kafka_api").is_some() => vec![root],
        None => root.as_mapping_get("rpk").into_iter().collect(),
    };
    let mut found = Vec::new();
    for node in profiles {
        let api = node.as_mapping_get("kafka_api").ok_or("a profile has no kafka_api")?;
        let brokers = api
            .as_mapping_get("brokers")
            .and_then(Yaml::as_vec)
            .ok_or("a profile has no kafka_api.brokers")?;
        let brokers: Vec<&str> = brokers.iter().filter_map(Yaml::as_str).collect();
        let mut profile = Profile::default();
        let mut set = |name: &str, value: Option<String>| {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                profile.properties.insert(name.to_owned(), value);
            }
        };
        set("bootstrap.servers", Some(brokers.join(",")));
        let (has_tls, has_sasl) = (api.as_mapping_get("tls").is_some(), api.as_mapping_get("sasl").is_some());
        let protocol = match (has_tls, has_sasl) {
            (true, true) => "sasl_ssl",
            (true, false) => "ssl",
            (false, true) => "sasl_plaintext",
            (false, false) => "plaintext",
        };
        set("security.protocol", Some(protocol.to_owned()));
        set("ssl.ca.location", at(api, &["tls", "ca_file"]).or_else(|| at(api, &["tls", "truststore_file"])));
        set("ssl.certificate.location", at(api, &["tls", "cert_file"]));
        set("ssl.key.location", at(api, &["tls", "key_file"]));
        let skips = api.as_mapping_get("tls").and_then(|tls| tls.as_mapping_get("insecure_skip_verify"));
        let skips = skips.and_then(Yaml::as_bool).unwrap_or(false);
        set("enable.ssl.certificate.verification", skips.then(|| "false".to_owned()));
        set("sasl.mechanism", at(api, &["sasl", "mechanism"]));
        set("sasl.username", at(api, &["sasl", "user"]).or_else(|| at(api, &["sasl", "username"])));
        set("sasl.password", at(api, &["sasl", "password"]));
        profile.registry = registry_of_rpk(node);
        found.push((at(node, &["name"]), profile));
    }
    if found.is_empty() { Err("it has no profile".to_owned()) } else { Ok(found) }
}

/// Returns the registry of a profile of rpk; its certificates are named by other properties than those of brokers.
fn registry_of_rpk(node: &Yaml<'_>) -> SortedMap<String, String> {
    let mut found = SortedMap::default();
    let Some(api) = node.as_mapping_get("schema_registry") else { return found };
    let addresses = api.as_mapping_get("addresses").and_then(Yaml::as_vec);
    let addresses: Vec<&str> = addresses.into_iter().flatten().filter_map(Yaml::as_str).collect();
    let tls = api.as_mapping_get("tls");
    let scheme = if tls.is_some() { "https" } else { "http" };
    let whole = |address: &&str| match address.contains("://") {
        true => (*address).to_owned(),
        false => format!("{scheme}://{address}"),
    };
    if !addresses.is_empty() {
        let urls: Vec<String> = addresses.iter().map(whole).collect();
        found.insert(REGISTRY_URL.to_owned(), urls.join(","));
    }
    for (key, property) in [
        ("ca_file", "ssl.ca.location"),
        ("truststore_file", "ssl.ca.location"),
        ("cert_file", "ssl.certificate.location"),
        ("key_file", "ssl.key.location"),
    ] {
        if let Some(file) = tls.and_then(|tls| tls.as_mapping_get(key)).and_then(Yaml::as_str) {
            found.insert(property.to_owned(), file.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_of_rpk_become_properties() {
        let text = "version: 7\ncurrent_profile: prod\nprofiles:\n  - name: local\n    kafka_api:\n      brokers: [a:1, b:2]\n  \
                    - name: prod\n    kafka_api:\n      brokers:\n        - c:3\n      tls:\n        ca_file: /ca.pem\n      sasl:\n        \
                    user: alice\n        password: secret\n        mechanism: SCRAM-SHA-256\n    schema_registry:\n      \
                    addresses: [r:8081]\n      tls:\n        ca_file: /r.pem\n";
        let profiles = rpk(text).unwrap();
        let names: Vec<_> = profiles.iter().map(|(name, _)| name.as_deref().unwrap_or_default()).collect();
        assert_eq!(names, ["local", "prod"]);
        let of =
            |index: usize, name: &str| profiles[index].1.properties.get(name).cloned().unwrap_or_default();
        assert_eq!(
            (of(0, "bootstrap.servers"), of(0, "security.protocol")),
            ("a:1,b:2".into(), "plaintext".into())
        );
        assert_eq!(
            (of(1, "security.protocol"), of(1, "ssl.ca.location")),
            ("sasl_ssl".into(), "/ca.pem".into())
        );
        assert_eq!(
            (of(1, "sasl.username"), of(1, "sasl.mechanism")),
            ("alice".into(), "SCRAM-SHA-256".into())
        );
        let registry: Vec<_> = profiles[1].1.registry.values().map(String::as_str).collect();
        assert_eq!(registry, ["https://r:8081", "/r.pem"]);
        for wrong in ["", "- 1", "a: [", "profiles:\n  - name: x\n", "profiles: []"] {
            assert!(rpk(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn files_of_properties_become_a_profile() {
        let profile =
            properties("f", "# kcat\nbootstrap.servers=a:1\nsecurity.protocol=SASL_SSL\nsasl.username=x\n")
                .unwrap();
        assert_eq!(profile.properties.get("bootstrap.servers").map(String::as_str), Some("a:1"));
        assert!(matches!(properties("f", "no.such.property=1\n"), Err(Failure::Usage(_))));
        let java =
            "schema.registry.url = http://r:8081\nschema.registry.basic.auth.user.info=a:b=c\nacks=1\n";
        let profile = properties("f", java).unwrap();
        assert_eq!(profile.registry.get(REGISTRY_URL).map(String::as_str), Some("http://r:8081"));
        assert_eq!(profile.registry.get("basic.auth.user.info").map(String::as_str), Some("a:b=c"));
        assert_eq!(profile.properties.len(), 1);
    }
}
