//! The configuration as `{:?}` shows it.

use std::fmt;

use super::raw::RawConfig;

/// Shows the properties that were set; secrets are masked.
impl fmt::Debug for RawConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = self.iter().filter(|entry| entry.is_modified);
        let shown = set.map(|entry| (entry.property, masked(entry.property, entry.value)));
        f.debug_map().entries(shown).finish()
    }
}

/// Returns what a log may contain of the value of a property.
fn masked(property: &str, value: String) -> String {
    if is_secret(property) { "***".to_owned() } else { value }
}

/// Returns true if logs must not contain the value of a property.
pub fn is_secret(property: &str) -> bool {
    const SECRET: [&str; 9] = [
        "password",
        "passphrase",
        "secret",
        "session.token",
        "key.pem",
        "oauthbearer.config",
        "jaas",
        "proxy.url",
        "sasl.username",
    ];
    SECRET.iter().any(|part| property.replace('_', ".").contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Profile;

    #[test]
    fn debug_shows_set_properties_and_masks_secrets() {
        let value = |property| masked(property, "hunter2".to_owned());
        for secret in [
            "sasl.password",
            "ssl.key.password",
            "ssl_key.pem",
            "ssl.key.pem",
            "sasl.jaas.config",
            "sasl.username",
            "proxy.url",
        ] {
            assert_eq!(value(secret), "***", "{secret}");
        }
        assert_eq!(value("ssl.certificate.pem"), "hunter2");
        let mut config = RawConfig::new(Profile::Rust);
        config.set("client.id", "c").unwrap();
        config.set("linger.ms", "7").unwrap();
        let shown = format!("{config:?}");
        assert!(shown.starts_with('{') && shown.contains(r#""client.id": "c""#), "{shown}");
        assert!(shown.contains(r#": "7""#) && !shown.contains("acks"), "{shown}");
    }
}
