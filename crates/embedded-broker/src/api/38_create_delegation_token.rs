//! CreateDelegationToken (38), RenewDelegationToken (39), ExpireDelegationToken (40) and DescribeDelegationToken (41). A token
//! is a user of SCRAM with `tokenauth=true` whose password is its HMAC in base64.
//!
//! Clients that did not authenticate may not have tokens: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        create_delegation_token::{CreateDelegationTokenRequest, CreateDelegationTokenResponse},
        describe_delegation_token::{
            DescribeDelegationTokenRequest, DescribeDelegationTokenResponse,
            response::{Renewer, Token as TokenOfResponse},
        },
        expire_delegation_token::{ExpireDelegationTokenRequest, ExpireDelegationTokenResponse},
        renew_delegation_token::{RenewDelegationTokenRequest, RenewDelegationTokenResponse},
    },
    uuid::Uuid,
};

use crate::{
    acls::{AclOperation, ResourceType},
    administration::Token,
    cluster::Cluster,
    connection::Request,
};

/// `delegation.token.max.lifetime.ms`.
const MAX_LIFETIME_MS: i64 = 7 * 24 * 3_600_000;
/// `delegation.token.expiry.time.ms`.
const EXPIRY_MS: i64 = 24 * 3_600_000;

impl Cluster {
    /// Returns the principal of a client that may have tokens.
    fn token_principal(&self, request: &Request) -> Result<(String, String), ErrorCode> {
        match request.injected_error() {
            ErrorCode::NONE => {}
            injected => return Err(injected),
        }
        let name =
            self.principal(request.connection).ok_or(ErrorCode::DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)?;
        Ok(("User".to_owned(), name.to_owned()))
    }

    pub(crate) fn create_delegation_token(
        &mut self,
        request: &mut Request,
        body: CreateDelegationTokenRequest,
    ) -> CreateDelegationTokenResponse {
        let mut response =
            CreateDelegationTokenResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        let requester = match self.token_principal(request) {
            Ok(requester) => requester,
            Err(error) => return CreateDelegationTokenResponse { error_code: error, ..response },
        };
        let owner = match (body.owner_principal_type, body.owner_principal_name) {
            (Some(kind), Some(name)) if !name.is_empty() => (kind, name),
            _ => requester.clone(),
        };
        let renewers: Vec<_> =
            body.renewers.into_iter().map(|one| (one.principal_type, one.principal_name)).collect();
        let user = format!("{}:{}", owner.0, owner.1);
        let connection = request.connection;
        if owner != requester
            && !self.permits(connection, AclOperation::CreateTokens, ResourceType::User, &user)
        {
            response.error_code = ErrorCode::DELEGATION_TOKEN_AUTHORIZATION_FAILED;
            return response;
        }
        if renewers.iter().any(|(kind, _)| kind != "User") {
            response.error_code = ErrorCode::INVALID_PRINCIPAL_TYPE;
            return response;
        }
        let issued_ms = self.unix_ms();
        let lifetime = match body.max_lifetime_ms {
            ..=0 => MAX_LIFETIME_MS,
            requested => requested.min(MAX_LIFETIME_MS),
        };
        let max_ms = issued_ms.saturating_add(lifetime);
        let id = Uuid(self.random.uuid_bytes()).to_string();
        let hmac: Vec<u8> = (0..4).flat_map(|_| self.random.uuid_bytes()).collect();
        let expires_ms = max_ms.min(issued_ms.saturating_add(EXPIRY_MS));
        let token = Token { hmac, owner, requester, renewers, issued_ms, expires_ms, max_ms };
        self.administration.tokens.insert(id.clone(), token.clone());
        (response.principal_type, response.principal_name) = token.owner;
        if request.version >= 3 {
            (response.token_requester_principal_type, response.token_requester_principal_name) =
                token.requester;
        }
        response.issue_timestamp_ms = issued_ms;
        (response.expiry_timestamp_ms, response.max_timestamp_ms) = (expires_ms, max_ms);
        (response.token_id, response.hmac) = (id, token.hmac);
        response
    }

