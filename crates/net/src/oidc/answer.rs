//! The response of a token endpoint.

use ottla_core::{
    base64::{self, Alphabet},
    config::sasl::oidc::{Grant, OidcSettings},
    secret::Secret,
    shown::quoted,
};
use serde_json::Value;

use super::{IssuedToken, TokenFailure, http::Answer};

/// The statuses after which the same request may succeed.
const TRANSIENT: [u16; 7] = [408, 425, 429, 500, 502, 503, 504];

/// Returns the token of a token endpoint's response. Error: why it lacks one.
pub fn token(answer: &Answer, settings: &OidcSettings, now_ms: i64) -> Result<IssuedToken, TokenFailure> {
    if answer.status != 200 {
        return Err(refusal(answer, settings));
    }
    let json: Value = serde_json::from_slice(answer.body.expose()).map_err(|_| {
        let kind = match &*answer.content_type {
            "" => "the response",
            kind => &format!("the response (Content-Type: {kind})"),
        };
        TokenFailure::permanent(format!(
            "{kind} is not JSON; is sasl.oauthbearer.token.endpoint.url the token endpoint?"
        ))
    })?;
    let is_assertion = matches!(settings.grant, Grant::JwtBearer(_));
    let text = match (&json["access_token"], &json["id_token"]) {
        (Value::String(token), _) => token,
        (_, Value::String(token)) if is_assertion => token,
        _ => {
            return Err(TokenFailure::permanent(
                "the response has no access_token; is sasl.oauthbearer.token.endpoint.url the token endpoint?",
            ));
        }
    };
    let claims = claims(text);
    let expires_ms = match &claims {
        Some(claims) => milliseconds(&claims["exp"]).ok_or_else(|| {
            TokenFailure::permanent("the token has no claim `exp` with the time of its end")
        })?,
        // A token without claims: its life is known only from the response.
        None => {
            milliseconds(&json["expires_in"]).and_then(|life| now_ms.checked_add(life)).ok_or_else(|| {
                TokenFailure::permanent(
                    "the token is not a JSON Web Token, and the response has no expires_in",
                )
            })?
        }
    };
    let principal = match &claims {
        Some(claims) => claims[&settings.subject_claim].as_str().map(quoted).ok_or_else(|| {
            TokenFailure::permanent(format!(
                "the token has no claim `{}` with the name of its subject (sasl.oauthbearer.sub.claim.name)",
                quoted(&settings.subject_claim)
            ))
        })?,
        None => String::new(),
    };
    if expires_ms <= now_ms {
        return Err(TokenFailure::permanent(
            "the token has already expired; compare the clocks of this machine and of the identity provider",
        ));
    }
    let value = Secret::from(&**text);
    Ok(IssuedToken { value, expires_ms, principal, extensions: settings.extensions.clone() })
}

/// Returns the claims of a JSON Web Token. Their signature is the broker's concern.
fn claims(token: &str) -> Option<Value> {
    let mut parts = token.split('.');
    let (_, payload, _, None) = (parts.next()?, parts.next()?, parts.next()?, parts.next()) else {
        return None;
    };
    let bytes = base64::decode(Alphabet::Url, payload.trim_end_matches('='))?;
    serde_json::from_slice(&bytes).ok().filter(Value::is_object)
}

/// Returns a number of seconds, which some providers write as text, in milliseconds.
fn milliseconds(seconds: &Value) -> Option<i64> {
    let seconds = match seconds {
        Value::String(text) => text.parse().ok()?,
        number => number.as_f64()?,
    };
    // Conversions from floating point saturate.
    Some((seconds * 1000.0) as i64)
}

/// Puts a status other than 200 into words.
fn refusal(answer: &Answer, settings: &OidcSettings) -> TokenFailure {
    let status = answer.status;
    let detail = error_text(answer, settings).map(|text| format!(": {text}")).unwrap_or_default();
    if TRANSIENT.contains(&status) {
        return TokenFailure::transient(format!("HTTP status {status}{detail}"));
    }
    let advice = match (status, &settings.grant) {
        (300..=399, _) => {
            let to = answer.location.as_deref().map(|url| format!(" to {url}")).unwrap_or_default();
            return TokenFailure::permanent(format!(
                "HTTP status {status}: redirects{to} are not followed; set sasl.oauthbearer.token.endpoint.url to the \
                 token endpoint itself"
            ));
        }
        (404 | 405, _) => "check sasl.oauthbearer.token.endpoint.url",
        (_, Grant::AzureImds(_)) => "check the query, and that the machine has an identity",
        (_, Grant::ClientCredentials { .. }) => {
            "check sasl.oauthbearer.client.id, sasl.oauthbearer.client.secret and sasl.oauthbearer.scope"
        }
        _ => "check the claims of the assertion, its key, and sasl.oauthbearer.scope",
    };
    TokenFailure::permanent(format!("HTTP status {status}{detail}; {advice}"))
}

/// Returns the error code and its description (RFC 6749, section 5.2), if they have no secret.
fn error_text(answer: &Answer, settings: &OidcSettings) -> Option<String> {
    let json: Value = serde_json::from_slice(answer.body.expose()).ok()?;
    let code = json["error"].as_str().filter(|code| code.len() <= 100)?;
    let text = match json["error_description"].as_str() {
        Some(description) => format!("{code} ({})", description.chars().take(300).collect::<String>()),
        None => code.to_owned(),
    };
    let body = String::from_utf8_lossy(answer.body.expose());
    let has_secret = settings.grant.secret().is_some_and(|secret| {
        let plain = String::from_utf8_lossy(secret.expose());
        let encoded = super::form::encode(secret.expose());
        body.contains(&*plain)
            || text.contains(&*plain)
            || body.contains(&*String::from_utf8_lossy(encoded.expose()))
    });
    // An assertion, a token or the header `Authorization`, echoed.
    let has_token = text.split(|letter: char| !letter.is_ascii_graphic()).any(|word| word.len() > 100);
    (!has_secret && !has_token && !body.contains("Basic ")).then(|| quoted(&text))
}
