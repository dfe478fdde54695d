//! One profile: the properties of a cluster, secrets that commands print, and its protection.

use std::process::{Command, Stdio};

use ottla::Config;
use ottla_sorted::SortedMap;
use toml::{Table, Value};

use crate::failure::{Failure, Outcome};

/// The property that `password_command` sets.
const PASSWORD: &str = "sasl.password";
/// The property that `registry` sets.
pub const REGISTRY_URL: &str = "schema.registry.url";
/// The keys of a profile in the file.
const KEYS: &str = "bootstrap, properties, password_command, secret_commands, registry, registry_properties, \
                    registry_secret_commands, read_only and confirm";

/// A cluster with a name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// The properties of clients, among them `bootstrap.servers`.
    pub properties: SortedMap<String, String>,
    /// Commands whose output is the value of a property.
    pub commands: SortedMap<String, String>,
    /// The properties of the schema registry's client, among them `schema.registry.url`.
    pub registry: SortedMap<String, String>,
    /// Commands whose output is the value of a property of the registry's client.
    pub registry_commands: SortedMap<String, String>,
    /// True if commands that change something are refused.
    pub read_only: bool,
    /// The word that commands that change something ask for.
    pub confirm: Option<String>,
}

impl Profile {
    /// Returns a profile with the properties that are set.
    pub fn of(config: &Config) -> Profile {
        let set = config.raw().iter().filter(|entry| entry.is_modified);
        let name = |property: &str| match property {
            // librdkafka's older name of the same property.
            "metadata.broker.list" => "bootstrap.servers".to_owned(),
            other => other.to_owned(),
        };
        Profile {
            properties: set.map(|entry| (name(entry.property), entry.value)).collect(),
            ..Profile::default()
        }
    }

    /// Reads a table of the file.
    ///
    /// # Errors
    ///
    /// The key that is unknown or has another type.
    pub fn from_table(table: &Table) -> Result<Profile, String> {
        let mut profile = Profile::default();
        for (key, value) in table {
            match (key.as_str(), value) {
                ("bootstrap", Value::String(servers)) => {
                    profile.properties.insert("bootstrap.servers".to_owned(), servers.clone());
                }
                ("read_only", Value::Boolean(read_only)) => profile.read_only = *read_only,
                ("confirm", Value::String(word)) if !word.is_empty() => profile.confirm = Some(word.clone()),
                ("password_command", Value::String(command)) => {
                    profile.commands.insert(PASSWORD.to_owned(), command.clone());
                }
                ("registry", Value::String(url)) => {
                    profile.registry.insert(REGISTRY_URL.to_owned(), url.clone());
                }
                (name, Value::Table(table)) => match profile.pairs(name) {
                    Some(pairs) => strings(table, name, pairs)?,
                    None => return Err(format!("{key} is unknown or not a table; possible are {KEYS}")),
                },
                ("bootstrap" | "confirm" | "password_command" | "registry", _) => {
                    return Err(format!("{key} must be a text"));
                }
                ("read_only", _) => return Err("read_only must be true or false".to_owned()),
                _ => return Err(format!("{key} is unknown; possible are {KEYS}")),
            }
        }
        Ok(profile)
    }

    /// Returns the pairs of a table within a profile.
    fn pairs(&mut self, name: &str) -> Option<&mut SortedMap<String, String>> {
        match name {
            "properties" => Some(&mut self.properties),
            "secret_commands" => Some(&mut self.commands),
            "registry_properties" => Some(&mut self.registry),
            "registry_secret_commands" => Some(&mut self.registry_commands),
            _ => None,
        }
    }

    /// Returns the table of the file.
    pub fn to_table(&self) -> Table {
        let mut table = Table::new();
        let mut properties = self.properties.clone();
        if let Some(servers) = properties.remove("bootstrap.servers") {
            table.insert("bootstrap".into(), servers.into());
        }
        let mut commands = self.commands.clone();
        if let Some(command) = commands.remove(PASSWORD) {
            table.insert("password_command".into(), command.into());
        }
        let mut registry = self.registry.clone();
        if let Some(url) = registry.remove(REGISTRY_URL) {
            table.insert("registry".into(), url.into());
        }
        if self.read_only {
            table.insert("read_only".into(), true.into());
        }
        if let Some(word) = &self.confirm {
            table.insert("confirm".into(), word.as_str().into());
        }
        let tables = [
            ("properties", properties),
            ("secret_commands", commands),
            ("registry_properties", registry),
            ("registry_secret_commands", self.registry_commands.clone()),
        ];
        for (name, pairs) in tables {
            if !pairs.is_empty() {
                let pairs: Table =
                    pairs.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
                table.insert(name.into(), pairs.into());
            }
        }
        table
    }

    /// Sets the properties; commands that print secrets run now.
    ///
    /// # Errors
    ///
    /// A property is wrong, or a command fails.
    pub fn apply(&self, name: &str, config: &mut Config) -> Outcome {
        self.check(name, config)?;
        for (property, command) in &self.commands {
            config.set(property, &secret_of(name, property, command)?)?;
        }
        Ok(())
    }

