//! The Kafka Improvement Proposals that concern a client, and what Ottla does with each.
//!
//! docs/guide/kips.md is generated from [`KIPS`]. A row names a test that shows the behaviour, or says that there is none yet;
//! a test compares the names with the sources.

/// A proposal.
#[derive(Debug)]
pub struct Kip {
    /// The number.
    number: u16,
    /// The subject, in a few words.
    title: &'static str,
    /// The first release of Apache Kafka that has it.
    since: &'static str,
    support: Support,
    /// How it shows in Ottla.
    what: &'static str,
    /// A test function, or a program of the C tests.
    test: Option<&'static str>,
}

/// How far Ottla implements a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Support {
    Yes,
    Part,
    No,
}

impl Support {
    const fn text(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::Part => "in part",
            Self::No => "no",
        }
    }
}

const fn kip(
    number: u16,
    title: &'static str,
    since: &'static str,
    support: Support,
    what: &'static str,
    test: Option<&'static str>,
) -> Kip {
    Kip { number, title, since, support, what, test }
}

/// The proposals, by number.
#[rustfmt::skip]
pub const KIPS: &[Kip] = &[
    kip(4, "administration by the protocol", "0.10.1", Support::Yes, "topics are created and deleted by requests", Some("topics_are_created_listed_described_and_deleted")),
    kip(12, "TLS and SASL", "0.9", Support::Yes, "[security.md](security.md)", Some("kerberos_of_kafka_0_9_begins_without_a_handshake")),
    kip(13, "quotas", "0.9", Support::Yes, "throttle times are obeyed, counted and reported", Some("the_longest_of_several_throttle_times_counts_and_each_is_counted")),
    kip(22, "partitioners of the application", "0.9", Support::Yes, "`ProducerBuilder::partitioner`", Some("custom_partitioner_chooses_missing_partitions")),
    kip(31, "relative offsets in message sets", "0.10.0", Support::Yes, "read and written for brokers before 0.11", Some("wrapper_has_the_offset_of_its_last_message")),
    kip(32, "timestamps of records", "0.10.0", Support::Yes, "in records, and in offsets by time", Some("old_messages_keep_the_type_of_their_timestamps")),
    kip(35, "ApiVersions", "0.10.0", Support::Yes, "asks each broker for its versions", Some("error_35_is_acted_on_whatever_body_follows")),
    kip(41, "limit of records per poll", "0.10.0", Support::Part, "`max.poll.records` for share consumers; the batch calls of consumers have a count", Some("strict_limit_bounds_a_poll")),
    kip(42, "interceptors", "0.10.0", Support::Yes, "on send, acknowledgement, consume and commit; in Rust with [trace context](https://www.w3.org/TR/trace-context/)", Some("interceptors_see_records_deliveries_and_commits")),
    kip(43, "mechanisms of SASL", "0.10.0", Support::Yes, "`sasl.mechanism`", Some("names_lead_to_mechanisms_and_others_to_reasons")),
    kip(48, "delegation tokens", "1.1", Support::Yes, "administration, and login with a token", Some("java_spelling_and_delegation_tokens_authenticate")),
    kip(54, "sticky assignor", "0.11", Support::Yes, "`sticky`, also with members of other clients", Some("eager_sticky_members_have_their_last_assignment_in_the_user_data")),
    kip(62, "heartbeats while the application works", "0.10.1", Support::Yes, "`max.poll.interval.ms` bounds the time between polls", Some("member_without_polls_leaves_after_giving_up_and_joins_at_the_next")),
    kip(74, "limit on the size of a Fetch response", "0.10.1", Support::Yes, "`fetch.max.bytes`; a larger first batch comes alone", Some("batch_above_the_ceiling_comes_alone")),
    kip(78, "ID of the cluster", "0.10.1", Support::Yes, "described; a change is an event", Some("change_of_the_cluster_id_is_reported_once_per_change")),
    kip(79, "offsets by time", "0.10.1", Support::Yes, "`OffsetSpec::Timestamp`, `ottla offsets --time`", Some("offsets_are_listed_by_name_and_by_timestamp")),
    kip(82, "headers of records", "0.11", Support::Yes, "in records; those for older brokers fail one by one", Some("record_with_headers_fails_alone_when_the_broker_has_no_headers")),
    kip(84, "SCRAM", "0.10.2", Support::Yes, "SCRAM-SHA-256 and SCRAM-SHA-512", Some("scram_never_sends_the_same_nonce_twice")),
    kip(86, "callbacks for credentials", "2.0", Support::Part, "tokens and passwords from the application; no mechanisms from it", Some("failures_of_a_provider_are_events_with_its_reason")),
    kip(88, "committed offsets of all partitions", "0.10.2", Support::Yes, "`list_group_offsets`", Some("committed_offsets_are_listed_in_every_version")),
    kip(91, "time for a delivery", "2.1", Support::Yes, "`delivery.timeout.ms`", Some("expired_record_error_says_whether_it_was_sent")),
    kip(97, "brokers older than the client", "0.10.2", Support::Yes, "back to 0.8", Some("brokers_of_0_8_are_served_too")),
    kip(98, "idempotence and transactions", "0.11", Support::Yes, "by default in Rust; [transactions.md](transactions.md)", Some("possibly_written_batch_keeps_its_sequence_number")),
    kip(107, "deletion of records", "0.11", Support::Yes, "`delete_records`", Some("records_are_deleted_at_the_partitions_leader_also_after_it_moved")),
    kip(110, "zstd", "2.1", Support::Yes, "`compression.type=zstd`", Some("every_codec_and_level_round_trips")),
    kip(113, "log directories", "1.1", Support::Yes, "described, and replicas moved between them", Some("log_dirs_are_described_and_replicas_are_moved")),
    kip(117, "administration", "0.11", Support::Yes, "topics, configurations, access rules; [admin.md](admin.md)", Some("topics_are_created_listed_described_and_deleted")),
    kip(124, "quotas of requests", "0.11", Support::Yes, "throttle times of every API count", Some("throttle_of_one_connection_does_not_affect_the_next")),
    kip(126, "batches that are too large", "0.11", Support::Yes, "are divided and sent again", Some("batch_that_is_too_large_for_the_broker_is_split")),
    kip(133, "configurations", "0.11", Support::Yes, "`describe_configs`, `incremental_alter_configs`", Some("configs_are_described_and_altered_incrementally")),
    kip(140, "access rules", "0.11", Support::Yes, "`describe_acls`, `create_acls`, `delete_acls`", Some("acls_are_added_listed_and_removed")),
    kip(152, "reasons of a refused authentication", "1.0", Support::Yes, "a typed error that names the mechanism or the password", Some("wrong_mechanism_and_wrong_password_are_recognized")),
    kip(195, "more partitions", "1.0", Support::Yes, "`create_partitions`", Some("partitions_are_added_to_a_topic")),
    kip(219, "the client obeys throttle times", "2.0", Support::Yes, "no request to a broker until the time has passed", Some("a_throttled_broker_is_left_alone_and_then_gets_all_in_one_request")),
    kip(222, "administration of groups", "2.0", Support::Yes, "list, describe, delete", Some("consumer_group_is_described_listed_and_deleted_when_empty")),
    kip(227, "fetch sessions", "1.1", Support::Yes, "a request names only what changed", Some("evicted_fetch_sessions_are_recreated")),
    kip(229, "deletion of groups", "1.1", Support::Yes, "`delete_groups`", Some("consumer_group_is_described_listed_and_deleted_when_empty")),
    kip(235, "canonical names of bootstrap servers", "2.1", Support::Yes, "`client.dns.lookup=resolve_canonical_bootstrap_servers_only`", Some("alias_is_replaced_by_each_name_of_its_addresses_once")),
    kip(255, "OAUTHBEARER", "2.0", Support::Yes, "tokens from the application or an identity provider", Some("first_message_has_token_and_extensions")),
    kip(290, "access rules with prefixes", "2.0", Support::Yes, "`PatternType`", Some("filters_match_by_pattern_type")),
    kip(302, "all addresses of a name", "2.1", Support::Yes, "one after the other; the default (KIP-602)", Some("handshakes_have_more_time_than_one_of_several_addresses")),
    kip(320, "truncation detection", "2.1", Support::Yes, "compares the leader epochs of consumed records", Some("new_leader_is_asked_for_truncation")),
    kip(339, "incremental changes of configurations", "2.3", Support::Yes, "`incremental_alter_configs`", Some("configs_are_described_and_altered_incrementally")),
    kip(342, "extensions of tokens", "2.1", Support::Yes, "`sasl.oauthbearer.extensions`", Some("first_message_has_token_and_extensions")),
    kip(345, "static members", "2.3", Support::Yes, "`group.instance.id` in both protocols", Some("returning_static_member_gets_its_partitions_back")),
    kip(360, "recovery from an unknown producer ID", "2.5", Support::Yes, "another epoch instead of a fatal error", Some("unknown_producer_id_causes_a_new_epoch")),
    kip(361, "topics that consumers create", "2.3", Support::Yes, "`allow.auto.create.topics`, off by default", Some("missing_topic_is_created_only_if_the_consumer_allows_it")),
    kip(368, "re-authentication", "2.2", Support::Yes, "before a session ends, on the same connection", Some("re_authentication_sends_handshake_and_first_message_together")),
    kip(373, "delegation tokens for others", "3.3", Support::Yes, "`NewDelegationToken::owner`", Some("token_authenticates_until_it_expires")),
    kip(390, "levels of compression", "3.8", Support::Yes, "`compression.level`, and one per codec", Some("higher_levels_compress_better")),
    kip(392, "fetching from the closest replica", "2.4", Support::Yes, "`client.rack`", Some("consumer_in_a_rack_reads_from_the_replica_there")),
    kip(394, "member IDs before the first join", "2.2", Support::Yes, "a refused join is repeated with the ID", Some("first_join_is_repeated_at_once_with_the_member_id")),
    kip(396, "offsets by administration", "2.5", Support::Yes, "`list_offsets`, `alter_group_offsets`", Some("only_offsets_without_a_result_are_committed_again")),
    kip(405, "tiered storage", "3.6", Support::Yes, "`OffsetSpec::EarliestLocal`", Some("topic_without_tiered_storage_has_only_local_offsets")),
    kip(429, "incremental rebalance", "2.4", Support::Yes, "`cooperative-sticky`", Some("cooperative_member_revokes_only_moving_partitions_and_rejoins")),
    kip(430, "permitted operations", "2.3", Support::Yes, "in descriptions, on request", Some("permitted_operations_are_reported")),
    kip(447, "offsets of a member in transactions", "2.5", Support::Yes, "the coordinator refuses offsets of members that were replaced", Some("offsets_become_visible_with_the_transaction")),
    kip(455, "reassignment of replicas", "2.4", Support::Yes, "list, alter, cancel", Some("limits_of_reassignments_are_set_and_removed")),
    kip(460, "elections", "2.4", Support::Yes, "preferred and unclean", Some("elections_have_a_result_for_each_partition")),
    kip(467, "errors of single records", "2.5", Support::Yes, "the others of the batch fail with `InvalidDifferentRecord`", Some("refused_records_have_their_own_errors_and_the_others_another_kind")),
    kip(480, "batches for one partition at a time", "2.4", Support::Yes, "records without a key stay with a partition for a while", Some("records_without_a_key_follow_the_partitioner")),
    kip(482, "tagged fields", "2.4", Support::Yes, "unknown ones are skipped", Some("unknown_tagged_fields_are_skipped_in_every_flexible_version")),
    kip(496, "deletion of committed offsets", "2.4", Support::Yes, "`delete_group_offsets`", Some("offsets_are_deleted_unless_a_member_subscribes_to_the_topic")),
    kip(511, "name and version of the client", "2.4", Support::Yes, "in ApiVersions", Some("software_names_are_as_brokers_accept_them")),
    kip(516, "topic IDs", "2.8", Support::Yes, "in all APIs that have them; a recreated topic is noticed", Some("consumer_uses_the_leader_epoch_of_a_recreated_topic")),
    kip(546, "quotas", "2.6", Support::Yes, "described and altered", Some("quotas_are_set_described_and_removed")),
    kip(554, "SCRAM users", "2.7", Support::Yes, "described and altered", Some("hostile_scram_brokers_are_refused")),
    kip(568, "a member requests a rebalance", "2.6", Support::Yes, "`Consumer::enforce_rebalance`; classic protocol", Some("enforced_rebalance_assigns_anew")),
    kip(580, "exponential back-off", "3.7", Support::Yes, "`retry.backoff.max.ms`, `reconnect.backoff.max.ms`", Some("members_look_for_an_unknown_coordinator_with_back_offs")),
    kip(584, "features", "2.7", Support::Yes, "described and updated", Some("features_are_described_and_updates_are_checked")),
    kip(588, "return after a transaction's timeout", "2.7", Support::Yes, "an error that permits an abort instead of a fatal one", Some("late_transaction_is_aborted_before_its_application_notices")),
    kip(595, "quorum of controllers", "3.3", Support::Yes, "`describe_quorum`, `ottla quorum`", Some("quorum_is_described_and_brokers_are_unregistered")),
    kip(599, "limits of created and deleted topics", "2.7", Support::Yes, "throttled items are requested again until the deadline", Some("only_items_with_temporary_errors_are_requested_again")),
    kip(601, "timeout of connection setup", "2.7", Support::Yes, "doubles with each failure", Some("setup_timeout_doubles_with_each_failure_up_to_its_maximum")),
    kip(651, "keys and certificates as PEM", "2.7", Support::Yes, "in properties and files", Some("certificates_may_stand_in_any_order_behind_the_key")),
    kip(664, "hanging transactions", "3.0", Support::Yes, "found and aborted", Some("hanging_transaction_is_found_and_aborted")),
    kip(679, "strong guarantees by default", "3.0", Support::Yes, "idempotence and `acks=all` in Rust", Some("idempotence_by_default_gives_way_to_weaker_settings")),
    kip(699, "several coordinators per lookup", "3.0", Support::Yes, "one request for all keys", Some("coordinators_requested_together_share_a_lookup")),
    kip(700, "DescribeCluster", "2.8", Support::Yes, "from Metadata of older brokers", Some("cluster_is_described_by_metadata_of_older_brokers")),
    kip(709, "committed offsets of several groups", "3.0", Support::Part, "its version of OffsetFetch, with a group per request", Some("committed_offsets_are_listed_in_every_version")),
    kip(714, "client telemetry", "3.7", Support::Yes, "[telemetry.md](telemetry.md)", Some("admin_client_pushes_its_metrics")),
    kip(734, "offset of the largest timestamp", "3.0", Support::Yes, "`OffsetSpec::MaxTimestamp`", Some("offsets_of_many_partitions_are_listed_at_once")),
    kip(735, "session timeout of 45 s", "3.0", Support::Yes, "the default of `session.timeout.ms`", Some("defaults_are_those_of_the_properties")),
    kip(768, "tokens of an identity provider", "3.1", Support::Yes, "`sasl.oauthbearer.method=oidc`", Some("client_credentials_get_a_token_with_encoded_parameters")),
    kip(792, "generation of owned partitions", "3.4", Support::Yes, "the assignor ignores claims of earlier generations", Some("claim_of_an_earlier_generation_is_respected")),
    kip(794, "partitions by load", "3.3", Support::Yes, "`partitioner.adaptive.partitioning.enable`", Some("records_without_key_avoid_partitions_that_are_not_drained")),
    kip(800, "reasons of joining and leaving", "3.2", Support::Yes, "in the requests, for the log of the broker", Some("returning_leader_joins_again_if_a_partition_is_unassigned")),
    kip(814, "a returning static leader", "3.2", Support::Yes, "keeps the assignment without a rebalance", Some("returning_static_leader_finds_unassigned_partitions")),
    kip(848, "consumer protocol of groups", "4.0", Support::Yes, "`group.protocol=consumer`; [groups.md](groups.md)", Some("coordinator_gets_one_pattern")),
    kip(853, "changes of the quorum", "3.9", Support::Yes, "`add_voter`, `remove_voter`, `ottla quorum`", Some("unknown_brokers_and_voters_are_refused")),
    kip(860, "reassignments with as many replicas", "4.1", Support::Yes, "`AdminOptions::same_replication_factor`", Some("wrong_reassignments_are_refused")),
    kip(881, "racks in assignments", "3.5", Support::Yes, "by the client-side assignors", Some("co_partitioned_topics_stay_together_in_racks")),
    kip(890, "transactions without hanging ones", "4.0", Support::Yes, "an epoch per transaction", Some("transactions_survive_an_upgrade_and_a_downgrade")),
    kip(899, "return to the bootstrap servers", "3.8", Support::Yes, "`metadata.recovery.strategy`", Some("silent_brokers_cause_a_rebootstrap")),
    kip(919, "calls to controllers", "3.7", Support::Yes, "`bootstrap.controllers`; administration only", Some("controllers_serve_administration_without_brokers")),
    kip(932, "share groups", "4.2", Support::Yes, "[share-groups.md](share-groups.md)", Some("share_session_requires_its_next_epoch_and_releases_records")),
    kip(951, "leaders in responses", "3.7", Support::Yes, "the next request goes to the new leader; [kip-951.md](../internals/kip-951.md)", Some("leader_hint_needs_a_newer_epoch_and_a_reachable_leader")),
    kip(966, "eligible leader replicas", "4.0", Support::Yes, "in descriptions of topics", Some("topics_are_described_with_their_eligible_leaders")),
    kip(1005, "latest tiered offset", "3.9", Support::Yes, "`OffsetSpec::LatestTiered`; `EarliestLocal` of KIP-405 likewise", Some("topic_without_tiered_storage_has_only_local_offsets")),
    kip(1023, "earliest pending upload", "4.2", Support::Yes, "`OffsetSpec::EarliestPendingUpload`", Some("topic_without_tiered_storage_has_only_local_offsets")),
    kip(1025, "encoded client ID and secret", "3.9", Support::Yes, "`sasl.oauthbearer.header.urlencode`", Some("client_credentials_get_a_token_with_encoded_parameters")),
    kip(1043, "administration of groups of all types", "4.0", Support::Yes, "`list_groups`, `ottla groups list`", Some("group_is_listed_described_and_shown_with_its_lag")),
    kip(1071, "streams groups", "4.2", Support::Yes, "`ottla::streams`: a member with its tasks, for a library of stream processing; administration", Some("tasks_move_to_a_second_member_and_back")),
    kip(1073, "fenced brokers", "4.0", Support::Yes, "listed on request", Some("fenced_brokers_are_listed_on_request")),
    kip(1076, "metrics of the application in telemetry", "4.0", Support::Yes, "`ApplicationMetrics`; Rust", Some("metrics_of_the_application_are_pushed_as_subscribed")),
    kip(1082, "member IDs made by the client", "4.0", Support::Yes, "in the consumer protocol", Some("first_heartbeat_joins_with_everything_and_a_member_id_of_its_own")),
    kip(1092, "closing with a choice", "4.1", Support::Yes, "`Consumer::close_with`; Rust", Some("member_leaves_as_the_operation_demands")),
    kip(1102, "brokers request a return to the bootstrap servers", "4.0", Support::Yes, "REBOOTSTRAP_REQUIRED", Some("broker_can_request_a_rebootstrap")),
    kip(1106, "reset by duration", "4.0", Support::Yes, "`auto.offset.reset=by_duration:PT1H`", Some("reset_by_duration_continues_at_records_of_that_time")),
    kip(1123, "partitioner with racks", "4.4", Support::Yes, "`partitioner.rack.aware` with `client.rack`", Some("records_without_a_key_go_to_leaders_in_the_rack")),
    kip(1139, "assertions for tokens", "4.1", Support::Yes, "`jwt-bearer`", Some("assertion_of_a_file_is_read_for_each_token")),
    kip(1142, "resources with a configuration", "4.1", Support::Yes, "`list_config_resources`, also groups without members", Some("resources_with_a_configuration_are_listed_by_kind")),
    kip(1191, "dead letter topics of share groups", "4.4", Support::Yes, "properties of the group; brokers write the records ([share-groups.md](share-groups.md))", Some("dead_letter_topic_of_a_share_group_is_set_and_described")),
    kip(1206, "limit of acquired records", "4.2", Support::Yes, "`share.acquire.mode=record_limit`", Some("every_schedule_passes")),
    kip(1222, "renewal of locks", "4.2", Support::Yes, "`share.renew.locks`", Some("closing_releases_a_held_record_whose_renewal_is_in_flight")),
    kip(1226, "lag of share groups", "4.2", Support::Yes, "in `list_share_group_offsets`", Some("share_group_is_described_reset_and_deleted")),
    kip(1242, "misrouted connections", "4.4", Support::Yes, "connections to nodes state the IDs of cluster and node", Some("addresses_may_lead_to_other_nodes_and_other_clusters")),
    kip(1251, "commits in an older epoch", "4.3", Support::Yes, "a commit that crosses a rebalance succeeds", Some("commit_after_a_lost_epoch_rewinds_nothing")),
    kip(1258, "assertions for client credentials", "4.3", Support::Yes, "an assertion instead of `sasl.oauthbearer.client.secret`", Some("assertion_replaces_the_secret_of_client_credentials")),
    kip(1319, "topic IDs in transactional offsets", "4.4", Support::Yes, "if the consumer knows the IDs of all topics; not in C", Some("topics_are_named_by_id_if_all_ids_are_known")),
    kip(1331, "descriptions of streams topologies", "4.4", Support::Yes, "sent by members, returned by `describe_streams_groups`, printed by `ottla streams-groups describe --topology`", Some("topology_is_described_by_the_nodes_that_a_member_sent")),
];

