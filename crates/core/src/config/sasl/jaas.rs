//! `sasl.jaas.config` of the Java client: the options of five login modules, by name. No code is loaded.
//!
//! The text is read as Java's client reads it: `MODULE FLAG name=value ...;`, where a value may be quoted, white space and line
//! ends separate words, `//` and `/* */` are comments, and options that a module does not know have no effect.

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
    /// The option `oauth.token.endpoint.uri` of Strimzi's login handler.
    pub token_endpoint: Option<String>,
    /// The option `unsecuredLoginStringClaim_sub` of OAuthBearerLoginModule: the principal of a token for tests.
    pub unsecured_principal: Option<String>,
    /// The option `awsProfileName` of IAMLoginModule.
    pub aws_profile: Option<String>,
    /// The options `extension_NAME` of OAuthBearerLoginModule.
    pub extensions: Vec<(String, String)>,
    /// The options of Krb5LoginModule.
    pub kerberos: JaasKerberos,
}

/// The options of Krb5LoginModule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JaasKerberos {
    /// The option `keyTab`, if `useKeyTab` is `true`.
    pub key_table: Option<String>,
    /// The option `principal`.
    pub principal: Option<String>,
    /// The option `serviceName`.
    pub service: Option<String>,
}

/// Shows nothing.
impl fmt::Debug for JaasConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JaasConfig")
    }
}

/// The login modules, by their class without its package, which is another one in libraries that contain a copy of Kafka's.
/// Those of PLAIN and SCRAM serve both.
const MODULES: [(&str, &[&str]); 5] = [
    ("PlainLoginModule", &["PLAIN", "SCRAM"]),
    ("ScramLoginModule", &["SCRAM", "PLAIN"]),
    ("OAuthBearerLoginModule", &["OAUTHBEARER"]),
    ("IAMLoginModule", &["AWS_MSK_IAM"]),
    ("Krb5LoginModule", &["GSSAPI"]),
];

const FLAGS: [&str; 4] = ["required", "requisite", "sufficient", "optional"];

impl JaasConfig {
    /// Parses the value. Error: what is wrong, without values.
    pub fn parse(text: &str, mechanism: Mechanism) -> Result<Self, &'static str> {
        let mut tokens = tokens(text)?.into_iter();
        let module = match tokens.next() {
            Some(Token::Word(word)) => word,
            _ => return Err("it must begin with the class of a login module"),
        };
        let class = module.rsplit('.').next().unwrap_or_default();
        let (_, mechanisms) = MODULES.iter().find(|(name, _)| *name == class).ok_or(
            "it must begin with PlainLoginModule, ScramLoginModule or OAuthBearerLoginModule of Kafka, IAMLoginModule of MSK, or \
             Krb5LoginModule",
        )?;
        if !mechanisms.iter().any(|of| mechanism.name().starts_with(of)) {
            return Err("its login module belongs to another mechanism than sasl.mechanism");
        }
        match tokens.next() {
            Some(Token::Word(flag)) if FLAGS.iter().any(|known| known.eq_ignore_ascii_case(&flag)) => {}
            _ => return Err("the word `required` must follow the login module"),
        }
        let config = Self::options(&mut tokens)?;
        match tokens.next() {
            None => Ok(config),
            Some(_) => Err("text follows its semicolon, and a client has one login module"),
        }
    }

    /// Reads the options up to the semicolon.
    fn options(tokens: &mut impl Iterator<Item = Token>) -> Result<Self, &'static str> {
        let mut config = Self::default();
        let mut uses_key_table = false;
        loop {
            let name = match tokens.next() {
                Some(Token::Word(name)) => name,
                Some(Token::Semicolon) => break,
                Some(Token::Equals) => return Err("an option must be name=\"value\""),
                None => return Err("it must end with a semicolon, and quotes must be closed"),
            };
            let (Some(Token::Equals), Some(Token::Word(value))) = (tokens.next(), tokens.next()) else {
                return Err("an option must be name=\"value\"");
            };
            match name.as_str() {
                "useKeyTab" => uses_key_table = value.eq_ignore_ascii_case("true"),
                name => config.set(name, &value)?,
            }
        }
        if !uses_key_table {
            config.kerberos.key_table = None;
        }
        Ok(config)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), &'static str> {
        let text = || Some(value.to_owned());
        match name {
            "username" => self.username = text(),
            "password" => self.password = Some(Secret::from(value)),
            "tokenauth" => self.is_delegation_token = value.eq_ignore_ascii_case("true"),
            "clientId" | "oauth.client.id" => self.client_id = text(),
            "clientSecret" | "oauth.client.secret" => self.client_secret = Some(Secret::from(value)),
            "scope" | "oauth.scope" => self.scope = text(),
            "oauth.token.endpoint.uri" => self.token_endpoint = text(),
            "unsecuredLoginStringClaim_sub" => self.unsecured_principal = text(),
            "awsProfileName" => self.aws_profile = text(),
            "awsRoleArn" => {
                return Err("roles of AWS (awsRoleArn) are not supported; name a profile with keys");
            }
            "keyTab" => self.kerberos.key_table = text(),
            "principal" => self.kerberos.principal = text(),
            "serviceName" => self.kerberos.service = text(),
            _ => {
                if let Some(name) = name.strip_prefix("extension_") {
                    self.extensions.push((name.to_owned(), value.to_owned()));
                }
            }
        }
        Ok(())
    }
}

