//! The requests of administrative calls about access, limits, replicas and the cluster.

use super::*;
use crate::{
    admin::{
        How,
        acls::{
            AclBinding, AclFilter, AclOperation, AclResourceType, PatternType, create_acls, delete_acls,
            describe_acls,
        },
        config_resources::list_config_resources,
        delegation_tokens::{
            NewDelegationToken, Principal, create_token, describe_tokens, expire_token, renew_token,
        },
        describe::{describe_cluster, describe_topics},
        elections::{ElectionType, elect_leaders},
        features::{FeatureUpdate, FeatureUpgrade, describe_features, update_features},
        groups::{
            describe_typed::Included,
            share_groups::{
                alter_share_group_offsets, delete_share_group_offsets, describe_share_groups,
                list_share_group_offsets,
            },
            streams_groups::describe_streams_groups,
        },
        log_dirs::{alter_log_dirs, describe_all_log_dirs, describe_log_dirs},
        quorum::{
            Voter, VoterListener, add_voter, describe_quorum, remove_voter, unregister_broker,
            unregister_controller,
        },
        quotas::{QuotaFilter, QuotaMatch, alter_quotas, describe_quotas},
        reassignments::{alter_reassignments, list_reassignments},
        users::{ScramAlteration, ScramMechanism, alter_users, describe_users},
    },
    secret::Secret,
};

fn key() -> TopicPartition {
    TopicPartition::new("t", 0)
}

/// Returns the requests of an API with every field that some caller sets.
pub(super) fn cases(api: ApiKey) -> Vec<Case> {
    let to_broker = How { broker: Some(1), ..How::default() };
    match api {
        ApiKey::DescribeAcls | ApiKey::CreateAcls | ApiKey::DeleteAcls => acl_cases(api),
        ApiKey::CreateDelegationToken
        | ApiKey::RenewDelegationToken
        | ApiKey::ExpireDelegationToken
        | ApiKey::DescribeDelegationToken => token_cases(api),
        ApiKey::DescribeUserScramCredentials => {
            let some = admin("some", describe_users(Some(vec!["u".into()]), TIMEOUT, done()));
            some.into_iter().chain(admin("all", describe_users(None, TIMEOUT, done()))).collect()
        }
        ApiKey::AlterUserScramCredentials => {
            let upsert = ScramAlteration::Upsert {
                user: "u".into(),
                mechanism: ScramMechanism::Sha256,
                iterations: 4096,
                salt: vec![1],
                salted_password: Secret::from("x"),
            };
            let delete = ScramAlteration::Delete { user: "v".into(), mechanism: ScramMechanism::Sha512 };
            admin("both", alter_users(vec![upsert, delete], TIMEOUT, done()))
        }
        ApiKey::DescribeClientQuotas => {
            let filter = QuotaFilter::default()
                .matching("user", QuotaMatch::Name("u".into()))
                .matching("client-id", QuotaMatch::Default)
                .matching("ip", QuotaMatch::Any)
                .strict();
            admin("a filter", describe_quotas(filter, TIMEOUT, done()))
        }
        ApiKey::AlterClientQuotas => {
            let entity = [("user".to_owned(), None)].into();
            let changes = [("x".to_owned(), Some(1.0)), ("y".to_owned(), None)].into();
            admin("a change", alter_quotas([(entity, changes)].into(), true, TIMEOUT, done()))
        }
        ApiKey::DescribeCluster => [false, true]
            .into_iter()
            .flat_map(|fenced| admin("the cluster", describe_cluster(true, fenced, TIMEOUT, done())))
            .collect(),
        ApiKey::DescribeTopicPartitions => {
            admin("a topic", describe_topics(vec!["t".into()], true, TIMEOUT, done()))
        }
        ApiKey::DescribeQuorum => admin("", describe_quorum(TIMEOUT, done())),
        ApiKey::UpdateFeatures => [false, true]
            .into_iter()
            .flat_map(|is_unsafe| {
                let upgrade =
                    if is_unsafe { FeatureUpgrade::UnsafeDowngrade } else { FeatureUpgrade::SafeDowngrade };
                let updates = [("f".to_owned(), FeatureUpdate::new(1, upgrade))].into();
                admin("an update", update_features(updates, is_unsafe, TIMEOUT, done()))
            })
            .collect(),
        ApiKey::UnregisterBroker => admin("", unregister_broker(1, TIMEOUT, done())),
        ApiKey::UnregisterController => admin("", unregister_controller(1, TIMEOUT, done())),
        ApiKey::ListConfigResources => [ResourceKind::CLIENT_METRICS, ResourceKind::TOPIC]
            .into_iter()
            .flat_map(|kind| admin("a kind", list_config_resources(vec![kind], TIMEOUT, done())))
            .collect(),
        ApiKey::AddRaftVoter => {
            let listeners = vec![VoterListener::new("CONTROLLER", "h", 9093)];
            admin("", add_voter(Some("c".into()), voter(), listeners, TIMEOUT, done()))
        }
        ApiKey::RemoveRaftVoter => admin("", remove_voter(Some("c".into()), voter(), TIMEOUT, done())),
        ApiKey::ApiVersions => admin("features", describe_features(TIMEOUT, done())),
        ApiKey::ShareGroupDescribe => {
            let call = describe_share_groups(vec!["g".into()], true, TIMEOUT, done());
            admin("a group", call.done(to_broker))
        }
        ApiKey::StreamsGroupDescribe => {
            let included = Included { operations: true, topology_description: true };
            let call = describe_streams_groups(vec!["g".into()], included, TIMEOUT, done());
            admin("a group", call.done(to_broker))
        }
        ApiKey::DescribeShareGroupOffsets => [None, Some(vec![key()])]
            .into_iter()
            .flat_map(|keys| admin("offsets", list_share_group_offsets("g", keys, TIMEOUT, done())))
            .collect(),
        ApiKey::AlterShareGroupOffsets => {
            admin("an offset", alter_share_group_offsets("g", vec![(key(), 7)], TIMEOUT, done()))
        }
        ApiKey::DeleteShareGroupOffsets => {
            admin("a topic", delete_share_group_offsets("g", vec!["t".into()], TIMEOUT, done()))
        }
        _ => replica_cases(api),
    }
}

