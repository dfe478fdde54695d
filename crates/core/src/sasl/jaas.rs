//! `sasl.jaas.config` of the Java client: the options of four login modules, by name. No code is loaded.

use std::fmt;

use zeroize::Zeroizing;

use super::mechanism::Mechanism;
use crate::secret::Secret;

/// The options of a login module.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct JaasConfig {
    /// The option `username`.
    pub username: Option<String>,
    /// The option `password`.
    pub password: Option<Secret>,
    /// True if the option `tokenauth` is `true`: the user name is the ID of a delegation token.
    pub is_delegation_token: bool,
    /// The option `clientId` of OAuthBearerLoginModule.
    pub client_id: Option<String>,
    /// The option `clientSecret` of OAuthBearerLoginModule.
    pub client_secret: Option<Secret>,
    /// The option `scope` of OAuthBearerLoginModule.
    pub scope: Option<String>,
    /// The option `awsProfileName` of IAMLoginModule.
    pub aws_profile: Option<String>,
    /// The options `extension_NAME` of OAuthBearerLoginModule.
    pub extensions: Vec<(String, String)>,
}

/// Shows nothing.
impl fmt::Debug for JaasConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JaasConfig")
    }
}

const MODULES: [(&str, &str); 4] = [
    ("org.apache.kafka.common.security.plain.PlainLoginModule", "PLAIN"),
    ("org.apache.kafka.common.security.scram.ScramLoginModule", "SCRAM"),
    ("org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule", "OAUTHBEARER"),
    ("software.amazon.msk.auth.iam.IAMLoginModule", "AWS_MSK_IAM"),
];

impl JaasConfig {
    /// Parses the value: `MODULE required name="value" ...;`. Error: what is wrong, without values.
    pub fn parse(text: &str, mechanism: Mechanism) -> Result<Self, &'static str> {
        let mut words = words(text)?.into_iter();
        let module = words.next().unwrap_or_default();
        let of = MODULES.iter().find(|(name, _)| *name == module.as_str()).map(|(_, mechanism)| *mechanism);
        let of = of.ok_or(
            "it must begin with PlainLoginModule, ScramLoginModule or OAuthBearerLoginModule of Kafka, or IAMLoginModule of MSK",
        )?;
        if !mechanism.name().starts_with(of) {
            return Err("its login module belongs to another mechanism than sasl.mechanism");
        }
        if words.next().is_none_or(|word| word.as_str() != "required") {
            return Err("the word `required` must follow the login module");
        }
        let mut config = Self::default();
        for option in words {
            let (name, value) = option.split_once('=').ok_or("an option must be name=\"value\"")?;
            match name {
                "username" => config.username = Some(value.to_owned()),
                "password" => config.password = Some(Secret::from(value)),
                "tokenauth" => config.is_delegation_token = value == "true",
                "clientId" => config.client_id = Some(value.to_owned()),
                "clientSecret" => config.client_secret = Some(Secret::from(value)),
                "awsProfileName" => config.aws_profile = Some(value.to_owned()),
                "scope" => config.scope = Some(value.to_owned()),
                _ => match name.strip_prefix("extension_") {
                    Some(name) => config.extensions.push((name.to_owned(), value.to_owned())),
                    None => {
                        return Err(
                            "only the options username, password, tokenauth, clientId, clientSecret, scope, \
                                    extension_NAME and awsProfileName are known",
                        );
                    }
                },
            }
        }
        Ok(config)
    }
}

/// Splits the text into words; quotes and backslashes protect. The last word ends with a semicolon. Words may be secrets: they
/// are overwritten when they are dropped, and a word that grows leaves no copy behind, because it has room for the whole text.
fn words(text: &str) -> Result<Vec<Zeroizing<String>>, &'static str> {
    let room = || Zeroizing::new(String::with_capacity(text.len()));
    let (mut words, mut word, mut quote) = (Vec::new(), None::<Zeroizing<String>>, None);
    let mut letters = text.trim().chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\\', Some(_)) => {
                word.get_or_insert_with(room).push(letters.next().ok_or("it ends with a backslash")?);
            }
            (end, Some(begin)) if end == begin => quote = None,
            (letter, Some(_)) => word.get_or_insert_with(room).push(letter),
            ('"' | '\'', None) => {
                word.get_or_insert_with(room);
                quote = Some(letter);
            }
            (';', None) => {
                words.extend(word);
                return if letters.as_str().is_empty() {
                    Ok(words)
                } else {
                    Err("text follows its semicolon")
                };
            }
            (letter, None) if letter.is_whitespace() => words.extend(word.take()),
            (letter, None) => word.get_or_insert_with(room).push(letter),
        }
    }
    Err("it must end with a semicolon, and quotes must be closed")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "org.apache.kafka.common.security.plain.PlainLoginModule required";

    #[test]
    fn options_of_kafka_modules_are_read() {
        let text = format!("{PLAIN} username=\"alice\"\n  password='a \\'b\\';=c' ;");
        let config = JaasConfig::parse(&text, Mechanism::Plain).ok().unwrap();
        assert_eq!(
            (config.username.as_deref(), config.password.as_ref().map(Secret::expose)),
            (Some("alice"), Some(&b"a 'b';=c"[..]))
        );
        let text = "org.apache.kafka.common.security.scram.ScramLoginModule required username=\"id\" \
                    password=\"x\" tokenauth=\"true\";";
        let scram = Mechanism::parse("SCRAM-SHA-512").unwrap();
        assert!(JaasConfig::parse(text, scram).ok().unwrap().is_delegation_token);
    }

    #[test]
    fn other_modules_and_malformed_text_are_refused() {
        for text in [
            "",
            ";",
            "com.sun.security.auth.module.JndiLoginModule required user.provider.url=\"ldap://x\";",
            "org.apache.kafka.common.security.scram.ScramLoginModule required;",
            "org.apache.kafka.common.security.plain.PlainLoginModule optional;",
            &format!("{PLAIN} username=\"a\""),
            &format!("{PLAIN} username=\"a;"),
            &format!("{PLAIN} username;"),
            &format!("{PLAIN} serviceName=\"a\";"),
            &format!("{PLAIN} username=\"a\"; x"),
            &format!("{PLAIN} username=\"a\\"),
        ] {
            assert!(JaasConfig::parse(text, Mechanism::Plain).is_err(), "{text}");
        }
    }
}
