//! The options of every command with a client: servers, properties, property files, the timeout.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use clap::Args;
use ottla::Config;

use crate::debug_lines;
use crate::failure::{Failure, Outcome};
use crate::profiles::{self, Profile};
use crate::standard_error::note;

/// The properties that bound how long a connection may take until the broker has responded.
const SETUP_TIMEOUTS: [&str; 2] = ["socket.connection.setup.timeout.ms", "api.version.request.timeout.ms"];
/// `--timeout` without a value of its own.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout of a call after the first broker has responded, without `--timeout`.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// The timeout that the command line sets for calls.
static CHOSEN_CALL_TIMEOUT: OnceLock<Duration> = OnceLock::new();

/// `-b`, `-X`, `-F`, `--timeout`, `--profile`: before or after the name of the command.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct ClientOptions {
    /// Brokers to connect to first, separated by commas; can be repeated [default: OTTLA_BOOTSTRAP, or the profile]
    #[arg(
        short = 'b',
        long = "bootstrap-server",
        visible_alias = "bootstrap-servers",
        value_name = "HOST:PORT,..."
    )]
    pub bootstrap_server: Vec<String>,

    /// Controllers to connect to instead of brokers, separated by commas, for administration
    #[arg(
        long = "bootstrap-controller",
        visible_alias = "bootstrap-controllers",
        value_name = "HOST:PORT,...",
        conflicts_with = "bootstrap_server"
    )]
    pub bootstrap_controller: Option<String>,

    /// Set a property of the client; can be repeated. `-X list` prints all properties
    #[arg(short = 'X', value_name = "NAME=VALUE")]
    pub property: Vec<String>,

    /// Read properties from a file of name=value lines; -X and -b override them
    #[arg(short = 'F', value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// Give up if no broker responds within this time, and a wait if nothing happens for this time [default:
    /// default.api.timeout.ms if it is set, or else 10 for the first broker and 30 for a request; other waits end as the
    /// properties say]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub timeout: Option<Duration>,

    /// Use this profile of `ottla profile list` [default: OTTLA_PROFILE, or the default profile, if neither -b nor -F is given]
    #[arg(long, value_name = "NAME", add = crate::completion::profiles())]
    pub profile: Option<String>,

    /// The word that the profile asks for before a command that changes something
    #[arg(long, value_name = "WORD")]
    pub confirm: Option<String>,

    /// The text of `file`, which may be a pipe: it is read once.
    #[arg(skip)]
    pub file_text: OnceLock<String>,
}

impl ClientOptions {
    /// Returns these options, completed by those before the name of the command.
    #[must_use]
    pub fn after(&self, outer: &ClientOptions) -> ClientOptions {
        ClientOptions {
            bootstrap_server: match self.bootstrap_server.is_empty() && self.bootstrap_controller.is_none() {
                true => outer.bootstrap_server.clone(),
                false => self.bootstrap_server.clone(),
            },
            bootstrap_controller: self
                .bootstrap_controller
                .clone()
                .or_else(|| outer.bootstrap_controller.clone().filter(|_| self.bootstrap_server.is_empty())),
            property: outer.property.iter().chain(&self.property).cloned().collect(),
            file: self.file.clone().or_else(|| outer.file.clone()),
            timeout: self.timeout.or(outer.timeout),
            profile: self.profile.clone().or_else(|| outer.profile.clone()),
            confirm: self.confirm.clone().or_else(|| outer.confirm.clone()),
            file_text: OnceLock::new(),
        }
    }

    /// The configuration: the profile first, then the file, then -X, then -b or --bootstrap-controller.
    pub fn config(&self) -> Outcome<Config> {
        let mut config = Config::new();
        self.apply_profile(&mut config)?;
        self.add_properties(&mut config)?;
        if !self.bootstrap_server.is_empty() {
            config.set("bootstrap.servers", &self.bootstrap_server.join(","))?;
            config.set("bootstrap.controllers", "")?;
        }
        if let Some(controllers) = &self.bootstrap_controller {
            config.set("bootstrap.controllers", controllers)?;
            config.set("bootstrap.servers", "")?;
        }
        use_environment(&mut config)?;
        require_servers(&config)?;
        debug_lines::print_if_requested(&config);
        bound_connection_setup(&mut config, self.timeout())?;
        if let Some(timeout) = self.timeout.or_else(|| self.default_api_timeout()) {
            bound_calls(timeout);
        }
        Ok(config)
    }

    /// Returns the chosen profile with its name.
    ///
    /// # Errors
    ///
    /// The file of profiles is wrong, or has none of that name.
    pub fn profile(&self) -> Outcome<Option<(String, Profile)>> {
        let is_open = self.bootstrap_server.is_empty()
            && self.bootstrap_controller.is_none()
            && self.file.is_none()
            && !self.property.iter().any(|property| names_cluster(property));
        profiles::chosen(self.profile.as_deref(), is_open)
    }

