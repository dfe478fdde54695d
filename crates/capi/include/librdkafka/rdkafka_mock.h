/*
 * rdkafka_mock.h: a cluster inside the process, for tests.
 *
 * Ottla, an Apache Kafka client. Licensed under MIT or Apache-2.0.
 * Generated from crates/capi/abi; change it there.
 */
#ifndef OTTLA_RDKAFKA_MOCK_H
#define OTTLA_RDKAFKA_MOCK_H

#include <librdkafka/rdkafka.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A cluster inside the process. */
typedef struct rd_kafka_mock_cluster_s rd_kafka_mock_cluster_t;
/** A request that it was sent. */
typedef struct rd_kafka_mock_request_s rd_kafka_mock_request_t;
/** What the members of a consumer group are to be given. */
typedef struct rd_kafka_mock_cgrp_consumer_target_assignment_s rd_kafka_mock_cgrp_consumer_target_assignment_t;

/** Mock cluster: cluster new. Not there yet. */
RD_EXPORT
rd_kafka_mock_cluster_t *rd_kafka_mock_cluster_new(rd_kafka_t *rk, int broker_cnt);

/** Frees the mock cluster. Not there yet. */
RD_EXPORT
void rd_kafka_mock_cluster_destroy(rd_kafka_mock_cluster_t *mcluster);

/** Mock cluster: cluster handle. Not there yet. */
RD_EXPORT
rd_kafka_t *rd_kafka_mock_cluster_handle(const rd_kafka_mock_cluster_t *mcluster);

/** Handle mock cluster. Not there yet. */
RD_EXPORT
rd_kafka_mock_cluster_t *rd_kafka_handle_mock_cluster(const rd_kafka_t *rk);

/** Mock cluster: cluster bootstraps. Not there yet. */
RD_EXPORT
const char *rd_kafka_mock_cluster_bootstraps(const rd_kafka_mock_cluster_t *mcluster);

/** Mock cluster: clear request errors. Not there yet. */
RD_EXPORT
void rd_kafka_mock_clear_request_errors(rd_kafka_mock_cluster_t *mcluster, int16_t ApiKey);

/** Mock cluster: push request errors. Not there yet. */
RD_EXPORT
void rd_kafka_mock_push_request_errors(rd_kafka_mock_cluster_t *mcluster, int16_t ApiKey, size_t cnt, ...);

/** Mock cluster: push request errors array. Not there yet. */
RD_EXPORT
void rd_kafka_mock_push_request_errors_array(rd_kafka_mock_cluster_t *mcluster, int16_t ApiKey, size_t cnt, const rd_kafka_resp_err_t *errors);

/** Mock cluster: group initial rebalance delay ms. Not there yet. */
RD_EXPORT
void rd_kafka_mock_group_initial_rebalance_delay_ms(rd_kafka_mock_cluster_t *mcluster, int32_t delay_ms);

/** Mock cluster: broker push request error rtts. Not there yet. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_broker_push_request_error_rtts(rd_kafka_mock_cluster_t *mcluster, int32_t broker_id, int16_t ApiKey, size_t cnt, ...);

/** Mock cluster: broker error stack cnt. Not there yet. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_broker_error_stack_cnt(rd_kafka_mock_cluster_t *mcluster, int32_t broker_id, int16_t ApiKey, size_t *cntp);

/** Mock cluster: partition push request errors. Not there yet. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_partition_push_request_errors(rd_kafka_mock_cluster_t *mcluster, const char *topic, int32_t partition, int16_t ApiKey, size_t cnt, ...);

/** Mock cluster: topic set error. Not there yet. */
RD_EXPORT
void rd_kafka_mock_topic_set_error(rd_kafka_mock_cluster_t *mcluster, const char *topic, rd_kafka_resp_err_t err);

