//! DescribeUserScramCredentials (50) and AlterUserScramCredentials (51), version 0: the SCRAM credentials of users.
//!
//! # Pitfalls
//!
//! - A user without credentials is an error of its own, RESOURCE_NOT_FOUND, and so is a user that is requested twice
//!   (`scram_users_have_results_of_their_own`).

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        alter_user_scram_credentials::{
            AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse, request,
            response::AlterUserScramCredentialsResult,
        },
        describe_user_scram_credentials::{
            DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse,
            response::{CredentialInfo, DescribeUserScramCredentialsResult},
        },
    },
};
use ottla_sorted::{SortedMap, SortedSet};

use crate::{
    acls::AclOperation,
    cluster::Cluster,
    connection::Request,
    provisioning::{Refusal, code_and_message},
    sasl::{Keys, ScramHash},
};

/// The numbers of iterations that Kafka accepts.
const ITERATIONS: std::ops::RangeInclusive<i32> = 4096..=16_384;

/// Returns the hash of a mechanism's number.
fn hash(mechanism: i8) -> Result<ScramHash, Refusal> {
    match mechanism {
        1 => Ok(ScramHash::Sha256),
        2 => Ok(ScramHash::Sha512),
        _ => Err((ErrorCode::UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism".to_owned())),
    }
}

fn number(hash: ScramHash) -> i8 {
    match hash {
        ScramHash::Sha256 => 1,
        ScramHash::Sha512 => 2,
    }
}

impl Cluster {
    pub(crate) fn describe_user_scram_credentials(
        &mut self,
        request: &mut Request,
        body: DescribeUserScramCredentialsRequest,
    ) -> DescribeUserScramCredentialsResponse {
        let mut response = DescribeUserScramCredentialsResponse {
            throttle_time_ms: request.throttle_ms(),
            ..Default::default()
        };
        if let Err(error) = self.check_cluster_request(request, AclOperation::Describe) {
            (response.error_code, response.error_message) = (error, Some(error.description().to_owned()));
            return response;
        }
        let known = self.scram_users();
        let requested: Vec<String> = match body.users {
            Some(users) if !users.is_empty() => users.into_iter().map(|user| user.name).collect(),
            _ => known.keys().cloned().collect(),
        };
        let mut seen = SortedMap::<String, u32>::new();
        requested.iter().for_each(|user| *seen.entry(user.clone()).or_default() += 1);
        for (user, times) in seen {
            let mut result = DescribeUserScramCredentialsResult { user, ..Default::default() };
            match known.get(&result.user) {
                _ if times > 1 => {
                    result.error_code = ErrorCode::DUPLICATE_RESOURCE;
                    result.error_message = Some(format!(
                        "Cannot describe SCRAM credentials for the same user twice in a single request: {}",
                        result.user
                    ));
                }
                Some(credentials) => {
                    let infos = credentials.iter().map(|(hash, iterations)| CredentialInfo {
                        mechanism: number(*hash),
                        iterations: i32::try_from(*iterations).unwrap_or(i32::MAX),
                    });
                    result.credential_infos = infos.collect();
                }
                None => {
                    result.error_code = ErrorCode::RESOURCE_NOT_FOUND;
                    result.error_message = Some(format!(
                        "Attempt to describe a user credential that does not exist: {}",
                        result.user
                    ));
                }
            }
            response.results.push(result);
        }
        response
    }

    pub(crate) fn alter_user_scram_credentials(
        &mut self,
        request: &mut Request,
        body: AlterUserScramCredentialsRequest,
    ) -> AlterUserScramCredentialsResponse {
        let permitted = self.check_cluster_request(request, AclOperation::Alter);
        let named = body.deletions.iter().map(|one| &one.name);
        let named = named.chain(body.upsertions.iter().map(|one| &one.name));
        let mut results = SortedMap::<String, Result<(), Refusal>>::new();
        let mut seen = SortedSet::new();
        for user in named {
            // Two mechanisms of a user count as twice, too.
            let is_new = seen.insert(user.clone());
            let result = results.entry(user.clone()).or_insert(Ok(()));
            if let Err(error) = permitted {
                *result = Err((error, error.description().to_owned()));
            } else if !is_new {
                let message = "A user credential cannot be altered twice in the same request";
                *result = Err((ErrorCode::DUPLICATE_RESOURCE, message.to_owned()));
            }
        }
        let known = self.scram_users();
        let mut changes = Vec::new();
        let mut apply = |user: &str, change: Result<(ScramHash, Option<Keys>), Refusal>| {
            let Some(result) = results.get_mut(user).filter(|result| result.is_ok()) else { return };
            match change {
                Ok((hash, keys)) => changes.push((user.to_owned(), hash, keys)),
                Err(refusal) => *result = Err(refusal),
            }
        };
        for one in &body.deletions {
            let exists =
                |hash| known.get(&one.name).is_some_and(|credentials| credentials.contains_key(&hash));
            let change = hash(one.mechanism).and_then(|hash| match exists(hash) {
                true => Ok((hash, None)),
                false => Err((
                    ErrorCode::RESOURCE_NOT_FOUND,
                    "Attempt to delete a user credential that does not exist".to_owned(),
                )),
            });
            apply(&one.name, change);
        }
        for one in &body.upsertions {
            apply(&one.name, upsertion(one).map(|(hash, keys)| (hash, Some(keys))));
        }
        for (user, hash, keys) in changes {
            // A user with a refused alteration keeps all credentials.
            if results.get(&user).is_some_and(Result::is_ok) {
                self.scram_changes.insert((user, hash), keys);
            }
        }
        let results = results.into_iter().map(|(user, result)| {
            let (error_code, error_message) = code_and_message(result);
            AlterUserScramCredentialsResult { user, error_code, error_message }
        });
        AlterUserScramCredentialsResponse {
            throttle_time_ms: request.throttle_ms(),
            results: results.collect(),
        }
    }
}

fn upsertion(one: &request::Upsertion) -> Result<(ScramHash, Keys), Refusal> {
    let hash = hash(one.mechanism)?;
    let refuse = |message: &str| Err((ErrorCode::UNACCEPTABLE_CREDENTIAL, message.to_owned()));
    if one.name.is_empty() {
        return refuse("Username must not be empty");
    }
    if one.iterations < *ITERATIONS.start() {
        return refuse("Too few iterations");
    }
    if one.iterations > *ITERATIONS.end() {
        return refuse("Too many iterations");
    }
    let iterations = one.iterations.unsigned_abs();
    Ok((hash, Keys::of_salted_password(hash, &one.salted_password, one.salt.clone(), iterations)))
}
