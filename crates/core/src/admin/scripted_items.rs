//! Calls whose items have results of their own, and calls with one result, against scripted brokers.

use std::{collections::BTreeMap, time::Duration};

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        alter_client_quotas::{self, AlterClientQuotasRequest, AlterClientQuotasResponse},
        alter_user_scram_credentials::{
            AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse,
            response::AlterUserScramCredentialsResult as AlteredUser,
        },
        create_acls::{CreateAclsRequest, CreateAclsResponse, response::CreateAclsResult as CreatedAcl},
        create_delegation_token::CreateDelegationTokenResponse,
        delete_acls::{self, DeleteAclsResponse},
        describe_acls::{self, DescribeAclsRequest, DescribeAclsResponse},
        describe_client_quotas::{self, DescribeClientQuotasRequest, DescribeClientQuotasResponse},
        describe_delegation_token::{self, DescribeDelegationTokenResponse},
        describe_user_scram_credentials::{DescribeUserScramCredentialsResponse, response as users},
        expire_delegation_token::ExpireDelegationTokenResponse,
    },
    primitive::Reader,
};

use super::{
    acls::{
        AclBinding, AclFilter, AclOperation, AclResourceType, PatternType, create_acls, delete_acls,
        describe_acls,
    },
    delegation_tokens::{NewDelegationToken, create_token, describe_tokens, expire_token},
    groups::scripted::{Script, TIMEOUT},
    quotas::{QuotaFilter, QuotaMatch, alter_quotas, describe_quotas},
    users::{ScramAlteration, ScramMechanism, alter_users, describe_users, salted_password},
};
use crate::{contract::route::Route, error::ErrorKind, secret::Secret};

fn rule(user: &str) -> AclBinding {
    AclBinding::allow(user, AclOperation::Read, AclResourceType::Topic, "orders")
}

fn created(codes: &[ErrorCode]) -> CreateAclsResponse {
    let result = |code: &ErrorCode| CreatedAcl { error_code: *code, error_message: Some("why".into()) };
    CreateAclsResponse { results: codes.iter().map(result).collect(), ..Default::default() }
}

fn kinds<K, T>(results: &[(K, Result<T, crate::error::Error>)]) -> Vec<Option<ErrorKind>> {
    results.iter().map(|(_, result)| result.as_ref().err().map(crate::error::Error::kind)).collect()
}

#[test]
fn only_items_with_temporary_errors_are_requested_again() {
    let rules = ["User:a", "User:b", "User:c"].map(rule).to_vec();
    let (mut script, waiting) = Script::new(|done| create_acls(rules, TIMEOUT, done));
    let sent = script.one(3);
    assert_eq!((&sent.route, *sent.versions.start()), (&Route::Controller, 0));
    let codes = [ErrorCode::NONE, ErrorCode::NOT_CONTROLLER, ErrorCode::INVALID_REQUEST];
    script.respond(&sent, 3, &created(&codes));
    assert_eq!(waiting.try_take(), None, "one rule is requested again");
    let again = script.one(3);
    let request = CreateAclsRequest::decode(&mut Reader::new(&again.body), 3).unwrap();
    let names: Vec<&str> = request.creations.iter().map(|one| &*one.principal).collect();
    assert_eq!(names, ["User:b"]);
    script.respond(&again, 3, &created(&[ErrorCode::NONE]));
    let results = waiting.try_take().expect("it responded").expect("the call succeeds");
    assert_eq!(kinds(&results), [None, None, Some(ErrorKind::Broker(ErrorCode::INVALID_REQUEST))]);
    assert!(results[2].1.as_ref().unwrap_err().to_string().contains("why"));
}

#[test]
fn item_that_never_succeeds_has_its_own_error_at_the_deadline() {
    let rules = ["User:a", "User:b"].map(rule).to_vec();
    let (mut script, waiting) = Script::new(|done| create_acls(rules, TIMEOUT, done));
    let sent = script.one(3);
    script.respond(&sent, 3, &created(&[ErrorCode::NONE, ErrorCode::THROTTLING_QUOTA_EXCEEDED]));
    for _ in 0..60 {
        script.sent(3);
    }
    let results = waiting.try_take().expect("the deadline is over").expect("there are results");
    assert_eq!(kinds(&results), [None, Some(ErrorKind::Broker(ErrorCode::THROTTLING_QUOTA_EXCEEDED))]);
}