fn voter() -> Voter {
    Voter { id: 1, directory_id: TOPIC_ID }
}

fn acl_cases(api: ApiKey) -> Vec<Case> {
    let rule = || AclBinding::allow("User:u", AclOperation::Read, AclResourceType::Topic, "t");
    let filters = || {
        let named = AclFilter::from(&rule());
        [AclFilter::default(), AclFilter { pattern: PatternType::Match, ..named.clone() }, named]
    };
    match api {
        ApiKey::CreateAcls => [rule(), rule().prefixed()]
            .into_iter()
            .flat_map(|rule| admin("a rule", create_acls(vec![rule], TIMEOUT, done())))
            .collect(),
        ApiKey::DescribeAcls => filters()
            .into_iter()
            .flat_map(|filter| admin("a filter", describe_acls(filter, TIMEOUT, done())))
            .collect(),
        _ => filters()
            .into_iter()
            .flat_map(|filter| admin("a filter", delete_acls(vec![filter], TIMEOUT, done())))
            .collect(),
    }
}

fn token_cases(api: ApiKey) -> Vec<Case> {
    let (hmac, period) = (Secret::from("x"), Some(Duration::from_secs(60)));
    match api {
        ApiKey::CreateDelegationToken => {
            let plain = NewDelegationToken { renewers: vec![Principal::user("r")], ..Default::default() };
            let owned = NewDelegationToken { owner: Some(Principal::user("o")), ..plain.clone() };
            [plain, owned]
                .into_iter()
                .flat_map(|new| admin("a token", create_token(new, TIMEOUT, done())))
                .collect()
        }
        ApiKey::RenewDelegationToken => admin("", renew_token(hmac, period, TIMEOUT, done())),
        ApiKey::ExpireDelegationToken => admin("", expire_token(hmac, period, TIMEOUT, done())),
        _ => [None, Some(vec![Principal::user("o")])]
            .into_iter()
            .flat_map(|owners| admin("owners", describe_tokens(owners, TIMEOUT, done())))
            .collect(),
    }
}

fn replica_cases(api: ApiKey) -> Vec<Case> {
    match api {
        ApiKey::ElectLeaders => [(ElectionType::Preferred, None), (ElectionType::Unclean, Some(vec![key()]))]
            .into_iter()
            .flat_map(|(kind, partitions)| admin("leaders", elect_leaders(kind, partitions, TIMEOUT, done())))
            .collect(),
        ApiKey::AlterPartitionReassignments => [false, true]
            .into_iter()
            .flat_map(|may_change| {
                let reassignments = [(key(), Some(vec![1, 2]))].into();
                admin("replicas", alter_reassignments(reassignments, may_change, TIMEOUT, done()))
            })
            .collect(),
        ApiKey::ListPartitionReassignments => {
            admin("partitions", list_reassignments(Some(vec![key()]), TIMEOUT, done()))
        }
        ApiKey::DescribeLogDirs => {
            let one = admin("a broker", describe_log_dirs(1, Some(vec![key()]), TIMEOUT, done()));
            one.into_iter().chain(admin("all", describe_all_log_dirs(None, TIMEOUT, done()))).collect()
        }
        ApiKey::AlterReplicaLogDirs => {
            admin("a replica", alter_log_dirs(1, [(key(), "/d".to_owned())].into(), TIMEOUT, done()))
        }
        _ => Vec::new(),
    }
}

/// Returns the requests of an API that administrative calls about groups send.
pub(super) fn group_cases(api: ApiKey) -> Vec<Case> {
    let partitions = || vec![TopicPartition::new("t", 0), TopicPartition::new("t", 1)];
    let offset = GroupOffset { leader_epoch: LeaderEpoch::from_wire(3), ..GroupOffset::new("t", 0, 7) };
    let members = ["i", "j"].map(|id| MemberToRemove::Instance(id.into())).to_vec();
    let filters = [
        GroupFilter::default(),
        GroupFilter { states: vec![GroupState::Stable], ..Default::default() },
        GroupFilter { types: vec![GroupType::Classic], ..Default::default() },
    ];
    match api {
        ApiKey::ListGroups => filters
            .into_iter()
            .flat_map(|filter| admin("groups", list_groups(filter, TIMEOUT, done())))
            .collect(),
        ApiKey::ConsumerGroupDescribe | ApiKey::DescribeGroups => {
            let call = describe_group("g", true, TIMEOUT, done());
            let mut cases = admin_after_refusal("a group", call);
            vec![cases.remove(usize::from(api == ApiKey::DescribeGroups))]
        }
        ApiKey::DeleteGroups => admin("a group", delete_group("g", TIMEOUT, done())),
        ApiKey::LeaveGroup => {
            admin("members", remove_members("g", members, Some("because".into()), TIMEOUT, done()))
        }
        ApiKey::OffsetFetch => [None, Some(partitions())]
            .into_iter()
            .flat_map(|keys| admin("stable offsets", list_group_offsets("g", keys, true, TIMEOUT, done())))
            .collect(),
        ApiKey::OffsetCommit => admin("offsets", alter_group_offsets("g", vec![offset], TIMEOUT, done())),
        ApiKey::OffsetDelete => admin("offsets", delete_group_offsets("g", partitions(), TIMEOUT, done())),
        _ => Vec::new(),
    }
}