/** Mock cluster: topic create. Not there yet. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_topic_create(rd_kafka_mock_cluster_t *mcluster, const char *topic, int partition_cnt, int replication_factor);

/** Mock cluster: topic delete. Not there yet. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_topic_delete(rd_kafka_mock_cluster_t *mcluster, const char *topic);

/** Mock cluster: partition delete records. Not there yet. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_partition_delete_records(rd_kafka_mock_cluster_t *mcluster, const char *topic, int32_t partition, int64_t before_offset);

/** Mock cluster: partition set leader. Not there yet. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_partition_set_leader(rd_kafka_mock_cluster_t *mcluster, const char *topic, int32_t partition, int32_t broker_id);

/** Mock cluster: partition set follower. Not there yet. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_partition_set_follower(rd_kafka_mock_cluster_t *mcluster, const char *topic, int32_t partition, int32_t broker_id);

/** Mock cluster: partition set follower wmarks. Not there yet. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_partition_set_follower_wmarks(rd_kafka_mock_cluster_t *mcluster, const char *topic, int32_t partition, int64_t lo, int64_t hi);

/** Mock cluster: partition push leader response. Not there yet. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_partition_push_leader_response(rd_kafka_mock_cluster_t *mcluster, const char *topic, int partition, int32_t leader_id, int32_t leader_epoch);

/** Mock cluster: broker set down. Not there yet. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_broker_set_down(rd_kafka_mock_cluster_t *mcluster, int32_t broker_id);

/** Mock cluster: broker set host port. Not there yet. */
RD_EXPORT
void rd_kafka_mock_broker_set_host_port(rd_kafka_mock_cluster_t *mcluster, int32_t broker_id, const char *host, int port);

/** Mock cluster: broker set up. Not there yet. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_broker_set_up(rd_kafka_mock_cluster_t *mcluster, int32_t broker_id);

/** Mock cluster: broker set rtt. Not there yet. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_broker_set_rtt(rd_kafka_mock_cluster_t *mcluster, int32_t broker_id, int rtt_ms);

/** Mock cluster: broker set rack. Not there yet. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_broker_set_rack(rd_kafka_mock_cluster_t *mcluster, int32_t broker_id, const char *rack);

/** Mock cluster: broker decommission. Not there yet. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_broker_decommission(rd_kafka_mock_cluster_t *cluster, int32_t broker_id);

/** Mock cluster: broker remove from metadata. Not there yet. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_broker_remove_from_metadata(rd_kafka_mock_cluster_t *mcluster, int32_t broker_id);

/** Mock cluster: broker add. Not there yet. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_broker_add(rd_kafka_mock_cluster_t *mcluster, int32_t broker_id);

/** Mock cluster: coordinator set. Not there yet. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_coordinator_set(rd_kafka_mock_cluster_t *mcluster, const char *key_type, const char *key, int32_t broker_id);

/** Mock cluster: set apiversion. Not there yet. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_set_apiversion(rd_kafka_mock_cluster_t *mcluster, int16_t ApiKey, int16_t MinVersion, int16_t MaxVersion);

/** Mock cluster: start request tracking. Not there yet. */
RD_EXPORT
void rd_kafka_mock_start_request_tracking(rd_kafka_mock_cluster_t *mcluster);

/** Mock cluster: stop request tracking. Not there yet. */
RD_EXPORT
void rd_kafka_mock_stop_request_tracking(rd_kafka_mock_cluster_t *mcluster);

/** Frees the mock request. Not there yet. */
RD_EXPORT
void rd_kafka_mock_request_destroy(rd_kafka_mock_request_t *mreq);

/** Frees each mock request of an array; the array itself stays the caller's. Not there yet. */
RD_EXPORT
void rd_kafka_mock_request_destroy_array(rd_kafka_mock_request_t **mreqs, size_t mreq_cnt);

/** Mock cluster: request id. Not there yet. */
RD_EXPORT
int32_t rd_kafka_mock_request_id(rd_kafka_mock_request_t *mreq);

/** Mock cluster: request api key. Not there yet. */
RD_EXPORT
int16_t rd_kafka_mock_request_api_key(rd_kafka_mock_request_t *mreq);

/** Mock cluster: request timestamp. Not there yet. */
RD_EXPORT
int64_t rd_kafka_mock_request_timestamp(rd_kafka_mock_request_t *mreq);

/** Mock cluster: get requests. Not there yet. */
RD_EXPORT
rd_kafka_mock_request_t **rd_kafka_mock_get_requests(rd_kafka_mock_cluster_t *mcluster, size_t *cntp);

/** Mock cluster: clear requests. Not there yet. */
RD_EXPORT
void rd_kafka_mock_clear_requests(rd_kafka_mock_cluster_t *mcluster);