    /// Sets the properties of the chosen profile.
    fn apply_profile(&self, config: &mut Config) -> Outcome {
        match self.profile()? {
            Some((name, profile)) => profile.apply(&name, config),
            None => Ok(()),
        }
    }

    /// Sets the properties of the profile that `--profile` names, for commands that do not use the default one.
    pub fn apply_named_profile(&self, config: &mut Config) -> Outcome {
        if self.profile.is_some() { self.apply_profile(config) } else { Ok(()) }
    }

    /// Sets the properties of the file and of -X.
    fn add_properties(&self, config: &mut Config) -> Outcome {
        if let Some(file) = &self.file {
            let text = match self.file_text.get() {
                Some(text) => text,
                None => {
                    let text = read(file)?;
                    self.file_text.get_or_init(|| text)
                }
            };
            config.load(&file.display().to_string(), text)?;
        }
        for property in &self.property {
            set_pair(config, property)?;
        }
        Ok(())
    }

    /// How long to wait for the first broker: `--timeout`, or else `default.api.timeout.ms` if it is set.
    pub fn timeout(&self) -> Duration {
        self.timeout.or_else(|| self.default_api_timeout()).unwrap_or(DEFAULT_TIMEOUT)
    }

    /// Returns `default.api.timeout.ms` if it is set. An error in the properties is reported with the configuration.
    fn default_api_timeout(&self) -> Option<Duration> {
        const NAME: &str = "default.api.timeout.ms";
        if self.file.is_none() && !self.property.iter().any(|property| property.contains(NAME)) {
            return None;
        }
        let mut config = Config::new();
        self.add_properties(&mut config).ok().filter(|()| config.is_modified(NAME))?;
        config.get(NAME)?.parse().ok().map(Duration::from_millis)
    }

    /// True if the options request the list of properties (`-X list`) instead of the command.
    pub fn wants_list(&self) -> bool {
        self.property.iter().any(|property| property == "list")
    }

    /// Refuses these options for a command that has no client.
    pub fn refuse(&self, command: &str) -> Outcome {
        match *self == ClientOptions::default() {
            true => Ok(()),
            false => Err(Failure::Usage(format!(
                "-b, --bootstrap-controller, -X, -F, --timeout, --profile and --confirm have no effect on `{command}`, which has no client: leave them out"
            ))),
        }
    }
}

/// Limits the timeouts of connecting, so that an attempt to connect to an unresponsive peer fails, and its cause is
/// known, before the command times out.
pub fn bound_connection_setup(config: &mut Config, timeout: Duration) -> Outcome {
    let ms = timeout.as_millis() * 4 / 5;
    for name in SETUP_TIMEOUTS {
        let default = config.get(name).and_then(|value| value.parse().ok()).unwrap_or(u128::MAX);
        if !config.is_modified(name) && ms < default {
            config.set(name, &ms.max(1000).to_string())?;
        }
    }
    Ok(())
}

/// Sets the timeout of all calls of this process.
pub fn bound_calls(timeout: Duration) {
    let _ = CHOSEN_CALL_TIMEOUT.set(timeout);
}

/// Returns the timeout of a call after the first broker has responded.
pub fn call_timeout() -> Duration {
    CHOSEN_CALL_TIMEOUT.get().copied().unwrap_or(CALL_TIMEOUT)
}

/// Parses the value of `--timeout`.
pub fn parse_seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=86_400.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("it must be a number of seconds from 0.1 to 86400".into()),
    }
}

/// True if a property of -X names brokers.
pub fn names_cluster(property: &str) -> bool {
    let name = property.split('=').next().unwrap_or_default().trim();
    matches!(name, "bootstrap.servers" | "metadata.broker.list" | "bootstrap.controllers")
}

/// Sets `name=value`.
pub fn set_pair(config: &mut Config, pair: &str) -> Outcome {
    let (name, value) = pair.split_once('=').ok_or_else(|| {
        // What follows the name may be a secret.
        let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
        let name = &pair[..pair.find(|letter| !is_of_name(letter)).unwrap_or(pair.len())];
        Failure::Usage(format!("property \"{name}\": \"=\" is missing; write NAME=VALUE"))
    })?;
    config.set(name.trim(), value)?;
    Ok(())
}

/// Sets the properties of a file.
pub fn load(config: &mut Config, file: &Path) -> Outcome {
    config.load(&file.display().to_string(), &read(file)?)?;
    Ok(())
}

