/*
 * rdkafka_mock.h: a cluster inside the process, for tests.
 *
 * Ottla, an Apache Kafka client. Licensed under MIT or Apache-2.0.
 * Generated from crates/capi/abi; change it there.
 */
#ifndef _RDKAFKA_MOCK_H_
#define _RDKAFKA_MOCK_H_

#include "rdkafka.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A cluster inside the process. */
typedef struct rd_kafka_mock_cluster_s rd_kafka_mock_cluster_t;
/** A request that it was sent. */
typedef struct rd_kafka_mock_request_s rd_kafka_mock_request_t;
/** What the members of a consumer group are to be given. */
typedef struct rd_kafka_mock_cgrp_consumer_target_assignment_s rd_kafka_mock_cgrp_consumer_target_assignment_t;

/** Starts a cluster with this number of brokers in the process, listening on local ports; their ids are 1, 2, 3, ... The client is only returned by rd_kafka_mock_cluster_handle(). Returns NULL if the client is NULL, the count is not in 1..10000, or there are no free ports. */
RD_EXPORT
rd_kafka_mock_cluster_t *rd_kafka_mock_cluster_new(rd_kafka_t *rk, int broker_cnt);

/** Stops a cluster of rd_kafka_mock_cluster_new(). A cluster that a client started for itself ends with the client: this call does not affect it. */
RD_EXPORT
void rd_kafka_mock_cluster_destroy(rd_kafka_mock_cluster_t *mcluster);

/** Returns the client that the cluster was created with, or that started it for itself. */
RD_EXPORT
rd_kafka_t *rd_kafka_mock_cluster_handle(const rd_kafka_mock_cluster_t *mcluster);

/** Returns the cluster that a client started for itself because of test.mock.num.brokers, or NULL. */
RD_EXPORT
rd_kafka_mock_cluster_t *rd_kafka_handle_mock_cluster(const rd_kafka_t *rk);

/** Returns the initial brokers of the cluster, in the format of bootstrap.servers. The text lives as long as the cluster. */
RD_EXPORT
const char *rd_kafka_mock_cluster_bootstraps(const rd_kafka_mock_cluster_t *mcluster);

/** Removes the remaining errors that were pushed for an API to the whole cluster. */
RD_EXPORT
void rd_kafka_mock_clear_request_errors(rd_kafka_mock_cluster_t *mcluster, int16_t ApiKey);

/** Makes brokers respond to the next cnt requests of this API with these errors, one each and in this order; RD_KAFKA_RESP_ERR_NO_ERROR lets a request through, RD_KAFKA_RESP_ERR__TRANSPORT closes its connection instead. Nothing is pushed if one of the errors can't be sent. */
RD_EXPORT
void rd_kafka_mock_push_request_errors(rd_kafka_mock_cluster_t *mcluster, int16_t ApiKey, size_t cnt, ...);

/** Does the same as rd_kafka_mock_push_request_errors(), with an array. */
RD_EXPORT
void rd_kafka_mock_push_request_errors_array(rd_kafka_mock_cluster_t *mcluster, int16_t ApiKey, size_t cnt, const rd_kafka_resp_err_t *errors);

/** Sets how long a new consumer group waits for more members, in milliseconds: the brokers' group.initial.rebalance.delay.ms. */
RD_EXPORT
void rd_kafka_mock_group_initial_rebalance_delay_ms(rd_kafka_mock_cluster_t *mcluster, int32_t delay_ms);

/** Does the same as rd_kafka_mock_push_request_errors() for requests to one broker, with pairs of an error and the delay of the response as int milliseconds. A broker's errors precede the cluster's. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_broker_push_request_error_rtts(rd_kafka_mock_cluster_t *mcluster, int32_t broker_id, int16_t ApiKey, size_t cnt, ...);

/** Returns the number of errors that were pushed to this broker for an API and are still unused. Errors: RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE, RD_KAFKA_RESP_ERR__INVALID_ARG. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_broker_error_stack_cnt(rd_kafka_mock_cluster_t *mcluster, int32_t broker_id, int16_t ApiKey, size_t *cntp);

/** Does the same as rd_kafka_mock_push_request_errors() for the parts of requests that concern one partition. The topic is created if it does not exist. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_partition_push_request_errors(rd_kafka_mock_cluster_t *mcluster, const char *topic, int32_t partition, int16_t ApiKey, size_t cnt, ...);

/** Makes metadata return this error for the topic, until it is set to RD_KAFKA_RESP_ERR_NO_ERROR. */
RD_EXPORT
void rd_kafka_mock_topic_set_error(rd_kafka_mock_cluster_t *mcluster, const char *topic, rd_kafka_resp_err_t err);