    /// Changes when a token expires, and returns the time. A negative period of an expiration deletes the token.
    fn change_expiry(&mut self, request: &Request, hmac: &[u8], period_ms: i64) -> Result<i64, ErrorCode> {
        let principal = self.token_principal(request)?;
        let now = self.unix_ms();
        let tokens = &mut self.administration.tokens;
        let found = tokens.iter_mut().find(|(_, token)| token.hmac == hmac);
        let (id, token) = found.ok_or(ErrorCode::DELEGATION_TOKEN_NOT_FOUND)?;
        if token.owner != principal && token.requester != principal && !token.renewers.contains(&principal) {
            return Err(ErrorCode::DELEGATION_TOKEN_OWNER_MISMATCH);
        }
        let is_renewal = request.api == ottla_protocol::api::ApiKey::RenewDelegationToken;
        if period_ms < 0 && !is_renewal {
            let id = id.clone();
            tokens.remove(&id);
            return Ok(now);
        }
        if token.max_ms < now || token.expires_ms < now {
            return Err(ErrorCode::DELEGATION_TOKEN_EXPIRED);
        }
        let period_ms = if period_ms < 0 { EXPIRY_MS } else { period_ms };
        token.expires_ms = token.max_ms.min(now.saturating_add(period_ms));
        Ok(token.expires_ms)
    }

    pub(crate) fn renew_delegation_token(
        &mut self,
        request: &mut Request,
        body: RenewDelegationTokenRequest,
    ) -> RenewDelegationTokenResponse {
        let changed = self.change_expiry(request, &body.hmac, body.renew_period_ms);
        RenewDelegationTokenResponse {
            error_code: changed.err().unwrap_or_default(),
            expiry_timestamp_ms: changed.unwrap_or(-1),
            throttle_time_ms: request.throttle_ms(),
        }
    }

    pub(crate) fn expire_delegation_token(
        &mut self,
        request: &mut Request,
        body: ExpireDelegationTokenRequest,
    ) -> ExpireDelegationTokenResponse {
        let changed = self.change_expiry(request, &body.hmac, body.expiry_time_period_ms);
        ExpireDelegationTokenResponse {
            error_code: changed.err().unwrap_or_default(),
            expiry_timestamp_ms: changed.unwrap_or(-1),
            throttle_time_ms: request.throttle_ms(),
        }
    }

    pub(crate) fn describe_delegation_token(
        &mut self,
        request: &mut Request,
        body: DescribeDelegationTokenRequest,
    ) -> DescribeDelegationTokenResponse {
        let mut response =
            DescribeDelegationTokenResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        let principal = match self.token_principal(request) {
            Ok(principal) => principal,
            Err(error) => return DescribeDelegationTokenResponse { error_code: error, ..response },
        };
        let owners: Option<Vec<_>> = body
            .owners
            .map(|owners| owners.into_iter().map(|one| (one.principal_type, one.principal_name)).collect());
        let (now, version, connection) = (self.unix_ms(), request.version, request.connection);
        let may_see = |id: &str, token: &Token| {
            let user = format!("{}:{}", token.owner.0, token.owner.1);
            token.owner == principal
                || token.requester == principal
                || token.renewers.contains(&principal)
                || self.options.authorizer.is_some()
                    && (self.permits(connection, AclOperation::Describe, ResourceType::DelegationToken, id)
                        || self.permits(connection, AclOperation::DescribeTokens, ResourceType::User, &user))
        };
        let tokens = self.administration.tokens.iter().filter(|(id, token)| {
            owners.as_ref().is_none_or(|owners| owners.contains(&token.owner))
                && token.expires_ms > now
                && may_see(id, token)
        });
        response.tokens = tokens.map(|(id, token)| described(id, token, version)).collect();
        response
    }

    /// Returns the tokens that clients can authenticate with: ID, HMAC and owner.
    pub(crate) fn valid_tokens(&self) -> impl Iterator<Item = (&str, &[u8], &str)> {
        let now = self.unix_ms();
        let tokens = self.administration.tokens.iter().filter(move |(_, token)| token.expires_ms > now);
        tokens.map(|(id, token)| (id.as_str(), token.hmac.as_slice(), token.owner.1.as_str()))
    }
}

fn described(id: &str, token: &Token, version: i16) -> TokenOfResponse {
    let renewers = token.renewers.iter().cloned();
    let (requester_type, requester_name) =
        if version >= 3 { token.requester.clone() } else { (String::new(), String::new()) };
    TokenOfResponse {
        principal_type: token.owner.0.clone(),
        principal_name: token.owner.1.clone(),
        token_requester_principal_type: requester_type,
        token_requester_principal_name: requester_name,
        issue_timestamp: token.issued_ms,
        expiry_timestamp: token.expires_ms,
        max_timestamp: token.max_ms,
        token_id: id.to_owned(),
        hmac: token.hmac.clone(),
        renewers: renewers
            .map(|(principal_type, principal_name)| Renewer { principal_type, principal_name })
            .collect(),
    }
}
