//! Delegation tokens (KIP-48): creates, renews, expires and describes them. A token lets others authenticate as its owner
//! until it expires.

use std::time::Duration;

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        create_delegation_token::{CreateDelegationTokenRequest, request::Renewer},
        describe_delegation_token::{DescribeDelegationTokenRequest, request::Owner},
        expire_delegation_token::ExpireDelegationTokenRequest,
        renew_delegation_token::RenewDelegationTokenRequest,
    },
};

use super::{AdminCall, check, one_result::OneResult};
use crate::{completion::Completion, contract::route::Route, error::Error, secret::Secret};

/// A user, as brokers name it: a type, usually `User`, and a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Principal {
    /// The type.
    pub kind: String,
    /// The name.
    pub name: String,
}

impl Principal {
    /// Creates the principal of a user.
    pub fn user(name: impl Into<String>) -> Self {
        Self { kind: "User".to_owned(), name: name.into() }
    }

    /// Parses a principal such as `User:alice`.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, name) = text.split_once(':')?;
        let is_complete = !kind.is_empty() && !name.is_empty();
        is_complete.then(|| Self { kind: kind.to_owned(), name: name.to_owned() })
    }
}

impl std::fmt::Display for Principal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.kind, self.name)
    }
}

/// A delegation token to create.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewDelegationToken {
    /// The owner, if it is not the user of this client. Needs Kafka 3.3 or later.
    pub owner: Option<Principal>,
    /// The users that may renew the token besides its owner.
    pub renewers: Vec<Principal>,
    /// The longest life of the token, with renewals; by default the broker's.
    pub max_lifetime: Option<Duration>,
}

/// A delegation token. Clients authenticate with its ID as the user name and [`DelegationToken::password`] as the password of
/// SCRAM, with `sasl.scram.extensions` or the JAAS option `tokenauth=true`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DelegationToken {
    /// The token ID.
    pub token_id: String,
    /// The token's HMAC, which is the secret.
    pub hmac: Secret,
    /// The owner.
    pub owner: Principal,
    /// The user that created the token, if the broker reports it.
    pub requester: Option<Principal>,
    /// The users that may renew the token; empty right after creation.
    pub renewers: Vec<Principal>,
    /// When the token was created, in milliseconds since 1970.
    pub issued: i64,
    /// When the token expires unless it is renewed.
    pub expires: i64,
    /// When the token expires at the latest.
    pub expires_at_the_latest: i64,
}

impl DelegationToken {
    /// Returns the HMAC as the password of SCRAM: base64.
    pub fn password(&self) -> Secret {
        use crate::base64::{Alphabet, encode};
        Secret::from(&*encode(Alphabet::Standard, self.hmac.expose()))
    }
}

/// Returns the HMAC of a token from its base64; `None` if the text is not base64.
pub fn decode_hmac(base64: &Secret) -> Option<Secret> {
    use crate::base64::{Alphabet, decode};
    let text = std::str::from_utf8(base64.expose()).ok()?;
    decode(Alphabet::Standard, text).map(Secret::new)
}

/// The first version with an owner other than the requester (KIP-373).
const FIRST_WITH_OWNER: i16 = 3;

fn requester(kind: String, name: String) -> Option<Principal> {
    (!name.is_empty()).then_some(Principal { kind, name })
}

