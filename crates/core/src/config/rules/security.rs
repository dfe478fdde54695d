//! The rules of TLS and SASL.

use super::Outcome;
use crate::config::{
    effective::EffectiveConfig,
    error::{ConfigError, ConfigErrorKind},
    sasl::{
        Mechanism,
        aws::AwsSettings,
        jaas::JaasConfig,
        kerberos::KerberosSettings,
        oidc::{Grant, OidcSettings},
        unsecured::UnsecuredToken,
    },
    table::{Kind, Property, Status},
};

/// Refuses what this library can't do, and warns about properties that have no effect with the protocol.
pub(super) fn apply(config: &mut EffectiveConfig<'_>) -> Outcome {
    let protocol = config.text("security.protocol").to_owned();
    let (has_tls, has_sasl) = (protocol.ends_with("ssl"), protocol.starts_with("sasl_"));
    if has_tls {
        refuse_unbuilt_tls(config)?;
    }
    if has_sasl {
        sasl(config)?;
    }
    let is_of_sasl = |property: &Property| property.name.contains("sasl");
    let unused: Vec<_> = config
        .client_raw()
        .modified()
        .filter(|(property, _)| match property.status {
            _ if property.kind == Kind::Call => false,
            _ if is_of_sasl(property) => !has_sasl || matches!(property.status, Status::Unbuilt(_)),
            _ if property.name.contains("ssl") => !has_tls,
            status => matches!(status, Status::Unbuilt(_)),
        })
        .map(|(_, name)| format!("`{name}`"))
        .collect();
    if !unused.is_empty() {
        config.warn(format!("no effect with `security.protocol={protocol}`: {}", unused.join(", ")));
    }
    Ok(())
}

/// Refuses properties of TLS that this library can't honour.
fn refuse_unbuilt_tls(config: &EffectiveConfig<'_>) -> Outcome {
    for (property, name) in config.client_raw().modified() {
        if let Status::Unbuilt(reason) = property.status
            && property.name.starts_with("ssl")
            && config.text(property.name) != property.default
        {
            let value = config.text(property.name).chars().take(100).collect();
            return Err(ConfigError::new(name, ConfigErrorKind::Refused { value, reason }));
        }
    }
    Ok(())
}

fn sasl(config: &mut EffectiveConfig<'_>) -> Outcome {
    let name = "sasl.mechanisms";
    let value = config.text(name);
    let refused = |name: &str, value: &str, reason| {
        let value = value.chars().take(100).collect();
        Err(ConfigError::new(name, ConfigErrorKind::Refused { value, reason }))
    };
    let mechanism = match Mechanism::parse(value) {
        Ok(mechanism) => mechanism,
        Err(reason) => return refused(config.name(name), value, reason),
    };
    let jaas = match config.text("sasl.jaas.config") {
        "" => JaasConfig::default(),
        text => match JaasConfig::parse(text, mechanism) {
            Ok(jaas) => jaas,
            // The value has a password.
            Err(reason) => return refused("sasl.jaas.config", "", reason),
        },
    };
    if mechanism == Mechanism::OauthBearer {
        return token(config, &jaas);
    }
    if mechanism == Mechanism::Gssapi {
        let name = "sasl.kerberos.kinit.cmd";
        return KerberosSettings::new(config, &jaas.kerberos).map(drop).map_err(|expected| {
            let value = config.text(name).chars().take(100).collect();
            ConfigError::new(name, ConfigErrorKind::Malformed { value, expected })
        });
    }
    if mechanism == Mechanism::AwsMskIam {
        let purpose = "an access key of AWS is an ID and a secret";
        return AwsSettings::new(config)
            .map(drop)
            .map_err(|name| ConfigError::new(name, ConfigErrorKind::Missing { purpose }));
    }
    for (name, is_in_jaas) in
        [("sasl.username", jaas.username.is_some()), ("sasl.password", jaas.password.is_some())]
    {
        if config.text(name).is_empty() && !is_in_jaas {
            let purpose = "PLAIN and SCRAM need a user name and a password";
            return Err(ConfigError::new(name, ConfigErrorKind::Missing { purpose }));
        }
    }
    if mechanism == Mechanism::Plain && config.text("security.protocol") == "sasl_plaintext" {
        config.warn(
            "`security.protocol=sasl_plaintext` with PLAIN sends the password unencrypted; use sasl_ssl or SCRAM"
                .to_owned(),
        );
    }
    Ok(())
}

