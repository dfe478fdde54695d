//! Tokens with a signature that is checked with the public keys of an identity provider (JWKS, RFC 7517).
//!
//! # Pitfalls
//!
//! - The algorithm is that of the key. A token that chooses it could ask for none
//!   (`unsigned_altered_and_foreign_tokens_are_refused`).

use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde_json::{Map, Value};

use super::{Accepted, base64};

/// The public keys, and what tokens have to claim.
#[derive(Clone, Debug, Default)]
pub(super) struct Jwks {
    pub keys: Vec<Key>,
    pub issuer: Option<String>,
    pub audience: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Key {
    id: Option<String>,
    public: Public,
}

#[derive(Clone, Debug)]
enum Public {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// An uncompressed point of P-256.
    P256(Vec<u8>),
}

impl Jwks {
    /// Reads a set of keys, of which those with other algorithms and uses are skipped. Error: the reason why the set is
    /// invalid.
    pub fn parse(text: &str) -> Result<Self, String> {
        let set: Value =
            serde_json::from_str(text).map_err(|error| format!("the key set is not JSON: {error}"))?;
        let keys = set.get("keys").and_then(Value::as_array).ok_or("the key set has no array `keys`")?;
        let keys: Vec<_> = keys.iter().filter_map(Key::parse).collect();
        if keys.is_empty() {
            return Err("the key set has no RSA key and no EC key with P-256 for signatures".to_owned());
        }
        Ok(Self { keys, ..Self::default() })
    }

    /// Returns the subject of a token, if it is valid at this time.
    pub fn check(&self, token: &str, unix_ms: i64) -> Option<Accepted> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let (header, signature) = (object(header)?, base64::decode(signature)?);
        let (algorithm, id) = (header.get("alg")?.as_str()?, header.get("kid").and_then(Value::as_str));
        let mut keys = self.keys.iter().filter(|key| id.is_none() || key.id.as_deref() == id);
        if header.contains_key("crit") || !keys.any(|key| key.public.verifies(algorithm, signed, &signature))
        {
            return None;
        }
        let claims = object(claims)?;
        let millis =
            |name: &str| claims.get(name).map(|seconds| seconds.as_f64().map(|s| (s * 1000.0) as i64));
        let expires_ms = millis("exp")??;
        let is_early = match millis("nbf") {
            Some(not_before) => not_before? > unix_ms,
            None => false,
        };
        let is = |claim: &Value, expected: &str| claim.as_str() == Some(expected);
        let is_of_issuer =
            self.issuer.as_ref().is_none_or(|issuer| claims.get("iss").is_some_and(|it| is(it, issuer)));
        let is_for_us = self.audience.as_ref().is_none_or(|audience| match claims.get("aud") {
            Some(Value::Array(list)) => list.iter().any(|it| is(it, audience)),
            Some(one) => is(one, audience),
            None => false,
        });
        let principal = claims.get("sub")?.as_str()?.to_owned();
        let is_valid =
            expires_ms > unix_ms && !is_early && is_of_issuer && is_for_us && !principal.is_empty();
        is_valid.then_some(Accepted { principal, expires_ms: Some(expires_ms) })
    }
}

impl Key {
    fn parse(key: &Value) -> Option<Self> {
        let text = |name: &str| key.get(name).and_then(Value::as_str);
        if text("use").is_some_and(|used| used != "sig") {
            return None;
        }
        let bytes = |name: &str| text(name).and_then(base64::decode);
        let (public, algorithm) = match text("kty")? {
            "RSA" => (Public::Rsa { modulus: bytes("n")?, exponent: bytes("e")? }, "RS256"),
            "EC" if text("crv") == Some("P-256") => {
                (Public::P256([vec![4], bytes("x")?, bytes("y")?].concat()), "ES256")
            }
            _ => return None,
        };
        let is_ours = text("alg").is_none_or(|it| it == algorithm);
        is_ours.then(|| Self { id: text("kid").map(str::to_owned), public })
    }
}

impl Public {
    fn verifies(&self, algorithm: &str, signed: &str, signature: &[u8]) -> bool {
        let signed = signed.as_bytes();
        match self {
            Self::Rsa { modulus: n, exponent: e } => {
                let key = RsaPublicKeyComponents { n, e };
                algorithm == "RS256" && key.verify(&RSA_PKCS1_2048_8192_SHA256, signed, signature).is_ok()
            }
            Self::P256(point) => {
                let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
                algorithm == "ES256" && key.verify(signed, signature).is_ok()
            }
        }
    }
}

