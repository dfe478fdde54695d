//! Who the client is: basic authentication, a token, or tokens of an identity provider.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{
    config::Secret,
    http::{Exchange, Method, Request},
};
use crate::{Error, Result, error::shortened};

/// The credentials of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Auth {
    /// None.
    #[default]
    None,
    /// A user and a password.
    Basic {
        /// The user, or the key of an API key.
        user: String,
        /// The password, or the secret of an API key.
        password: Secret,
    },
    /// A token.
    Bearer(Secret),
    /// Tokens of an identity provider, by the grant of client credentials.
    OAuth(OAuth),
}

/// Where tokens come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OAuth {
    /// The token endpoint of the identity provider.
    pub token_endpoint: String,
    /// The client's ID.
    pub client_id: String,
    /// The client's secret.
    pub client_secret: Secret,
    /// The scope, if the provider wants one.
    pub scope: Option<String>,
    /// The logical cluster of Confluent Cloud, sent as `target-sr-cluster`.
    pub logical_cluster: Option<String>,
    /// The identity pool of Confluent Cloud, sent as `Confluent-Identity-Pool-Id`.
    pub identity_pool: Option<String>,
}

/// Makes the headers of requests, and keeps the token.
#[derive(Debug)]
pub struct Authenticator {
    auth: Auth,
    token: Mutex<Option<(Secret, Instant)>>,
}

/// The part of a token's time after which the next one is fetched, in percent.
const LIFETIME_PERCENT: u32 = 80;
/// The time of a token that does not say it.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(300);

impl Authenticator {
    pub fn new(auth: Auth) -> Self {
        Self { auth, token: Mutex::new(None) }
    }

    /// Returns the headers of a request.
    pub fn headers(&self, http: &dyn Exchange, timeout: Duration) -> Result<Vec<(String, Secret)>> {
        let authorization = match &self.auth {
            Auth::None => return Ok(Vec::new()),
            Auth::Basic { user, password } => basic(user, password),
            Auth::Bearer(token) => format!("Bearer {}", token.expose()),
            Auth::OAuth(oauth) => format!("Bearer {}", self.token(oauth, http, timeout)?.expose()),
        };
        let mut headers = vec![("Authorization".to_owned(), authorization.into())];
        if let Auth::OAuth(oauth) = &self.auth {
            let further = [
                ("target-sr-cluster", &oauth.logical_cluster),
                ("Confluent-Identity-Pool-Id", &oauth.identity_pool),
            ];
            for (name, value) in further {
                headers.extend(value.iter().map(|it| (name.to_owned(), it.as_str().into())));
            }
        }
        Ok(headers)
    }

    /// Forgets the token, which the registry did not accept. Returns true if another may be accepted.
    pub fn renew(&self) -> bool {
        self.token.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }

    /// Returns the token; threads that need one at the same time wait for one request.
    fn token(&self, oauth: &OAuth, http: &dyn Exchange, timeout: Duration) -> Result<Secret> {
        let mut kept = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((token, until)) = kept.as_ref()
            && Instant::now() < *until
        {
            return Ok(token.clone());
        }
        let (token, lifetime) = fetch(oauth, http, timeout)?;
        *kept = Some((token.clone(), Instant::now() + lifetime * LIFETIME_PERCENT / 100));
        Ok(token)
    }
}

fn basic(user: &str, password: &Secret) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.expose())))
}

fn fetch(oauth: &OAuth, http: &dyn Exchange, timeout: Duration) -> Result<(Secret, Duration)> {
    let failed = |why: String| Error::Token { endpoint: oauth.token_endpoint.clone(), why: shortened(&why) };
    let mut form = "grant_type=client_credentials".to_owned();
    if let Some(scope) = &oauth.scope {
        form.push_str("&scope=");
        form.push_str(&crate::percent::encoded(scope));
    }
    let request = Request {
        method: Method::Post,
        url: oauth.token_endpoint.clone(),
        headers: vec![
            ("Authorization".to_owned(), basic(&oauth.client_id, &oauth.client_secret).into()),
            ("Content-Type".to_owned(), "application/x-www-form-urlencoded".into()),
            ("Accept".to_owned(), "application/json".into()),
        ],
        body: Some(form.into_bytes()),
        timeout,
    };
    let answer = http.exchange(&request).map_err(&failed)?;
    let body: Value = serde_json::from_slice(&answer.body)
        .map_err(|_| failed(format!("status {}, and the body is not JSON", answer.status)))?;
    let text = |key: &str| body.get(key).and_then(Value::as_str);
    match text("access_token") {
        Some(token) if answer.status == 200 => {
            let seconds = body.get("expires_in").and_then(Value::as_u64);
            Ok((token.into(), seconds.map_or(DEFAULT_LIFETIME, Duration::from_secs)))
        }
        _ => Err(failed(format!(
            "status {}, {}: {}",
            answer.status,
            text("error").unwrap_or("no access_token"),
            text("error_description").unwrap_or("check the client's ID, secret and scope")
        ))),
    }
}
