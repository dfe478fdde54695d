//! The properties of Kerberos.

use std::time::Duration;

use super::jaas::JaasKerberos;
use crate::config::{
    EffectiveConfig,
    table::{Scope, find},
};

/// The properties of Kerberos.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KerberosSettings {
    /// `sasl.kerberos.service.name`.
    pub service: String,
    /// `sasl.kerberos.principal`.
    pub principal: String,
    /// Where tickets come from.
    pub login: Login,
}

/// Where tickets come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Login {
    /// The system's cache of tickets, which another program fills.
    Cache,
    /// A key table: `sasl.kerberos.keytab`.
    KeyTable(String),
    /// A command that fills the system's cache: `sasl.kerberos.kinit.cmd`, every `sasl.kerberos.min.time.before.relogin`.
    Command {
        /// The command, with the values of properties.
        command: String,
        /// The time between two runs; `None` runs it once.
        interval: Option<Duration>,
    },
}

const KINIT: &str = "sasl.kerberos.kinit.cmd";
const JAVA_KINIT: &str = "/usr/bin/kinit";

impl KerberosSettings {
    /// Reads the settings. A property takes precedence over an option in `sasl.jaas.config`. Error: what is wrong with
    /// `sasl.kerberos.kinit.cmd`.
    pub fn new(config: &EffectiveConfig<'_>, jaas: &JaasKerberos) -> Result<Self, String> {
        let login = match config.text(KINIT) {
            // Java's value is the path of the program, which it calls with arguments of its own.
            command if config.is_modified(KINIT) && !matches!(command, "" | JAVA_KINIT) => Login::Command {
                command: rendered(command, config)?,
                interval: config.positive_millis("sasl.kerberos.min.time.before.relogin"),
            },
            _ => config
                .non_empty("sasl.kerberos.keytab")
                .or_else(|| jaas.key_table.clone())
                .map_or(Login::Cache, Login::KeyTable),
        };
        let text = |name, option: &Option<String>| match option {
            Some(option) if !config.is_modified(name) => option.clone(),
            _ => config.text(name).to_owned(),
        };
        Ok(Self {
            service: text("sasl.kerberos.service.name", &jaas.service),
            principal: text("sasl.kerberos.principal", &jaas.principal),
            login,
        })
    }
}

/// Replaces each `%{property}` by its value.
fn rendered(template: &str, config: &EffectiveConfig<'_>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once("%{") {
        let (name, after) = behind.split_once('}').ok_or("a closing brace after %{")?;
        let property = find(Scope::Global, name).ok_or_else(|| format!("a property in %{{{name}}}"))?;
        out.push_str(before);
        out.push_str(config.text(property.name));
        rest = after;
    }
    Ok(out + rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Profile, RawConfig};

    fn settings(pairs: &[(&str, &str)]) -> Result<KerberosSettings, String> {
        let mut raw = RawConfig::new(Profile::Rust);
        pairs.iter().for_each(|(name, value)| raw.set(name, value).unwrap());
        KerberosSettings::new(&EffectiveConfig::producer(&raw).unwrap(), &JaasKerberos::default())
    }

    #[test]
    fn tickets_come_from_a_command_or_a_key_table_or_the_cache() {
        assert_eq!(settings(&[]).unwrap().login, Login::Cache);
        let keytab = ("sasl.kerberos.keytab", "/k");
        assert_eq!(settings(&[keytab]).unwrap().login, Login::KeyTable("/k".to_owned()));
        let java = ("sasl.kerberos.kinit.cmd", "/usr/bin/kinit");
        assert_eq!(settings(&[keytab, java]).unwrap().login, Login::KeyTable("/k".to_owned()));
        let kinit = "kinit -t '%{sasl.kerberos.keytab}' %{sasl.kerberos.principal} %";
        let found = settings(&[keytab, ("sasl.kerberos.kinit.cmd", kinit)]).unwrap();
        let command = "kinit -t '/k' kafkaclient %".to_owned();
        let interval = Some(Duration::from_secs(60));
        assert_eq!(found.login, Login::Command { command, interval });
        for command in ["kinit %{no.such}", "kinit %{sasl.kerberos.principal"] {
            assert!(settings(&[("sasl.kerberos.kinit.cmd", command)]).is_err());
        }
    }
}