/// Creates a token.
pub fn create_token(
    token: NewDelegationToken,
    timeout: Duration,
    done: Completion<Result<DelegationToken, Error>>,
) -> AdminCall {
    let first = if token.owner.is_some() { FIRST_WITH_OWNER } else { 0 };
    let request = move |_, _| {
        let owner = token.owner.clone();
        let (kind, name) = owner.map(|owner| (owner.kind, owner.name)).unzip();
        let renewers = token.renewers.iter().cloned();
        CreateDelegationTokenRequest {
            owner_principal_type: kind,
            owner_principal_name: name,
            renewers: renewers
                .map(|one| Renewer { principal_type: one.kind, principal_name: one.name })
                .collect(),
            max_lifetime_ms: wire_period(token.max_lifetime),
        }
    };
    let call = OneResult::new(Route::Controller, request, |response, _| {
        check(response.error_code, None)?;
        Ok(DelegationToken {
            token_id: response.token_id,
            hmac: Secret::new(response.hmac),
            owner: Principal { kind: response.principal_type, name: response.principal_name },
            requester: requester(
                response.token_requester_principal_type,
                response.token_requester_principal_name,
            ),
            renewers: Vec::new(),
            issued: response.issue_timestamp_ms,
            expires: response.expiry_timestamp_ms,
            expires_at_the_latest: response.max_timestamp_ms,
        })
    });
    call.since_version(first)
        .fail_in_doubt("the token may have been created; describe the tokens to find out")
        .call(timeout, done)
}

/// Returns a period in milliseconds; -1 stands for the broker's default.
fn wire_period(period: Option<Duration>) -> i64 {
    period.map_or(-1, |period| i64::try_from(period.as_millis()).unwrap_or(i64::MAX))
}

/// Renews a token. The result is the time at which it now expires, in milliseconds since 1970.
pub fn renew_token(
    hmac: Secret,
    period: Option<Duration>,
    timeout: Duration,
    done: Completion<Result<i64, Error>>,
) -> AdminCall {
    let request = move |_, _| RenewDelegationTokenRequest {
        hmac: hmac.expose().to_vec(),
        renew_period_ms: wire_period(period),
    };
    let call = OneResult::new(Route::Controller, request, |response, _| {
        check(response.error_code, None)?;
        Ok(response.expiry_timestamp_ms)
    });
    call.call(timeout, done)
}

/// Changes when a token expires: at the end of `period`, or at once. The result is the time in milliseconds since 1970.
pub fn expire_token(
    hmac: Secret,
    period: Option<Duration>,
    timeout: Duration,
    done: Completion<Result<i64, Error>>,
) -> AdminCall {
    let request = move |_, _| ExpireDelegationTokenRequest {
        hmac: hmac.expose().to_vec(),
        expiry_time_period_ms: wire_period(period),
    };
    let call = OneResult::new(Route::Controller, request, |response, _| {
        check(response.error_code, None)?;
        Ok(response.expiry_timestamp_ms)
    });
    // Without a period the first request deletes the token.
    let gone: &[ErrorCode] = if period.is_none() { &[ErrorCode::DELEGATION_TOKEN_NOT_FOUND] } else { &[] };
    call.done_after_doubt(gone, 0).call(timeout, done)
}

/// Describes the tokens of these owners, or all that this client's user may describe.
pub fn describe_tokens(
    owners: Option<Vec<Principal>>,
    timeout: Duration,
    done: Completion<Result<Vec<DelegationToken>, Error>>,
) -> AdminCall {
    let request = move |_, _| {
        let owner =
            |one: &Principal| Owner { principal_type: one.kind.clone(), principal_name: one.name.clone() };
        let owners = owners.as_ref().map(|owners| owners.iter().map(owner).collect());
        DescribeDelegationTokenRequest { owners }
    };
    let call = OneResult::new(Route::Any, request, |response, _| {
        check(response.error_code, None)?;
        let tokens = response.tokens.into_iter().map(|token| DelegationToken {
            token_id: token.token_id,
            hmac: Secret::new(token.hmac),
            owner: Principal { kind: token.principal_type, name: token.principal_name },
            requester: requester(token.token_requester_principal_type, token.token_requester_principal_name),
            renewers: token
                .renewers
                .into_iter()
                .map(|one| Principal { kind: one.principal_type, name: one.principal_name })
                .collect(),
            issued: token.issue_timestamp,
            expires: token.expiry_timestamp,
            expires_at_the_latest: token.max_timestamp,
        });
        Ok(tokens.collect())
    });
    call.call(timeout, done)
}
