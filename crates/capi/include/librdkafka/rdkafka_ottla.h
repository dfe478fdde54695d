/*
 * rdkafka_ottla.h: administrative calls that librdkafka does not have.
 *
 * Ottla, an Apache Kafka client. Licensed under MIT or Apache-2.0.
 * Generated from crates/capi/abi; change it there.
 */
#ifndef _RDKAFKA_OTTLA_H_
#define _RDKAFKA_OTTLA_H_

#include "rdkafka.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The version of this interface. It rises when functions are added; a library with a higher one has all functions of this header. */
#define RD_KAFKA_OTTLA_VERSION 1

/** The type of the events of all calls of this header, for rd_kafka_event_type(). */
#define RD_KAFKA_OTTLA_EVENT_RESULT 0x40000000

/** The arguments of a call: rows of fields, which have names and texts as values. The documentation of a call has the fields. A call
 *  with an unknown field, a missing one, or a wrong value ends with RD_KAFKA_RESP_ERR__INVALID_ARG and a text that names it.
 *
 *  All calls have the same form: they copy the request, and end with an event on rkqu, or on the client's main queue if that is NULL.
 *  options is NULL or made by rd_kafka_AdminOptions_new() for RD_KAFKA_ADMIN_OP_ANY. */
typedef struct rd_kafka_ottla_request_s rd_kafka_ottla_request_t;
/** A part of a result: fields, and an error. Newer brokers and libraries may add fields. */
typedef struct rd_kafka_ottla_row_s rd_kafka_ottla_row_t;

/** Returns the version of this header's interface, which rises when functions are added: RD_KAFKA_OTTLA_VERSION of the header that the library was built with. A program that must also run with librdkafka looks this function up with dlsym(RTLD_DEFAULT, "rd_kafka_ottla_version"): without it, none of this header's functions exist. */
RD_EXPORT
int rd_kafka_ottla_version(void);

/** Creates a request without rows. Free it with rd_kafka_ottla_request_destroy(), at any time after the call. */
RD_EXPORT
rd_kafka_ottla_request_t *rd_kafka_ottla_request_new(void);

/** Frees a request. */
RD_EXPORT
void rd_kafka_ottla_request_destroy(rd_kafka_ottla_request_t *request);

/** Begins the next row of a request, which rd_kafka_ottla_request_set() fills in. A request has at most a million rows. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_ottla_request_add(rd_kafka_ottla_request_t *request);

/** Sets a field of the last row. Numbers are decimal digits. RD_KAFKA_RESP_ERR__INVALID_ARG without a row, a name or a value; whether a call has the field is checked by the call. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_ottla_request_set(rd_kafka_ottla_request_t *request, const char *field, const char *value);

/** Returns the rows of an event RD_KAFKA_OTTLA_EVENT_RESULT; they live as long as the event. NULL for other events, and if there are none. rd_kafka_event_error() has the error of the whole call, and rd_kafka_event_opaque() the opaque of its options. */
RD_EXPORT
const rd_kafka_ottla_row_t **rd_kafka_ottla_event_rows(rd_kafka_event_t *rkev, size_t *cntp);

/** Returns a field of a row; NULL if the row does not have it. Lists are separated by commas. */
RD_EXPORT
const char *rd_kafka_ottla_row_get(const rd_kafka_ottla_row_t *row, const char *field);

/** Returns a field of a row that is a whole number; the default if the row does not have it, or if it is none. */
RD_EXPORT
int64_t rd_kafka_ottla_row_number(const rd_kafka_ottla_row_t *row, const char *field, int64_t default_value);

/** Returns the name of the field at this index; NULL if there are fewer. */
RD_EXPORT
const char *rd_kafka_ottla_row_field(const rd_kafka_ottla_row_t *row, size_t idx);

/** Returns the error of a row; RD_KAFKA_RESP_ERR_NO_ERROR after a success. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_ottla_row_error(const rd_kafka_ottla_row_t *row);

/** Returns the text of the error of a row; an empty text after a success. */
RD_EXPORT
const char *rd_kafka_ottla_row_error_string(const rd_kafka_ottla_row_t *row);

