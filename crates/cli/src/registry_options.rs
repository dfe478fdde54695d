//! The options of every command that asks a schema registry.

use clap::Args;
use ottla_schema_registry::Error;
use ottla_schema_registry::client::{Client, Config};
use ottla_sorted::SortedMap;

use crate::client_options::ClientOptions;
use crate::failure::{Failure, Outcome};
use crate::profiles::REGISTRY_URL;

/// The variable of the environment with the address.
const VARIABLE: &str = "SCHEMA_REGISTRY_URL";

/// The properties of serializers, as Confluent's clients and console tools name them.
const OF_SERIALIZER: [&str; 8] = [
    "auto.register.schemas",
    "auto.register",
    "use.latest.version",
    "use.schema.id",
    "schema.id",
    "normalize.schemas",
    "subject.name.strategy",
    "schema.id.serializer",
];

/// True if a property is that of serializers, of both or of those of keys or values.
fn is_of_serializer(name: &str) -> bool {
    let of_part = name.strip_prefix("key.").or_else(|| name.strip_prefix("value."));
    OF_SERIALIZER.contains(&of_part.unwrap_or(name))
}

/// Where the registry is.
#[derive(Args, Clone, Debug, Default)]
pub struct RegistryOptions {
    /// The address of the schema registry, also with a user and a password; several are separated by commas and tried in turn
    /// [default: that of --profile or OTTLA_PROFILE, or else SCHEMA_REGISTRY_URL, or else that of the default profile]
    #[arg(long, short = 'r', visible_alias = "schema-registry", value_name = "URL", global = true)]
    registry: Option<String>,

    /// A property of the registry's client, as Confluent's clients name it, for example
    /// basic.auth.user.info=alice:secret, ssl.ca.location=ca.pem or context=.staging; can be repeated
    #[arg(long = "property", short = 'P', value_name = "NAME=VALUE", global = true, value_parser = crate::commands::pair)]
    registry_property: Vec<(String, String)>,
}

impl RegistryOptions {
    /// Creates the client. `client` chooses the profile.
    ///
    /// # Errors
    ///
    /// No registry is named, a property is wrong, or the profile can't be used.
    pub fn client(&self, client: &ClientOptions) -> Outcome<Client> {
        match self.registry_property.iter().find(|(name, _)| is_of_serializer(name)) {
            Some((name, _)) => Err(Failure::Usage(format!("-P {name} has an effect on `produce -s` only"))),
            None => self.client_and_serializer(client).map(|(client, _)| client),
        }
    }

    /// Creates the client, and returns the properties of serializers.
    ///
    /// # Errors
    ///
    /// Those of [`RegistryOptions::client`].
    pub fn client_and_serializer(
        &self,
        client: &ClientOptions,
    ) -> Outcome<(Client, SortedMap<String, String>)> {
        let (of_serializer, properties): (Vec<_>, Vec<_>) =
            self.properties(client)?.into_iter().partition(|(name, _)| is_of_serializer(name));
        let pairs = properties.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let config = Config::from_properties(pairs).map_err(failure)?;
        if config.addresses.is_empty() {
            return Err(Failure::Usage(format!(
                "no schema registry is named: add --registry URL, set {VARIABLE} or use a profile with a registry (`ottla \
                 broker --schema-registry` starts a local one at http://127.0.0.1:8081)"
            )));
        }
        Ok((Client::new(config).map_err(failure)?, of_serializer.into_iter().collect()))
    }

    /// Returns the properties: those of the profile, of the environment and of the options, each overriding those before. A
    /// profile that no option or variable names is not used with another registry, which must not learn its password.
    fn properties(&self, client: &ClientOptions) -> Outcome<SortedMap<String, String>> {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let named = |(name, _): &(String, String)| name == REGISTRY_URL || name == "url";
        let is_named = self.registry.is_some() || self.registry_property.iter().any(named);
        let environment = variable(VARIABLE);
        let is_open = !is_named && (environment.is_none() || variable("OTTLA_PROFILE").is_some());
        let mut properties = SortedMap::default();
        if (client.profile.is_some() || is_open)
            && let Some((name, profile)) = client.profile()?
        {
            properties = profile.registry(&name)?;
        }
        if let Some(url) = environment.filter(|_| !properties.contains_key(REGISTRY_URL)) {
            properties.insert(REGISTRY_URL.to_owned(), url);
        }
        let is_credential = |name: &str| name.starts_with("basic.auth.") || name.starts_with("bearer.auth.");
        if self.registry_property.iter().any(|(name, _)| is_credential(name)) {
            properties.retain(|name, _| !is_credential(name));
        }
        properties.extend(self.registry_property.iter().cloned());
        if let Some(url) = &self.registry {
            properties.insert(REGISTRY_URL.to_owned(), url.clone());
        }
        Ok(properties)
    }
}

/// Errors of the configuration are those of the command line.
pub fn failure(error: Error) -> Failure {
    match error {
        Error::Config { .. } => Failure::Usage(error.to_string()),
        _ => Failure::Failed(error.to_string()),
    }
}