    /// Returns the properties of the registry's client; commands that print secrets run now.
    ///
    /// # Errors
    ///
    /// A command fails.
    #[cfg_attr(not(feature = "schemas"), allow(dead_code))]
    pub fn registry(&self, name: &str) -> Outcome<SortedMap<String, String>> {
        let mut properties = self.registry.clone();
        for (property, command) in &self.registry_commands {
            properties.insert(property.clone(), secret_of(name, property, command)?);
        }
        Ok(properties)
    }

    /// Sets the properties without running a command.
    ///
    /// # Errors
    ///
    /// A property is wrong.
    pub fn check(&self, name: &str, config: &mut Config) -> Outcome {
        for (property, value) in &self.properties {
            config
                .set(property, value)
                .map_err(|error| Failure::Usage(format!("profile \"{name}\": {error}")))?;
        }
        Ok(())
    }

    /// True if the file itself has a secret.
    pub fn has_secret(&self) -> bool {
        self.properties.keys().any(|name| ottla_core::config::is_secret(name) && !name.contains("username"))
            || self.registry.keys().any(|name| is_registry_secret(name))
    }
}

/// True if the value of a property of the registry's client is a secret.
pub fn is_registry_secret(name: &str) -> bool {
    ["user.info", "token", "secret", "password"].iter().any(|end| name.ends_with(end))
}

/// Returns the output of a command of a profile.
fn secret_of(name: &str, property: &str, command: &str) -> Outcome<String> {
    output_of(command).map_err(|error| {
        Failure::Failed(format!("profile \"{name}\": the command of {property} {error}: {command}"))
    })
}

fn strings(table: &Table, name: &str, into: &mut SortedMap<String, String>) -> Result<(), String> {
    for (property, value) in table {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            Value::Boolean(flag) => flag.to_string(),
            Value::Float(number) => number.to_string(),
            // Without quotes, TOML reads dots as tables.
            Value::Table(inner) => {
                let nested: Table =
                    inner.iter().map(|(key, value)| (format!("{property}.{key}"), value.clone())).collect();
                strings(&nested, name, into)?;
                continue;
            }
            _ => return Err(format!("{name}: {property} must be a text")),
        };
        into.insert(property.clone(), text);
    }
    Ok(())
}

/// Runs a command in a shell and returns what it prints, without the last line feed. It shares the terminal, so that it can ask for
/// a passphrase.
fn output_of(command: &str) -> Result<String, String> {
    let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let output = Command::new(shell)
        .args([flag, command])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("can't be run ({error})"))?;
    if !output.status.success() {
        return Err(format!("failed ({})", output.status));
    }
    let text =
        String::from_utf8(output.stdout).map_err(|_| "printed something that is not UTF-8".to_owned())?;
    match text.strip_suffix('\n').map_or(&*text, |text| text.strip_suffix('\r').unwrap_or(text)) {
        "" => Err("printed nothing".to_owned()),
        secret => Ok(secret.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Profile, String> {
        Profile::from_table(&text.parse::<Table>().map_err(|error| error.to_string())?)
    }

    #[test]
    fn profile_is_written_as_it_was_read() {
        let text = "bootstrap = 'a:1'\npassword_command = 'pass kafka'\nread_only = true\nconfirm = 'prod'\n\
                    [properties]\n'acks' = 'all'\nssl.ca.location = '/ca'\nlinger.ms = 5\n[secret_commands]\n'ssl.key.password' = 'x'\n\
                    [registry_properties]\ntimeout = 5\n[registry_secret_commands]\n'basic.auth.user.info' = 'y'\n";
        let text = format!("registry = 'http://r:1'\n{text}");
        let profile = parse(&text).unwrap();
        assert_eq!(profile.registry.get(REGISTRY_URL).map(String::as_str), Some("http://r:1"));
        assert_eq!(profile.registry.get("timeout").map(String::as_str), Some("5"));
        assert_eq!(profile.properties.get("ssl.ca.location").map(String::as_str), Some("/ca"));
        assert_eq!(profile.properties.get("linger.ms").map(String::as_str), Some("5"));
        assert_eq!(Profile::from_table(&profile.to_table()), Ok(profile));
    }

    #[test]
    fn wrong_keys_and_types_are_named() {
        for (text, error) in [
            ("bootstrp = 'a'", "bootstrp is unknown"),
            ("bootstrap = 1", "bootstrap must be a text"),
            ("registry = 1", "registry must be a text"),
            ("[registry]\nurl = 'a'", "registry is unknown or not a table"),
            ("read_only = 'yes'", "read_only must be true or false"),
            ("confirm = ''", "confirm must be a text"),
            ("[properties]\nacks = [1]", "properties: acks must be a text"),
        ] {
            assert!(parse(text).unwrap_err().contains(error), "{text}");
        }
    }

    #[test]
    fn secret_is_the_output_of_its_command() {
        assert_eq!(output_of("printf 'a b\\n'"), Ok("a b".to_owned()));
        assert_eq!(output_of("printf 'a\\n\\n'"), Ok("a\n".to_owned()));
        assert!(output_of("exit 3").unwrap_err().contains("failed"));
        assert!(output_of("true").unwrap_err().contains("printed nothing"));
        let commands = [("sasl.password".to_owned(), "exit 3".to_owned())].into_iter().collect();
        let profile = Profile { commands, ..Profile::default() };
        let failure = profile.apply("p", &mut Config::new());
        assert!(
            matches!(failure, Err(Failure::Failed(text)) if text.starts_with("profile \"p\": the command of sasl.password"))
        );
    }
}