#[test]
fn wrong_numbers_of_results_fail_the_call_after_some_attempts() {
    for count in [0, 1, 3] {
        let rules = ["User:a", "User:b"].map(rule).to_vec();
        let (mut script, waiting) = Script::new(|done| create_acls(rules, TIMEOUT, done));
        for _ in 0..4 {
            let sent = script.one(3);
            script.respond(&sent, 3, &created(&vec![ErrorCode::NONE; count]));
        }
        let error = waiting.try_take().expect("it gave up").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadResponse, "{count}: {error}");
    }
}

#[test]
fn pattern_types_need_brokers_that_know_them() {
    let prefixed = vec![rule("User:a").prefixed()];
    let (mut script, _waiting) = Script::new(|done| create_acls(prefixed, TIMEOUT, done));
    assert_eq!(*script.one(3).versions.start(), 1);
    for (pattern, first, number) in [(PatternType::Any, 0, 3), (PatternType::Match, 1, 2)] {
        let filter = AclFilter { pattern, ..AclFilter::default() };
        let (mut script, _waiting) = Script::new(|done| describe_acls(filter, TIMEOUT, done));
        let sent = script.one(first);
        assert_eq!(*sent.versions.start(), first);
        let request = DescribeAclsRequest::decode(&mut Reader::new(&sent.body), first).unwrap();
        assert_eq!(request.pattern_type_filter, number, "version {first}");
    }
}

#[test]
fn acls_are_described_with_values_that_are_unknown_here() {
    let (mut script, waiting) = Script::new(|done| describe_acls(AclFilter::default(), TIMEOUT, done));
    let acl = |operation| describe_acls::response::Acl {
        principal: "User:a".into(),
        host: "*".into(),
        operation,
        permission_type: 3,
    };
    let resource = describe_acls::response::Resource {
        resource_type: 2,
        resource_name: "orders".into(),
        pattern_type: 3,
        acls: vec![acl(3), acl(99)],
    };
    let sent = script.one(3);
    script.respond(&sent, 3, &DescribeAclsResponse { resources: vec![resource], ..Default::default() });
    let acls = waiting.try_take().expect("it responded").expect("the call succeeds");
    assert_eq!(acls[0], rule("User:a"));
    assert_eq!(acls[1].operation, AclOperation::Unknown);
}

#[test]
fn refused_description_of_acls_is_an_error_and_not_an_empty_list() {
    let (mut script, waiting) = Script::new(|done| describe_acls(AclFilter::default(), TIMEOUT, done));
    let sent = script.one(3);
    let error_code = ErrorCode::CLUSTER_AUTHORIZATION_FAILED;
    script.respond(&sent, 3, &DescribeAclsResponse { error_code, ..Default::default() });
    let error = waiting.try_take().expect("it responded").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Broker(error_code));
}

#[test]
fn deleted_acls_are_listed_by_filter_with_their_errors() {
    let filters = vec![AclFilter::from(&rule("User:a")), AclFilter::default()];
    let (mut script, waiting) = Script::new(|done| delete_acls(filters, TIMEOUT, done));
    let sent = script.one(3);
    let matching = |error_code| delete_acls::response::MatchingAcl {
        error_code,
        resource_type: 2,
        resource_name: "orders".into(),
        principal: "User:a".into(),
        host: "*".into(),
        operation: 3,
        permission_type: 3,
        ..Default::default()
    };
    let found = delete_acls::response::FilterResult {
        matching_acls: vec![matching(ErrorCode::NONE), matching(ErrorCode::UNKNOWN_SERVER_ERROR)],
        ..Default::default()
    };
    let refused = delete_acls::response::FilterResult {
        error_code: ErrorCode::SECURITY_DISABLED,
        ..Default::default()
    };
    script.respond(
        &sent,
        3,
        &DeleteAclsResponse { filter_results: vec![found, refused], ..Default::default() },
    );
    let results = waiting.try_take().expect("it responded").expect("the call succeeds");
    let deleted = results[0].1.as_ref().unwrap();
    assert_eq!(deleted[0], (rule("User:a"), None));
    assert_eq!(deleted[1].1.as_ref().unwrap().kind(), ErrorKind::Broker(ErrorCode::UNKNOWN_SERVER_ERROR));
    assert_eq!(results[1].1.as_ref().unwrap_err().kind(), ErrorKind::Broker(ErrorCode::SECURITY_DISABLED));
}