/// A word may be a secret: it is overwritten when it is dropped.
enum Token {
    Word(Zeroizing<String>),
    Equals,
    Semicolon,
}

/// Splits the text into tokens. A word that grows leaves no copy behind, because it has room for the whole text.
fn tokens(text: &str) -> Result<Vec<Token>, &'static str> {
    let room = || Zeroizing::new(String::with_capacity(text.len()));
    let (mut tokens, mut word) = (Vec::new(), None::<Zeroizing<String>>);
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let separator = match letter {
            '=' => Some(Token::Equals),
            ';' => Some(Token::Semicolon),
            _ => None,
        };
        if separator.is_some() || letter.is_whitespace() {
            tokens.extend(word.take().map(Token::Word));
            tokens.extend(separator);
        } else if let Some(behind) = behind_comment(rest) {
            tokens.extend(word.take().map(Token::Word));
            rest = behind;
            continue;
        } else if matches!(letter, '"' | '\'') {
            rest = quoted(&rest[1..], letter, word.get_or_insert_with(room))?;
            continue;
        } else {
            word.get_or_insert_with(room).push(letter);
        }
        rest = &rest[letter.len_utf8()..];
    }
    tokens.extend(word.map(Token::Word));
    Ok(tokens)
}

/// Returns the text behind the comment with which a text begins, if there is one.
fn behind_comment(text: &str) -> Option<&str> {
    if let Some(comment) = text.strip_prefix("//") {
        return Some(comment.find(['\n', '\r']).map_or("", |end| &comment[end..]));
    }
    let comment = text.strip_prefix("/*")?;
    Some(comment.split_once("*/").map_or("", |(_, behind)| behind))
}

