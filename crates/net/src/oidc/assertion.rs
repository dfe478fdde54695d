//! Assertions (RFC 7523): JSON Web Tokens that the client signs to get a token for them.

use ottla_core::{
    base64::{self, Alphabet},
    config::sasl::oidc::{Algorithm, AssertionKey, AssertionSettings},
    secret::Secret,
};
use rustls::{SignatureScheme, pki_types::PrivateKeyDer};
use serde_json::{Map, Value, json};

use crate::{
    credentials::{
        self,
        der::{Der, tag},
    },
    tls,
};

const MAX_TEMPLATE_BYTES: usize = 1 << 20;

/// Returns an assertion of this time. Error: what is wrong with which property.
pub fn sign(settings: &AssertionSettings, now_seconds: i64) -> Result<Secret, String> {
    let (mut header, mut payload) = match &settings.template {
        Some(path) => template(path)?,
        None => (Map::new(), Map::new()),
    };
    header.insert("alg".to_owned(), json!(settings.algorithm.name()));
    header.insert("typ".to_owned(), json!("JWT"));
    for (name, value) in [("sub", &settings.subject), ("iss", &settings.issuer), ("aud", &settings.audience)]
    {
        if let Some(value) = value {
            payload.insert(name.to_owned(), json!(value));
        }
    }
    payload.insert("iat".to_owned(), json!(now_seconds));
    payload.insert("exp".to_owned(), json!(now_seconds.saturating_add(settings.life_seconds)));
    payload.insert("nbf".to_owned(), json!(now_seconds.saturating_sub(settings.valid_before_seconds)));
    if settings.has_id {
        payload.insert("jti".to_owned(), json!(unique_id()?));
    }
    let encode =
        |part: Map<String, Value>| base64::encode(Alphabet::Url, Value::Object(part).to_string().as_bytes());
    let signed = format!("{}.{}", encode(header), encode(payload));
    let signature = signature(settings, signed.as_bytes())?;
    let signature = base64::encode(Alphabet::Url, &signature);
    Ok(Secret::concat(&[signed.as_bytes(), b".", signature.as_bytes()]))
}

type Template = (Map<String, Value>, Map<String, Value>);

fn template(path: &str) -> Result<Template, String> {
    let name = "sasl.oauthbearer.assertion.jwt.template.file";
    let wrong = |why: &str| format!("{name}: \"{path}\" {why}");
    let bytes = tls::read_file(name, path).map_err(|error| error.context().detail.clone())?;
    if bytes.len() > MAX_TEMPLATE_BYTES {
        return Err(wrong("has more than 1 MiB"));
    }
    let expected = "must be JSON with the objects `header` and `payload`";
    let mut json: Value = serde_json::from_slice(bytes.expose()).map_err(|_| wrong(expected))?;
    let mut part = |name: &str| match json.get_mut(name).map(Value::take) {
        None => Ok(Map::new()),
        Some(Value::Object(part)) => Ok(part),
        Some(_) => Err(wrong(expected)),
    };
    let parts = (part("header")?, part("payload")?);
    if !json.is_object() {
        return Err(wrong(expected));
    }
    Ok(parts)
}

/// Returns a random UUID.
fn unique_id() -> Result<String, String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| format!("the system has no random numbers: {error}"))?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = |part: &[u8]| part.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    Ok([&bytes[..4], &bytes[4..6], &bytes[6..8], &bytes[8..10], &bytes[10..]].map(hex).join("-"))
}

fn signature(settings: &AssertionSettings, message: &[u8]) -> Result<Vec<u8>, String> {
    let file = "sasl.oauthbearer.assertion.private.key.file";
    let (name, bytes) = match &settings.key {
        AssertionKey::File(path) => {
            let bytes = tls::read_file(file, path).map_err(|error| error.context().detail.clone())?;
            (format!("{file}: \"{path}\""), bytes)
        }
        AssertionKey::Pem(text) => ("sasl.oauthbearer.assertion.private.key.pem".to_owned(), text.clone()),
    };
    let key = credentials::private_key(bytes.expose(), settings.passphrase.as_ref())
        .map_err(|why| why.replace("ssl.key.password", "sasl.oauthbearer.assertion.private.key.passphrase"))
        .map_err(|why| format!("{name}: {why}"))?;
    let der = PrivateKeyDer::try_from(key.expose().to_vec())
        .map_err(|_| format!("{name}: the key is neither PKCS#8 nor PKCS#1 nor SEC1"))?;
    let (scheme, kind) = match settings.algorithm {
        Algorithm::Rs256 => (SignatureScheme::RSA_PKCS1_SHA256, "an RSA key of 2048 to 8192 bits"),
        Algorithm::Es256 => (SignatureScheme::ECDSA_NISTP256_SHA256, "an EC key with the curve P-256"),
    };
    let wrong_kind =
        || format!("{name}: sasl.oauthbearer.assertion.algorithm={} needs {kind}", settings.algorithm.name());
    let key = tls::default_provider().key_provider.load_private_key(der).map_err(|_| wrong_kind())?;
    let signer = key.choose_scheme(&[scheme]).ok_or_else(wrong_kind)?;
    let signature = signer.sign(message).map_err(|error| format!("{name}: can't sign: {error}"))?;
    match settings.algorithm {
        Algorithm::Rs256 => Ok(signature),
        Algorithm::Es256 => {
            two_numbers(&signature).map_err(|why| format!("{name}: the signature is malformed: {why}"))
        }
    }
}

/// Converts an ECDSA signature from DER to the form of JSON Web Signatures: two numbers of 32 bytes.
fn two_numbers(der: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut numbers = Der::new(der).inside(tag::SEQUENCE)?;
    let mut out = Vec::with_capacity(64);
    for _ in 0..2 {
        let digits = numbers.expect(tag::INTEGER)?;
        let digits = &digits[digits.iter().take_while(|digit| **digit == 0).count()..];
        out.resize(out.len() + 32usize.checked_sub(digits.len()).ok_or("a number is too large")?, 0);
        out.extend_from_slice(digits);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_signature_have_32_bytes() {
        let short = [0x30, 0x08, 2, 1, 5, 2, 3, 0, 0x80, 1];
        let raw = two_numbers(&short).unwrap();
        assert_eq!((raw.len(), raw[31], raw[62], raw[63]), (64, 5, 0x80, 1));
        assert_eq!(raw.iter().filter(|byte| **byte != 0).count(), 3);
        let mut long = vec![0x30, 37, 2, 33];
        long.extend([1; 33]);
        long.extend([2, 0]);
        for malformed in [&[][..], &[0x30, 0], &short[..8], &long] {
            assert!(two_numbers(malformed).is_err(), "{malformed:?}");
        }
    }

    #[test]
    fn unique_ids_are_random_uuids() {
        let (one, other) = (unique_id().unwrap(), unique_id().unwrap());
        assert_ne!(one, other);
        assert_eq!((one.len(), one.as_bytes()[14]), (36, b'4'));
    }
}