/// The rules of OAUTHBEARER.
fn token(config: &mut EffectiveConfig<'_>, jaas: &JaasConfig) -> Outcome {
    if let Some(oidc) = OidcSettings::new(config, jaas)?
        && !oidc.endpoint.is_https()
        && !oidc.endpoint.is_loopback()
        && !matches!(oidc.grant, Grant::AzureImds(_))
    {
        config.warn(format!(
            "`sasl.oauthbearer.token.endpoint.url={}` sends the client's secret and gets tokens unencrypted; use https",
            oidc.endpoint
        ));
    }
    if config.boolean("enable.sasl.oauthbearer.unsecure.jwt")
        && let Err(expected) = UnsecuredToken::parse(config.text("sasl.oauthbearer.config"))
    {
        // The value may have a secret.
        let value = "...".to_owned();
        return Err(ConfigError::new(
            "sasl.oauthbearer.config",
            ConfigErrorKind::Malformed { value, expected },
        ));
    }
    if config.is_modified("sasl.username") {
        config.warn("`sasl.username` has no effect with `sasl.mechanisms=OAUTHBEARER`".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::config::{EffectiveConfig, Profile, RawConfig};

    fn outcome(pairs: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let mut raw = RawConfig::new(Profile::Rust);
        pairs.iter().for_each(|(name, value)| raw.set(name, value).unwrap());
        let config = EffectiveConfig::producer(&raw).map_err(|error| error.to_string())?;
        Ok(config.warnings().to_vec())
    }

    #[test]
    fn unbuilt_mechanisms_are_refused_with_a_reason() {
        for (mechanism, part) in [("SCRAM-SHA-1", "no SCRAM-SHA-1"), ("X", "no mechanism has this name")] {
            let error = outcome(&[("security.protocol", "SASL_SSL"), ("sasl.mechanism", mechanism)]);
            assert!(error.as_ref().is_err_and(|error| error.contains(part)), "{error:?}");
        }
        assert!(outcome(&[("security.protocol", "sasl_ssl")]).is_ok(), "Kerberos is the default");
        let kinit = ("sasl.kerberos.kinit.cmd", "kinit %{x}");
        assert!(outcome(&[("security.protocol", "sasl_ssl"), kinit]).unwrap_err().contains("kinit.cmd"));
        let oauth = [("security.protocol", "sasl_ssl"), ("sasl.mechanisms", "OAUTHBEARER")];
        assert!(outcome(&oauth).is_ok());
        let mut oidc = vec![
            oauth[0],
            oauth[1],
            ("sasl.oauthbearer.method", "oidc"),
            ("sasl.oauthbearer.client.id", "me"),
            ("sasl.oauthbearer.client.secret", "hunter2"),
        ];
        assert!(outcome(&oidc).unwrap_err().contains("token.endpoint.url"));
        oidc.push(("sasl.oauthbearer.token.endpoint.url", "http://idp.test/token?a=hunter2"));
        let warnings = outcome(&oidc).unwrap();
        assert!(warnings[0].contains("unencrypted") && !warnings[0].contains("hunter2"), "{warnings:?}");
    }

    #[test]
    fn credentials_are_required_and_may_be_in_java_spelling() {
        let base = [("security.protocol", "sasl_ssl"), ("sasl.mechanisms", "PLAIN")];
        assert!(outcome(&base).unwrap_err().contains("sasl.username"));
        let user = [base[0], base[1], ("sasl.username", "alice")];
        assert!(outcome(&user).unwrap_err().contains("sasl.password"));
        let jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"a\" password=\"hunter2\";";
        assert_eq!(outcome(&[base[0], base[1], ("sasl.jaas.config", jaas)]), Ok(Vec::new()));
        let error = outcome(&[base[0], base[1], ("sasl.jaas.config", &jaas[..jaas.len() - 1])]).unwrap_err();
        assert!(error.contains("sasl.jaas.config") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn aws_needs_no_property_but_an_access_key_needs_its_secret() {
        let base = [("security.protocol", "sasl_ssl"), ("sasl.mechanism", "AWS_MSK_IAM")];
        let jaas = (
            "sasl.jaas.config",
            "software.amazon.msk.auth.iam.IAMLoginModule required awsProfileName=\"x\";",
        );
        assert_eq!(outcome(&[base[0], base[1], jaas]), Ok(Vec::new()));
        let error = outcome(&[base[0], base[1], ("sasl.aws.access.key.id", "A")]).unwrap_err();
        assert!(error.contains("sasl.aws.secret.access.key"), "{error}");
        let error = outcome(&[base[0], base[1], ("sasl.aws.session.token", "t")]).unwrap_err();
        assert!(error.contains("sasl.aws.access.key.id"), "{error}");
    }

    #[test]
    fn properties_without_effect_are_named() {
        let unused = outcome(&[("sasl.username", "alice")]).unwrap();
        assert!(unused[0].contains("`sasl.username`"), "{unused:?}");
        let plain = [
            ("security.protocol", "sasl_plaintext"),
            ("sasl.mechanisms", "PLAIN"),
            ("sasl.username", "a"),
            ("sasl.password", "b"),
        ];
        let warnings = outcome(&plain).unwrap();
        assert!(warnings[0].contains("unencrypted") && warnings.len() == 1, "{warnings:?}");
    }
}