#[test]
fn users_are_described_in_the_order_of_the_call() {
    let named = Some(vec!["b".to_owned(), "a".to_owned()]);
    let (mut script, waiting) = Script::new(|done| describe_users(named, TIMEOUT, done));
    let sent = script.one(0);
    let info = users::CredentialInfo { mechanism: 2, iterations: 8192 };
    let user = |user: &str, error_code| users::DescribeUserScramCredentialsResult {
        user: user.into(),
        error_code,
        credential_infos: vec![info.clone()],
        ..Default::default()
    };
    let results = vec![
        user("a", ErrorCode::NONE),
        user("uninvited", ErrorCode::NONE),
        user("b", ErrorCode::RESOURCE_NOT_FOUND),
    ];
    script.respond(&sent, 0, &DescribeUserScramCredentialsResponse { results, ..Default::default() });
    let results = waiting.try_take().expect("it responded").expect("the call succeeds");
    assert_eq!(results.iter().map(|(user, _)| &**user).collect::<Vec<_>>(), ["b", "a"]);
    assert_eq!(kinds(&results), [Some(ErrorKind::Broker(ErrorCode::RESOURCE_NOT_FOUND)), None]);
    let credentials = results[1].1.as_ref().unwrap();
    assert_eq!((credentials[0].mechanism, credentials[0].iterations), (ScramMechanism::Sha512, 8192));
}

#[test]
fn user_with_several_alterations_has_one_result() {
    let salted = salted_password(ScramMechanism::Sha256, &Secret::from("pencil"), b"salt", 4096).unwrap();
    let upsert = ScramAlteration::Upsert {
        user: "a".into(),
        mechanism: ScramMechanism::Sha256,
        iterations: 4096,
        salt: b"salt".to_vec(),
        salted_password: salted.clone(),
    };
    assert!(!format!("{upsert:?}").contains(&format!("{:?}", salted.expose())), "the secret is not shown");
    let delete = ScramAlteration::Delete { user: "a".into(), mechanism: ScramMechanism::Sha512 };
    let (mut script, waiting) = Script::new(|done| alter_users(vec![upsert, delete], TIMEOUT, done));
    let sent = script.one(0);
    let request = AlterUserScramCredentialsRequest::decode(&mut Reader::new(&sent.body), 0).unwrap();
    assert_eq!(request.upsertions[0].salted_password, salted.expose());
    assert_eq!((request.upsertions[0].mechanism, request.deletions[0].mechanism), (1, 2));
    let results = vec![AlteredUser { user: "a".into(), ..Default::default() }];
    script.respond(&sent, 0, &AlterUserScramCredentialsResponse { results, ..Default::default() });
    let results = waiting.try_take().expect("it responded").expect("the call succeeds");
    assert_eq!(results, [("a".to_owned(), Ok(()))]);
}