/** Creates a topic. -1 stands for the cluster's defaults, 4 partitions and 3 replicas. Returns the broker's error if it can't be created. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_topic_create(rd_kafka_mock_cluster_t *mcluster, const char *topic, int partition_cnt, int replication_factor);

/** Deletes a topic with its records. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_topic_delete(rd_kafka_mock_cluster_t *mcluster, const char *topic);

/** Deletes the records of a partition before an offset, which is at most its high watermark. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_partition_delete_records(rd_kafka_mock_cluster_t *mcluster, const char *topic, int32_t partition, int64_t before_offset);

/** Makes a broker the leader of a partition; with -1 the partition has no leader. The topic is created if it does not exist. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_partition_set_leader(rd_kafka_mock_cluster_t *mcluster, const char *topic, int32_t partition, int32_t broker_id);

/** Makes the leader redirect consumers of a partition to this broker, which need not exist; -1 ends that. The topic is created if it does not exist. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_partition_set_follower(rd_kafka_mock_cluster_t *mcluster, const char *topic, int32_t partition, int32_t broker_id);

/** Sets the low and the high watermark that the broker of rd_kafka_mock_partition_set_follower() returns; -1 for the leader's. The topic is created if it does not exist. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_partition_set_follower_wmarks(rd_kafka_mock_cluster_t *mcluster, const char *topic, int32_t partition, int64_t lo, int64_t hi);

/** Makes the next Metadata response name this leader and leader epoch for the partition, whichever broker leads it; the response after that names the next one that was pushed. The topic is created if it does not exist. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_partition_push_leader_response(rd_kafka_mock_cluster_t *mcluster, const char *topic, int partition, int32_t leader_id, int32_t leader_epoch);

/** Closes a broker's connections and refuses new ones; -1 stands for all brokers. Leaders stay the same. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_broker_set_down(rd_kafka_mock_cluster_t *mcluster, int32_t broker_id);

/** Sets the address of a broker in metadata. The broker still listens at its old address. */
RD_EXPORT
void rd_kafka_mock_broker_set_host_port(rd_kafka_mock_cluster_t *mcluster, int32_t broker_id, const char *host, int port);

/** Makes a broker accept connections again; -1 stands for all brokers. Leaders stay the same. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_broker_set_up(rd_kafka_mock_cluster_t *mcluster, int32_t broker_id);

/** Delays the responses of a broker by at least this number of milliseconds; -1 stands for all brokers. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_broker_set_rtt(rd_kafka_mock_cluster_t *mcluster, int32_t broker_id, int rtt_ms);

/** Sets the rack of a broker in metadata, or of all brokers with -1; NULL removes it. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_broker_set_rack(rd_kafka_mock_cluster_t *mcluster, int32_t broker_id, const char *rack);

/** Sets the controller id that brokers report. It need not be the id of a broker; -1 means no controller. */
RD_EXPORT
void rd_kafka_mock_set_controller_id(rd_kafka_mock_cluster_t *mcluster, int32_t controller_id);

/** Removes a broker permanently; its partitions move to others. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_broker_decommission(rd_kafka_mock_cluster_t *cluster, int32_t broker_id);

/** Removes a broker from metadata; it continues to serve clients that know it. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_broker_remove_from_metadata(rd_kafka_mock_cluster_t *mcluster, int32_t broker_id);

/** Adds a broker, which takes over a part of the partitions. RD_KAFKA_RESP_ERR__INVALID_ARG if the id is taken or negative. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_broker_add(rd_kafka_mock_cluster_t *mcluster, int32_t broker_id);

/** Sets the coordinator of a key: "group" and a group.id, or "transaction" and a transactional.id. The broker need not exist. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_coordinator_set(rd_kafka_mock_cluster_t *mcluster, const char *key_type, const char *key, int32_t broker_id);

/** Sets the versions of an API that brokers support; -1 and -1 for none. RD_KAFKA_RESP_ERR__INVALID_ARG if the cluster does not implement them. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_set_apiversion(rd_kafka_mock_cluster_t *mcluster, int16_t ApiKey, int16_t MinVersion, int16_t MaxVersion);

/** Starts recording requests for rd_kafka_mock_get_requests(). */
RD_EXPORT
void rd_kafka_mock_start_request_tracking(rd_kafka_mock_cluster_t *mcluster);