/** Mock cluster: telemetry set requested metrics. Not there yet. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_telemetry_set_requested_metrics(rd_kafka_mock_cluster_t *mcluster, char **metrics, size_t metrics_cnt);

/** Mock cluster: telemetry set push interval. Not there yet. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_telemetry_set_push_interval(rd_kafka_mock_cluster_t *mcluster, int64_t push_interval_ms);

/** Mock cluster: cgrp consumer target assignment new. Not there yet. */
RD_EXPORT
rd_kafka_mock_cgrp_consumer_target_assignment_t *rd_kafka_mock_cgrp_consumer_target_assignment_new(char **member_ids, int member_cnt, rd_kafka_topic_partition_list_t **assignment);

/** Frees the mock cgrp consumer target assignment. Not there yet. */
RD_EXPORT
void rd_kafka_mock_cgrp_consumer_target_assignment_destroy(rd_kafka_mock_cgrp_consumer_target_assignment_t *target_assignment);

/** Mock cluster: cgrp consumer target assignment. Not there yet. */
RD_EXPORT
void rd_kafka_mock_cgrp_consumer_target_assignment(rd_kafka_mock_cluster_t *mcluster, const char *group_id, rd_kafka_mock_cgrp_consumer_target_assignment_t *target_assignment);

/** Mock cluster: set group consumer session timeout ms. Not there yet. */
RD_EXPORT
void rd_kafka_mock_set_group_consumer_session_timeout_ms(rd_kafka_mock_cluster_t *mcluster, int group_consumer_session_timeout_ms);

/** Mock cluster: set group consumer heartbeat interval ms. Not there yet. */
RD_EXPORT
void rd_kafka_mock_set_group_consumer_heartbeat_interval_ms(rd_kafka_mock_cluster_t *mcluster, int group_consumer_heartbeat_interval_ms);

/** Mock cluster: sharegroup set session timeout. Not there yet. */
RD_EXPORT
void rd_kafka_mock_sharegroup_set_session_timeout(rd_kafka_mock_cluster_t *mcluster, int session_timeout_ms);

/** Mock cluster: sharegroup set heartbeat interval. Not there yet. */
RD_EXPORT
void rd_kafka_mock_sharegroup_set_heartbeat_interval(rd_kafka_mock_cluster_t *mcluster, int heartbeat_interval_ms);

/** Mock cluster: sharegroup set max delivery attempts. Not there yet. */
RD_EXPORT
void rd_kafka_mock_sharegroup_set_max_delivery_attempts(rd_kafka_mock_cluster_t *mcluster, int max_attempts);

/** Mock cluster: sharegroup set record lock duration. Not there yet. */
RD_EXPORT
void rd_kafka_mock_sharegroup_set_record_lock_duration(rd_kafka_mock_cluster_t *mcluster, int lock_duration_ms);

/** Mock cluster: sharegroup set isolation level. Not there yet. */
RD_EXPORT
void rd_kafka_mock_sharegroup_set_isolation_level(rd_kafka_mock_cluster_t *mcluster, int level);

/** Mock cluster: sharegroup set max size. Not there yet. */
RD_EXPORT
void rd_kafka_mock_sharegroup_set_max_size(rd_kafka_mock_cluster_t *mcluster, int max_size);

/** Mock cluster: sharegroup set max fetch sessions. Not there yet. */
RD_EXPORT
void rd_kafka_mock_sharegroup_set_max_fetch_sessions(rd_kafka_mock_cluster_t *mcluster, int max_fetch_sessions);

/** Mock cluster: sharegroup set max record locks. Not there yet. */
RD_EXPORT
void rd_kafka_mock_sharegroup_set_max_record_locks(rd_kafka_mock_cluster_t *mcluster, int max_record_locks);

/** Mock cluster: sharegroup set auto offset reset. Not there yet. */
RD_EXPORT
void rd_kafka_mock_sharegroup_set_auto_offset_reset(rd_kafka_mock_cluster_t *mcluster, int auto_offset_reset);

/** Mock cluster: sharegroup target assignment. Not there yet. */
RD_EXPORT
void rd_kafka_mock_sharegroup_target_assignment(rd_kafka_mock_cluster_t *mcluster, const char *group_id, const char **member_ids, rd_kafka_topic_partition_list_t **assignments, size_t member_cnt);

/** Mock cluster: sharegroup get member ids. Not there yet. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_sharegroup_get_member_ids(rd_kafka_mock_cluster_t *mcluster, const char *group_id, char ***member_ids_out, size_t *member_cnt_out);

#ifdef __cplusplus
}
#endif

#endif
