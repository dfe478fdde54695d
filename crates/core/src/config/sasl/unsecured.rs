//! The fields of tokens for tests: `sasl.oauthbearer.config`.

use super::extensions::check_extensions;
use crate::shown::quoted;

/// The fields of `sasl.oauthbearer.config`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsecuredToken {
    pub(crate) principal_claim: String,
    pub(crate) principal: String,
    pub(crate) scope_claim: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) life_seconds: u32,
    pub(crate) extensions: Vec<(String, String)>,
}

impl UnsecuredToken {
    /// Returns the fields of a token with this principal, and defaults.
    pub(crate) fn of(principal: String) -> Self {
        Self {
            principal_claim: "sub".to_owned(),
            principal,
            scope_claim: "scope".to_owned(),
            scopes: Vec::new(),
            life_seconds: 3600,
            extensions: Vec::new(),
        }
    }

    /// Parses the property: `name=value` fields, separated by spaces. Error: what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut fields = Self::of(String::new());
        if text.contains('"') {
            return Err("sasl.oauthbearer.config must not contain the character \"".to_owned());
        }
        let mut seen = Vec::new();
        for field in text.split(' ').filter(|field| !field.is_empty()) {
            let unknown = || format!("Unrecognized sasl.oauthbearer.config beginning at: {}", quoted(field));
            let (name, value) = field.split_once('=').ok_or_else(unknown)?;
            if seen.contains(&name) {
                return Err(format!("Invalid sasl.oauthbearer.config: multiple '{name}=' entries"));
            }
            seen.push(name);
            if value.is_empty() && !name.starts_with("extension_") {
                return Err(format!("Invalid sasl.oauthbearer.config: empty '{name}='"));
            }
            match name {
                "principalClaimName" => fields.principal_claim = value.to_owned(),
                "principal" => fields.principal = value.to_owned(),
                "scopeClaimName" => fields.scope_claim = value.to_owned(),
                "scope" => fields.set_scopes(value),
                "lifeSeconds" => {
                    let seconds = value.parse().ok().filter(|seconds| *seconds > 0);
                    fields.life_seconds = seconds.ok_or_else(|| {
                        format!("Invalid sasl.oauthbearer.config: value for 'lifeSeconds={}' is not a number above 0",
                            quoted(value))
                    })?;
                }
                _ => {
                    let name = name.strip_prefix("extension_").ok_or_else(unknown)?;
                    fields.extensions.push((name.to_owned(), value.to_owned()));
                }
            }
        }
        if fields.principal.is_empty() {
            return Err("Invalid sasl.oauthbearer.config: no principal=<value>".to_owned());
        }
        check_extensions(&fields.extensions)?;
        Ok(fields)
    }

    fn set_scopes(&mut self, list: &str) {
        for scope in list.split(',').filter(|scope| !scope.is_empty()) {
            if !self.scopes.iter().any(|known| known == scope) {
                self.scopes.push(scope.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_configurations_are_refused() {
        for (config, part) in [
            ("", "no principal"),
            ("scope=a", "no principal"),
            ("principal=", "empty"),
            ("principal=a principal=b", "multiple"),
            ("principal=a\"", "\""),
            ("principal=a blah", "Unrecognized sasl.oauthbearer.config beginning at: blah"),
            ("principal=a foo=bar", "beginning at: foo=bar"),
            ("principal=a lifeSeconds=0", "lifeSeconds"),
            ("principal=a lifeSeconds=-1", "lifeSeconds"),
            ("principal=a lifeSeconds=x", "lifeSeconds"),
            ("principal=a extension_auth=x", "auth"),
            ("principal=a extension_=x", "A-Z"),
        ] {
            let error = UnsecuredToken::parse(config).unwrap_err();
            assert!(error.contains(part), "{config}: {error}");
        }
    }
}
