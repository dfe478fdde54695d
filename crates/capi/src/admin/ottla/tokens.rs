//! Delegation tokens (KIP-48).

use std::time::Duration;

use ottla_core::admin::delegation_tokens::{DelegationToken, NewDelegationToken, Principal, decode_hmac};

use super::{calls, request::Fields, row::Row, shown};
use crate::client::event::Failure;

calls! {
    fn rd_kafka_ottla_CreateDelegationToken("owner", "renewer", "max_lifetime_ms") |admin, rows, options| {
        let mut token = NewDelegationToken::default();
        for row in rows.iter() {
            token.owner = principal(row, "owner")?.or(token.owner);
            token.renewers.extend(principal(row, "renewer")?);
            token.max_lifetime = millis(row, "max_lifetime_ms")?.or(token.max_lifetime);
        }
        Ok(shown(admin.create_delegation_token_async(&token, *options), |token| vec![row_of(&token)]))
    }

    fn rd_kafka_ottla_RenewDelegationToken("hmac", "period_ms") |admin, rows, options| {
        let row = rows.only()?;
        let hmac = decode_hmac(row.secret("hmac")?).ok_or_else(|| row.wrong("\"hmac\" is not base64"))?;
        let renewed = admin.renew_delegation_token_async(&hmac, millis(row, "period_ms")?, *options);
        Ok(shown(renewed, |expires| vec![Row::new().with("expires", expires)]))
    }

    fn rd_kafka_ottla_ExpireDelegationToken("hmac", "period_ms") |admin, rows, options| {
        let row = rows.only()?;
        let hmac = decode_hmac(row.secret("hmac")?).ok_or_else(|| row.wrong("\"hmac\" is not base64"))?;
        let expired = admin.expire_delegation_token_async(&hmac, millis(row, "period_ms")?, *options);
        Ok(shown(expired, |expires| vec![Row::new().with("expires", expires)]))
    }

    fn rd_kafka_ottla_DescribeDelegationTokens("owner") |admin, rows, options| {
        let owners = rows.each(|row| {
            row.text("owner")?;
            principal(row, "owner")
        })?;
        let owners: Vec<Principal> = owners.into_iter().flatten().collect();
        let owners = (!owners.is_empty()).then_some(owners.as_slice());
        Ok(shown(admin.describe_delegation_tokens_async(owners, *options), |tokens| {
            tokens.iter().map(row_of).collect()
        }))
    }
}

fn principal(row: &Fields<'_>, field: &str) -> Result<Option<Principal>, Failure> {
    let parsed = |text| {
        Principal::parse(text)
            .ok_or_else(|| row.wrong(format_args!("\"{field}\" is not a principal such as User:alice")))
    };
    row.optional(field).map(parsed).transpose()
}

fn millis(row: &Fields<'_>, field: &str) -> Result<Option<Duration>, Failure> {
    Ok(row.optional_number(field)?.map(Duration::from_millis))
}

fn row_of(token: &DelegationToken) -> Row {
    let hmac = token.password();
    Row::new()
        .with("token_id", &token.token_id)
        .with("hmac", String::from_utf8_lossy(hmac.expose()))
        .with("owner", &token.owner)
        .with_some("requester", token.requester.as_ref())
        .with_list("renewers", &token.renewers)
        .with("issued", token.issued)
        .with("expires", token.expires)
        .with("expires_at_the_latest", token.expires_at_the_latest)
}