#[test]
fn quotas_are_described_by_entity() {
    let filter = QuotaFilter::default()
        .matching("user", QuotaMatch::Default)
        .matching("client-id", QuotaMatch::Name("app".into()))
        .strict();
    let (mut script, waiting) = Script::new(|done| describe_quotas(filter, TIMEOUT, done));
    let sent = script.one(1);
    let request = DescribeClientQuotasRequest::decode(&mut Reader::new(&sent.body), 1).unwrap();
    let components: Vec<_> = request
        .components
        .iter()
        .map(|one| (&*one.entity_type, one.match_type, one.r#match.as_deref()))
        .collect();
    assert_eq!(components, [("client-id", 0, Some("app")), ("user", 1, None)]);
    assert!(request.strict);
    let entity = describe_client_quotas::response::Entity { entity_type: "user".into(), entity_name: None };
    let value = describe_client_quotas::response::Value { key: "producer_byte_rate".into(), value: 1.5 };
    let entry = describe_client_quotas::response::Entry { entity: vec![entity], values: vec![value] };
    script.respond(
        &sent,
        1,
        &DescribeClientQuotasResponse { entries: Some(vec![entry]), ..Default::default() },
    );
    let quotas = waiting.try_take().expect("it responded").expect("the call succeeds");
    assert_eq!(quotas[0].0, [("user".to_owned(), None)].into());
    assert_eq!(quotas[0].1["producer_byte_rate"].to_bits(), 1.5_f64.to_bits());
}

#[test]
fn quotas_are_set_and_removed_by_entity() {
    let entity: BTreeMap<String, Option<String>> = [("user".to_owned(), Some("a".to_owned()))].into();
    let changes = [("x".to_owned(), Some(2.0)), ("y".to_owned(), None)].into();
    let all = [(entity.clone(), changes)].into();
    let (mut script, waiting) = Script::new(|done| alter_quotas(all, true, TIMEOUT, done));
    let sent = script.one(1);
    let request = AlterClientQuotasRequest::decode(&mut Reader::new(&sent.body), 1).unwrap();
    let ops: Vec<_> = request.entries[0].ops.iter().map(|op| (&*op.key, op.remove)).collect();
    assert_eq!((ops, request.validate_only), (vec![("x", false), ("y", true)], true));
    let named =
        alter_client_quotas::response::Entity { entity_type: "user".into(), entity_name: Some("a".into()) };
    let entry = alter_client_quotas::response::Entry { entity: vec![named], ..Default::default() };
    script.respond(&sent, 1, &AlterClientQuotasResponse { entries: vec![entry], ..Default::default() });
    let results = waiting.try_take().expect("it responded").expect("the call succeeds");
    assert_eq!(results, [(entity, Ok(()))]);
}

#[test]
fn token_is_not_created_twice_when_the_response_is_lost() {
    let new = NewDelegationToken::default();
    let (mut script, waiting) = Script::new(|done| create_token(new, TIMEOUT, done));
    let sent = script.one(3);
    script.fail(&sent, ErrorKind::Disconnected);
    assert!(script.sent(3).is_empty(), "no second request");
    let error = waiting.try_take().expect("it gave up").unwrap_err();
    assert!(error.to_string().contains("may have been created"), "{error}");
}

#[test]
fn token_is_created_at_another_controller_when_none_was_created() {
    let new = NewDelegationToken { max_lifetime: Some(Duration::from_secs(60)), ..Default::default() };
    let (mut script, waiting) = Script::new(|done| create_token(new, TIMEOUT, done));
    let sent = script.one(3);
    let error_code = ErrorCode::NOT_CONTROLLER;
    script.respond(&sent, 3, &CreateDelegationTokenResponse { error_code, ..Default::default() });
    let again = script.one(3);
    let response = CreateDelegationTokenResponse {
        principal_type: "User".into(),
        principal_name: "a".into(),
        token_id: "id".into(),
        hmac: vec![0xfb, 0xff],
        max_timestamp_ms: 7,
        ..Default::default()
    };
    script.respond(&again, 3, &response);
    let token = waiting.try_take().expect("it responded").expect("the call succeeds");
    assert_eq!((token.owner.to_string(), token.expires_at_the_latest), ("User:a".to_owned(), 7));
    assert_eq!(token.password(), Secret::from("+/8="));
    assert!(!format!("{token:?}").contains("251"), "the secret is not shown");
}

#[test]
fn token_that_is_gone_after_a_lost_response_was_expired() {
    let hmac = Secret::from("secret");
    let (mut script, waiting) = Script::new(|done| expire_token(hmac, None, TIMEOUT, done));
    let sent = script.one(2);
    script.fail(&sent, ErrorKind::RequestTimedOut);
    let again = script.one(2);
    let error_code = ErrorCode::DELEGATION_TOKEN_NOT_FOUND;
    script.respond(&again, 2, &ExpireDelegationTokenResponse { error_code, ..Default::default() });
    assert!(waiting.try_take().expect("it responded").is_ok());
}

#[test]
fn unknown_token_is_an_error_without_a_lost_response() {
    let hmac = Secret::from("secret");
    let (mut script, waiting) = Script::new(|done| expire_token(hmac, None, TIMEOUT, done));
    let sent = script.one(2);
    let error_code = ErrorCode::DELEGATION_TOKEN_NOT_FOUND;
    script.respond(&sent, 2, &ExpireDelegationTokenResponse { error_code, ..Default::default() });
    let error = waiting.try_take().expect("it responded").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Broker(error_code));
}

#[test]
fn tokens_are_described_with_renewers() {
    let (mut script, waiting) = Script::new(|done| describe_tokens(None, TIMEOUT, done));
    let sent = script.one(3);
    let renewer = describe_delegation_token::response::Renewer {
        principal_type: "User".into(),
        principal_name: "b".into(),
    };
    let token = describe_delegation_token::response::Token {
        principal_type: "User".into(),
        principal_name: "a".into(),
        renewers: vec![renewer],
        ..Default::default()
    };
    script.respond(&sent, 3, &DescribeDelegationTokenResponse { tokens: vec![token], ..Default::default() });
    let tokens = waiting.try_take().expect("it responded").expect("the call succeeds");
    assert_eq!((tokens[0].renewers[0].to_string(), &tokens[0].requester), ("User:b".to_owned(), &None));
}