/// Appends quoted text to a word, with the escapes of Java, and returns the text behind the quote.
fn quoted<'a>(text: &'a str, quote: char, word: &mut String) -> Result<&'a str, &'static str> {
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            _ if letter == quote => return Ok(letters.as_str()),
            '\\' => match letters.next().ok_or("it ends with a backslash")? {
                'a' => word.push('\u{7}'),
                'b' => word.push('\u{8}'),
                'f' => word.push('\u{c}'),
                'n' => word.push('\n'),
                'r' => word.push('\r'),
                't' => word.push('\t'),
                'v' => word.push('\u{b}'),
                first @ '0'..='7' => {
                    let most = if first <= '3' { 3 } else { 2 };
                    let mut number = first.to_digit(8).unwrap_or(0);
                    for _ in 1..most {
                        let Some(digit) = letters.as_str().chars().next().and_then(|it| it.to_digit(8))
                        else {
                            break;
                        };
                        number = number * 8 + digit;
                        letters.next();
                    }
                    word.extend(char::from_u32(number));
                }
                other => word.push(other),
            },
            letter => word.push(letter),
        }
    }
    Err("it must end with a semicolon, and quotes must be closed")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "org.apache.kafka.common.security.plain.PlainLoginModule required";
    const KERBEROS: &str = "com.sun.security.auth.module.Krb5LoginModule";

    fn parsed(text: &str, mechanism: &str) -> Result<JaasConfig, &'static str> {
        JaasConfig::parse(text, Mechanism::parse(mechanism).expect("a mechanism"))
    }

    fn credentials(options: &str) -> (String, String) {
        let config =
            parsed(&format!("{PLAIN} {options}"), "PLAIN").unwrap_or_else(|why| panic!("{options}: {why}"));
        let password = config.password.expect("a password");
        (config.username.expect("a user name"), String::from_utf8(password.expose().to_vec()).expect("text"))
    }

    #[test]
    fn options_of_kafka_modules_are_read() {
        let (user, password) = credentials("username=\"alice\"\n  password='a \\'b\\';=c' ;");
        assert_eq!((&*user, &*password), ("alice", "a 'b';=c"));
        let text = "org.apache.kafka.common.security.scram.ScramLoginModule required username=\"id\" \
                    password=\"x\" tokenauth=\"true\";";
        assert!(parsed(text, "SCRAM-SHA-512").is_ok_and(|config| config.is_delegation_token));
    }

    #[test]
    fn every_form_that_java_reads_is_read() {
        for options in [
            "username=alice password=secret;",
            "username = alice\n\tpassword\n=\n\"secret\"\n;\n",
            "username='alice' password=\"s\\145cret\" serviceName=\"kafka\" debug=true;",
            "username=alice // the user\r\n /* and\nits */ password=secret;",
            "username=\"bob\" username=\"alice\" password=\"secret\";",
        ] {
            assert_eq!(credentials(options), ("alice".to_owned(), "secret".to_owned()), "{options}");
        }
        assert_eq!(credentials("username=a password=\"//\\t\\101\\\\\\\"\\q\\08\";").1, "//\tA\\\"q\08");
        for flag in ["required", "REQUIRED", "requisite", "Sufficient", "OPTIONAL"] {
            let text = format!(
                "kafkashaded.org.apache.kafka.common.security.plain.PlainLoginModule {flag} username=a;"
            );
            assert!(parsed(&text, "PLAIN").is_ok(), "{text}");
        }
        let scram = "org.apache.kafka.common.security.scram.ScramLoginModule required username=a password=b;";
        assert!(parsed(scram, "PLAIN").is_ok(), "Java's modules pass the same credentials");
    }

    #[test]
    fn options_of_kerberos_are_read() {
        let options = "useKeyTab=true storeKey=true keyTab=\"/etc/kafka/orders.keytab\" principal=\"orders@EXAMPLE.COM\" \
                       serviceName=\"kafka\"";
        let config = parsed(&format!("{KERBEROS} required {options};"), "GSSAPI").expect("it is valid");
        let expected = JaasKerberos {
            key_table: Some("/etc/kafka/orders.keytab".to_owned()),
            principal: Some("orders@EXAMPLE.COM".to_owned()),
            service: Some("kafka".to_owned()),
        };
        assert_eq!(config.kerberos, expected);
        let cache = format!("{KERBEROS} required useTicketCache=true keyTab=\"/k\";");
        assert_eq!(parsed(&cache, "GSSAPI").expect("it is valid").kerberos, JaasKerberos::default());
        assert!(parsed(&cache, "PLAIN").is_err());
    }

    #[test]
    fn other_modules_and_malformed_text_are_refused() {
        for text in [
            "",
            ";",
            "com.sun.security.auth.module.JndiLoginModule required user.provider.url=\"ldap://x\";",
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
            "org.apache.kafka.common.security.plain.PlainLoginModule username=\"a\";",
            "org.apache.kafka.common.security.plain.PlainLoginModule always;",
            &format!("{PLAIN} username=\"a\""),
            &format!("{PLAIN} username=\"a;"),
            &format!("{PLAIN} username;"),
            &format!("{PLAIN} username=;"),
            &format!("{PLAIN} =\"a\";"),
            &format!("{PLAIN} username=\"a\"; x"),
            &format!("{PLAIN} username=\"a\"; {PLAIN} username=\"b\";"),
            &format!("{PLAIN} username=\"a\\"),
        ] {
            assert!(parsed(text, "PLAIN").is_err(), "{text}");
        }
        let role =
            "software.amazon.msk.auth.iam.IAMLoginModule required awsRoleArn=\"arn:aws:iam::1:role/x\";";
        assert!(parsed(role, "AWS_MSK_IAM").is_err(), "another identity would be used");
    }
}