/** Stops recording requests; recorded ones stay. */
RD_EXPORT
void rd_kafka_mock_stop_request_tracking(rd_kafka_mock_cluster_t *mcluster);

/** Frees a request. */
RD_EXPORT
void rd_kafka_mock_request_destroy(rd_kafka_mock_request_t *mreq);

/** Frees the requests of rd_kafka_mock_get_requests() and their array. */
RD_EXPORT
void rd_kafka_mock_request_destroy_array(rd_kafka_mock_request_t **mreqs, size_t mreq_cnt);

/** Returns the id of the broker that received the request. */
RD_EXPORT
int32_t rd_kafka_mock_request_id(rd_kafka_mock_request_t *mreq);

/** Returns the key of the request's API. */
RD_EXPORT
int16_t rd_kafka_mock_request_api_key(rd_kafka_mock_request_t *mreq);

/** Returns the arrival time of the request: microseconds of the machine's monotonic clock. */
RD_EXPORT
int64_t rd_kafka_mock_request_timestamp(rd_kafka_mock_request_t *mreq);

/** Returns the recorded requests, oldest first: an array for rd_kafka_mock_request_destroy_array(). They stay recorded. */
RD_EXPORT
rd_kafka_mock_request_t **rd_kafka_mock_get_requests(rd_kafka_mock_cluster_t *mcluster, size_t *cntp);

/** Removes the recorded requests. */
RD_EXPORT
void rd_kafka_mock_clear_requests(rd_kafka_mock_cluster_t *mcluster);

/** Sets the metrics that the cluster requests from clients (KIP-714): prefixes of their names, or `*` for all. They are copied. With a count of 0, which is the default, it requests none; clients that have telemetry enabled then ask again after the push interval. A NULL among the names is RD_KAFKA_RESP_ERR__INVALID_ARG. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_telemetry_set_requested_metrics(rd_kafka_mock_cluster_t *mcluster, char **metrics, size_t metrics_cnt);

/** Sets the interval at which clients push their metrics, in milliseconds; 0 or less is Kafka's default of five minutes. Earlier pushes are accepted nevertheless, as are those of another subscription; invalid OTLP data is refused with RD_KAFKA_RESP_ERR_INVALID_RECORD. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_telemetry_set_push_interval(rd_kafka_mock_cluster_t *mcluster, int64_t push_interval_ms);

/** Describes the partitions of each member of a group of the consumer protocol (KIP-848), by the members' ids; the lists and texts are copied. NULL as a member's list means no partitions. Returns NULL for a negative count, an id that is NULL or a list that was destroyed. */
RD_EXPORT
rd_kafka_mock_cgrp_consumer_target_assignment_t *rd_kafka_mock_cgrp_consumer_target_assignment_new(char **member_ids, int member_cnt, rd_kafka_topic_partition_list_t **assignment);

/** Frees a target assignment; a cluster to which it was passed keeps its own copy. */
RD_EXPORT
void rd_kafka_mock_cgrp_consumer_target_assignment_destroy(rd_kafka_mock_cgrp_consumer_target_assignment_t *target_assignment);

/** Assigns these partitions to the members of a group of the consumer protocol, instead of the broker's assignor; members that are not named, including later ones, get none. The group's epoch rises, and the members learn of it by their heartbeats: first they revoke partitions, then they get those that others have revoked. Missing partitions are assigned as soon as they exist. The group need not exist. With NULL the assignor decides again. */
RD_EXPORT
void rd_kafka_mock_cgrp_consumer_target_assignment(rd_kafka_mock_cluster_t *mcluster, const char *group_id, rd_kafka_mock_cgrp_consumer_target_assignment_t *target_assignment);

/** Sets the session timeout of members of groups of the consumer protocol, which applies from each member's next heartbeat on. The default is 45 seconds; a time below 1 changes nothing. */
RD_EXPORT
void rd_kafka_mock_set_group_consumer_session_timeout_ms(rd_kafka_mock_cluster_t *mcluster, int group_consumer_session_timeout_ms);