/// Reads a file of properties. Text that is not UTF-8 is ISO 8859-1, which the Java client reads.
fn read(file: &Path) -> Outcome<String> {
    let bytes = std::fs::read(file).map_err(|error| {
        Failure::Usage(format!("property file {} can't be read: {error}", file.display()))
    })?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| error.as_bytes().iter().copied().map(char::from).collect()))
}

/// Uses the brokers of `OTTLA_BOOTSTRAP` if nothing else names one.
fn use_environment(config: &mut Config) -> Outcome {
    let Ok(servers) = std::env::var("OTTLA_BOOTSTRAP") else { return Ok(()) };
    if require_servers(config).is_err() && !servers.is_empty() {
        config.set("bootstrap.servers", &servers)?;
    }
    Ok(())
}

/// Error: neither `bootstrap.servers` nor `bootstrap.controllers` is set.
pub fn require_servers(config: &Config) -> Outcome {
    let is_unset = |name| config.get(name).is_none_or(|servers| servers.is_empty());
    match is_unset("bootstrap.servers") && is_unset("bootstrap.controllers") {
        true => Err(Failure::Usage(
            "no broker is named: add -b HOST:PORT, set OTTLA_BOOTSTRAP or use a profile (`ottla broker` starts a local one at \
             127.0.0.1:9092)"
                .into(),
        )),
        false => Ok(()),
    }
}

/// Prints the warnings about a configuration.
pub fn print_warnings(warnings: &[String]) {
    for warning in warnings {
        note!("warning: {warning}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_options_override_and_properties_accumulate() {
        let outer = ClientOptions {
            bootstrap_server: vec!["a:1".into()],
            property: vec!["acks=1".into()],
            timeout: Some(Duration::from_secs(3)),
            ..ClientOptions::default()
        };
        let inner = ClientOptions {
            bootstrap_server: vec!["b:2".into(), "c:3".into()],
            property: vec!["acks=0".into()],
            ..ClientOptions::default()
        };
        let merged = inner.after(&outer);
        assert_eq!(merged.bootstrap_server, ["b:2", "c:3"]);
        assert_eq!(merged.property, ["acks=1", "acks=0"]);
        assert_eq!(merged.timeout(), Duration::from_secs(3));
        assert_eq!(merged.config().unwrap().get("acks").as_deref(), Some("0"));
    }

    #[test]
    fn connection_setup_ends_before_the_timeout_unless_it_is_set() {
        let mut config = Config::new();
        bound_connection_setup(&mut config, Duration::from_secs(10)).unwrap();
        assert_eq!(SETUP_TIMEOUTS.map(|name| config.get(name).unwrap()), ["8000", "8000"]);
        let mut config = Config::new();
        config.set(SETUP_TIMEOUTS[0], "5000").unwrap();
        bound_connection_setup(&mut config, Duration::from_secs(2)).unwrap();
        assert_eq!(SETUP_TIMEOUTS.map(|name| config.get(name).unwrap()), ["5000", "1600"]);
    }

    #[test]
    fn timeout_is_the_option_or_else_the_property() {
        let file = std::env::temp_dir().join(format!("ottla-timeout-{}", std::process::id()));
        std::fs::write(&file, "bootstrap.servers=a:1\ndefault.api.timeout.ms=4000\n").unwrap();
        let mut options = ClientOptions { file: Some(file.clone()), ..ClientOptions::default() };
        assert_eq!(options.timeout(), Duration::from_secs(4));
        std::fs::remove_file(&file).unwrap();
        assert_eq!(options.config().unwrap().get("bootstrap.servers").as_deref(), Some("a:1"), "read once");
        options.property.push("default.api.timeout.ms=5000".into());
        assert_eq!(options.timeout(), Duration::from_secs(5));
        options.timeout = Some(Duration::from_secs(6));
        assert_eq!(options.timeout(), Duration::from_secs(6));
        assert_eq!(ClientOptions::default().timeout(), DEFAULT_TIMEOUT);
    }

    #[test]
    fn a_file_of_java_may_be_in_its_old_encoding() {
        let file = std::env::temp_dir().join(format!("ottla-latin-1-{}", std::process::id()));
        std::fs::write(&file, b"bootstrap.servers a:1\nclient.id = caf\xe9 \\u20ac\n").unwrap();
        let options = ClientOptions { file: Some(file.clone()), ..ClientOptions::default() };
        assert_eq!(options.config().unwrap().get("client.id").as_deref(), Some("café €"));
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn timeouts_are_seconds() {
        assert_eq!(parse_seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["", "0", "-1", "nan", "inf", "5s", "1e9"] {
            assert!(parse_seconds(wrong).is_err(), "{wrong}");
        }
    }
}
