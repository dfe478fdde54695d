//! Calls about delegation tokens.

use std::time::Duration;

use ottla_core::{
    admin::delegation_tokens::{
        DelegationToken, NewDelegationToken, Principal, create_token, describe_tokens, expire_token,
        renew_token,
    },
    error::Result,
    secret::Secret,
};

use super::calls::{calls, check_name, invalid};

calls! {
    /// Creates a delegation token. Brokers only allow it to clients that authenticated with SASL or a certificate, and not to
    /// those that authenticated with a token.
    ///
    /// ```
    /// # fn example(admin: &ottla::Admin) -> ottla::Result<()> {
    /// use std::time::Duration;
    ///
    /// use ottla::admin::NewDelegationToken;
    ///
    /// let token = admin.create_delegation_token(&NewDelegationToken::default(), Duration::from_secs(10))?;
    /// println!("{} of {}", token.token_id, token.owner);
    /// # Ok(())
    /// # }
    /// ```
    fn create_delegation_token, create_delegation_token_async(
        &self,
        token: &NewDelegationToken;
        options
    ) -> DelegationToken {
        let checked = token.owner.iter().chain(&token.renewers).try_for_each(check_principal);
        let checked = checked.map(|()| token.clone());
        self.ask("create_delegation_token", options, checked, |token, done| {
            create_token(token, options.timeout, done)
        })
    }

    /// Renews a token, by default for the broker's period. Returns when it expires, in milliseconds since 1970.
    fn renew_delegation_token, renew_delegation_token_async(
        &self,
        hmac: &Secret,
        period: Option<Duration>;
        options
    ) -> i64 {
        self.ask("renew_delegation_token", options, checked_hmac(hmac), |hmac, done| {
            renew_token(hmac, period, options.timeout, done)
        })
    }

    /// Lets a token expire after a period, or at once. Returns when it expires, in milliseconds since 1970.
    fn expire_delegation_token, expire_delegation_token_async(
        &self,
        hmac: &Secret,
        period: Option<Duration>;
        options
    ) -> i64 {
        self.ask("expire_delegation_token", options, checked_hmac(hmac), |hmac, done| {
            expire_token(hmac, period, options.timeout, done)
        })
    }

    /// Describes the tokens of these owners, or all that the client's user may describe: those that it owns or may renew, and
    /// those that ACLs permit.
    fn describe_delegation_tokens, describe_delegation_tokens_async(
        &self,
        owners: Option<&[Principal]>;
        options
    ) -> Vec<DelegationToken> {
        let checked = owners.into_iter().flatten().try_for_each(check_principal);
        let checked = checked.map(|()| owners.map(<[Principal]>::to_vec));
        self.ask("describe_delegation_tokens", options, checked, |owners, done| {
            describe_tokens(owners, options.timeout, done)
        })
    }
}

fn check_principal(principal: &Principal) -> Result<()> {
    check_name("type of a principal", &principal.kind)?;
    check_name("name of a principal", &principal.name)
}

fn checked_hmac(hmac: &Secret) -> Result<Secret> {
    if hmac.is_empty() { Err(invalid("the HMAC of the token is empty")) } else { Ok(hmac.clone()) }
}
