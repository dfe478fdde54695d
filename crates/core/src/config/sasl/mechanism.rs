//! The SASL mechanisms.

use std::fmt;

use crate::hash::Hash;

/// A mechanism that this client has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// User name and password as they are.
    Plain,
    /// SCRAM-SHA-256 and SCRAM-SHA-512: proves the password without sending it, and checks that the broker knows it.
    Scram(Hash),
    /// A token.
    OauthBearer,
    /// A request to AWS, signed with the keys of an AWS identity.
    AwsMskIam,
    /// Kerberos.
    Gssapi,
}

impl Mechanism {
    /// Returns the mechanism of this name, as in `sasl.mechanisms`. Error: the reason why the name is invalid.
    pub fn parse(name: &str) -> Result<Self, &'static str> {
        match name {
            "PLAIN" => Ok(Self::Plain),
            "SCRAM-SHA-256" => Ok(Self::Scram(Hash::Sha256)),
            "SCRAM-SHA-512" => Ok(Self::Scram(Hash::Sha512)),
            "OAUTHBEARER" => Ok(Self::OauthBearer),
            "GSSAPI" => Ok(Self::Gssapi),
            "SCRAM-SHA-1" => Err("Kafka has no SCRAM-SHA-1; use SCRAM-SHA-256 or SCRAM-SHA-512"),
            "AWS_MSK_IAM" => Ok(Self::AwsMskIam),
            _ => Err(
                "no mechanism has this name; use PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, AWS_MSK_IAM or GSSAPI",
            ),
        }
    }

    /// Returns the name that is sent to brokers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::Scram(Hash::Sha256) => "SCRAM-SHA-256",
            Self::Scram(Hash::Sha512) => "SCRAM-SHA-512",
            Self::OauthBearer => "OAUTHBEARER",
            Self::AwsMskIam => "AWS_MSK_IAM",
            Self::Gssapi => "GSSAPI",
        }
    }

    /// Returns whether connections wait for a token, or for keys, that have a lifetime.
    pub const fn needs_token(self) -> bool {
        matches!(self, Self::OauthBearer | Self::AwsMskIam)
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_mechanisms_and_others_to_reasons() {
        for name in ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM", "GSSAPI"] {
            assert_eq!(Mechanism::parse(name).map(Mechanism::name), Ok(name));
        }
        for (name, reason) in [("SCRAM-SHA-1", "Kafka has no"), ("plain", "no mechanism")] {
            assert!(Mechanism::parse(name).unwrap_err().contains(reason), "{name}");
        }
    }
}