/// Returns the page with all proposals.
pub fn page() -> String {
    use std::fmt::Write as _;

    let mut page = String::from(
        "# Kafka Improvement Proposals\n\nThe proposals that concern a client, the release of Apache Kafka in which each was complete (previews do not count), \
         what Ottla does with it, and a test that shows it. Generated by `cargo xtask docs`.\n\n\
         | KIP | subject | Kafka | in Ottla | how | test |\n|---|---|---|---|---|---|\n",
    );
    for Kip { number, title, since, support, what, test } in KIPS {
        let test = test.map_or_else(String::new, |test| format!("`{test}`"));
        let _ = writeln!(page, "| {number} | {title} | {since} | {} | {what} | {test} |", support.text());
    }
    page
}

/// Returns the rows whose test does not exist, that have none although Ottla implements the proposal, and that are not in order.
pub fn check(exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for Kip { number, support, test, .. } in KIPS {
        match test {
            Some(test) if !exists(test) => {
                found.push(format!("KIP-{number}: the test `{test}` does not exist"))
            }
            None if *support != Support::No => found.push(format!("KIP-{number} names no test")),
            _ => {}
        }
    }
    let is_sorted = KIPS.is_sorted_by(|one, next| one.number < next.number);
    found.extend((!is_sorted).then(|| "the proposals are not in the order of their numbers".to_owned()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{pitfalls, shell::root};

    /// Compares docs/guide/kips.md, or writes it if `OTTLA_WRITE_DOCS` is set.
    #[test]
    fn kips_md_lists_the_table() {
        let path = root().join("docs/guide/kips.md");
        if std::env::var_os("OTTLA_WRITE_DOCS").is_some() {
            std::fs::write(&path, page()).expect("the page can be written");
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(written == page(), "docs/guide/kips.md is stale: run `cargo xtask docs`");
    }

    #[test]
    fn every_proposal_has_a_test_that_exists() {
        let tests = pitfalls::tests(&root()).expect("git lists the sources");
        assert_eq!(check(|test| tests.contains(test)), Vec::<String>::new());
        assert!(check(|_| false).len() > 40, "a test that does not exist is found");
    }
}