/** Describes the quotas of the entities that match (KIP-546). Fields: user, client-id and ip, each with a name, "<default>", or "*" for all; strict=true excludes entities with other types. Result, a row for each quota: user, client-id, ip, quota, value. */
RD_EXPORT
void rd_kafka_ottla_DescribeClientQuotas(rd_kafka_t *rk, const rd_kafka_ottla_request_t *request, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Sets quotas, a row for each (KIP-546). Fields: user, client-id and ip, each with a name or "<default>"; quota, such as consumer_byte_rate; value, without which the quota is removed. The option validate_only applies. Result, a row for each entity: user, client-id, ip. */
RD_EXPORT
void rd_kafka_ottla_AlterClientQuotas(rd_kafka_t *rk, const rd_kafka_ottla_request_t *request, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Describes the log directories of brokers. Fields: broker; topic and partition. Without brokers it describes those of all, and without partitions all replicas. Result, a row for each replica, or for a directory without one: topic, partition, broker, log_dir, total_bytes, usable_bytes, size, offset_lag, is_future. */
RD_EXPORT
void rd_kafka_ottla_DescribeLogDirs(rd_kafka_t *rk, const rd_kafka_ottla_request_t *request, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Moves replicas of brokers to other log directories, a row for each. Fields: topic, partition, broker, log_dir. Result, a row for each replica: topic, partition, broker. A success means that the broker began to copy. */
RD_EXPORT
void rd_kafka_ottla_AlterReplicaLogDirs(rd_kafka_t *rk, const rd_kafka_ottla_request_t *request, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Moves replicas of partitions to brokers (KIP-455), a row for each partition. Fields: topic, partition, replicas such as "1,2,3", the preferred leader first; without replicas, the reassignment in progress is cancelled. Result, a row for each partition: topic, partition. */
RD_EXPORT
void rd_kafka_ottla_AlterPartitionReassignments(rd_kafka_t *rk, const rd_kafka_ottla_request_t *request, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Lists the reassignments in progress: of these partitions, or without rows of all. Fields: topic, partition. Result: topic, partition, replicas, adding_replicas, removing_replicas. */
RD_EXPORT
void rd_kafka_ottla_ListPartitionReassignments(rd_kafka_t *rk, const rd_kafka_ottla_request_t *request, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Describes the features of the cluster (KIP-584); request is NULL. Result: feature, min_supported, max_supported, min_finalized, max_finalized, epoch. */
RD_EXPORT
void rd_kafka_ottla_DescribeFeatures(rd_kafka_t *rk, const rd_kafka_ottla_request_t *request, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Changes the versions of features, a row for each. Fields: feature, version, upgrade ("upgrade", the default, "safe_downgrade" or "unsafe_downgrade"). The option validate_only applies. Result: feature. */
RD_EXPORT
void rd_kafka_ottla_UpdateFeatures(rd_kafka_t *rk, const rd_kafka_ottla_request_t *request, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Creates a delegation token (KIP-48). Fields: owner, if it is not the client's user; renewer, of which each row may have one, such as "User:alice"; max_lifetime_ms. Result, one row: token_id, hmac in base64, which is the password for SCRAM, owner, requester, renewers, issued, expires, expires_at_the_latest, in milliseconds since 1970. */
RD_EXPORT
void rd_kafka_ottla_CreateDelegationToken(rd_kafka_t *rk, const rd_kafka_ottla_request_t *request, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Renews a token. Fields of the one row: hmac in base64; period_ms, by default the broker's. Result, one row: expires. */
RD_EXPORT
void rd_kafka_ottla_RenewDelegationToken(rd_kafka_t *rk, const rd_kafka_ottla_request_t *request, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Lets a token expire. Fields of the one row: hmac in base64; period_ms, without which it expires at once. Result, one row: expires. */
RD_EXPORT
void rd_kafka_ottla_ExpireDelegationToken(rd_kafka_t *rk, const rd_kafka_ottla_request_t *request, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Describes the tokens of these owners, or without rows all that the client's user may describe. Field: owner, such as "User:alice". Result, a row for each token, as of rd_kafka_ottla_CreateDelegationToken(). */
RD_EXPORT
void rd_kafka_ottla_DescribeDelegationTokens(rd_kafka_t *rk, const rd_kafka_ottla_request_t *request, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Lists transactional IDs (KIP-664). Fields, of which several rows may have more: state, such as Ongoing; producer_id; running_longer_than_ms; pattern, a regular expression. Result: transactional_id, coordinator, producer_id, state. A broker that fails has a row with coordinator and the error. */
RD_EXPORT
void rd_kafka_ottla_ListTransactions(rd_kafka_t *rk, const rd_kafka_ottla_request_t *request, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Describes transactional IDs, a row for each. Field: transactional_id. Result: transactional_id, coordinator, state, producer_id, producer_epoch, timeout_ms, start in milliseconds since 1970 if a transaction is open, partitions such as "orders:0,orders:1". */
RD_EXPORT
void rd_kafka_ottla_DescribeTransactions(rd_kafka_t *rk, const rd_kafka_ottla_request_t *request, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Describes the producers of partitions, a row for each partition. Fields: topic, partition. Result, a row for each producer: topic, partition, producer_id, producer_epoch, last_sequence, last_timestamp, coordinator_epoch, transaction_start, which is the offset at which its open transaction begins. */
RD_EXPORT
void rd_kafka_ottla_DescribeProducers(rd_kafka_t *rk, const rd_kafka_ottla_request_t *request, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Fences the producers of transactional IDs, and aborts their open transactions. Field: transactional_id. Result: transactional_id, producer_id, producer_epoch. */
RD_EXPORT
void rd_kafka_ottla_FenceProducers(rd_kafka_t *rk, const rd_kafka_ottla_request_t *request, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Writes the abort marker of a hanging transaction to a partition. Fields of the one row: topic, partition, producer_id, producer_epoch, coordinator_epoch, as rd_kafka_ottla_DescribeProducers() has them. Result, one row: topic, partition. */
RD_EXPORT
void rd_kafka_ottla_AbortTransaction(rd_kafka_t *rk, const rd_kafka_ottla_request_t *request, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Describes the SCRAM credentials of these users, or without rows of all (KIP-554). Field: user. Result, a row for each credential, or for a user with an error: user, mechanism such as "SCRAM-SHA-256", iterations. */
RD_EXPORT
void rd_kafka_ottla_DescribeUserScramCredentials(rd_kafka_t *rk, const rd_kafka_ottla_request_t *request, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Sets and deletes SCRAM credentials, a row for each, of a user at most one (KIP-554). Fields: user; mechanism, "SCRAM-SHA-256" or "SCRAM-SHA-512"; iterations, 4096 by default; password, from which the salted password is derived here; salt in base64, by default a random one; or, instead of password, salted_password in base64 with its salt. Without a password the credential is deleted. Result: user. */
RD_EXPORT
void rd_kafka_ottla_AlterUserScramCredentials(rd_kafka_t *rk, const rd_kafka_ottla_request_t *request, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

#ifdef __cplusplus
}
#endif

#endif