/** Sets the heartbeat interval of members of groups of the consumer protocol; each gets it with the response to its next heartbeat. The default is 5 seconds; a time below 1 changes nothing. */
RD_EXPORT
void rd_kafka_mock_set_group_consumer_heartbeat_interval_ms(rd_kafka_mock_cluster_t *mcluster, int group_consumer_heartbeat_interval_ms);

/** Sets the session timeout of members of share groups, in milliseconds; 0 is Kafka's default of 45 seconds. This and the other settings apply to all share groups, from the next request on; a negative value changes nothing. */
RD_EXPORT
void rd_kafka_mock_sharegroup_set_session_timeout(rd_kafka_mock_cluster_t *mcluster, int session_timeout_ms);

/** Sets the heartbeat interval of members of share groups, in milliseconds; 0 is Kafka's default of 5 seconds. */
RD_EXPORT
void rd_kafka_mock_sharegroup_set_heartbeat_interval(rd_kafka_mock_cluster_t *mcluster, int heartbeat_interval_ms);

/** Limits how often a record is delivered to a share group before it is archived. 0 means no limit; Kafka's default is 5. */
RD_EXPORT
void rd_kafka_mock_sharegroup_set_max_delivery_attempts(rd_kafka_mock_cluster_t *mcluster, int max_attempts);

/** Sets how long a member of a share group has a record exclusively, in milliseconds; 0 is Kafka's default of 30 seconds. A member's records are released earlier if its share session ends or the session's connection is lost. */
RD_EXPORT
void rd_kafka_mock_sharegroup_set_record_lock_duration(rd_kafka_mock_cluster_t *mcluster, int lock_duration_ms);

/** Sets the isolation level of share groups: 0 read_uncommitted (the default), 1 read_committed, with which nothing is delivered from the first record of a transaction on, because the mock cluster commits none. */
RD_EXPORT
void rd_kafka_mock_sharegroup_set_isolation_level(rd_kafka_mock_cluster_t *mcluster, int level);

/** Limits the number of members of a share group; further ones are refused with RD_KAFKA_RESP_ERR_GROUP_MAX_SIZE_REACHED. 0 means no limit; Kafka's default is 200. */
RD_EXPORT
void rd_kafka_mock_sharegroup_set_max_size(rd_kafka_mock_cluster_t *mcluster, int max_size);

/** Limits the number of share sessions of each broker; further ones are refused with RD_KAFKA_RESP_ERR_SHARE_SESSION_LIMIT_REACHED. 0 means no limit; Kafka's default is 2000. */
RD_EXPORT
void rd_kafka_mock_sharegroup_set_max_fetch_sessions(rd_kafka_mock_cluster_t *mcluster, int max_fetch_sessions);

/** Limits the number of records that are delivered from the first one of a partition that a share group has not finished. 0 means no limit; Kafka's default is 2000. */
RD_EXPORT
void rd_kafka_mock_sharegroup_set_max_record_locks(rd_kafka_mock_cluster_t *mcluster, int max_record_locks);

/** Sets where a share group starts in a partition that is new to it: 0 at the next record (the default), 1 at the first one. */
RD_EXPORT
void rd_kafka_mock_sharegroup_set_auto_offset_reset(rd_kafka_mock_cluster_t *mcluster, int auto_offset_reset);

/** Assigns these partitions to the members of a share group, instead of the assignor and whatever they subscribe to, until the next call; members that are not named get none, and missing partitions are left out. Members get their new assignment with their next heartbeat. With a `member_cnt` of 0 the assignor assigns again. Nothing happens if there is no such group. */
RD_EXPORT
void rd_kafka_mock_sharegroup_target_assignment(rd_kafka_mock_cluster_t *mcluster, const char *group_id, const char **member_ids, rd_kafka_topic_partition_list_t **assignments, size_t member_cnt);

/** Returns the ids of a share group's members, in their order: an array of `*member_cnt_out` texts. The caller frees each text and then the array, with free(); NULL if there are none. RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND if there is no such group. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_mock_sharegroup_get_member_ids(rd_kafka_mock_cluster_t *mcluster, const char *group_id, char ***member_ids_out, size_t *member_cnt_out);

#ifdef __cplusplus
}
#endif

#endif