/// Decodes a part of a token.
fn object(part: &str) -> Option<Map<String, Value>> {
    match serde_json::from_slice(&base64::decode(part)?) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use ring::{
        rand::SystemRandom,
        signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
    };
    use serde_json::json;

    use super::*;

    const NOW_MS: i64 = 1_700_000_000_000;

    struct Issuer(EcdsaKeyPair, SystemRandom);

    impl Issuer {
        fn new() -> Self {
            let random = SystemRandom::new();
            let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
            let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random);
            Self(pair.unwrap(), random)
        }

        fn jwks(&self) -> String {
            let point = self.0.public_key().as_ref();
            let (x, y) = (base64::encode(&point[1..33]), base64::encode(&point[33..]));
            json!({ "keys": [
                { "kty": "oct", "k": "AAAA" },
                { "kty": "EC", "crv": "P-256", "kid": "k1", "use": "sig", "x": x, "y": y },
            ] })
            .to_string()
        }

        fn token(&self, header: &Value, claims: &Value) -> String {
            let part = |value: &Value| base64::encode(value.to_string().as_bytes());
            let signed = format!("{}.{}", part(header), part(claims));
            let signature = self.0.sign(&self.1, signed.as_bytes()).unwrap();
            format!("{signed}.{}", base64::encode(signature.as_ref()))
        }
    }

    fn header() -> Value {
        json!({ "alg": "ES256", "kid": "k1" })
    }

    fn claims() -> Value {
        json!({ "sub": "alice", "exp": 1_700_000_060, "nbf": 1_700_000_000, "iss": "idp", "aud": ["other", "kafka"] })
    }

    fn with(mut object: Value, name: &str, value: Value) -> Value {
        object[name] = value;
        object
    }

    #[test]
    fn signed_token_names_its_subject_until_its_end() {
        let issuer = Issuer::new();
        let mut jwks = Jwks::parse(&issuer.jwks()).unwrap();
        let accepted = Accepted { principal: "alice".to_owned(), expires_ms: Some(NOW_MS + 60_000) };
        assert_eq!(jwks.check(&issuer.token(&header(), &claims()), NOW_MS).as_ref(), Some(&accepted));
        assert_eq!(
            jwks.check(&issuer.token(&json!({ "alg": "ES256" }), &claims()), NOW_MS).as_ref(),
            Some(&accepted)
        );
        (jwks.issuer, jwks.audience) = (Some("idp".to_owned()), Some("kafka".to_owned()));
        assert_eq!(jwks.check(&issuer.token(&header(), &claims()), NOW_MS).as_ref(), Some(&accepted));
        for (name, value) in [
            ("exp", json!(1_700_000_000)),
            ("exp", json!("soon")),
            ("exp", Value::Null),
            ("nbf", json!(1_700_000_001)),
            ("nbf", json!("x")),
            ("iss", json!("evil")),
            ("iss", Value::Null),
            ("aud", json!("other")),
            ("aud", json!(["other"])),
            ("aud", Value::Null),
            ("sub", json!("")),
            ("sub", json!(1)),
        ] {
            let token = issuer.token(&header(), &with(claims(), name, value.clone()));
            assert_eq!(jwks.check(&token, NOW_MS), None, "{name} {value}");
        }
    }

    #[test]
    fn unsigned_altered_and_foreign_tokens_are_refused() {
        let issuer = Issuer::new();
        let jwks = Jwks::parse(&issuer.jwks()).unwrap();
        let good = issuer.token(&header(), &claims());
        let (signed, signature) = good.rsplit_once('.').unwrap();
        let forged = issuer.token(&header(), &with(claims(), "sub", json!("bob")));
        let (forged, _) = forged.rsplit_once('.').unwrap();
        for (case, token) in [
            ("foreign key", Issuer::new().token(&header(), &claims())),
            ("other claims", format!("{forged}.{signature}")),
            ("no signature", format!("{signed}.")),
            ("no algorithm", issuer.token(&json!({ "alg": "none", "kid": "k1" }), &claims())),
            ("other algorithm", issuer.token(&json!({ "alg": "RS256", "kid": "k1" }), &claims())),
            ("HMAC with the public key", issuer.token(&json!({ "alg": "HS256", "kid": "k1" }), &claims())),
            ("unknown key", issuer.token(&json!({ "alg": "ES256", "kid": "k2" }), &claims())),
            ("critical extension", issuer.token(&with(header(), "crit", json!(["x"])), &claims())),
            ("no token", "x.y.z".to_owned()),
            ("empty", String::new()),
        ] {
            assert_eq!(jwks.check(&token, NOW_MS), None, "{case}");
        }
    }

    #[test]
    fn key_sets_without_usable_keys_are_refused() {
        for set in [
            "",
            "{}",
            r#"{"keys":[]}"#,
            r#"{"keys":[{"kty":"oct","k":"AAAA"}]}"#,
            r#"{"keys":[{"kty":"RSA","use":"enc","n":"AQAB","e":"AQAB"}]}"#,
            r#"{"keys":[{"kty":"RSA","alg":"RS512","n":"AQAB","e":"AQAB"}]}"#,
            r#"{"keys":[{"kty":"EC","crv":"P-521","x":"AA","y":"AA"}]}"#,
        ] {
            assert!(Jwks::parse(set).is_err(), "{set}");
        }
    }
}
