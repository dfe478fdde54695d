//! The credentials of SCRAM users (KIP-554): describes, sets and deletes them.
//!
//! The broker stores keys derived from the salted password, which this library derives, so the password itself is not sent.
//! A reader of the request can authenticate as the user, so it belongs on a connection with TLS.

use std::{sync::Arc, time::Duration};

use ottla_protocol::generated::{
    alter_user_scram_credentials::{
        AlterUserScramCredentialsRequest,
        request::{Deletion, Upsertion},
    },
    describe_user_scram_credentials::{
        DescribeUserScramCredentialsRequest, request::User, response::DescribeUserScramCredentialsResult,
    },
};
use ottla_sorted::SortedSet;

use super::{
    AdminCall, check,
    item_results::{ItemResults, Items},
    numbered::numbered,
    one_result::OneResult,
};
use crate::{
    completion::Completion,
    contract::route::Route,
    error::Error,
    hash::{Derivation, Hash},
    secret::Secret,
};

numbered! {
    /// A mechanism of SCRAM.
    ScramMechanism {
        /// SCRAM-SHA-256.
        Sha256 = 1 "SCRAM-SHA-256",
        /// SCRAM-SHA-512.
        Sha512 = 2 "SCRAM-SHA-512",
    }
}

/// A credential of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScramCredential {
    /// The mechanism.
    pub mechanism: ScramMechanism,
    /// The number of iterations.
    pub iterations: i32,
}

/// The credentials of each user.
pub type ScramUsers = ItemResults<String, Vec<ScramCredential>>;

/// A change of a user's credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScramAlteration {
    /// Creates or replaces a credential.
    Upsert {
        /// The user.
        user: String,
        /// The mechanism.
        mechanism: ScramMechanism,
        /// The number of iterations.
        iterations: i32,
        /// The salt.
        salt: Vec<u8>,
        /// The salted password, from [`salted_password`].
        salted_password: Secret,
    },
    /// Deletes a credential.
    Delete {
        /// The user.
        user: String,
        /// The mechanism.
        mechanism: ScramMechanism,
    },
}

impl ScramAlteration {
    /// Returns the user.
    pub fn user(&self) -> &str {
        match self {
            Self::Upsert { user, .. } | Self::Delete { user, .. } => user,
        }
    }
}

/// Derives the salted password, which takes some milliseconds per 10,000 iterations.
pub fn salted_password(
    mechanism: ScramMechanism,
    password: &Secret,
    salt: &[u8],
    iterations: u32,
) -> Option<Secret> {
    let hash = match mechanism {
        ScramMechanism::Sha256 => Hash::Sha256,
        ScramMechanism::Sha512 => Hash::Sha512,
        ScramMechanism::Unknown => return None,
    };
    Derivation::new(hash, password, salt, iterations).advance(iterations)
}

fn described(one: DescribeUserScramCredentialsResult) -> (String, Result<Vec<ScramCredential>, Error>) {
    let credentials = one.credential_infos.iter().map(|info| ScramCredential {
        mechanism: ScramMechanism::from_number(info.mechanism),
        iterations: info.iterations,
    });
    let credentials = credentials.collect();
    (one.user, check(one.error_code, one.error_message.as_deref()).map(|()| credentials))
}

/// Describes the credentials of these users, or of all.
pub fn describe_users(
    users: Option<Vec<String>>,
    timeout: Duration,
    done: Completion<Result<ScramUsers, Error>>,
) -> AdminCall {
    let Some(users) = users else {
        let request = |_, _| DescribeUserScramCredentialsRequest { users: None };
        let call = OneResult::new(Route::Any, request, |response, _| {
            check(response.error_code, response.error_message.as_deref())?;
            Ok(response.results.into_iter().map(described).collect())
        });
        return call.call(timeout, done);
    };
    let request = |users: &[String], _, _| DescribeUserScramCredentialsRequest {
        users: Some(users.iter().map(|name| User { name: name.clone() }).collect()),
    };
    let call = Items::new(users, request, |_, response| {
        check(response.error_code, response.error_message.as_deref())?;
        Ok(response.results.into_iter().map(described).collect())
    });
    call.to(Route::Any).call(timeout, done)
}

/// Changes credentials. Each user has one result, in the order of their first alterations.
pub fn alter_users(
    alterations: Vec<ScramAlteration>,
    timeout: Duration,
    done: Completion<Result<ItemResults<String, ()>, Error>>,
) -> AdminCall {
    let mut seen = SortedSet::new();
    let users: Vec<String> = alterations
        .iter()
        .map(|one| one.user().to_owned())
        .filter(|user| seen.insert(user.clone()))
        .collect();
    let alterations: Arc<[ScramAlteration]> = alterations.into();
    let request = move |users: &[String], _, _| {
        let mut request = AlterUserScramCredentialsRequest::default();
        let users: SortedSet<&str> = users.iter().map(String::as_str).collect();
        for one in alterations.iter().filter(|one| users.contains(one.user())).cloned() {
            match one {
                ScramAlteration::Upsert { user, mechanism, iterations, salt, salted_password } => {
                    request.upsertions.push(Upsertion {
                        name: user,
                        mechanism: mechanism.number(),
                        iterations,
                        salt,
                        salted_password: salted_password.expose().to_vec(),
                    });
                }
                ScramAlteration::Delete { user, mechanism } => {
                    request.deletions.push(Deletion { name: user, mechanism: mechanism.number() });
                }
            }
        }
        request
    };
    let call = Items::new(users, request, |_, response| {
        let results = response.results.into_iter();
        Ok(results.map(|one| (one.user, check(one.error_code, one.error_message.as_deref()))).collect())
    });
    call.call(timeout, done)
}
