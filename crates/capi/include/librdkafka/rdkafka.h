/*
 * rdkafka.h: the C interface of an Apache Kafka client, as librdkafka 2.16 has it.
 *
 * Ottla, an Apache Kafka client. Licensed under MIT or Apache-2.0.
 * Generated from crates/capi/abi; change it there.
 */
#ifndef _RDKAFKA_H_
#define _RDKAFKA_H_

#include <stdio.h>
#include <inttypes.h>
#include <stddef.h>
#include <sys/types.h>

struct sockaddr;
struct addrinfo;

#ifndef RD_EXPORT
#define RD_EXPORT
#endif

#if defined(__GNUC__)
#define RD_DEPRECATED __attribute__((deprecated))
#define RD_FORMAT(kind, text, first) __attribute__((format(kind, text, first)))
#define RD_UNUSED __attribute__((unused))
#define RD_INLINE __inline
#else
#define RD_DEPRECATED
#define RD_FORMAT(kind, text, first)
#define RD_UNUSED
#define RD_INLINE inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** @name Opaque types */

/** A client: a producer or a consumer. */
typedef struct rd_kafka_s rd_kafka_t;
/** A topic of a client. */
typedef struct rd_kafka_topic_s rd_kafka_topic_t;
/** The configuration of a client. */
typedef struct rd_kafka_conf_s rd_kafka_conf_t;
/** The configuration of a topic. */
typedef struct rd_kafka_topic_conf_s rd_kafka_topic_conf_t;
/** A queue of entries for the application. */
typedef struct rd_kafka_queue_s rd_kafka_queue_t;
/** An entry of a queue. */
typedef struct rd_kafka_op_s rd_kafka_event_t;
/** Opaque: topic result. */
typedef struct rd_kafka_topic_result_s rd_kafka_topic_result_t;
/** Opaque: consumer group metadata. */
typedef struct rd_kafka_consumer_group_metadata_s rd_kafka_consumer_group_metadata_t;
/** An error with code, text and flags. */
typedef struct rd_kafka_error_s rd_kafka_error_t;
/** The headers of a message. */
typedef struct rd_kafka_headers_s rd_kafka_headers_t;
/** Opaque: group result. */
typedef struct rd_kafka_group_result_s rd_kafka_group_result_t;
/** Opaque: acl result. */
typedef struct rd_kafka_acl_result_s rd_kafka_acl_result_t;
/** Opaque: uuid. */
typedef struct rd_kafka_Uuid_s rd_kafka_Uuid_t;
/** Opaque: topic partition result. */
typedef struct rd_kafka_topic_partition_result_s rd_kafka_topic_partition_result_t;
/** Opaque: share. */
typedef struct rd_kafka_share_s rd_kafka_share_t;
/** Opaque: messages. */
typedef struct rd_kafka_messages_s rd_kafka_messages_t;
/** Opaque: share partition offsets. */
typedef struct rd_kafka_share_partition_offsets_s rd_kafka_share_partition_offsets_t;
/** Opaque: share partition offsets list. */
typedef struct rd_kafka_share_partition_offsets_list_s rd_kafka_share_partition_offsets_list_t;
/** Opaque: node. */
typedef struct rd_kafka_Node_s rd_kafka_Node_t;
/** Opaque: admin options. */
typedef struct rd_kafka_AdminOptions_s rd_kafka_AdminOptions_t;
/** Opaque: new topic. */
typedef struct rd_kafka_NewTopic_s rd_kafka_NewTopic_t;
/** Opaque: delete topic. */
typedef struct rd_kafka_DeleteTopic_s rd_kafka_DeleteTopic_t;
/** Opaque: new partitions. */
typedef struct rd_kafka_NewPartitions_s rd_kafka_NewPartitions_t;
/** Opaque: config entry. */
typedef struct rd_kafka_ConfigEntry_s rd_kafka_ConfigEntry_t;
/** Opaque: config resource. */
typedef struct rd_kafka_ConfigResource_s rd_kafka_ConfigResource_t;
/** Opaque: delete records. */
typedef struct rd_kafka_DeleteRecords_s rd_kafka_DeleteRecords_t;
/** Opaque: topic collection. */
typedef struct rd_kafka_TopicCollection_s rd_kafka_TopicCollection_t;
/** Opaque: topic partition info. */
typedef struct rd_kafka_TopicPartitionInfo_s rd_kafka_TopicPartitionInfo_t;
/** Opaque: topic description. */
typedef struct rd_kafka_TopicDescription_s rd_kafka_TopicDescription_t;
/** Opaque: consumer group listing. */
typedef struct rd_kafka_ConsumerGroupListing_s rd_kafka_ConsumerGroupListing_t;
/** Opaque: list consumer groups result. */
typedef struct rd_kafka_ListConsumerGroupsResult_s rd_kafka_ListConsumerGroupsResult_t;
/** Opaque: consumer group description. */
typedef struct rd_kafka_ConsumerGroupDescription_s rd_kafka_ConsumerGroupDescription_t;
/** Opaque: member description. */
typedef struct rd_kafka_MemberDescription_s rd_kafka_MemberDescription_t;
/** Opaque: member assignment. */
typedef struct rd_kafka_MemberAssignment_s rd_kafka_MemberAssignment_t;
/** Opaque: delete group. */
typedef struct rd_kafka_DeleteGroup_s rd_kafka_DeleteGroup_t;
/** Opaque: list consumer group offsets. */
typedef struct rd_kafka_ListConsumerGroupOffsets_s rd_kafka_ListConsumerGroupOffsets_t;
/** Opaque: alter consumer group offsets. */
typedef struct rd_kafka_AlterConsumerGroupOffsets_s rd_kafka_AlterConsumerGroupOffsets_t;
/** Opaque: delete consumer group offsets. */
typedef struct rd_kafka_DeleteConsumerGroupOffsets_s rd_kafka_DeleteConsumerGroupOffsets_t;
/** Opaque: list offsets result info. */
typedef struct rd_kafka_ListOffsetsResultInfo_s rd_kafka_ListOffsetsResultInfo_t;
/** Opaque: scram credential info. */
typedef struct rd_kafka_ScramCredentialInfo_s rd_kafka_ScramCredentialInfo_t;
/** Opaque: user scram credentials description. */
typedef struct rd_kafka_UserScramCredentialsDescription_s rd_kafka_UserScramCredentialsDescription_t;
/** Opaque: user scram credential alteration. */
typedef struct rd_kafka_UserScramCredentialAlteration_s rd_kafka_UserScramCredentialAlteration_t;
/** Opaque: alter user scram credentials result response. */
typedef struct rd_kafka_AlterUserScramCredentials_result_response_s rd_kafka_AlterUserScramCredentials_result_response_t;
/** Opaque: acl binding. */
typedef struct rd_kafka_AclBinding_s rd_kafka_AclBinding_t;
/** Opaque: delete acls result response. */
typedef struct rd_kafka_DeleteAcls_result_response_s rd_kafka_DeleteAcls_result_response_t;
/** Opaque: elect leaders. */
typedef struct rd_kafka_ElectLeaders_s rd_kafka_ElectLeaders_t;
/** A filter for ACL bindings. */
typedef rd_kafka_AclBinding_t rd_kafka_AclBindingFilter_t;
/** An event that carries the result of AlterConfigs. */
typedef rd_kafka_event_t rd_kafka_AlterConfigs_result_t;
/** An event that carries the result of AlterConsumerGroupOffsets. */
typedef rd_kafka_event_t rd_kafka_AlterConsumerGroupOffsets_result_t;
/** An event that carries the result of AlterUserScramCredentials. */
typedef rd_kafka_event_t rd_kafka_AlterUserScramCredentials_result_t;
/** An event that carries the result of CreateAcls. */
typedef rd_kafka_event_t rd_kafka_CreateAcls_result_t;
/** An event that carries the result of CreatePartitions. */
typedef rd_kafka_event_t rd_kafka_CreatePartitions_result_t;
/** An event that carries the result of CreateTopics. */
typedef rd_kafka_event_t rd_kafka_CreateTopics_result_t;
/** An event that carries the result of DeleteAcls. */
typedef rd_kafka_event_t rd_kafka_DeleteAcls_result_t;
/** An event that carries the result of DeleteConsumerGroupOffsets. */
typedef rd_kafka_event_t rd_kafka_DeleteConsumerGroupOffsets_result_t;
/** An event that carries the result of DeleteGroups. */
typedef rd_kafka_event_t rd_kafka_DeleteGroups_result_t;
/** An event that carries the result of DeleteRecords. */
typedef rd_kafka_event_t rd_kafka_DeleteRecords_result_t;
/** An event that carries the result of DeleteTopics. */
typedef rd_kafka_event_t rd_kafka_DeleteTopics_result_t;
/** An event that carries the result of DescribeAcls. */
typedef rd_kafka_event_t rd_kafka_DescribeAcls_result_t;
/** An event that carries the result of DescribeCluster. */
typedef rd_kafka_event_t rd_kafka_DescribeCluster_result_t;
/** An event that carries the result of DescribeConfigs. */
typedef rd_kafka_event_t rd_kafka_DescribeConfigs_result_t;
/** An event that carries the result of DescribeConsumerGroups. */
typedef rd_kafka_event_t rd_kafka_DescribeConsumerGroups_result_t;
/** An event that carries the result of DescribeTopics. */
typedef rd_kafka_event_t rd_kafka_DescribeTopics_result_t;
/** An event that carries the result of DescribeUserScramCredentials. */
typedef rd_kafka_event_t rd_kafka_DescribeUserScramCredentials_result_t;
/** An event that carries the result of ElectLeaders. */
typedef rd_kafka_event_t rd_kafka_ElectLeaders_result_t;
/** An event that carries the result of IncrementalAlterConfigs. */
typedef rd_kafka_event_t rd_kafka_IncrementalAlterConfigs_result_t;
/** An event that carries the result of ListConsumerGroupOffsets. */
typedef rd_kafka_event_t rd_kafka_ListConsumerGroupOffsets_result_t;
/** An event that carries the result of ListConsumerGroups. */
typedef rd_kafka_event_t rd_kafka_ListConsumerGroups_result_t;
/** An event that carries the result of ListOffsets. */
typedef rd_kafka_event_t rd_kafka_ListOffsets_result_t;
/** The types of events: RD_KAFKA_EVENT_* values. */
typedef int rd_kafka_event_type_t;

/* Enumerations. */

/** Kinds of clients. */
typedef enum rd_kafka_type_t {
        RD_KAFKA_PRODUCER = 0,
        RD_KAFKA_CONSUMER = 1
} rd_kafka_type_t;

/** Timestamp type. */
typedef enum rd_kafka_timestamp_type_t {
        RD_KAFKA_TIMESTAMP_NOT_AVAILABLE = 0,
        RD_KAFKA_TIMESTAMP_CREATE_TIME = 1,
        RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME = 2
} rd_kafka_timestamp_type_t;

/** Error codes. Those below zero are of this library, the others come from brokers. */
typedef enum {
        RD_KAFKA_RESP_ERR__BEGIN = -200,
        RD_KAFKA_RESP_ERR__BAD_MSG = -199,
        RD_KAFKA_RESP_ERR__BAD_COMPRESSION = -198,
        RD_KAFKA_RESP_ERR__DESTROY = -197,
        RD_KAFKA_RESP_ERR__FAIL = -196,
        RD_KAFKA_RESP_ERR__TRANSPORT = -195,
        RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE = -194,
        RD_KAFKA_RESP_ERR__RESOLVE = -193,
        RD_KAFKA_RESP_ERR__MSG_TIMED_OUT = -192,
        RD_KAFKA_RESP_ERR__PARTITION_EOF = -191,
        RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION = -190,
        RD_KAFKA_RESP_ERR__FS = -189,
        RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC = -188,
        RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN = -187,
        RD_KAFKA_RESP_ERR__INVALID_ARG = -186,
        RD_KAFKA_RESP_ERR__TIMED_OUT = -185,
        RD_KAFKA_RESP_ERR__QUEUE_FULL = -184,
        RD_KAFKA_RESP_ERR__ISR_INSUFF = -183,
        RD_KAFKA_RESP_ERR__NODE_UPDATE = -182,
        RD_KAFKA_RESP_ERR__SSL = -181,
        RD_KAFKA_RESP_ERR__WAIT_COORD = -180,
        RD_KAFKA_RESP_ERR__UNKNOWN_GROUP = -179,
        RD_KAFKA_RESP_ERR__IN_PROGRESS = -178,
        RD_KAFKA_RESP_ERR__PREV_IN_PROGRESS = -177,
        RD_KAFKA_RESP_ERR__EXISTING_SUBSCRIPTION = -176,
        RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS = -175,
        RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS = -174,
        RD_KAFKA_RESP_ERR__CONFLICT = -173,
        RD_KAFKA_RESP_ERR__STATE = -172,
        RD_KAFKA_RESP_ERR__UNKNOWN_PROTOCOL = -171,
        RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED = -170,
        RD_KAFKA_RESP_ERR__AUTHENTICATION = -169,
        RD_KAFKA_RESP_ERR__NO_OFFSET = -168,
        RD_KAFKA_RESP_ERR__OUTDATED = -167,
        RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE = -166,
        RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE = -165,
        RD_KAFKA_RESP_ERR__WAIT_CACHE = -164,
        RD_KAFKA_RESP_ERR__INTR = -163,
        RD_KAFKA_RESP_ERR__KEY_SERIALIZATION = -162,
        RD_KAFKA_RESP_ERR__VALUE_SERIALIZATION = -161,
        RD_KAFKA_RESP_ERR__KEY_DESERIALIZATION = -160,
        RD_KAFKA_RESP_ERR__VALUE_DESERIALIZATION = -159,
        RD_KAFKA_RESP_ERR__PARTIAL = -158,
        RD_KAFKA_RESP_ERR__READ_ONLY = -157,
        RD_KAFKA_RESP_ERR__NOENT = -156,
        RD_KAFKA_RESP_ERR__UNDERFLOW = -155,
        RD_KAFKA_RESP_ERR__INVALID_TYPE = -154,
        RD_KAFKA_RESP_ERR__RETRY = -153,
        RD_KAFKA_RESP_ERR__PURGE_QUEUE = -152,
        RD_KAFKA_RESP_ERR__PURGE_INFLIGHT = -151,
        RD_KAFKA_RESP_ERR__FATAL = -150,
        RD_KAFKA_RESP_ERR__INCONSISTENT = -149,
        RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE = -148,
        RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED = -147,
        RD_KAFKA_RESP_ERR__UNKNOWN_BROKER = -146,
        RD_KAFKA_RESP_ERR__NOT_CONFIGURED = -145,
        RD_KAFKA_RESP_ERR__FENCED = -144,
        RD_KAFKA_RESP_ERR__APPLICATION = -143,
        RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST = -142,
        RD_KAFKA_RESP_ERR__NOOP = -141,
        RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET = -140,
        RD_KAFKA_RESP_ERR__LOG_TRUNCATION = -139,
        RD_KAFKA_RESP_ERR__INVALID_DIFFERENT_RECORD = -138,
        RD_KAFKA_RESP_ERR__DESTROY_BROKER = -137,
        RD_KAFKA_RESP_ERR__END = -100,
        RD_KAFKA_RESP_ERR_UNKNOWN = -1,
        RD_KAFKA_RESP_ERR_NO_ERROR = 0,
        RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE = 1,
        RD_KAFKA_RESP_ERR_INVALID_MSG = 2,
        RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART = 3,
        RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE = 4,
        RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE = 5,
        RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION = 6,
        RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT = 7,
        RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE = 8,
        RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE = 9,
        RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE = 10,
        RD_KAFKA_RESP_ERR_STALE_CTRL_EPOCH = 11,
        RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE = 12,
        RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION = 13,
        RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS = 14,
        RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE = 15,
        RD_KAFKA_RESP_ERR_NOT_COORDINATOR = 16,
        RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION = 17,
        RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE = 18,
        RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS = 19,
        RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20,
        RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS = 21,
        RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION = 22,
        RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL = 23,
        RD_KAFKA_RESP_ERR_INVALID_GROUP_ID = 24,
        RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID = 25,
        RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT = 26,
        RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS = 27,
        RD_KAFKA_RESP_ERR_INVALID_COMMIT_OFFSET_SIZE = 28,
        RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED = 29,
        RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED = 30,
        RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED = 31,
        RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP = 32,
        RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM = 33,
        RD_KAFKA_RESP_ERR_ILLEGAL_SASL_STATE = 34,
        RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION = 35,
        RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS = 36,
        RD_KAFKA_RESP_ERR_INVALID_PARTITIONS = 37,
        RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR = 38,
        RD_KAFKA_RESP_ERR_INVALID_REPLICA_ASSIGNMENT = 39,
        RD_KAFKA_RESP_ERR_INVALID_CONFIG = 40,
        RD_KAFKA_RESP_ERR_NOT_CONTROLLER = 41,
        RD_KAFKA_RESP_ERR_INVALID_REQUEST = 42,
        RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT = 43,
        RD_KAFKA_RESP_ERR_POLICY_VIOLATION = 44,
        RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER = 45,
        RD_KAFKA_RESP_ERR_DUPLICATE_SEQUENCE_NUMBER = 46,
        RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH = 47,
        RD_KAFKA_RESP_ERR_INVALID_TXN_STATE = 48,
        RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING = 49,
        RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT = 50,
        RD_KAFKA_RESP_ERR_CONCURRENT_TRANSACTIONS = 51,
        RD_KAFKA_RESP_ERR_TRANSACTION_COORDINATOR_FENCED = 52,
        RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53,
        RD_KAFKA_RESP_ERR_SECURITY_DISABLED = 54,
        RD_KAFKA_RESP_ERR_OPERATION_NOT_ATTEMPTED = 55,
        RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR = 56,
        RD_KAFKA_RESP_ERR_LOG_DIR_NOT_FOUND = 57,
        RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED = 58,
        RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID = 59,
        RD_KAFKA_RESP_ERR_REASSIGNMENT_IN_PROGRESS = 60,
        RD_KAFKA_RESP_ERR_DELEGATION_TOKEN_AUTH_DISABLED = 61,
        RD_KAFKA_RESP_ERR_DELEGATION_TOKEN_NOT_FOUND = 62,
        RD_KAFKA_RESP_ERR_DELEGATION_TOKEN_OWNER_MISMATCH = 63,
        RD_KAFKA_RESP_ERR_DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64,
        RD_KAFKA_RESP_ERR_DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65,
        RD_KAFKA_RESP_ERR_DELEGATION_TOKEN_EXPIRED = 66,
        RD_KAFKA_RESP_ERR_INVALID_PRINCIPAL_TYPE = 67,
        RD_KAFKA_RESP_ERR_NON_EMPTY_GROUP = 68,
        RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND = 69,
        RD_KAFKA_RESP_ERR_FETCH_SESSION_ID_NOT_FOUND = 70,
        RD_KAFKA_RESP_ERR_INVALID_FETCH_SESSION_EPOCH = 71,
        RD_KAFKA_RESP_ERR_LISTENER_NOT_FOUND = 72,
        RD_KAFKA_RESP_ERR_TOPIC_DELETION_DISABLED = 73,
        RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH = 74,
        RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH = 75,
        RD_KAFKA_RESP_ERR_UNSUPPORTED_COMPRESSION_TYPE = 76,
        RD_KAFKA_RESP_ERR_STALE_BROKER_EPOCH = 77,
        RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE = 78,
        RD_KAFKA_RESP_ERR_MEMBER_ID_REQUIRED = 79,
        RD_KAFKA_RESP_ERR_PREFERRED_LEADER_NOT_AVAILABLE = 80,
        RD_KAFKA_RESP_ERR_GROUP_MAX_SIZE_REACHED = 81,
        RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID = 82,
        RD_KAFKA_RESP_ERR_ELIGIBLE_LEADERS_NOT_AVAILABLE = 83,
        RD_KAFKA_RESP_ERR_ELECTION_NOT_NEEDED = 84,
        RD_KAFKA_RESP_ERR_NO_REASSIGNMENT_IN_PROGRESS = 85,
        RD_KAFKA_RESP_ERR_GROUP_SUBSCRIBED_TO_TOPIC = 86,
        RD_KAFKA_RESP_ERR_INVALID_RECORD = 87,
        RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT = 88,
        RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED = 89,
        RD_KAFKA_RESP_ERR_PRODUCER_FENCED = 90,
        RD_KAFKA_RESP_ERR_RESOURCE_NOT_FOUND = 91,
        RD_KAFKA_RESP_ERR_DUPLICATE_RESOURCE = 92,
        RD_KAFKA_RESP_ERR_UNACCEPTABLE_CREDENTIAL = 93,
        RD_KAFKA_RESP_ERR_INCONSISTENT_VOTER_SET = 94,
        RD_KAFKA_RESP_ERR_INVALID_UPDATE_VERSION = 95,
        RD_KAFKA_RESP_ERR_FEATURE_UPDATE_FAILED = 96,
        RD_KAFKA_RESP_ERR_PRINCIPAL_DESERIALIZATION_FAILURE = 97,
        RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_ID = 100,
        RD_KAFKA_RESP_ERR_INCONSISTENT_TOPIC_ID = 103,
        RD_KAFKA_RESP_ERR_FENCED_MEMBER_EPOCH = 110,
        RD_KAFKA_RESP_ERR_UNRELEASED_INSTANCE_ID = 111,
        RD_KAFKA_RESP_ERR_UNSUPPORTED_ASSIGNOR = 112,
        RD_KAFKA_RESP_ERR_STALE_MEMBER_EPOCH = 113,
        RD_KAFKA_RESP_ERR_MISMATCHED_ENDPOINT_TYPE = 114,
        RD_KAFKA_RESP_ERR_UNSUPPORTED_ENDPOINT_TYPE = 115,
        RD_KAFKA_RESP_ERR_UNKNOWN_CONTROLLER_ID = 116,
        RD_KAFKA_RESP_ERR_UNKNOWN_SUBSCRIPTION_ID = 117,
        RD_KAFKA_RESP_ERR_TELEMETRY_TOO_LARGE = 118,
        RD_KAFKA_RESP_ERR_INVALID_REGISTRATION = 119,
        RD_KAFKA_RESP_ERR_TRANSACTION_ABORTABLE = 120,
        RD_KAFKA_RESP_ERR_INVALID_RECORD_STATE = 121,
        RD_KAFKA_RESP_ERR_SHARE_SESSION_NOT_FOUND = 122,
        RD_KAFKA_RESP_ERR_INVALID_SHARE_SESSION_EPOCH = 123,
        RD_KAFKA_RESP_ERR_FENCED_STATE_EPOCH = 124,
        RD_KAFKA_RESP_ERR_INVALID_VOTER_KEY = 125,
        RD_KAFKA_RESP_ERR_DUPLICATE_VOTER = 126,
        RD_KAFKA_RESP_ERR_VOTER_NOT_FOUND = 127,
        RD_KAFKA_RESP_ERR_INVALID_REGULAR_EXPRESSION = 128,
        RD_KAFKA_RESP_ERR_REBOOTSTRAP_REQUIRED = 129,
        RD_KAFKA_RESP_ERR_STREAMS_INVALID_TOPOLOGY = 130,
        RD_KAFKA_RESP_ERR_STREAMS_INVALID_TOPOLOGY_EPOCH = 131,
        RD_KAFKA_RESP_ERR_STREAMS_TOPOLOGY_FENCED = 132,
        RD_KAFKA_RESP_ERR_SHARE_SESSION_LIMIT_REACHED = 133,
        RD_KAFKA_RESP_ERR_END_ALL = 134
} rd_kafka_resp_err_t;

/** Vtype. */
typedef enum rd_kafka_vtype_t {
        RD_KAFKA_VTYPE_END = 0,
        RD_KAFKA_VTYPE_TOPIC = 1,
        RD_KAFKA_VTYPE_RKT = 2,
        RD_KAFKA_VTYPE_PARTITION = 3,
        RD_KAFKA_VTYPE_VALUE = 4,
        RD_KAFKA_VTYPE_KEY = 5,
        RD_KAFKA_VTYPE_OPAQUE = 6,
        RD_KAFKA_VTYPE_MSGFLAGS = 7,
        RD_KAFKA_VTYPE_TIMESTAMP = 8,
        RD_KAFKA_VTYPE_HEADER = 9,
        RD_KAFKA_VTYPE_HEADERS = 10
} rd_kafka_vtype_t;

/** Msg status. */
typedef enum {
        RD_KAFKA_MSG_STATUS_NOT_PERSISTED = 0,
        RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED = 1,
        RD_KAFKA_MSG_STATUS_PERSISTED = 2
} rd_kafka_msg_status_t;

/** The result of setting a property. */
typedef enum {
        RD_KAFKA_CONF_UNKNOWN = -2,
        RD_KAFKA_CONF_INVALID = -1,
        RD_KAFKA_CONF_OK = 0
} rd_kafka_conf_res_t;

/** Cert type. */
typedef enum rd_kafka_cert_type_t {
        RD_KAFKA_CERT_PUBLIC_KEY = 0,
        RD_KAFKA_CERT_PRIVATE_KEY = 1,
        RD_KAFKA_CERT_CA = 2,
        RD_KAFKA_CERT__CNT = 3
} rd_kafka_cert_type_t;

/** Cert enc. */
typedef enum rd_kafka_cert_enc_t {
        RD_KAFKA_CERT_ENC_PKCS12 = 0,
        RD_KAFKA_CERT_ENC_DER = 1,
        RD_KAFKA_CERT_ENC_PEM = 2,
        RD_KAFKA_CERT_ENC__CNT = 3
} rd_kafka_cert_enc_t;

/** Share acknowledge type. */
typedef enum rd_kafka_share_AcknowledgeType_s {
        RD_KAFKA_SHARE_ACKNOWLEDGE_TYPE_ACCEPT = 1,
        RD_KAFKA_SHARE_ACKNOWLEDGE_TYPE_RELEASE = 2,
        RD_KAFKA_SHARE_ACKNOWLEDGE_TYPE_REJECT = 3
} rd_kafka_share_AcknowledgeType_t;

/** Consumer group state. */
typedef enum {
        RD_KAFKA_CONSUMER_GROUP_STATE_UNKNOWN = 0,
        RD_KAFKA_CONSUMER_GROUP_STATE_PREPARING_REBALANCE = 1,
        RD_KAFKA_CONSUMER_GROUP_STATE_COMPLETING_REBALANCE = 2,
        RD_KAFKA_CONSUMER_GROUP_STATE_STABLE = 3,
        RD_KAFKA_CONSUMER_GROUP_STATE_DEAD = 4,
        RD_KAFKA_CONSUMER_GROUP_STATE_EMPTY = 5,
        RD_KAFKA_CONSUMER_GROUP_STATE__CNT = 6
} rd_kafka_consumer_group_state_t;

/** Consumer group type. */
typedef enum {
        RD_KAFKA_CONSUMER_GROUP_TYPE_UNKNOWN = 0,
        RD_KAFKA_CONSUMER_GROUP_TYPE_CONSUMER = 1,
        RD_KAFKA_CONSUMER_GROUP_TYPE_CLASSIC = 2,
        RD_KAFKA_CONSUMER_GROUP_TYPE__CNT = 3
} rd_kafka_consumer_group_type_t;

/** Thread type. */
typedef enum rd_kafka_thread_type_t {
        RD_KAFKA_THREAD_MAIN = 0,
        RD_KAFKA_THREAD_BACKGROUND = 1,
        RD_KAFKA_THREAD_BROKER = 2
} rd_kafka_thread_type_t;

/** Admin op. */
typedef enum rd_kafka_admin_op_t {
        RD_KAFKA_ADMIN_OP_ANY = 0,
        RD_KAFKA_ADMIN_OP_CREATETOPICS = 1,
        RD_KAFKA_ADMIN_OP_DELETETOPICS = 2,
        RD_KAFKA_ADMIN_OP_CREATEPARTITIONS = 3,
        RD_KAFKA_ADMIN_OP_ALTERCONFIGS = 4,
        RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS = 5,
        RD_KAFKA_ADMIN_OP_DELETERECORDS = 6,
        RD_KAFKA_ADMIN_OP_DELETEGROUPS = 7,
        RD_KAFKA_ADMIN_OP_DELETECONSUMERGROUPOFFSETS = 8,
        RD_KAFKA_ADMIN_OP_CREATEACLS = 9,
        RD_KAFKA_ADMIN_OP_DESCRIBEACLS = 10,
        RD_KAFKA_ADMIN_OP_DELETEACLS = 11,
        RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPS = 12,
        RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS = 13,
        RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS = 14,
        RD_KAFKA_ADMIN_OP_ALTERCONSUMERGROUPOFFSETS = 15,
        RD_KAFKA_ADMIN_OP_INCREMENTALALTERCONFIGS = 16,
        RD_KAFKA_ADMIN_OP_DESCRIBEUSERSCRAMCREDENTIALS = 17,
        RD_KAFKA_ADMIN_OP_ALTERUSERSCRAMCREDENTIALS = 18,
        RD_KAFKA_ADMIN_OP_DESCRIBETOPICS = 19,
        RD_KAFKA_ADMIN_OP_DESCRIBECLUSTER = 20,
        RD_KAFKA_ADMIN_OP_LISTOFFSETS = 21,
        RD_KAFKA_ADMIN_OP_ELECTLEADERS = 22,
        RD_KAFKA_ADMIN_OP__CNT = 23
} rd_kafka_admin_op_t;

/** Isolation level. */
typedef enum rd_kafka_IsolationLevel_t {
        RD_KAFKA_ISOLATION_LEVEL_READ_UNCOMMITTED = 0,
        RD_KAFKA_ISOLATION_LEVEL_READ_COMMITTED = 1
} rd_kafka_IsolationLevel_t;

/** Acl operation. */
typedef enum rd_kafka_AclOperation_t {
        RD_KAFKA_ACL_OPERATION_UNKNOWN = 0,
        RD_KAFKA_ACL_OPERATION_ANY = 1,
        RD_KAFKA_ACL_OPERATION_ALL = 2,
        RD_KAFKA_ACL_OPERATION_READ = 3,
        RD_KAFKA_ACL_OPERATION_WRITE = 4,
        RD_KAFKA_ACL_OPERATION_CREATE = 5,
        RD_KAFKA_ACL_OPERATION_DELETE = 6,
        RD_KAFKA_ACL_OPERATION_ALTER = 7,
        RD_KAFKA_ACL_OPERATION_DESCRIBE = 8,
        RD_KAFKA_ACL_OPERATION_CLUSTER_ACTION = 9,
        RD_KAFKA_ACL_OPERATION_DESCRIBE_CONFIGS = 10,
        RD_KAFKA_ACL_OPERATION_ALTER_CONFIGS = 11,
        RD_KAFKA_ACL_OPERATION_IDEMPOTENT_WRITE = 12,
        RD_KAFKA_ACL_OPERATION__CNT = 13
} rd_kafka_AclOperation_t;

/** Config source. */
typedef enum rd_kafka_ConfigSource_t {
        RD_KAFKA_CONFIG_SOURCE_UNKNOWN_CONFIG = 0,
        RD_KAFKA_CONFIG_SOURCE_DYNAMIC_TOPIC_CONFIG = 1,
        RD_KAFKA_CONFIG_SOURCE_DYNAMIC_BROKER_CONFIG = 2,
        RD_KAFKA_CONFIG_SOURCE_DYNAMIC_DEFAULT_BROKER_CONFIG = 3,
        RD_KAFKA_CONFIG_SOURCE_STATIC_BROKER_CONFIG = 4,
        RD_KAFKA_CONFIG_SOURCE_DEFAULT_CONFIG = 5,
        RD_KAFKA_CONFIG_SOURCE_GROUP_CONFIG = 8,
        RD_KAFKA_CONFIG_SOURCE__CNT = 9
} rd_kafka_ConfigSource_t;

/** Resource type. */
typedef enum rd_kafka_ResourceType_t {
        RD_KAFKA_RESOURCE_UNKNOWN = 0,
        RD_KAFKA_RESOURCE_ANY = 1,
        RD_KAFKA_RESOURCE_TOPIC = 2,
        RD_KAFKA_RESOURCE_GROUP = 3,
        RD_KAFKA_RESOURCE_BROKER = 4,
        RD_KAFKA_RESOURCE_TRANSACTIONAL_ID = 5,
        RD_KAFKA_RESOURCE__CNT = 6
} rd_kafka_ResourceType_t;

/** Resource pattern type. */
typedef enum rd_kafka_ResourcePatternType_t {
        RD_KAFKA_RESOURCE_PATTERN_UNKNOWN = 0,
        RD_KAFKA_RESOURCE_PATTERN_ANY = 1,
        RD_KAFKA_RESOURCE_PATTERN_MATCH = 2,
        RD_KAFKA_RESOURCE_PATTERN_LITERAL = 3,
        RD_KAFKA_RESOURCE_PATTERN_PREFIXED = 4,
        RD_KAFKA_RESOURCE_PATTERN_TYPE__CNT = 5
} rd_kafka_ResourcePatternType_t;

/** Alter config op type. */
typedef enum rd_kafka_AlterConfigOpType_t {
        RD_KAFKA_ALTER_CONFIG_OP_TYPE_SET = 0,
        RD_KAFKA_ALTER_CONFIG_OP_TYPE_DELETE = 1,
        RD_KAFKA_ALTER_CONFIG_OP_TYPE_APPEND = 2,
        RD_KAFKA_ALTER_CONFIG_OP_TYPE_SUBTRACT = 3,
        RD_KAFKA_ALTER_CONFIG_OP_TYPE__CNT = 4
} rd_kafka_AlterConfigOpType_t;

/** Offset spec. */
typedef enum rd_kafka_OffsetSpec_t {
        RD_KAFKA_OFFSET_SPEC_MAX_TIMESTAMP = -3,
        RD_KAFKA_OFFSET_SPEC_EARLIEST = -2,
        RD_KAFKA_OFFSET_SPEC_LATEST = -1
} rd_kafka_OffsetSpec_t;

/** Scram mechanism. */
typedef enum rd_kafka_ScramMechanism_t {
        RD_KAFKA_SCRAM_MECHANISM_UNKNOWN = 0,
        RD_KAFKA_SCRAM_MECHANISM_SHA_256 = 1,
        RD_KAFKA_SCRAM_MECHANISM_SHA_512 = 2,
        RD_KAFKA_SCRAM_MECHANISM__CNT = 3
} rd_kafka_ScramMechanism_t;

/** Acl permission type. */
typedef enum rd_kafka_AclPermissionType_t {
        RD_KAFKA_ACL_PERMISSION_TYPE_UNKNOWN = 0,
        RD_KAFKA_ACL_PERMISSION_TYPE_ANY = 1,
        RD_KAFKA_ACL_PERMISSION_TYPE_DENY = 2,
        RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW = 3,
        RD_KAFKA_ACL_PERMISSION_TYPE__CNT = 4
} rd_kafka_AclPermissionType_t;

/** Election type. */
typedef enum rd_kafka_ElectionType_t {
        RD_KAFKA_ELECTION_TYPE_PREFERRED = 0,
        RD_KAFKA_ELECTION_TYPE_UNCLEAN = 1
} rd_kafka_ElectionType_t;

/* Constants. */

/** The version of the interface; compare with rd_kafka_version(). */
#define RD_KAFKA_VERSION 0x021000ff
/** The words that the property debug takes. */
#define RD_KAFKA_DEBUG_CONTEXTS "all,generic,broker,topic,metadata,feature,queue,msg,protocol,cgrp,security,fetch,interceptor,plugin,consumer,admin,eos,mock,assignor,conf"
/** The newer or older name of the same code. */
#define RD_KAFKA_RESP_ERR_NOT_LEADER_OR_FOLLOWER RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION
/** The newer or older name of the same code. */
#define RD_KAFKA_RESP_ERR_GROUP_LOAD_IN_PROGRESS RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS
/** The newer or older name of the same code. */
#define RD_KAFKA_RESP_ERR_GROUP_COORDINATOR_NOT_AVAILABLE RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE
/** The newer or older name of the same code. */
#define RD_KAFKA_RESP_ERR_NOT_COORDINATOR_FOR_GROUP RD_KAFKA_RESP_ERR_NOT_COORDINATOR
/** Ends the arguments of rd_kafka_producev(). */
#define RD_KAFKA_V_END RD_KAFKA_VTYPE_END
/** Do not close the consumer. */
#define RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE 8
/** No partition: the partitioner chooses one. */
#define RD_KAFKA_PARTITION_UA ((int32_t)-1)
/** From the first available message. */
#define RD_KAFKA_OFFSET_BEGINNING -2
/** From the end: the next message. */
#define RD_KAFKA_OFFSET_END -1
/** From the stored offset. */
#define RD_KAFKA_OFFSET_STORED -1000
/** No offset. */
#define RD_KAFKA_OFFSET_INVALID -1001
/** The base of RD_KAFKA_OFFSET_TAIL(). */
#define RD_KAFKA_OFFSET_TAIL_BASE -2000
/** The library frees the payload after use. With RD_KAFKA_MSG_F_COPY it has no effect: the payload stays the caller's. */
#define RD_KAFKA_MSG_F_FREE 1
/** The library copies the payload before produce returns. */
#define RD_KAFKA_MSG_F_COPY 2
/** Produce waits while the queue is full, at most for max.block.ms if that is set. Needs another thread that polls. */
#define RD_KAFKA_MSG_F_BLOCK 4
/** rd_kafka_produce_batch() takes the partition from each message. */
#define RD_KAFKA_MSG_F_PARTITION 8
/** Purges messages that wait. */
#define RD_KAFKA_PURGE_F_QUEUE 1
/** Purges messages that were sent and have no response yet. */
#define RD_KAFKA_PURGE_F_INFLIGHT 2
/** Do not wait for the background work of the purge. */
#define RD_KAFKA_PURGE_F_NON_BLOCKING 4
/** Event: none. */
#define RD_KAFKA_EVENT_NONE 0
/** Event: dr. */
#define RD_KAFKA_EVENT_DR 1
/** Event: fetch. */
#define RD_KAFKA_EVENT_FETCH 2
/** Event: log. */
#define RD_KAFKA_EVENT_LOG 4
/** Event: error. */
#define RD_KAFKA_EVENT_ERROR 8
/** Event: rebalance. */
#define RD_KAFKA_EVENT_REBALANCE 16
/** Event: offset commit. */
#define RD_KAFKA_EVENT_OFFSET_COMMIT 32
/** Event: stats. */
#define RD_KAFKA_EVENT_STATS 64
/** Event: createtopics result. */
#define RD_KAFKA_EVENT_CREATETOPICS_RESULT 100
/** Event: deletetopics result. */
#define RD_KAFKA_EVENT_DELETETOPICS_RESULT 101
/** Event: createpartitions result. */
#define RD_KAFKA_EVENT_CREATEPARTITIONS_RESULT 102
/** Event: alterconfigs result. */
#define RD_KAFKA_EVENT_ALTERCONFIGS_RESULT 103
/** Event: describeconfigs result. */
#define RD_KAFKA_EVENT_DESCRIBECONFIGS_RESULT 104
/** Event: deleterecords result. */
#define RD_KAFKA_EVENT_DELETERECORDS_RESULT 105
/** Event: deletegroups result. */
#define RD_KAFKA_EVENT_DELETEGROUPS_RESULT 106
/** Event: deleteconsumergroupoffsets result. */
#define RD_KAFKA_EVENT_DELETECONSUMERGROUPOFFSETS_RESULT 107
/** Event: oauthbearer token refresh. */
#define RD_KAFKA_EVENT_OAUTHBEARER_TOKEN_REFRESH 256
/** Event: background. */
#define RD_KAFKA_EVENT_BACKGROUND 512
/** Event: createacls result. */
#define RD_KAFKA_EVENT_CREATEACLS_RESULT 1024
/** Event: describeacls result. */
#define RD_KAFKA_EVENT_DESCRIBEACLS_RESULT 2048
/** Event: deleteacls result. */
#define RD_KAFKA_EVENT_DELETEACLS_RESULT 4096
/** Event: listconsumergroups result. */
#define RD_KAFKA_EVENT_LISTCONSUMERGROUPS_RESULT 8192
/** Event: describeconsumergroups result. */
#define RD_KAFKA_EVENT_DESCRIBECONSUMERGROUPS_RESULT 16384
/** Event: listconsumergroupoffsets result. */
#define RD_KAFKA_EVENT_LISTCONSUMERGROUPOFFSETS_RESULT 32768
/** Event: alterconsumergroupoffsets result. */
#define RD_KAFKA_EVENT_ALTERCONSUMERGROUPOFFSETS_RESULT 65536
/** Event: incrementalalterconfigs result. */
#define RD_KAFKA_EVENT_INCREMENTALALTERCONFIGS_RESULT 131072
/** Event: describeuserscramcredentials result. */
#define RD_KAFKA_EVENT_DESCRIBEUSERSCRAMCREDENTIALS_RESULT 262144
/** Event: alteruserscramcredentials result. */
#define RD_KAFKA_EVENT_ALTERUSERSCRAMCREDENTIALS_RESULT 524288
/** Event: describetopics result. */
#define RD_KAFKA_EVENT_DESCRIBETOPICS_RESULT 1048576
/** Event: describecluster result. */
#define RD_KAFKA_EVENT_DESCRIBECLUSTER_RESULT 2097152
/** Event: listoffsets result. */
#define RD_KAFKA_EVENT_LISTOFFSETS_RESULT 4194304
/** Event: electleaders result. */
#define RD_KAFKA_EVENT_ELECTLEADERS_RESULT 8388608
/** The offset of cnt messages before the end. */
#define RD_KAFKA_OFFSET_TAIL(cnt) (RD_KAFKA_OFFSET_TAIL_BASE - (cnt))

/* Structures. */

/** A row of the table of error codes. */
struct rd_kafka_err_desc {
        rd_kafka_resp_err_t code; /**< The code. */
        const char *name;         /**< Its name, or NULL if there is no such code. */
        const char *desc;         /**< What it means. */
};

/** A topic and partition, with the arguments or results of a call. */
typedef struct rd_kafka_topic_partition_s {
        char *topic;             /**< The topic. */
        int32_t partition;       /**< The partition. */
        int64_t offset;          /**< An offset. */
        void *metadata;          /**< What is committed along with the offset. */
        size_t metadata_size;    /**< The size of that. */
        void *opaque;            /**< For the application. */
        rd_kafka_resp_err_t err; /**< What went wrong with this one. */
        void *_private;          /**< For the library: set to NULL and leave alone. */
} rd_kafka_topic_partition_t;

/** A list that grows. */
typedef struct rd_kafka_topic_partition_list_s {
        int cnt;                           /**< How many elements there are. */
        int size;                          /**< How many there is room for. */
        rd_kafka_topic_partition_t *elems; /**< The elements. */
} rd_kafka_topic_partition_list_t;

/** One argument of rd_kafka_produceva(). */
typedef struct rd_kafka_vu_s {
        rd_kafka_vtype_t vtype; /**< What it is. */
        union {
                const char *cstr;      /**< RD_KAFKA_VTYPE_TOPIC */
                rd_kafka_topic_t *rkt; /**< RD_KAFKA_VTYPE_RKT */
                int i;                 /**< RD_KAFKA_VTYPE_MSGFLAGS */
                int32_t i32;           /**< RD_KAFKA_VTYPE_PARTITION */
                int64_t i64;           /**< RD_KAFKA_VTYPE_TIMESTAMP */
                struct {
                        void *ptr;   /**< Where. */
                        size_t size; /**< How much. */
                } mem;               /**< RD_KAFKA_VTYPE_KEY and RD_KAFKA_VTYPE_VALUE */
                struct {
                        const char *name; /**< The name. */
                        const void *val;  /**< The value, or NULL. */
                        ssize_t size;     /**< The size of the value; -1 up to its zero byte. */
                } header;                 /**< RD_KAFKA_VTYPE_HEADER */
                rd_kafka_headers_t *headers; /**< RD_KAFKA_VTYPE_HEADERS */
                void *ptr;                   /**< RD_KAFKA_VTYPE_OPAQUE */
                char _pad[64];               /**< Room for more. */
        } u;                                 /**< The argument. */
} rd_kafka_vu_t;

/** A message: consumed, to be produced, or with its delivery report. */
typedef struct rd_kafka_message_s {
        rd_kafka_resp_err_t err; /**< Not zero: this is an error, whose text is the payload. */
        rd_kafka_topic_t *rkt;   /**< The topic. */
        int32_t partition;       /**< The partition. */
        void *payload;           /**< The value, or NULL. */
        size_t len;              /**< The size of the value. */
        void *key;               /**< The key, or NULL. */
        size_t key_len;          /**< The size of the key. */
        int64_t offset;          /**< The offset. */
        void *_private;          /**< Consumed: for the library. Produced: the opaque pointer of the application. */
} rd_kafka_message_t;

/** A broker in the metadata. */
typedef struct rd_kafka_metadata_broker {
        int32_t id; /**< Its id. */
        char *host; /**< Its host. */
        int port;   /**< Its port. */
} rd_kafka_metadata_broker_t;

/** A partition in the metadata. */
typedef struct rd_kafka_metadata_partition {
        int32_t id;              /**< Its number. */
        rd_kafka_resp_err_t err; /**< What is wrong with it. */
        int32_t leader;          /**< Its leader, or -1. */
        int replica_cnt;         /**< How many replicas it has. */
        int32_t *replicas;       /**< The brokers that hold it. */
        int isr_cnt;             /**< How many of them are in sync. */
        int32_t *isrs;           /**< Those. */
} rd_kafka_metadata_partition_t;

/** A topic in the metadata. */
typedef struct rd_kafka_metadata_topic {
        char *topic;                                    /**< Its name. */
        int partition_cnt;                              /**< How many partitions it has. */
        struct rd_kafka_metadata_partition *partitions; /**< Those. */
        rd_kafka_resp_err_t err;                        /**< What is wrong with it. */
} rd_kafka_metadata_topic_t;

/** Brokers and topics. */
typedef struct rd_kafka_metadata {
        int broker_cnt;                           /**< How many brokers there are. */
        struct rd_kafka_metadata_broker *brokers; /**< Those. */
        int topic_cnt;                            /**< How many topics. */
        struct rd_kafka_metadata_topic *topics;   /**< Those. */
        int32_t orig_broker_id;                   /**< The broker that said so, or -1. */
        char *orig_broker_name;                   /**< Its name. */
} rd_kafka_metadata_t;

/** A member of a group. */
struct rd_kafka_group_member_info {
        char *member_id;            /**< Its id. */
        char *client_id;            /**< The client.id of the client. */
        char *client_host;          /**< Where it runs. */
        void *member_metadata;      /**< What it said when it joined. */
        int member_metadata_size;   /**< The size of that. */
        void *member_assignment;    /**< What it was given. */
        int member_assignment_size; /**< The size of that. */
};

/** A group. */
struct rd_kafka_group_info {
        struct rd_kafka_metadata_broker broker;     /**< The broker that said so. */
        char *group;                                /**< Its name. */
        rd_kafka_resp_err_t err;                    /**< What is wrong with it. */
        char *state;                                /**< Its state. */
        char *protocol_type;                        /**< What kind of group it is. */
        char *protocol;                             /**< How it divides partitions. */
        struct rd_kafka_group_member_info *members; /**< Its members. */
        int member_cnt;                             /**< How many. */
};

/** Groups. */
struct rd_kafka_group_list {
        struct rd_kafka_group_info *groups; /**< Those. */
        int group_cnt;                      /**< How many. */
};

/* Arguments of rd_kafka_producev(). */

/** The topic by name. */
#define RD_KAFKA_V_TOPIC(topic) RD_KAFKA_VTYPE_TOPIC, (const char *)(topic)
/** The topic by its handle. */
#define RD_KAFKA_V_RKT(rkt) RD_KAFKA_VTYPE_RKT, (rd_kafka_topic_t *)(rkt)
/** The partition; the partitioner chooses without it. */
#define RD_KAFKA_V_PARTITION(partition) RD_KAFKA_VTYPE_PARTITION, (int32_t)(partition)
/** The value. */
#define RD_KAFKA_V_VALUE(value, len) RD_KAFKA_VTYPE_VALUE, (void *)(value), (size_t)(len)
/** The key. */
#define RD_KAFKA_V_KEY(key, len) RD_KAFKA_VTYPE_KEY, (const void *)(key), (size_t)(len)
/** The pointer that the report returns. */
#define RD_KAFKA_V_OPAQUE(msg_opaque) RD_KAFKA_VTYPE_OPAQUE, (void *)(msg_opaque)
/** RD_KAFKA_MSG_F_* flags. */
#define RD_KAFKA_V_MSGFLAGS(msgflags) RD_KAFKA_VTYPE_MSGFLAGS, (int)(msgflags)
/** The timestamp in milliseconds since 1970; 0 is the time of the call. */
#define RD_KAFKA_V_TIMESTAMP(timestamp) RD_KAFKA_VTYPE_TIMESTAMP, (int64_t)(timestamp)
/** One header; not together with RD_KAFKA_V_HEADERS. */
#define RD_KAFKA_V_HEADER(name, value, len)                                                                 \
        RD_KAFKA_VTYPE_HEADER, (const char *)(name), (const void *)(value), (ssize_t)(len)
/** Headers, which belong to the library if the call succeeds. */
#define RD_KAFKA_V_HEADERS(headers) RD_KAFKA_VTYPE_HEADERS, (rd_kafka_headers_t *)(headers)

/* The functions of plugins and interceptors. */

/** The conf_init function of a plugin. */
typedef rd_kafka_resp_err_t(rd_kafka_plugin_f_conf_init_t)(rd_kafka_conf_t *conf, void **plug_opaquep, char *errstr, size_t errstr_size);
/** The on_conf_set function of an interceptor. */
typedef rd_kafka_conf_res_t(rd_kafka_interceptor_f_on_conf_set_t)(rd_kafka_conf_t *conf, const char *name, const char *val, char *errstr, size_t errstr_size, void *ic_opaque);
/** The on_conf_dup function of an interceptor. */
typedef rd_kafka_resp_err_t(rd_kafka_interceptor_f_on_conf_dup_t)(rd_kafka_conf_t *new_conf, const rd_kafka_conf_t *old_conf, size_t filter_cnt, const char **filter, void *ic_opaque);
/** The on_conf_destroy function of an interceptor. */
typedef rd_kafka_resp_err_t(rd_kafka_interceptor_f_on_conf_destroy_t)(void *ic_opaque);
/** The on_new function of an interceptor. */
typedef rd_kafka_resp_err_t(rd_kafka_interceptor_f_on_new_t)(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *ic_opaque, char *errstr, size_t errstr_size);
/** The on_destroy function of an interceptor. */
typedef rd_kafka_resp_err_t(rd_kafka_interceptor_f_on_destroy_t)(rd_kafka_t *rk, void *ic_opaque);
/** The on_send function of an interceptor. */
typedef rd_kafka_resp_err_t(rd_kafka_interceptor_f_on_send_t)(rd_kafka_t *rk, rd_kafka_message_t *rkmessage, void *ic_opaque);
/** The on_acknowledgement function of an interceptor. */
typedef rd_kafka_resp_err_t(rd_kafka_interceptor_f_on_acknowledgement_t)(rd_kafka_t *rk, rd_kafka_message_t *rkmessage, void *ic_opaque);
/** The on_consume function of an interceptor. */
typedef rd_kafka_resp_err_t(rd_kafka_interceptor_f_on_consume_t)(rd_kafka_t *rk, rd_kafka_message_t *rkmessage, void *ic_opaque);
/** The on_commit function of an interceptor. */
typedef rd_kafka_resp_err_t(rd_kafka_interceptor_f_on_commit_t)(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *offsets, rd_kafka_resp_err_t err, void *ic_opaque);
/** The on_request_sent function of an interceptor. */
typedef rd_kafka_resp_err_t(rd_kafka_interceptor_f_on_request_sent_t)(rd_kafka_t *rk, int sockfd, const char *brokername, int32_t brokerid, int16_t ApiKey, int16_t ApiVersion, int32_t CorrId, size_t size, void *ic_opaque);
/** The on_response_received function of an interceptor. */
typedef rd_kafka_resp_err_t(rd_kafka_interceptor_f_on_response_received_t)(rd_kafka_t *rk, int sockfd, const char *brokername, int32_t brokerid, int16_t ApiKey, int16_t ApiVersion, int32_t CorrId, size_t size, int64_t rtt, rd_kafka_resp_err_t err, void *ic_opaque);
/** The on_thread_start function of an interceptor. */
typedef rd_kafka_resp_err_t(rd_kafka_interceptor_f_on_thread_start_t)(rd_kafka_t *rk, rd_kafka_thread_type_t thread_type, const char *thread_name, void *ic_opaque);
/** The on_thread_exit function of an interceptor. */
typedef rd_kafka_resp_err_t(rd_kafka_interceptor_f_on_thread_exit_t)(rd_kafka_t *rk, rd_kafka_thread_type_t thread_type, const char *thread_name, void *ic_opaque);
/** The on_broker_state_change function of an interceptor. */
typedef rd_kafka_resp_err_t(rd_kafka_interceptor_f_on_broker_state_change_t)(rd_kafka_t *rk, int32_t broker_id, const char *secproto, const char *name, int port, const char *state, void *ic_opaque);

/** Returns the version as a number with two hexadecimal digits each for major, minor, revision and 0xff: 0x021000ff is 2.16.0. */
RD_EXPORT
int rd_kafka_version(void);

/** Returns the version as text, which begins with the version of the interface. */
RD_EXPORT
const char *rd_kafka_version_str(void);

/** Returns the values of the property debug, comma-separated. */
RD_EXPORT
const char *rd_kafka_get_debug_contexts(void);

/** Returns all error codes with name and description; the index is the code less RD_KAFKA_RESP_ERR__BEGIN. Indexes without a code have a NULL name, and the borders _BEGIN and _END have no description. */
RD_EXPORT
void rd_kafka_get_err_descs(const struct rd_kafka_err_desc **errdescs, size_t *cntp);

/** Returns the description of an error code: a label that starts with "Local: " or "Broker: ", or "Err-99?" for a number that is not a code. Never NULL; the text lives as long as the library. */
RD_EXPORT
const char *rd_kafka_err2str(rd_kafka_resp_err_t err);

/** Returns the name of an error code without its prefix, or "ERR_99?" for a number that is not a code. Never NULL; the text lives as long as the library. */
RD_EXPORT
const char *rd_kafka_err2name(rd_kafka_resp_err_t err);

/** Returns the error of this thread's last call that returned -1 or NULL. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_last_error(void);

/** Returns the error code for a value of errno. */
RD_EXPORT
RD_DEPRECATED rd_kafka_resp_err_t rd_kafka_errno2err(int errnox);

/** Returns the errno of this thread, for languages that can't read it. */
RD_EXPORT
RD_DEPRECATED int rd_kafka_errno(void);

/** Returns the fatal error of this client, or no error, and writes its text to errstr. After a fatal error, other calls and the error callback report RD_KAFKA_RESP_ERR__FATAL; this call reports the cause. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_fatal_error(rd_kafka_t *rk, char *errstr, size_t errstr_size);

/** Raises a fatal error in the client, to test how the application handles it. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_test_fatal_error(rd_kafka_t *rk, rd_kafka_resp_err_t err, const char *reason);

/** Returns the code of an error object; RD_KAFKA_RESP_ERR_NO_ERROR for NULL. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_error_code(const rd_kafka_error_t *error);

/** Returns the name of the code of an error object. */
RD_EXPORT
const char *rd_kafka_error_name(const rd_kafka_error_t *error);

/** Returns the text of an error object. */
RD_EXPORT
const char *rd_kafka_error_string(const rd_kafka_error_t *error);

/** Returns 1 if the client can't continue after this error. */
RD_EXPORT
int rd_kafka_error_is_fatal(const rd_kafka_error_t *error);

/** Returns 1 if the same call may succeed later. */
RD_EXPORT
int rd_kafka_error_is_retriable(const rd_kafka_error_t *error);

/** Returns 1 if the transaction has to be aborted. */
RD_EXPORT
int rd_kafka_error_txn_requires_abort(const rd_kafka_error_t *error);

/** Frees an error object. */
RD_EXPORT
void rd_kafka_error_destroy(rd_kafka_error_t *error);

/** Creates an error object with a text as from printf. With a NULL format it has the description of the code. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_error_new(rd_kafka_resp_err_t code, const char *fmt, ...) RD_FORMAT(printf, 2, 3);

/** Frees a single topic and partition that is in no list. */
RD_EXPORT
void rd_kafka_topic_partition_destroy(rd_kafka_topic_partition_t *rktpar);

/** Sets the leader epoch; -1 means unknown. */
RD_EXPORT
void rd_kafka_topic_partition_set_leader_epoch(rd_kafka_topic_partition_t *rktpar, int32_t leader_epoch);

/** Returns the leader epoch, or -1. */
RD_EXPORT
int32_t rd_kafka_topic_partition_get_leader_epoch(const rd_kafka_topic_partition_t *rktpar);

/** Creates an empty list with room for size elements; it grows as needed. */
RD_EXPORT
rd_kafka_topic_partition_list_t *rd_kafka_topic_partition_list_new(int size);

/** Frees a list with everything that its elements own. */
RD_EXPORT
void rd_kafka_topic_partition_list_destroy(rd_kafka_topic_partition_list_t *rkparlist);

/** Appends a topic and partition, and returns its element, which may move when the list grows. */
RD_EXPORT
rd_kafka_topic_partition_t *rd_kafka_topic_partition_list_add(rd_kafka_topic_partition_list_t *rktparlist, const char *topic, int32_t partition);

/** Appends the partitions from start to stop, both included. */
RD_EXPORT
void rd_kafka_topic_partition_list_add_range(rd_kafka_topic_partition_list_t *rktparlist, const char *topic, int32_t start, int32_t stop);

/** Removes a topic and partition. Returns 1, or 0 if it is not in the list. */
RD_EXPORT
int rd_kafka_topic_partition_list_del(rd_kafka_topic_partition_list_t *rktparlist, const char *topic, int32_t partition);

/** Removes the element at this index. Returns 1, or 0 if the list is shorter. */
RD_EXPORT
int rd_kafka_topic_partition_list_del_by_idx(rd_kafka_topic_partition_list_t *rktparlist, int idx);

/** Returns a copy of a list; opaque pointers stay the same. */
RD_EXPORT
rd_kafka_topic_partition_list_t *rd_kafka_topic_partition_list_copy(const rd_kafka_topic_partition_list_t *src);

/** Sets the offset of a topic and partition in the list. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_topic_partition_list_set_offset(rd_kafka_topic_partition_list_t *rktparlist, const char *topic, int32_t partition, int64_t offset);

/** Returns the element of a topic and partition, or NULL. */
RD_EXPORT
rd_kafka_topic_partition_t *rd_kafka_topic_partition_list_find(const rd_kafka_topic_partition_list_t *rktparlist, const char *topic, int32_t partition);

/** Sorts by cmp, or by topic and partition if cmp is NULL. */
RD_EXPORT
void rd_kafka_topic_partition_list_sort(rd_kafka_topic_partition_list_t *rktparlist, int (*cmp)(const void *a, const void *b, void *cmp_opaque), void *cmp_opaque);

/** Creates an empty list of headers with this initial capacity. */
RD_EXPORT
rd_kafka_headers_t *rd_kafka_headers_new(size_t initial_count);

/** Frees a list of headers. */
RD_EXPORT
void rd_kafka_headers_destroy(rd_kafka_headers_t *hdrs);

/** Returns a copy of a list of headers. */
RD_EXPORT
rd_kafka_headers_t *rd_kafka_headers_copy(const rd_kafka_headers_t *src);

/** Appends a header. A size of -1 means a text that ends with a zero byte; a NULL value is null. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_header_add(rd_kafka_headers_t *hdrs, const char *name, ssize_t name_size, const void *value, ssize_t value_size);

/** Removes all headers of a name. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_header_remove(rd_kafka_headers_t *hdrs, const char *name);

/** Returns the last header with a name. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_header_get_last(const rd_kafka_headers_t *hdrs, const char *name, const void **valuep, size_t *sizep);

/** Returns the header with a name that has idx other headers of that name before it. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_header_get(const rd_kafka_headers_t *hdrs, size_t idx, const char *name, const void **valuep, size_t *sizep);

/** Returns the header at an index, whatever its name is. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_header_get_all(const rd_kafka_headers_t *hdrs, size_t idx, const char **namep, const void **valuep, size_t *sizep);

/** The number of messages of a poll; 0 for NULL. */
RD_EXPORT
size_t rd_kafka_messages_count(const rd_kafka_messages_t *messages);

/** A message of a poll, which lives as long as the list; NULL for an index without a message. It must not be destroyed by itself. */
RD_EXPORT
rd_kafka_message_t *rd_kafka_messages_get(const rd_kafka_messages_t *messages, size_t index);

/** Frees the messages of a poll. That acknowledges nothing. */
RD_EXPORT
void rd_kafka_messages_destroy(rd_kafka_messages_t *messages);

/** Frees a consumed message, in any thread and any order, even after its consumer was destroyed. */
RD_EXPORT
void rd_kafka_message_destroy(rd_kafka_message_t *rkmessage);

/** Returns the error text of a message, or NULL if the message is not an error. */
RD_EXPORT
const char *rd_kafka_message_errstr(const rd_kafka_message_t *rkmessage);

/** Returns the text of a delivery error, or NULL. */
RD_EXPORT
const char *rd_kafka_message_produce_errstr(const rd_kafka_message_t *rkmessage);

/** Returns the timestamp in milliseconds since 1970, and its type; -1 and RD_KAFKA_TIMESTAMP_NOT_AVAILABLE for a message without a timestamp or with an error. */
RD_EXPORT
int64_t rd_kafka_message_timestamp(const rd_kafka_message_t *rkmessage, rd_kafka_timestamp_type_t *tstype);

/** Returns the microseconds from produce to the report, or -1. */
RD_EXPORT
int64_t rd_kafka_message_latency(const rd_kafka_message_t *rkmessage);

/** Returns the broker that a consumed message was fetched from, or to which a produced one was sent last; -1 if it was never sent or the broker's id is unknown. */
RD_EXPORT
int32_t rd_kafka_message_broker_id(const rd_kafka_message_t *rkmessage);

/** Returns the headers, which still belong to the message. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_message_headers(const rd_kafka_message_t *rkmessage, rd_kafka_headers_t **hdrsp);

/** Detaches the headers, which then belong to the caller. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_message_detach_headers(rd_kafka_message_t *rkmessage, rd_kafka_headers_t **hdrsp);

/** Replaces the headers; the list then belongs to the message. */
RD_EXPORT
void rd_kafka_message_set_headers(rd_kafka_message_t *rkmessage, rd_kafka_headers_t *hdrs);

/** Returns the number of headers. */
RD_EXPORT
size_t rd_kafka_header_cnt(const rd_kafka_headers_t *hdrs);

/** Returns whether a produced message is in the log of its partition. */
RD_EXPORT
rd_kafka_msg_status_t rd_kafka_message_status(const rd_kafka_message_t *rkmessage);

/** Returns the leader epoch with which a message was written, or -1. */
RD_EXPORT
int32_t rd_kafka_message_leader_epoch(const rd_kafka_message_t *rkmessage);

/** How often a share group delivered a message, including this time: 1 for the first. 0 for messages of other consumers, of producers, and for errors. */
RD_EXPORT
int16_t rd_kafka_message_delivery_count(const rd_kafka_message_t *rkmessage);

/** Returns the UUID as Kafka writes it: 22 letters of URL-safe base64. The text lives as long as the UUID. */
RD_EXPORT
const char *rd_kafka_Uuid_base64str(const rd_kafka_Uuid_t *uuid);

/** Returns the least significant half. */
RD_EXPORT
int64_t rd_kafka_Uuid_least_significant_bits(const rd_kafka_Uuid_t *uuid);

/** Returns the most significant half. */
RD_EXPORT
int64_t rd_kafka_Uuid_most_significant_bits(const rd_kafka_Uuid_t *uuid);

/** Creates a UUID from two halves. */
RD_EXPORT
rd_kafka_Uuid_t *rd_kafka_Uuid_new(int64_t most_significant_bits, int64_t least_significant_bits);

/** Returns a copy of a UUID. */
RD_EXPORT
rd_kafka_Uuid_t *rd_kafka_Uuid_copy(const rd_kafka_Uuid_t *uuid);

/** Frees a UUID. */
RD_EXPORT
void rd_kafka_Uuid_destroy(rd_kafka_Uuid_t *uuid);

/** Creates a configuration in which all properties have their defaults. */
RD_EXPORT
rd_kafka_conf_t *rd_kafka_conf_new(void);

/** Frees a configuration that was not passed to a client. */
RD_EXPORT
void rd_kafka_conf_destroy(rd_kafka_conf_t *conf);

/** Returns a copy of a configuration, without its interceptors. */
RD_EXPORT
rd_kafka_conf_t *rd_kafka_conf_dup(const rd_kafka_conf_t *conf);

/** Returns a copy of a configuration without the properties that begin with one of the filters. */
RD_EXPORT
rd_kafka_conf_t *rd_kafka_conf_dup_filter(const rd_kafka_conf_t *conf, size_t filter_cnt, const char **filter);

/** Returns the configuration of a client. Read-only. */
RD_EXPORT
const rd_kafka_conf_t *rd_kafka_conf(rd_kafka_t *rk);

/** Sets a property. The result and errstr name the problem with the name or the value. */
RD_EXPORT
rd_kafka_conf_res_t rd_kafka_conf_set(rd_kafka_conf_t *conf, const char *name, const char *value, char *errstr, size_t errstr_size);

/** Sets the events that come from queues instead of through callbacks: the sum of RD_KAFKA_EVENT_* values. */
RD_EXPORT
void rd_kafka_conf_set_events(rd_kafka_conf_t *conf, int events);

/** Sets the callback for events of the background queue. A thread of the library calls it. */
RD_EXPORT
void rd_kafka_conf_set_background_event_cb(rd_kafka_conf_t *conf, void (*event_cb)(rd_kafka_t *rk, rd_kafka_event_t *rkev, void *opaque));

/** Sets the older delivery report callback. Use rd_kafka_conf_set_dr_msg_cb(). */
RD_EXPORT
void rd_kafka_conf_set_dr_cb(rd_kafka_conf_t *conf, void (*dr_cb)(rd_kafka_t *rk, void *payload, size_t len, rd_kafka_resp_err_t err, void *opaque, void *msg_opaque));

/** Sets the callback that rd_kafka_poll() calls once per message when its outcome is known. */
RD_EXPORT
void rd_kafka_conf_set_dr_msg_cb(rd_kafka_conf_t *conf, void (*dr_msg_cb)(rd_kafka_t *rk, const rd_kafka_message_t *rkmessage, void *opaque));

/** Sets the callback for consumed messages that rd_kafka_poll_set_consumer() redirects to rd_kafka_poll(); a message is destroyed when the callback returns. rd_kafka_consumer_poll() always returns its message. */
RD_EXPORT
void rd_kafka_conf_set_consume_cb(rd_kafka_conf_t *conf, void (*consume_cb)(rd_kafka_message_t *rkmessage, void *opaque));

/** Sets the callback for changes of the partitions that a group assigns to this consumer. It must call one of the assign functions. */
RD_EXPORT
void rd_kafka_conf_set_rebalance_cb(rd_kafka_conf_t *conf, void (*rebalance_cb)(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *partitions, void *opaque));

/** Sets the callback for the results of offset commits. */
RD_EXPORT
void rd_kafka_conf_set_offset_commit_cb(rd_kafka_conf_t *conf, void (*offset_commit_cb)(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *offsets, void *opaque));

/** Sets the callback for errors that belong to no call. The client recovers by itself unless the error is fatal. */
RD_EXPORT
void rd_kafka_conf_set_error_cb(rd_kafka_conf_t *conf, void (*error_cb)(rd_kafka_t *rk, int err, const char *reason, void *opaque));

/** Sets the callback that is called when a broker throttles the client. */
RD_EXPORT
void rd_kafka_conf_set_throttle_cb(rd_kafka_conf_t *conf, void (*throttle_cb)(rd_kafka_t *rk, const char *broker_name, int32_t broker_id, int throttle_time_ms, void *opaque));

/** Sets the callback for log lines. Any thread may call it. With NULL, log lines are dropped; by default they are printed. */
RD_EXPORT
void rd_kafka_conf_set_log_cb(rd_kafka_conf_t *conf, void (*log_cb)(const rd_kafka_t *rk, int level, const char *fac, const char *buf));

/** Sets the callback for statistics, as JSON text. It returns 1 to keep the text, which the application then frees. */
RD_EXPORT
void rd_kafka_conf_set_stats_cb(rd_kafka_conf_t *conf, int (*stats_cb)(rd_kafka_t *rk, char *json, size_t json_len, void *opaque));

/** Sets the callback for token requests (OAUTHBEARER). rd_kafka_poll() calls it, or a poll of the queue of rd_kafka_conf_enable_sasl_queue(). It calls rd_kafka_oauthbearer_set_token() or rd_kafka_oauthbearer_set_token_failure(), immediately or later. It can't be combined with `enable.sasl.oauthbearer.unsecure.jwt`. */
RD_EXPORT
void rd_kafka_conf_set_oauthbearer_token_refresh_cb(rd_kafka_conf_t *conf, void (*oauthbearer_token_refresh_cb)(rd_kafka_t *rk, const char *oauthbearer_config, void *opaque));

/** Sends token requests to a separate queue, which rd_kafka_queue_get_sasl() returns. */
RD_EXPORT
void rd_kafka_conf_enable_sasl_queue(rd_kafka_conf_t *conf, int enable);

/** Sets the function that opens sockets, like socket(2): it returns a new stream socket, or -1 and errno. The client makes it non-blocking and closes it. I/O threads of all clients call it: it must neither block nor call rd_kafka_destroy(). */
RD_EXPORT
void rd_kafka_conf_set_socket_cb(rd_kafka_conf_t *conf, int (*socket_cb)(int domain, int type, int protocol, void *opaque));

/** Sets the function that connects sockets: it gets a non-blocking socket, the address, its length, and the broker's name, and returns 0 or the errno; EINPROGRESS counts as success. I/O threads of all clients call it: it must neither block nor call rd_kafka_destroy(). */
RD_EXPORT
void rd_kafka_conf_set_connect_cb(rd_kafka_conf_t *conf, int (*connect_cb)(int sockfd, const struct sockaddr *addr, int addrlen, const char *id, void *opaque));

/** Sets the function that closes each socket of the client, including those that socket_cb did not open. Only this function closes them. Its return value is ignored. I/O threads of all clients call it: it must neither block nor call rd_kafka_destroy(). */
RD_EXPORT
void rd_kafka_conf_set_closesocket_cb(rd_kafka_conf_t *conf, int (*closesocket_cb)(int sockfd, void *opaque));

/** Sets the function that opens files, those of offset.store.method=file, like open(2): it returns the descriptor of a regular file, which the client closes, or -1 and errno. */
RD_EXPORT
void rd_kafka_conf_set_open_cb(rd_kafka_conf_t *conf, int (*open_cb)(const char *pathname, int flags, mode_t mode, void *opaque));

/** Sets the function that resolves host names, with the arguments and results of getaddrinfo(3). It is also called for hosts that are addresses already. It is called again with node, service and hints NULL to free its result. It runs on a thread that all clients share. */
RD_EXPORT
void rd_kafka_conf_set_resolve_cb(rd_kafka_conf_t *conf, int (*resolve_cb)(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **res, void *opaque));

/** Sets the function that checks brokers' certificates, in addition to the client's own verification. It gets each certificate of a chain in DER, from the root to the broker's at depth 0, with the OpenSSL error number of the problem that was found, or 0. It returns 1 to accept the certificate, and sets the number to 0 to overrule the problem; it returns 0 and writes a reason to errstr to refuse it. broker_id is -1 for a bootstrap server. With enable.ssl.certificate.verification=false the result has no effect. I/O threads of all clients call it: it must not block. */
RD_EXPORT
rd_kafka_conf_res_t rd_kafka_conf_set_ssl_cert_verify_cb(rd_kafka_conf_t *conf, int (*ssl_cert_verify_cb)(rd_kafka_t *rk, const char *broker_name, int32_t broker_id, int *x509_error, int depth, const char *buf, size_t size, char *errstr, size_t errstr_size, void *opaque));

/** Sets the client's certificate with its chain, the client's private key, or CA certificates, from a buffer in PEM, DER or PKCS#12. The buffer is copied. ssl.key.password, which must be set before, is the password of the key and of the PKCS#12 store. A NULL buffer removes the certificate or key. */
RD_EXPORT
rd_kafka_conf_res_t rd_kafka_conf_set_ssl_cert(rd_kafka_conf_t *conf, rd_kafka_cert_type_t cert_type, rd_kafka_cert_enc_t cert_enc, const void *buffer, size_t size, char *errstr, size_t errstr_size);

/** Accepts the pointer for an OpenSSL engine, and ignores it: this library contains no OpenSSL, and rd_kafka_new refuses ssl.engine.location and ssl.engine.id. */
RD_EXPORT
void rd_kafka_conf_set_engine_callback_data(rd_kafka_conf_t *conf, void *callback_data);

/** Sets the pointer that callbacks get and rd_kafka_opaque() returns. */
RD_EXPORT
void rd_kafka_conf_set_opaque(rd_kafka_conf_t *conf, void *opaque);

/** Returns the pointer that was set with rd_kafka_conf_set_opaque(). */
RD_EXPORT
void *rd_kafka_opaque(const rd_kafka_t *rk);

/** Sets the topic configuration of all topics without their own. It belongs to conf from now on. */
RD_EXPORT
void rd_kafka_conf_set_default_topic_conf(rd_kafka_conf_t *conf, rd_kafka_topic_conf_t *tconf);

/** Returns the default topic configuration, which conf still owns; NULL if it was not set. */
RD_EXPORT
rd_kafka_topic_conf_t *rd_kafka_conf_get_default_topic_conf(rd_kafka_conf_t *conf);

/** Returns the value of a property. With dest NULL it only returns its size, with the final zero byte. */
RD_EXPORT
rd_kafka_conf_res_t rd_kafka_conf_get(const rd_kafka_conf_t *conf, const char *name, char *dest, size_t *dest_size);

/** Returns the value of a property of a topic configuration. */
RD_EXPORT
rd_kafka_conf_res_t rd_kafka_topic_conf_get(const rd_kafka_topic_conf_t *conf, const char *name, char *dest, size_t *dest_size);

/** Returns the client's properties that have a value, and the topic properties that were set, as an array of name, value, name, value. */
RD_EXPORT
const char **rd_kafka_conf_dump(rd_kafka_conf_t *conf, size_t *cntp);

/** Returns all properties of a topic configuration with their values. */
RD_EXPORT
const char **rd_kafka_topic_conf_dump(rd_kafka_topic_conf_t *conf, size_t *cntp);

/** Frees the array of a dump. */
RD_EXPORT
void rd_kafka_conf_dump_free(const char **arr, size_t cnt);

/** Prints all properties with ranges, defaults and descriptions. */
RD_EXPORT
void rd_kafka_conf_properties_show(FILE *fp);

/** Creates a topic configuration in which all properties have their defaults. */
RD_EXPORT
rd_kafka_topic_conf_t *rd_kafka_topic_conf_new(void);

/** Returns a copy of a topic configuration. */
RD_EXPORT
rd_kafka_topic_conf_t *rd_kafka_topic_conf_dup(const rd_kafka_topic_conf_t *conf);

/** Returns a copy of the default topic configuration of a client. */
RD_EXPORT
rd_kafka_topic_conf_t *rd_kafka_default_topic_conf_dup(rd_kafka_t *rk);

/** Frees a topic configuration that was not passed to a topic. */
RD_EXPORT
void rd_kafka_topic_conf_destroy(rd_kafka_topic_conf_t *topic_conf);

/** Sets a property of a topic configuration. */
RD_EXPORT
rd_kafka_conf_res_t rd_kafka_topic_conf_set(rd_kafka_topic_conf_t *conf, const char *name, const char *value, char *errstr, size_t errstr_size);

/** Sets the pointer that rd_kafka_topic_opaque() returns. */
RD_EXPORT
void rd_kafka_topic_conf_set_opaque(rd_kafka_topic_conf_t *conf, void *rkt_opaque);

/** Sets the function that chooses the partition of messages that were produced to RD_KAFKA_PARTITION_UA. */
RD_EXPORT
void rd_kafka_topic_conf_set_partitioner_cb(rd_kafka_topic_conf_t *topic_conf, int32_t (*partitioner)(const rd_kafka_topic_t *rkt, const void *keydata, size_t keylen, int32_t partition_cnt, void *rkt_opaque, void *msg_opaque));

/** Sets the function that compares waiting messages of a partition, to determine the order in which they are sent: it returns less than 0 if a is sent first, more than 0 if b is, and 0 for the order in which they were produced. Threads of the library call it, with payload, key, partition and _private; it must not block. A message that is in a request, or waits for a retry, keeps its position. */
RD_EXPORT
void rd_kafka_topic_conf_set_msg_order_cmp(rd_kafka_topic_conf_t *topic_conf, int (*msg_order_cmp)(const rd_kafka_message_t *a, const rd_kafka_message_t *b));

/** Returns 1 if a partition has a leader. May only be called from a partitioner. */
RD_EXPORT
int rd_kafka_topic_partition_available(const rd_kafka_topic_t *rkt, int32_t partition);

/** A partitioner that chooses a random partition. */
RD_EXPORT
int32_t rd_kafka_msg_partitioner_random(const rd_kafka_topic_t *rkt, const void *key, size_t keylen, int32_t partition_cnt, void *rkt_opaque, void *msg_opaque);

/** A partitioner that uses the CRC32 of the key. */
RD_EXPORT
int32_t rd_kafka_msg_partitioner_consistent(const rd_kafka_topic_t *rkt, const void *key, size_t keylen, int32_t partition_cnt, void *rkt_opaque, void *msg_opaque);

/** A partitioner that uses the CRC32 of the key; random for a message without one. */
RD_EXPORT
int32_t rd_kafka_msg_partitioner_consistent_random(const rd_kafka_topic_t *rkt, const void *key, size_t keylen, int32_t partition_cnt, void *rkt_opaque, void *msg_opaque);

/** A partitioner that uses the hash of the Java client. */
RD_EXPORT
int32_t rd_kafka_msg_partitioner_murmur2(const rd_kafka_topic_t *rkt, const void *key, size_t keylen, int32_t partition_cnt, void *rkt_opaque, void *msg_opaque);

/** A partitioner that uses the hash of the Java client; random for a message without a key. */
RD_EXPORT
int32_t rd_kafka_msg_partitioner_murmur2_random(const rd_kafka_topic_t *rkt, const void *key, size_t keylen, int32_t partition_cnt, void *rkt_opaque, void *msg_opaque);

/** A partitioner that uses FNV-1a of the key. */
RD_EXPORT
int32_t rd_kafka_msg_partitioner_fnv1a(const rd_kafka_topic_t *rkt, const void *key, size_t keylen, int32_t partition_cnt, void *rkt_opaque, void *msg_opaque);

/** A partitioner that uses FNV-1a of the key; random for a message without one. */
RD_EXPORT
int32_t rd_kafka_msg_partitioner_fnv1a_random(const rd_kafka_topic_t *rkt, const void *key, size_t keylen, int32_t partition_cnt, void *rkt_opaque, void *msg_opaque);

/** Starts a client. It owns conf from then on, unless the call returns NULL. */
RD_EXPORT
rd_kafka_t *rd_kafka_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, char *errstr, size_t errstr_size);

/** Destroys a client. Unsent messages are dropped: flush first. The call waits for functions of the application that run in other threads, for 10 seconds in all; after that a log line names the function that did not return. Everything that its thread uses is still valid when it does return. */
RD_EXPORT
void rd_kafka_destroy(rd_kafka_t *rk);

/** Destroys a client. A consumer that was not closed first commits the offsets that are committed automatically, and waits some seconds for that and for commits in flight, unless RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE is set. */
RD_EXPORT
void rd_kafka_destroy_flags(rd_kafka_t *rk, int flags);

/** The queue of requests for tokens, as rd_kafka_queue_get_sasl returns it; NULL without one. */
RD_EXPORT
rd_kafka_queue_t *rd_kafka_share_queue_get_sasl(rd_kafka_share_t *rkshare);

/** Sets the token of OAUTHBEARER, as rd_kafka_oauthbearer_set_token does. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_share_oauthbearer_set_token(rd_kafka_share_t *rkshare, const char *token_value, int64_t md_lifetime_ms, const char *md_principal_name, const char **extensions, size_t extension_size, char *errstr, size_t errstr_size);

/** Notes that there is no token, as rd_kafka_oauthbearer_set_token_failure does. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_share_oauthbearer_set_token_failure(rd_kafka_share_t *rkshare, const char *errstr);

/** Returns the name of a client: client.id, type and number. */
RD_EXPORT
const char *rd_kafka_name(const rd_kafka_t *rk);

/** Returns the type of a client. */
RD_EXPORT
rd_kafka_type_t rd_kafka_type(const rd_kafka_t *rk);

/** Returns the client's member ID in its group, empty without one, to be freed by rd_kafka_mem_free(); NULL for a client without a group. */
RD_EXPORT
char *rd_kafka_memberid(const rd_kafka_t *rk);

/** Returns the id of the cluster, to be freed by rd_kafka_mem_free(), or NULL if it is still unknown after the timeout. */
RD_EXPORT
char *rd_kafka_clusterid(rd_kafka_t *rk, int timeout_ms);

/** Returns the ID of the controller from the last metadata, without waiting. If it is unknown, the call requests it and waits up to timeout_ms; with 0 it does not wait. Returns -1 if it stays unknown. */
RD_EXPORT
int32_t rd_kafka_controllerid(rd_kafka_t *rk, int timeout_ms);

/** Returns a handle for a topic; conf may be NULL and belongs to the handle from now on. A configuration is complete: properties that were not set in it have their defaults, whatever the client's configuration contains for topics. A configuration that contradicts the client's, such as acks=1 with enable.idempotence, is freed and refused: the result is NULL, with RD_KAFKA_RESP_ERR__INVALID_ARG, EINVAL and a log line. If the topic has a handle already, that handle is returned with its own configuration, and conf is freed. */
RD_EXPORT
rd_kafka_topic_t *rd_kafka_topic_new(rd_kafka_t *rk, const char *topic, rd_kafka_topic_conf_t *conf);

/** Gives up a reference to a topic handle. */
RD_EXPORT
void rd_kafka_topic_destroy(rd_kafka_topic_t *rkt);

/** Returns the name of a topic. */
RD_EXPORT
const char *rd_kafka_topic_name(const rd_kafka_topic_t *rkt);

/** Returns the pointer that was set with rd_kafka_topic_conf_set_opaque(). */
RD_EXPORT
void *rd_kafka_topic_opaque(const rd_kafka_topic_t *rkt);

/** Calls the callbacks of events, and waits up to timeout_ms for the first one (-1: without a limit). Returns the number of events. */
RD_EXPORT
int rd_kafka_poll(rd_kafka_t *rk, int timeout_ms);

/** Makes the poll that called the current callback return. */
RD_EXPORT
void rd_kafka_yield(rd_kafka_t *rk);

/** Pauses partitions: a consumer returns none of their messages until they are resumed, and a producer sends none, while message.timeout.ms continues to run. Each element has its own error. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_pause_partitions(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *partitions);

/** Resumes paused partitions. Each element has its own error. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_resume_partitions(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *partitions);

/** Requests the lowest and the highest offset of a partition from its leader. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_query_watermark_offsets(rd_kafka_t *rk, const char *topic, int32_t partition, int64_t *low, int64_t *high, int timeout_ms);

/** Returns the lowest and the highest offset from the last fetch; RD_KAFKA_OFFSET_INVALID for a partition that was not fetched, which is not an error. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_get_watermark_offsets(rd_kafka_t *rk, const char *topic, int32_t partition, int64_t *low, int64_t *high);

/** Looks up, for each element, whose offset is a time in milliseconds, the first offset of that time or later. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_offsets_for_times(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *offsets, int timeout_ms);

/** Allocates memory of zeros with the allocator of the library. */
RD_EXPORT
void *rd_kafka_mem_calloc(rd_kafka_t *rk, size_t num, size_t size);

/** Allocates memory with the allocator of the library. */
RD_EXPORT
void *rd_kafka_mem_malloc(rd_kafka_t *rk, size_t size);

/** Frees memory that the library allocated. */
RD_EXPORT
void rd_kafka_mem_free(rd_kafka_t *rk, void *ptr);

/** Creates a queue. */
RD_EXPORT
rd_kafka_queue_t *rd_kafka_queue_new(rd_kafka_t *rk);

/** Gives up a reference to a queue. */
RD_EXPORT
void rd_kafka_queue_destroy(rd_kafka_queue_t *rkqu);

/** Returns the queue that rd_kafka_poll() serves. */
RD_EXPORT
rd_kafka_queue_t *rd_kafka_queue_get_main(rd_kafka_t *rk);

/** Returns the queue of token requests; NULL without OAUTHBEARER, or without rd_kafka_conf_enable_sasl_queue(). */
RD_EXPORT
rd_kafka_queue_t *rd_kafka_queue_get_sasl(rd_kafka_t *rk);

/** Serves the queue of token requests on the background thread. Error: there is no such queue. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_sasl_background_callbacks_enable(rd_kafka_t *rk);

/** Replaces user name and password of PLAIN and SCRAM. New connections and re-authentications use them, and connections that back off after a failure retry at once. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_sasl_set_credentials(rd_kafka_t *rk, const char *username, const char *password);

/** Returns the queue that rd_kafka_consumer_poll() serves. */
RD_EXPORT
rd_kafka_queue_t *rd_kafka_queue_get_consumer(rd_kafka_t *rk);

/** Returns the queue of a partition, which is forwarded to the queue of the consumer until that is changed. A producer has none: NULL. */
RD_EXPORT
rd_kafka_queue_t *rd_kafka_queue_get_partition(rd_kafka_t *rk, const char *topic, int32_t partition);

/** Returns the queue whose events a thread of the client serves: by background_event_cb, or else by the callbacks of rd_kafka_poll. NULL if the thread can't be started. */
RD_EXPORT
rd_kafka_queue_t *rd_kafka_queue_get_background(rd_kafka_t *rk);

/** Forwards the entries of src to dst; NULL stops that. */
RD_EXPORT
void rd_kafka_queue_forward(rd_kafka_queue_t *src, rd_kafka_queue_t *dst);

/** Sends log lines to this queue, or with NULL to the main queue; needs the property log.queue. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_set_log_queue(rd_kafka_t *rk, rd_kafka_queue_t *rkqu);

/** Returns the number of entries in a queue. */
RD_EXPORT
size_t rd_kafka_queue_length(rd_kafka_queue_t *rkqu);

/** Writes payload to a descriptor when an entry arrives in an empty queue, and calls no function of rd_kafka_queue_cb_event_enable() any more; -1 stops both. */
RD_EXPORT
void rd_kafka_queue_io_event_enable(rd_kafka_queue_t *rkqu, int fd, const void *payload, size_t size);

/** Calls event_cb when an entry arrives in an empty queue, and writes to no descriptor of rd_kafka_queue_io_event_enable() any more; NULL stops both. */
RD_EXPORT
void rd_kafka_queue_cb_event_enable(rd_kafka_queue_t *rkqu, void (*event_cb)(rd_kafka_t *rk, void *qev_opaque), void *qev_opaque);

/** Makes a thread that polls the queue return. */
RD_EXPORT
void rd_kafka_queue_yield(rd_kafka_queue_t *rkqu);

/** Starts fetching a partition at an offset or at one of the RD_KAFKA_OFFSET_ constants. With offset.store.method=file the offset is stored in a file, which is where RD_KAFKA_OFFSET_STORED starts. */
RD_EXPORT
int rd_kafka_consume_start(rd_kafka_topic_t *rkt, int32_t partition, int64_t offset);

/** Starts fetching a partition whose messages go to a queue. */
RD_EXPORT
int rd_kafka_consume_start_queue(rd_kafka_topic_t *rkt, int32_t partition, int64_t offset, rd_kafka_queue_t *rkqu);

/** Stops fetching a partition; fetched messages are dropped. */
RD_EXPORT
int rd_kafka_consume_stop(rd_kafka_topic_t *rkt, int32_t partition);

/** Continues at another offset of a partition. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_seek(rd_kafka_topic_t *rkt, int32_t partition, int64_t offset, int timeout_ms);

/** Seeks partitions to other offsets, all at once and within timeout_ms. Each element has its own error. With a timeout of 0 the call does not wait. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_seek_partitions(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *partitions, int timeout_ms);

/** Returns the next message of a partition, or NULL after the timeout. */
RD_EXPORT
rd_kafka_message_t *rd_kafka_consume(rd_kafka_topic_t *rkt, int32_t partition, int timeout_ms);

/** Stores up to rkmessages_size messages of a partition in the array, and returns their number. */
RD_EXPORT
ssize_t rd_kafka_consume_batch(rd_kafka_topic_t *rkt, int32_t partition, int timeout_ms, rd_kafka_message_t **rkmessages, size_t rkmessages_size);

/** Passes messages of a partition to a callback, and returns their number. */
RD_EXPORT
int rd_kafka_consume_callback(rd_kafka_topic_t *rkt, int32_t partition, int timeout_ms, void (*consume_cb)(rd_kafka_message_t *rkmessage, void *commit_opaque), void *commit_opaque);

/** Returns the next message of a queue, or NULL after the timeout. */
RD_EXPORT
rd_kafka_message_t *rd_kafka_consume_queue(rd_kafka_queue_t *rkqu, int timeout_ms);

/** Stores up to rkmessages_size messages of a queue in the array, and returns their number. */
RD_EXPORT
ssize_t rd_kafka_consume_batch_queue(rd_kafka_queue_t *rkqu, int timeout_ms, rd_kafka_message_t **rkmessages, size_t rkmessages_size);

/** Passes messages of a queue to a callback, and returns their number. */
RD_EXPORT
int rd_kafka_consume_callback_queue(rd_kafka_queue_t *rkqu, int timeout_ms, void (*consume_cb)(rd_kafka_message_t *rkmessage, void *commit_opaque), void *commit_opaque);

/** Stores offset + 1 of a partition, to be committed later. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_offset_store(rd_kafka_topic_t *rkt, int32_t partition, int64_t offset);

/** Stores offsets to be committed later. Each element has its own error. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_offsets_store(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *offsets);

/** Stores the offset behind a message, to be committed later. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_offset_store_message(rd_kafka_message_t *rkmessage);

/** Consumes these topics as a member of the group of group.id; names that begin with ^ are patterns. Returns at once; the list must not be empty. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_subscribe(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *topics);

/** Revokes all partitions and leaves the group, without waiting for that. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_unsubscribe(rd_kafka_t *rk);

/** Returns the subscription as a new list, with the topics and patterns of the last call of rd_kafka_subscribe(). */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_subscription(rd_kafka_t *rk, rd_kafka_topic_partition_list_t **topics);

/** Returns the next message or error for a consumer, or NULL after the timeout. Also calls callbacks. */
RD_EXPORT
rd_kafka_message_t *rd_kafka_consumer_poll(rd_kafka_t *rk, int timeout_ms);

/** Closes a consumer: serves rebalance and commit callbacks for the last time, commits stored offsets and leaves the group. Waits for the coordinator for a bounded time. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_consumer_close(rd_kafka_t *rk);

/** Starts closing a consumer, whose rebalance and commit events go to the queue; rd_kafka_consumer_closed() returns 1 when it is closed. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_consumer_close_queue(rd_kafka_t *rk, rd_kafka_queue_t *rkqu);

/** Returns 1 if a consumer is closed. */
RD_EXPORT
int rd_kafka_consumer_closed(rd_kafka_t *rk);

/** Adds these partitions to the assignment. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_incremental_assign(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *partitions);

/** Removes these partitions from the assignment. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_incremental_unassign(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *partitions);

/** Returns the rebalance protocol of the group's members: NONE outside of a group, EAGER or COOPERATIVE. */
RD_EXPORT
const char *rd_kafka_rebalance_protocol(rd_kafka_t *rk);

/** Replaces the assignment by these partitions; NULL removes all. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_assign(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *partitions);

/** Returns the assignment as a new list. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_assignment(rd_kafka_t *rk, rd_kafka_topic_partition_list_t **partitions);

/** Returns 1 if the group has assigned the partitions to other members and the application has not yet responded to that rebalance. */
RD_EXPORT
int rd_kafka_assignment_lost(rd_kafka_t *rk);

/** Commits the offsets of a list, or with NULL the stored offsets of the assignment. With async it returns at once. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_commit(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *offsets, int async);

/** Commits the offset behind a message. With async it returns at once. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_commit_message(rd_kafka_t *rk, const rd_kafka_message_t *rkmessage, int async);

/** Commits the offsets of a list, or with NULL the stored offsets. The outcome comes to the queue, or with cb to that callback. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_commit_queue(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *offsets, rd_kafka_queue_t *rkqu, void (*cb)(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *offsets, void *commit_opaque), void *commit_opaque);

/** Requests the committed offsets of the partitions, and waits up to timeout_ms. Each element has its own error. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_committed(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *partitions, int timeout_ms);

/** Returns, for each element, the offset behind the last message that the application got. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_position(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *partitions);

/** Returns the current identity of the consumer in its group; NULL for a client without a group. */
RD_EXPORT
rd_kafka_consumer_group_metadata_t *rd_kafka_consumer_group_metadata(rd_kafka_t *rk);

/** Returns group metadata without a member. */
RD_EXPORT
rd_kafka_consumer_group_metadata_t *rd_kafka_consumer_group_metadata_new(const char *group_id);

/** Returns group metadata of a member in a generation; the instance ID may be NULL. */
RD_EXPORT
rd_kafka_consumer_group_metadata_t *rd_kafka_consumer_group_metadata_new_with_genid(const char *group_id, int32_t generation_id, const char *member_id, const char *group_instance_id);

/** Returns the group; valid as long as the metadata. */
RD_EXPORT
const char *rd_kafka_consumer_group_metadata_group_id(const rd_kafka_consumer_group_metadata_t *group_metadata);

/** Returns the instance ID or NULL; valid as long as the metadata. */
RD_EXPORT
const char *rd_kafka_consumer_group_metadata_group_instance_id(const rd_kafka_consumer_group_metadata_t *group_metadata);

/** Returns the member ID; valid as long as the metadata. */
RD_EXPORT
const char *rd_kafka_consumer_group_metadata_member_id(const rd_kafka_consumer_group_metadata_t *group_metadata);

/** Returns the generation; -1 without a member. */
RD_EXPORT
int32_t rd_kafka_consumer_group_metadata_generation_id(const rd_kafka_consumer_group_metadata_t *group_metadata);

/** Frees group metadata. */
RD_EXPORT
void rd_kafka_consumer_group_metadata_destroy(rd_kafka_consumer_group_metadata_t *);

/** Writes group metadata as bytes, to be freed by rd_kafka_mem_free(), for rd_kafka_consumer_group_metadata_read() in another process of the same machine type. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_consumer_group_metadata_write(const rd_kafka_consumer_group_metadata_t *cgmd, void **bufferp, size_t *sizep);

/** Reads the bytes of rd_kafka_consumer_group_metadata_write(); RD_KAFKA_RESP_ERR__BAD_MSG for anything else. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_consumer_group_metadata_read(rd_kafka_consumer_group_metadata_t **cgmdp, const void *buffer, size_t size);

/** Accepts a message, or returns -1 with the reason in rd_kafka_last_error() and errno. */
RD_EXPORT
int rd_kafka_produce(rd_kafka_topic_t *rkt, int32_t partition, int msgflags, void *payload, size_t len, const void *key, size_t keylen, void *msg_opaque);

/** Accepts a message that is described by RD_KAFKA_V_ arguments, the last of which is RD_KAFKA_V_END. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_producev(rd_kafka_t *rk, ...);

/** Accepts a message that is described by an array of arguments. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_produceva(rd_kafka_t *rk, const rd_kafka_vu_t *vus, size_t cnt);

/** Produces messages to one topic, and returns the number that was accepted. Each of the others has its own error. */
RD_EXPORT
int rd_kafka_produce_batch(rd_kafka_topic_t *rkt, int32_t partition, int msgflags, rd_kafka_message_t *rkmessages, int message_cnt);

/** Sends all messages without linger and waits for their reports, calling the callbacks. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_flush(rd_kafka_t *rk, int timeout_ms);

/** Drops messages that wait or are in flight, depending on RD_KAFKA_PURGE_F_ flags; each gets its report. The reports are queued when the call returns, unless RD_KAFKA_PURGE_F_NON_BLOCKING is set. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_purge(rd_kafka_t *rk, int purge_flags);

/** The number of partitions that the acknowledgement commit callback reports: 1 in each call. 0 for NULL. */
RD_EXPORT
size_t rd_kafka_share_partition_offsets_list_count(const rd_kafka_share_partition_offsets_list_t *list);

/** A partition that the acknowledgement commit callback reports; NULL for an index without one. */
RD_EXPORT
const rd_kafka_share_partition_offsets_t *rd_kafka_share_partition_offsets_list_get(const rd_kafka_share_partition_offsets_list_t *list, size_t index);

/** Frees a list. The list that the acknowledgement commit callback gets belongs to the library, so nothing happens to it. */
RD_EXPORT
void rd_kafka_share_partition_offsets_list_destroy(rd_kafka_share_partition_offsets_list_t *list);

/** Topic and partition of acknowledged offsets. */
RD_EXPORT
const rd_kafka_topic_partition_t *rd_kafka_share_partition_offsets_partition(const rd_kafka_share_partition_offsets_t *partition_offsets);

/** The acknowledged offsets, ascending. */
RD_EXPORT
const int64_t *rd_kafka_share_partition_offsets_offsets(const rd_kafka_share_partition_offsets_t *partition_offsets);

/** The number of acknowledged offsets. */
RD_EXPORT
size_t rd_kafka_share_partition_offsets_offsets_cnt(const rd_kafka_share_partition_offsets_t *partition_offsets);

/** Creates a member of a share group (KIP-932), which needs Kafka 4.2 and `group.id`. It takes the configuration over, unless it fails: then it returns NULL and writes the reason to errstr. Properties and callbacks that only other consumers have must not be set. One thread at a time may use the consumer: a call while another thread is in one fails with RD_KAFKA_RESP_ERR__CONFLICT, and every call from inside the acknowledgement commit callback, or after a close began, with RD_KAFKA_RESP_ERR__STATE. */
RD_EXPORT
rd_kafka_share_t *rd_kafka_share_consumer_new(rd_kafka_conf_t *conf, char *errstr, size_t errstr_size);

/** Sets the function that gets the outcomes of acknowledgements, one partition in each call, or none for NULL. It is called by rd_kafka_share_poll, by the commits and by the close, on the calling thread. Its list lives until it returns. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_share_set_acknowledgement_commit_cb(rd_kafka_share_t *rkshare, void (*share_acknowledgement_commit_cb)(rd_kafka_share_t *rkshare, rd_kafka_share_partition_offsets_list_t *partitions, rd_kafka_resp_err_t err, void *opaque), void *opaque);

/** Consumes these topics instead of those of an earlier subscription; an empty list ends the subscription. Names are not patterns, and partitions have no meaning. RD_KAFKA_RESP_ERR__INVALID_ARG for NULL, an empty name, or one that is there twice. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_share_subscribe(rd_kafka_share_t *rkshare, const rd_kafka_topic_partition_list_t *topics);

/** Sends the acknowledgements so far, releases all other messages, and leaves the group. It does not wait for that. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_share_unsubscribe(rd_kafka_share_t *rkshare);

/** Returns the topics of the subscription as a list, which the caller destroys. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_share_subscription(rd_kafka_share_t *rkshare, rd_kafka_topic_partition_list_t **topics);

/** Sends the acknowledgements so far, waits for messages, and sets *rkmessages to a list that the caller destroys, or to NULL after the timeout; -1 waits without an end. In implicit mode it first accepts the messages of the last poll; in explicit mode it fails with RD_KAFKA_RESP_ERR__STATE if one of them is not acknowledged. It calls the callbacks for which there is something. Errors of the group and of topics are retriable; after a fatal one the consumer can only be closed. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_share_poll(rd_kafka_share_t *rkshare, int timeout_ms, rd_kafka_messages_t **rkmessages);

/** Accepts a message of the last poll, in explicit mode. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_share_acknowledge(rd_kafka_share_t *rkshare, const rd_kafka_message_t *rkmessage);

/** Accepts, releases or rejects a message of the last poll, in explicit mode. Of several calls for a message the last one before the next poll or commit counts. RD_KAFKA_RESP_ERR__STATE in implicit mode, and for messages that were not acquired or whose acknowledgement was sent. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_share_acknowledge_type(rd_kafka_share_t *rkshare, const rd_kafka_message_t *rkmessage, rd_kafka_share_AcknowledgeType_t type);

/** Accepts, releases or rejects a message of the last poll by its place. RD_KAFKA_RESP_ERR__INVALID_ARG for an unknown type, for NULL, and for a negative partition or offset. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_share_acknowledge_offset(rd_kafka_share_t *rkshare, const char *topic, int32_t partition, int64_t offset, rd_kafka_share_AcknowledgeType_t type);

/** Sends the acknowledgements so far, in implicit mode after accepting the messages of the last poll. The outcomes go to the acknowledgement commit callback. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_share_commit_async(rd_kafka_share_t *rkshare);

/** Sends the acknowledgements so far as rd_kafka_share_commit_async does, and waits for their outcome: *partitions is a list with an error code for each partition, which the caller destroys, or NULL if there was nothing to send. A partition without an outcome within the timeout has RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT; its acknowledgements are not taken back. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_share_commit_sync(rd_kafka_share_t *rkshare, int timeout_ms, rd_kafka_topic_partition_list_t **partitions);

/** Sends the acknowledgements so far, releases all other messages, and leaves the group, which takes at most `socket.timeout.ms`. The messages of the last poll are released in implicit mode, too; a commit before accepts them. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_share_consumer_close(rd_kafka_share_t *rkshare);

/** Closes as rd_kafka_share_consumer_close does, but returns at once; the queue gets the calls of the acknowledgement commit callback. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_share_consumer_close_queue(rd_kafka_share_t *rkshare, rd_kafka_queue_t *rkqu);

/** Whether the close has ended. */
RD_EXPORT
int rd_kafka_share_consumer_closed(rd_kafka_share_t *rkshare);

/** Closes the consumer, unless that was done, and frees it. Nothing is freed if it returns an error: another thread is in a call, or the acknowledgement commit callback is. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_share_destroy(rd_kafka_share_t *rkshare);

/** Frees the consumer as rd_kafka_share_destroy does; with RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE it neither sends acknowledgements nor leaves the group. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_share_destroy_flags(rd_kafka_share_t *rkshare, int flags);

/** Sends the log lines of `log.queue` to this queue, or to the consumer's own for NULL. RD_KAFKA_RESP_ERR__NOT_CONFIGURED without `log.queue`. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_share_set_log_queue(rd_kafka_share_t *rkshare, rd_kafka_queue_t *rkqu);

/** Serves requests for tokens on a thread of the library, as rd_kafka_sasl_background_callbacks_enable does. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_share_sasl_background_callbacks_enable(rd_kafka_share_t *rkshare);

/** Replaces user name and password, as rd_kafka_sasl_set_credentials does. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_share_sasl_set_credentials(rd_kafka_share_t *rkshare, const char *username, const char *password);

/** Requests brokers and topics: all topics, one, or those that the client uses. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_metadata(rd_kafka_t *rk, int all_topics, rd_kafka_topic_t *only_rkt, const struct rd_kafka_metadata **metadatap, int timeout_ms);

/** Frees metadata. */
RD_EXPORT
void rd_kafka_metadata_destroy(const struct rd_kafka_metadata *metadata);

/** Returns the broker's id. */
RD_EXPORT
int rd_kafka_Node_id(const rd_kafka_Node_t *node);

/** Returns the broker's host; empty if only a partition named the broker. */
RD_EXPORT
const char *rd_kafka_Node_host(const rd_kafka_Node_t *node);

/** Returns the broker's port. */
RD_EXPORT
uint16_t rd_kafka_Node_port(const rd_kafka_Node_t *node);

/** Returns the broker's rack, or NULL. */
RD_EXPORT
const char *rd_kafka_Node_rack(const rd_kafka_Node_t *node);

/** Lists all groups, or the given one, with their members, and waits at most timeout_ms. If some brokers fail, it returns RD_KAFKA_RESP_ERR__PARTIAL and the groups of the other brokers. Destroy the list with rd_kafka_group_list_destroy. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_list_groups(rd_kafka_t *rk, const char *group, const struct rd_kafka_group_list **grplistp, int timeout_ms);

/** Returns the name of a group state; NULL for an unknown number. */
RD_EXPORT
const char *rd_kafka_consumer_group_state_name(rd_kafka_consumer_group_state_t state);

/** Returns the group state with this name, in upper or lower case; RD_KAFKA_CONSUMER_GROUP_STATE_UNKNOWN for any other name. */
RD_EXPORT
rd_kafka_consumer_group_state_t rd_kafka_consumer_group_state_code(const char *name);

/** Returns the name of a group type; NULL for an unknown number. */
RD_EXPORT
const char *rd_kafka_consumer_group_type_name(rd_kafka_consumer_group_type_t type);

/** Returns the group type with this name, in upper or lower case; RD_KAFKA_CONSUMER_GROUP_TYPE_UNKNOWN for any other name. */
RD_EXPORT
rd_kafka_consumer_group_type_t rd_kafka_consumer_group_type_code(const char *name);

/** Frees a list of groups. */
RD_EXPORT
void rd_kafka_group_list_destroy(const struct rd_kafka_group_list *grplist);

/** Adds bootstrap brokers, even while the client runs; returns the number of well-formed entries. */
RD_EXPORT
int rd_kafka_brokers_add(rd_kafka_t *rk, const char *brokerlist);

/** Returns the ids of the brokers that the client knows, sorted, in memory that free() takes; NULL and 0 while it knows none. */
RD_EXPORT
int32_t *rd_kafka_brokers_learned_ids(rd_kafka_t *rk, size_t *cntp);

/** Sets the callback for log lines, in the older way. */
RD_EXPORT
RD_DEPRECATED void rd_kafka_set_logger(rd_kafka_t *rk, void (*func)(const rd_kafka_t *rk, int level, const char *fac, const char *buf));

/** Sets the highest level that is logged, as in syslog. */
RD_EXPORT
void rd_kafka_set_log_level(rd_kafka_t *rk, int level);

/** A log callback that prints to stderr. */
RD_EXPORT
void rd_kafka_log_print(const rd_kafka_t *rk, int level, const char *fac, const char *buf);

/** A log callback that writes to the system log. */
RD_EXPORT
void rd_kafka_log_syslog(const rd_kafka_t *rk, int level, const char *fac, const char *buf);

/** Returns the number of messages, reports and other entries that wait for the network or for the application. */
RD_EXPORT
int rd_kafka_outq_len(rd_kafka_t *rk);

/** Prints the state of a client in readable form: its queues, its brokers and its partitions, one line each. */
RD_EXPORT
void rd_kafka_dump(FILE *fp, rd_kafka_t *rk);

/** Returns the number of threads that the library runs in this process. */
RD_EXPORT
int rd_kafka_thread_cnt(void);

/** Waits until all clients are destroyed; returns 0 if they are. */
RD_EXPORT
int rd_kafka_wait_destroyed(int timeout_ms);

/** Tests the library's computations on this machine: checksums, hashes, numbers, and batches in every codec. Returns the number of failed tests, and names them on stderr. */
RD_EXPORT
int rd_kafka_unittest(void);

/** Makes rd_kafka_consumer_poll() serve the main queue, too. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_poll_set_consumer(rd_kafka_t *rk);

/** Returns the type of an event: an RD_KAFKA_EVENT_* value. */
RD_EXPORT
rd_kafka_event_type_t rd_kafka_event_type(const rd_kafka_event_t *rkev);

/** Returns the name of the type of an event. */
RD_EXPORT
const char *rd_kafka_event_name(const rd_kafka_event_t *rkev);

/** Frees an event and the messages in it. */
RD_EXPORT
void rd_kafka_event_destroy(rd_kafka_event_t *rkev);

/** Returns the next message of an event with messages; NULL after the last one. */
RD_EXPORT
const rd_kafka_message_t *rd_kafka_event_message_next(rd_kafka_event_t *rkev);

/** Stores up to size messages of an event in the array, and returns their number. */
RD_EXPORT
size_t rd_kafka_event_message_array(rd_kafka_event_t *rkev, const rd_kafka_message_t **rkmessages, size_t size);

/** Returns the number of messages of an event. */
RD_EXPORT
size_t rd_kafka_event_message_count(rd_kafka_event_t *rkev);

/** Returns the value of `sasl.oauthbearer.config` of an event that requests a token; NULL if it is not set, or for other events. */
RD_EXPORT
const char *rd_kafka_event_config_string(rd_kafka_event_t *rkev);

/** Returns the error of an event. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_event_error(rd_kafka_event_t *rkev);

/** Returns the error text of an event. */
RD_EXPORT
const char *rd_kafka_event_error_string(rd_kafka_event_t *rkev);

/** Returns 1 if the event reports a fatal error. */
RD_EXPORT
int rd_kafka_event_error_is_fatal(rd_kafka_event_t *rkev);

/** Returns the opaque pointer of the admin call of this result event, or NULL for other events. */
RD_EXPORT
void *rd_kafka_event_opaque(rd_kafka_event_t *rkev);

/** Returns the parts of a log line; -1 if the event is not a log line. */
RD_EXPORT
int rd_kafka_event_log(rd_kafka_event_t *rkev, const char **fac, const char **str, int *level);

/** Writes the contexts of `debug` that a log line belongs to, separated by commas; none for a line that is independent of `debug`. Returns -1 if the event is not a log line. */
RD_EXPORT
int rd_kafka_event_debug_contexts(rd_kafka_event_t *rkev, char *dst, size_t dstsize);

/** Returns the JSON text of statistics. */
RD_EXPORT
const char *rd_kafka_event_stats(rd_kafka_event_t *rkev);

/** Returns the list of an event that has one; it belongs to the event. */
RD_EXPORT
rd_kafka_topic_partition_list_t *rd_kafka_event_topic_partition_list(rd_kafka_event_t *rkev);

/** Returns the partition that an error is about, to be freed by rd_kafka_topic_partition_destroy(), or NULL. */
RD_EXPORT
rd_kafka_topic_partition_t *rd_kafka_event_topic_partition(rd_kafka_event_t *rkev);

/** Returns the result of CreateTopics of an event; NULL for other events. */
RD_EXPORT
const rd_kafka_CreateTopics_result_t *rd_kafka_event_CreateTopics_result(rd_kafka_event_t *rkev);

/** Returns the result of DeleteTopics of an event; NULL for other events. */
RD_EXPORT
const rd_kafka_DeleteTopics_result_t *rd_kafka_event_DeleteTopics_result(rd_kafka_event_t *rkev);

/** Returns the result of CreatePartitions of an event; NULL for other events. */
RD_EXPORT
const rd_kafka_CreatePartitions_result_t *rd_kafka_event_CreatePartitions_result(rd_kafka_event_t *rkev);

/** Returns the result of AlterConfigs of an event; NULL for other events. */
RD_EXPORT
const rd_kafka_AlterConfigs_result_t *rd_kafka_event_AlterConfigs_result(rd_kafka_event_t *rkev);

/** Returns the result of IncrementalAlterConfigs of an event; NULL for other events. */
RD_EXPORT
const rd_kafka_IncrementalAlterConfigs_result_t *rd_kafka_event_IncrementalAlterConfigs_result(rd_kafka_event_t *rkev);

/** Returns the result of DescribeConfigs of an event; NULL for other events. */
RD_EXPORT
const rd_kafka_DescribeConfigs_result_t *rd_kafka_event_DescribeConfigs_result(rd_kafka_event_t *rkev);

/** Returns the result of DeleteRecords of an event; NULL for other events. */
RD_EXPORT
const rd_kafka_DeleteRecords_result_t *rd_kafka_event_DeleteRecords_result(rd_kafka_event_t *rkev);

/** Returns the result of ListConsumerGroups of an event; NULL for other events. */
RD_EXPORT
const rd_kafka_ListConsumerGroups_result_t *rd_kafka_event_ListConsumerGroups_result(rd_kafka_event_t *rkev);

/** Returns the result of DescribeConsumerGroups of an event; NULL for other events. */
RD_EXPORT
const rd_kafka_DescribeConsumerGroups_result_t *rd_kafka_event_DescribeConsumerGroups_result(rd_kafka_event_t *rkev);

/** Returns the result of DescribeTopics of an event; NULL for other events. */
RD_EXPORT
const rd_kafka_DescribeTopics_result_t *rd_kafka_event_DescribeTopics_result(rd_kafka_event_t *rkev);

/** Returns the result of DescribeCluster of an event; NULL for other events. */
RD_EXPORT
const rd_kafka_DescribeCluster_result_t *rd_kafka_event_DescribeCluster_result(rd_kafka_event_t *rkev);

/** Returns the result of DeleteGroups of an event; NULL for other events. */
RD_EXPORT
const rd_kafka_DeleteGroups_result_t *rd_kafka_event_DeleteGroups_result(rd_kafka_event_t *rkev);

/** Returns the result of DeleteConsumerGroupOffsets of an event; NULL for other events. */
RD_EXPORT
const rd_kafka_DeleteConsumerGroupOffsets_result_t *rd_kafka_event_DeleteConsumerGroupOffsets_result(rd_kafka_event_t *rkev);

/** Returns the result of CreateAcls of an event; NULL for other events. */
RD_EXPORT
const rd_kafka_CreateAcls_result_t *rd_kafka_event_CreateAcls_result(rd_kafka_event_t *rkev);

/** Returns the result of DescribeAcls of an event; NULL for other events. */
RD_EXPORT
const rd_kafka_DescribeAcls_result_t *rd_kafka_event_DescribeAcls_result(rd_kafka_event_t *rkev);

/** Returns the result of DeleteAcls of an event; NULL for other events. */
RD_EXPORT
const rd_kafka_DeleteAcls_result_t *rd_kafka_event_DeleteAcls_result(rd_kafka_event_t *rkev);

/** Returns the result of ListConsumerGroupOffsets of an event; NULL for other events. */
RD_EXPORT
const rd_kafka_ListConsumerGroupOffsets_result_t *rd_kafka_event_ListConsumerGroupOffsets_result(rd_kafka_event_t *rkev);

/** Returns the result of AlterConsumerGroupOffsets of an event; NULL for other events. */
RD_EXPORT
const rd_kafka_AlterConsumerGroupOffsets_result_t *rd_kafka_event_AlterConsumerGroupOffsets_result(rd_kafka_event_t *rkev);

/** Returns the result of ListOffsets of an event; NULL for other events. */
RD_EXPORT
const rd_kafka_ListOffsets_result_t *rd_kafka_event_ListOffsets_result(rd_kafka_event_t *rkev);

/** Returns the result of DescribeUserScramCredentials of an event; NULL for other events. */
RD_EXPORT
const rd_kafka_DescribeUserScramCredentials_result_t *rd_kafka_event_DescribeUserScramCredentials_result(rd_kafka_event_t *rkev);

/** Returns the result of AlterUserScramCredentials of an event; NULL for other events. */
RD_EXPORT
const rd_kafka_AlterUserScramCredentials_result_t *rd_kafka_event_AlterUserScramCredentials_result(rd_kafka_event_t *rkev);

/** Returns the result of ElectLeaders of an event; NULL for other events. */
RD_EXPORT
const rd_kafka_ElectLeaders_result_t *rd_kafka_event_ElectLeaders_result(rd_kafka_event_t *rkev);

/** Returns the next event of a queue, or NULL after the timeout. */
RD_EXPORT
rd_kafka_event_t *rd_kafka_queue_poll(rd_kafka_queue_t *rkqu, int timeout_ms);

/** Calls the callbacks for the entries of a queue; returns the number of entries. */
RD_EXPORT
int rd_kafka_queue_poll_callback(rd_kafka_queue_t *rkqu, int timeout_ms);

/** Adds an on_conf_set interceptor; the same name and function can be added once; a repetition is RD_KAFKA_RESP_ERR__CONFLICT. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_conf_interceptor_add_on_conf_set(rd_kafka_conf_t *conf, const char *ic_name, rd_kafka_interceptor_f_on_conf_set_t *on_conf_set, void *ic_opaque);

/** Adds an on_conf_dup interceptor; the same name and function can be added once; a repetition is RD_KAFKA_RESP_ERR__CONFLICT. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_conf_interceptor_add_on_conf_dup(rd_kafka_conf_t *conf, const char *ic_name, rd_kafka_interceptor_f_on_conf_dup_t *on_conf_dup, void *ic_opaque);

/** Adds an on_conf_destroy interceptor; the same one may be added several times. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_conf_interceptor_add_on_conf_destroy(rd_kafka_conf_t *conf, const char *ic_name, rd_kafka_interceptor_f_on_conf_destroy_t *on_conf_destroy, void *ic_opaque);

/** Adds an on_new interceptor; the same name and function can be added once; a repetition is RD_KAFKA_RESP_ERR__CONFLICT. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_conf_interceptor_add_on_new(rd_kafka_conf_t *conf, const char *ic_name, rd_kafka_interceptor_f_on_new_t *on_new, void *ic_opaque);

/** Adds an on_destroy interceptor, from an on_new interceptor and not after rd_kafka_new() has returned; the same name and function can be added once; a repetition is RD_KAFKA_RESP_ERR__CONFLICT. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_interceptor_add_on_destroy(rd_kafka_t *rk, const char *ic_name, rd_kafka_interceptor_f_on_destroy_t *on_destroy, void *ic_opaque);

/** Adds an on_send interceptor, from an on_new interceptor and not after rd_kafka_new() has returned; the same name and function can be added once; a repetition is RD_KAFKA_RESP_ERR__CONFLICT. If it is too late for it to be called, the result is RD_KAFKA_RESP_ERR__STATE. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_interceptor_add_on_send(rd_kafka_t *rk, const char *ic_name, rd_kafka_interceptor_f_on_send_t *on_send, void *ic_opaque);

/** Adds an on_acknowledgement interceptor, from an on_new interceptor and not after rd_kafka_new() has returned; the same name and function can be added once; a repetition is RD_KAFKA_RESP_ERR__CONFLICT. If it is too late for it to be called, the result is RD_KAFKA_RESP_ERR__STATE. A thread of this client calls it with each message before the message's report is delivered; the message counts for rd_kafka_outq_len() until it has returned. It may block and call any function: other clients do not wait for it. A message that is not accepted is passed to it by the call that produces the message. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_interceptor_add_on_acknowledgement(rd_kafka_t *rk, const char *ic_name, rd_kafka_interceptor_f_on_acknowledgement_t *on_acknowledgement, void *ic_opaque);

/** Adds an on_consume interceptor, from an on_new interceptor and not after rd_kafka_new() has returned; the same name and function can be added once; a repetition is RD_KAFKA_RESP_ERR__CONFLICT. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_interceptor_add_on_consume(rd_kafka_t *rk, const char *ic_name, rd_kafka_interceptor_f_on_consume_t *on_consume, void *ic_opaque);

/** Adds an on_commit interceptor, from an on_new interceptor and not after rd_kafka_new() has returned; the same name and function can be added once; a repetition is RD_KAFKA_RESP_ERR__CONFLICT. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_interceptor_add_on_commit(rd_kafka_t *rk, const char *ic_name, rd_kafka_interceptor_f_on_commit_t *on_commit, void *ic_opaque);

/** Adds an on_request_sent interceptor, from an on_new interceptor and not after rd_kafka_new() has returned; the same name and function can be added once; a repetition is RD_KAFKA_RESP_ERR__CONFLICT. If it is too late for it to be called, the result is RD_KAFKA_RESP_ERR__STATE. It is called when a request, of size bytes with its length, was completely written to the socket. I/O threads of all clients call it: it must not block. It is not called after the on_destroy interceptors. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_interceptor_add_on_request_sent(rd_kafka_t *rk, const char *ic_name, rd_kafka_interceptor_f_on_request_sent_t *on_request_sent, void *ic_opaque);

/** Adds an on_response_received interceptor, from an on_new interceptor and not after rd_kafka_new() has returned; the same name and function can be added once; a repetition is RD_KAFKA_RESP_ERR__CONFLICT. If it is too late for it to be called, the result is RD_KAFKA_RESP_ERR__STATE. It is called when the response to a request, of size bytes with its length, was read completely and before it is decoded; rtt is in microseconds and counts from the request's last byte. It is also called when the response to a sent request is lost: err then is RD_KAFKA_RESP_ERR__TIMED_OUT for a request that timed out, or the reason why the connection was closed (RD_KAFKA_RESP_ERR__TRANSPORT if it was lost), size is 0 and rtt is -1. It is therefore called once for each request that on_request_sent got and that has a response. sockfd is always -1. I/O threads of all clients call it: it must not block. It is not called after the on_destroy interceptors. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_interceptor_add_on_response_received(rd_kafka_t *rk, const char *ic_name, rd_kafka_interceptor_f_on_response_received_t *on_response_received, void *ic_opaque);

/** Adds an on_thread_start interceptor, from an on_new interceptor and not after rd_kafka_new() has returned; the same name and function can be added once; a repetition is RD_KAFKA_RESP_ERR__CONFLICT. If it is too late for it to be called, the result is RD_KAFKA_RESP_ERR__STATE. The background thread calls it when it starts, as RD_KAFKA_THREAD_BACKGROUND. I/O threads serve all clients of the process: each calls it, as RD_KAFKA_THREAD_BROKER, when it begins to serve this client. So does the thread that calls on_acknowledgement interceptors, when it starts with the first acknowledged message. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_interceptor_add_on_thread_start(rd_kafka_t *rk, const char *ic_name, rd_kafka_interceptor_f_on_thread_start_t *on_thread_start, void *ic_opaque);

/** Adds an on_thread_exit interceptor, from an on_new interceptor and not after rd_kafka_new() has returned; the same name and function can be added once; a repetition is RD_KAFKA_RESP_ERR__CONFLICT. If it is too late for it to be called, the result is RD_KAFKA_RESP_ERR__STATE. The background thread calls it when it ends. An I/O thread calls it when it stops serving this client, and may continue for others. The thread of on_acknowledgement interceptors calls it when it ends. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_interceptor_add_on_thread_exit(rd_kafka_t *rk, const char *ic_name, rd_kafka_interceptor_f_on_thread_exit_t *on_thread_exit, void *ic_opaque);

/** Adds an on_broker_state_change interceptor, from an on_new interceptor and not after rd_kafka_new() has returned; the same name and function can be added once; a repetition is RD_KAFKA_RESP_ERR__CONFLICT. If it is too late for it to be called, the result is RD_KAFKA_RESP_ERR__STATE. It is called when the state of a connection changes: CONNECT, APIVERSION_QUERY, UP or DOWN. I/O threads of all clients call it: it must not block. It is not called after the on_destroy interceptors. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_interceptor_add_on_broker_state_change(rd_kafka_t *rk, const char *ic_name, rd_kafka_interceptor_f_on_broker_state_change_t *on_broker_state_change, void *ic_opaque);

/** Returns the error code of a topic. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_topic_result_error(const rd_kafka_topic_result_t *topicres);

/** Returns the error text of a topic, or NULL if there is no error. */
RD_EXPORT
const char *rd_kafka_topic_result_error_string(const rd_kafka_topic_result_t *topicres);

/** Returns the name of the topic. */
RD_EXPORT
const char *rd_kafka_topic_result_name(const rd_kafka_topic_result_t *topicres);

/** Returns the error of the group, or NULL. It lives as long as the event. */
RD_EXPORT
const rd_kafka_error_t *rd_kafka_group_result_error(const rd_kafka_group_result_t *groupres);

/** Returns the group ID. It lives as long as the event. */
RD_EXPORT
const char *rd_kafka_group_result_name(const rd_kafka_group_result_t *groupres);

/** Returns the partitions, each with its error; NULL if the call is not about partitions. The list lives as long as the event. */
RD_EXPORT
const rd_kafka_topic_partition_list_t *rd_kafka_group_result_partitions(const rd_kafka_group_result_t *groupres);

/** Returns the topic and partition of a result; they live as long as the event. */
RD_EXPORT
const rd_kafka_topic_partition_t *rd_kafka_topic_partition_result_partition(const rd_kafka_topic_partition_result_t *partition_result);

/** Returns the error of a result, never NULL: the code is RD_KAFKA_RESP_ERR_NO_ERROR after a success. It lives as long as the event. */
RD_EXPORT
const rd_kafka_error_t *rd_kafka_topic_partition_result_error(const rd_kafka_topic_partition_result_t *partition_result);

/** Creates options for calls of this kind, or RD_KAFKA_ADMIN_OP_ANY for every kind. Returns NULL if there is no such kind or no client. */
RD_EXPORT
rd_kafka_AdminOptions_t *rd_kafka_AdminOptions_new(rd_kafka_t *rk, rd_kafka_admin_op_t for_api);

/** Frees options. Calls that were made with them no longer need them. */
RD_EXPORT
void rd_kafka_AdminOptions_destroy(rd_kafka_AdminOptions_t *options);

/** Sets how long the call is retried in all, in milliseconds: 0 to 3600000; socket.timeout.ms if not set. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_AdminOptions_set_request_timeout(rd_kafka_AdminOptions_t *options, int timeout_ms, char *errstr, size_t errstr_size);

/** Sets how long the broker may take for the operation, in milliseconds: -1 to 3600000, -1 as long as the request. For creating and deleting topics, creating partitions, deleting records, electing leaders. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_AdminOptions_set_operation_timeout(rd_kafka_AdminOptions_t *options, int timeout_ms, char *errstr, size_t errstr_size);

/** With 1, the broker only validates the request and does not execute it. For creating topics and partitions and altering configurations. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_AdminOptions_set_validate_only(rd_kafka_AdminOptions_t *options, int true_or_false, char *errstr, size_t errstr_size);

/** Sets the broker that gets the request, in place of the default one. The call ends with RD_KAFKA_RESP_ERR__TIMED_OUT if no broker has this ID. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_AdminOptions_set_broker(rd_kafka_AdminOptions_t *options, int32_t broker_id, char *errstr, size_t errstr_size);

/** With 1, the coordinator returns only offsets that no open transaction may change; the call waits for them. For ListConsumerGroupOffsets. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_AdminOptions_set_require_stable_offsets(rd_kafka_AdminOptions_t *options, int true_or_false);

/** With 1, the call requests the operations on the topic, cluster or group that the application is authorized for. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_AdminOptions_set_include_authorized_operations(rd_kafka_AdminOptions_t *options, int true_or_false);

/** Lists only groups in one of these states, each named once. For ListConsumerGroups; needs brokers of Kafka 2.6. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_AdminOptions_set_match_consumer_group_states(rd_kafka_AdminOptions_t *options, const rd_kafka_consumer_group_state_t *consumer_group_states, size_t consumer_group_states_cnt);

/** Lists only groups of one of these types, each named once and not UNKNOWN. For ListConsumerGroups; needs brokers of Kafka 3.8. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_AdminOptions_set_match_consumer_group_types(rd_kafka_AdminOptions_t *options, const rd_kafka_consumer_group_type_t *consumer_group_types, size_t consumer_group_types_cnt);

/** Sets the isolation level. With RD_KAFKA_ISOLATION_LEVEL_READ_COMMITTED the last offset is the one up to which transactions are decided. For ListOffsets. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_AdminOptions_set_isolation_level(rd_kafka_AdminOptions_t *options, rd_kafka_IsolationLevel_t value);

/** Sets the pointer that rd_kafka_event_opaque() returns for the result. */
RD_EXPORT
void rd_kafka_AdminOptions_set_opaque(rd_kafka_AdminOptions_t *options, void *ev_opaque);

/** Describes a topic to create; with -1 the broker chooses the number of partitions or of replicas. Returns NULL, with the reason in errstr, if a number is out of range or the name is missing. */
RD_EXPORT
rd_kafka_NewTopic_t *rd_kafka_NewTopic_new(const char *topic, int num_partitions, int replication_factor, char *errstr, size_t errstr_size);

/** Frees a topic to create. */
RD_EXPORT
void rd_kafka_NewTopic_destroy(rd_kafka_NewTopic_t *new_topic);

/** Frees the topics of an array; the array itself stays the caller's. */
RD_EXPORT
void rd_kafka_NewTopic_destroy_array(rd_kafka_NewTopic_t **new_topics, size_t new_topic_cnt);

/** Sets the brokers of a partition, the preferred leader first. The topic must have -1 replicas, and all partitions have to be assigned in order from 0 on. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_NewTopic_set_replica_assignment(rd_kafka_NewTopic_t *new_topic, int32_t partition, int32_t *broker_ids, size_t broker_id_cnt, char *errstr, size_t errstr_size);

/** Sets a property of the topic, which the broker validates. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_NewTopic_set_config(rd_kafka_NewTopic_t *new_topic, const char *name, const char *value);

/** Creates topics. An RD_KAFKA_EVENT_CREATETOPICS_RESULT comes to rkqu, or to the main queue if that is NULL: with an error if the call failed as a whole, otherwise with a result for each topic. No topics, or a duplicate one, is RD_KAFKA_RESP_ERR__INVALID_ARG. */
RD_EXPORT
void rd_kafka_CreateTopics(rd_kafka_t *rk, rd_kafka_NewTopic_t **new_topics, size_t new_topic_cnt, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Returns the result for each topic, in the order of the call. They live as long as the event. */
RD_EXPORT
const rd_kafka_topic_result_t **rd_kafka_CreateTopics_result_topics(const rd_kafka_CreateTopics_result_t *result, size_t *cntp);

/** Names a topic to delete. */
RD_EXPORT
rd_kafka_DeleteTopic_t *rd_kafka_DeleteTopic_new(const char *topic);

/** Frees a topic to delete. */
RD_EXPORT
void rd_kafka_DeleteTopic_destroy(rd_kafka_DeleteTopic_t *del_topic);

/** Frees the topics of an array; the array itself stays the caller's. */
RD_EXPORT
void rd_kafka_DeleteTopic_destroy_array(rd_kafka_DeleteTopic_t **del_topics, size_t del_topic_cnt);

/** Deletes topics; the result is an RD_KAFKA_EVENT_DELETETOPICS_RESULT. See rd_kafka_CreateTopics(). */
RD_EXPORT
void rd_kafka_DeleteTopics(rd_kafka_t *rk, rd_kafka_DeleteTopic_t **del_topics, size_t del_topic_cnt, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Returns the result for each topic, in the order of the call. They live as long as the event. */
RD_EXPORT
const rd_kafka_topic_result_t **rd_kafka_DeleteTopics_result_topics(const rd_kafka_DeleteTopics_result_t *result, size_t *cntp);

/** Describes a topic that gets this number of partitions in total. Returns NULL, with the reason in errstr, if that is not in 1 .. 100000 or the name is missing. */
RD_EXPORT
rd_kafka_NewPartitions_t *rd_kafka_NewPartitions_new(const char *topic, size_t new_total_cnt, char *errstr, size_t errstr_size);

/** Frees new partitions. */
RD_EXPORT
void rd_kafka_NewPartitions_destroy(rd_kafka_NewPartitions_t *new_parts);

/** Frees the new partitions of an array; the array itself stays the caller's. */
RD_EXPORT
void rd_kafka_NewPartitions_destroy_array(rd_kafka_NewPartitions_t **new_parts, size_t new_parts_cnt);

/** Sets the brokers of a new partition, the preferred leader first. The first new partition has index 0; all of them have to be assigned in order. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_NewPartitions_set_replica_assignment(rd_kafka_NewPartitions_t *new_parts, int32_t new_partition_idx, int32_t *broker_ids, size_t broker_id_cnt, char *errstr, size_t errstr_size);

/** Increases the number of partitions of topics; the result is an RD_KAFKA_EVENT_CREATEPARTITIONS_RESULT. See rd_kafka_CreateTopics(). */
RD_EXPORT
void rd_kafka_CreatePartitions(rd_kafka_t *rk, rd_kafka_NewPartitions_t **new_parts, size_t new_parts_cnt, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Returns the result for each topic, in the order of the call. They live as long as the event. */
RD_EXPORT
const rd_kafka_topic_result_t **rd_kafka_CreatePartitions_result_topics(const rd_kafka_CreatePartitions_result_t *result, size_t *cntp);

/** Returns the name of a source. */
RD_EXPORT
const char *rd_kafka_ConfigSource_name(rd_kafka_ConfigSource_t confsource);

/** Returns the property's name. */
RD_EXPORT
const char *rd_kafka_ConfigEntry_name(const rd_kafka_ConfigEntry_t *entry);

/** Returns the property's value; NULL for a secret. */
RD_EXPORT
const char *rd_kafka_ConfigEntry_value(const rd_kafka_ConfigEntry_t *entry);

/** Returns the source of the value. */
RD_EXPORT
rd_kafka_ConfigSource_t rd_kafka_ConfigEntry_source(const rd_kafka_ConfigEntry_t *entry);

/** Returns 1 if the property is read-only. */
RD_EXPORT
int rd_kafka_ConfigEntry_is_read_only(const rd_kafka_ConfigEntry_t *entry);

/** Returns 1 if the value is the default. */
RD_EXPORT
int rd_kafka_ConfigEntry_is_default(const rd_kafka_ConfigEntry_t *entry);

/** Returns 1 if the value is a secret. */
RD_EXPORT
int rd_kafka_ConfigEntry_is_sensitive(const rd_kafka_ConfigEntry_t *entry);

/** Returns 1 if this is one of rd_kafka_ConfigEntry_synonyms(). */
RD_EXPORT
int rd_kafka_ConfigEntry_is_synonym(const rd_kafka_ConfigEntry_t *entry);

/** Returns the sources that could provide the value, in the order of precedence. */
RD_EXPORT
const rd_kafka_ConfigEntry_t **rd_kafka_ConfigEntry_synonyms(const rd_kafka_ConfigEntry_t *entry, size_t *cntp);

/** Returns the name of a pattern type, such as "PREFIXED", or "UNSUPPORTED" for another number. */
RD_EXPORT
const char *rd_kafka_ResourcePatternType_name(rd_kafka_ResourcePatternType_t resource_pattern_type);

/** Returns the name of a type of resource. */
RD_EXPORT
const char *rd_kafka_ResourceType_name(rd_kafka_ResourceType_t restype);

/** Names a topic, group or broker whose configuration is requested or changed; a broker's name is its id. Returns NULL if there is no such type or no name. */
RD_EXPORT
rd_kafka_ConfigResource_t *rd_kafka_ConfigResource_new(rd_kafka_ResourceType_t restype, const char *resname);

/** Frees a resource. */
RD_EXPORT
void rd_kafka_ConfigResource_destroy(rd_kafka_ConfigResource_t *config);

/** Frees the resources of an array; the array itself stays the caller's. */
RD_EXPORT
void rd_kafka_ConfigResource_destroy_array(rd_kafka_ConfigResource_t **config, size_t config_cnt);

/** Sets a property of the resource, for rd_kafka_AlterConfigs(). */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_ConfigResource_set_config(rd_kafka_ConfigResource_t *config, const char *name, const char *value);

/** Adds a change of a property, for rd_kafka_IncrementalAlterConfigs(): set, delete, append or subtract. The value is NULL only to delete. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_ConfigResource_add_incremental_config(rd_kafka_ConfigResource_t *config, const char *name, rd_kafka_AlterConfigOpType_t op_type, const char *value);

/** Returns the properties of a resource: those of a result, or the changes that the application requests. */
RD_EXPORT
const rd_kafka_ConfigEntry_t **rd_kafka_ConfigResource_configs(const rd_kafka_ConfigResource_t *config, size_t *cntp);

/** Returns the resource's type. */
RD_EXPORT
rd_kafka_ResourceType_t rd_kafka_ConfigResource_type(const rd_kafka_ConfigResource_t *config);

/** Returns the resource's name. */
RD_EXPORT
const char *rd_kafka_ConfigResource_name(const rd_kafka_ConfigResource_t *config);

/** Returns the error code of the resource. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_ConfigResource_error(const rd_kafka_ConfigResource_t *config);

/** Returns the error text of the resource, or NULL if there is no error. */
RD_EXPORT
const char *rd_kafka_ConfigResource_error_string(const rd_kafka_ConfigResource_t *config);

/** Replaces configurations: properties that are not named get their defaults; the result is an RD_KAFKA_EVENT_ALTERCONFIGS_RESULT. See rd_kafka_DescribeConfigs(). */
RD_EXPORT
void rd_kafka_AlterConfigs(rd_kafka_t *rk, rd_kafka_ConfigResource_t **configs, size_t config_cnt, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Returns the result for each resource, in the order of the call. The results live as long as the event. */
RD_EXPORT
const rd_kafka_ConfigResource_t **rd_kafka_AlterConfigs_result_resources(const rd_kafka_AlterConfigs_result_t *result, size_t *cntp);

/** Changes properties and keeps all others; the result is an RD_KAFKA_EVENT_INCREMENTALALTERCONFIGS_RESULT. See rd_kafka_DescribeConfigs(). */
RD_EXPORT
void rd_kafka_IncrementalAlterConfigs(rd_kafka_t *rk, rd_kafka_ConfigResource_t **configs, size_t config_cnt, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Returns the result for each resource, in the order of the call. The results live as long as the event. */
RD_EXPORT
const rd_kafka_ConfigResource_t **rd_kafka_IncrementalAlterConfigs_result_resources(const rd_kafka_IncrementalAlterConfigs_result_t *result, size_t *cntp);

/** Describes configurations; the result is an RD_KAFKA_EVENT_DESCRIBECONFIGS_RESULT. No resources, duplicates, or several brokers are RD_KAFKA_RESP_ERR__INVALID_ARG. */
RD_EXPORT
void rd_kafka_DescribeConfigs(rd_kafka_t *rk, rd_kafka_ConfigResource_t **configs, size_t config_cnt, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Returns the resources with their properties, in the order of the call. They live as long as the event. */
RD_EXPORT
const rd_kafka_ConfigResource_t **rd_kafka_DescribeConfigs_result_resources(const rd_kafka_DescribeConfigs_result_t *result, size_t *cntp);

/** Describes records to delete: those of each partition before the element's offset, RD_KAFKA_OFFSET_END for all. */
RD_EXPORT
rd_kafka_DeleteRecords_t *rd_kafka_DeleteRecords_new(const rd_kafka_topic_partition_list_t *before_offsets);

/** Frees records to delete. */
RD_EXPORT
void rd_kafka_DeleteRecords_destroy(rd_kafka_DeleteRecords_t *del_records);

/** Frees the elements of an array; the array itself stays the caller's. */
RD_EXPORT
void rd_kafka_DeleteRecords_destroy_array(rd_kafka_DeleteRecords_t **del_records, size_t del_record_cnt);

/** Deletes the oldest records of partitions; the result is an RD_KAFKA_EVENT_DELETERECORDS_RESULT. A call takes exactly one element. */
RD_EXPORT
void rd_kafka_DeleteRecords(rd_kafka_t *rk, rd_kafka_DeleteRecords_t **del_records, size_t del_record_cnt, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Returns the partitions with their new first offsets, or their errors. They live as long as the event. */
RD_EXPORT
const rd_kafka_topic_partition_list_t *rd_kafka_DeleteRecords_result_offsets(const rd_kafka_DeleteRecords_result_t *result);

/** Names topics to describe. */
RD_EXPORT
rd_kafka_TopicCollection_t *rd_kafka_TopicCollection_of_topic_names(const char **topics, size_t topics_cnt);

/** Frees topics to describe. */
RD_EXPORT
void rd_kafka_TopicCollection_destroy(rd_kafka_TopicCollection_t *topics);

/** Describes topics; the result is an RD_KAFKA_EVENT_DESCRIBETOPICS_RESULT. No topics, or a duplicate one, is RD_KAFKA_RESP_ERR__INVALID_ARG. */
RD_EXPORT
void rd_kafka_DescribeTopics(rd_kafka_t *rk, const rd_kafka_TopicCollection_t *topics, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Returns the topics in the order of the call. They live as long as the event. */
RD_EXPORT
const rd_kafka_TopicDescription_t **rd_kafka_DescribeTopics_result_topics(const rd_kafka_DescribeTopics_result_t *result, size_t *cntp);

/** Returns the topic's partitions in the order of their numbers. */
RD_EXPORT
const rd_kafka_TopicPartitionInfo_t **rd_kafka_TopicDescription_partitions(const rd_kafka_TopicDescription_t *topicdesc, size_t *cntp);

/** Returns the partition's number. */
RD_EXPORT
int rd_kafka_TopicPartitionInfo_partition(const rd_kafka_TopicPartitionInfo_t *partition);

/** Returns the broker that leads the partition, or NULL. */
RD_EXPORT
const rd_kafka_Node_t *rd_kafka_TopicPartitionInfo_leader(const rd_kafka_TopicPartitionInfo_t *partition);

/** Returns the in-sync replicas. */
RD_EXPORT
const rd_kafka_Node_t **rd_kafka_TopicPartitionInfo_isr(const rd_kafka_TopicPartitionInfo_t *partition, size_t *cntp);

/** Returns the replicas, the preferred leader first. */
RD_EXPORT
const rd_kafka_Node_t **rd_kafka_TopicPartitionInfo_replicas(const rd_kafka_TopicPartitionInfo_t *partition, size_t *cntp);

/** Returns the operations on the topic that the application is authorized for, if rd_kafka_AdminOptions_set_include_authorized_operations() requested them; NULL otherwise, or if the broker does not report them. They live as long as the event. */
RD_EXPORT
const rd_kafka_AclOperation_t *rd_kafka_TopicDescription_authorized_operations(const rd_kafka_TopicDescription_t *topicdesc, size_t *cntp);

/** Returns the topic's name. */
RD_EXPORT
const char *rd_kafka_TopicDescription_name(const rd_kafka_TopicDescription_t *topicdesc);

/** Returns the topic's id; all zeros if the broker does not support ids. */
RD_EXPORT
const rd_kafka_Uuid_t *rd_kafka_TopicDescription_topic_id(const rd_kafka_TopicDescription_t *topicdesc);

/** Returns 1 for the cluster's internal topics. */
RD_EXPORT
int rd_kafka_TopicDescription_is_internal(const rd_kafka_TopicDescription_t *topicdesc);

/** Returns the error of the topic, or NULL. */
RD_EXPORT
const rd_kafka_error_t *rd_kafka_TopicDescription_error(const rd_kafka_TopicDescription_t *topicdesc);

/** Requests the cluster's id, controller and brokers; the result is an RD_KAFKA_EVENT_DESCRIBECLUSTER_RESULT. */
RD_EXPORT
void rd_kafka_DescribeCluster(rd_kafka_t *rk, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Returns the brokers in the order of their ids. They live as long as the event. */
RD_EXPORT
const rd_kafka_Node_t **rd_kafka_DescribeCluster_result_nodes(const rd_kafka_DescribeCluster_result_t *result, size_t *cntp);

/** Returns the operations on the cluster that the application is authorized for, if rd_kafka_AdminOptions_set_include_authorized_operations() requested them; NULL otherwise, or if the broker does not report them. They live as long as the event. */
RD_EXPORT
const rd_kafka_AclOperation_t *rd_kafka_DescribeCluster_result_authorized_operations(const rd_kafka_DescribeCluster_result_t *result, size_t *cntp);

/** Returns the controller: the broker that takes admin requests, or NULL. */
RD_EXPORT
const rd_kafka_Node_t *rd_kafka_DescribeCluster_result_controller(const rd_kafka_DescribeCluster_result_t *result);

/** Returns the cluster's id. */
RD_EXPORT
const char *rd_kafka_DescribeCluster_result_cluster_id(const rd_kafka_DescribeCluster_result_t *result);

/** Lists the consumer groups of all brokers. The event has no error if some brokers fail: their errors are in the result, together with the groups of the others. */
RD_EXPORT
void rd_kafka_ListConsumerGroups(rd_kafka_t *rk, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Returns the group ID. */
RD_EXPORT
const char *rd_kafka_ConsumerGroupListing_group_id(const rd_kafka_ConsumerGroupListing_t *grplist);

/** Returns 1 if the group only has committed offsets, and never had members. */
RD_EXPORT
int rd_kafka_ConsumerGroupListing_is_simple_consumer_group(const rd_kafka_ConsumerGroupListing_t *grplist);

/** Returns the state of the group. States without a constant are RD_KAFKA_CONSUMER_GROUP_STATE_UNKNOWN. */
RD_EXPORT
rd_kafka_consumer_group_state_t rd_kafka_ConsumerGroupListing_state(const rd_kafka_ConsumerGroupListing_t *grplist);

/** Returns the type of the group; unknown from brokers before Kafka 3.8. */
RD_EXPORT
rd_kafka_consumer_group_type_t rd_kafka_ConsumerGroupListing_type(const rd_kafka_ConsumerGroupListing_t *grplist);

/** Returns the listed groups, sorted by ID. They live as long as the event. */
RD_EXPORT
const rd_kafka_ConsumerGroupListing_t **rd_kafka_ListConsumerGroups_result_valid(const rd_kafka_ListConsumerGroups_result_t *result, size_t *cntp);

/** Returns an error for each broker that failed; NULL if none did. They live as long as the event. */
RD_EXPORT
const rd_kafka_error_t **rd_kafka_ListConsumerGroups_result_errors(const rd_kafka_ListConsumerGroups_result_t *result, size_t *cntp);

/** Describes groups of the classic and the consumer protocol. Each group has an error of its own. */
RD_EXPORT
void rd_kafka_DescribeConsumerGroups(rd_kafka_t *rk, const char **groups, size_t groups_cnt, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Returns the descriptions, in the order of the call. They live as long as the event. */
RD_EXPORT
const rd_kafka_ConsumerGroupDescription_t **rd_kafka_DescribeConsumerGroups_result_groups(const rd_kafka_DescribeConsumerGroups_result_t *result, size_t *cntp);

/** Returns the group ID. */
RD_EXPORT
const char *rd_kafka_ConsumerGroupDescription_group_id(const rd_kafka_ConsumerGroupDescription_t *grpdesc);

/** Returns the error of the group, or NULL. */
RD_EXPORT
const rd_kafka_error_t *rd_kafka_ConsumerGroupDescription_error(const rd_kafka_ConsumerGroupDescription_t *grpdesc);

/** Returns 1 if the group has no protocol type, because it does not exist or never had members. */
RD_EXPORT
int rd_kafka_ConsumerGroupDescription_is_simple_consumer_group(const rd_kafka_ConsumerGroupDescription_t *grpdesc);

/** Returns the name of the assignor; empty while the group has none. */
RD_EXPORT
const char *rd_kafka_ConsumerGroupDescription_partition_assignor(const rd_kafka_ConsumerGroupDescription_t *grpdesc);

/** Returns the authorized operations, if they were requested; NULL without any. */
RD_EXPORT
const rd_kafka_AclOperation_t *rd_kafka_ConsumerGroupDescription_authorized_operations(const rd_kafka_ConsumerGroupDescription_t *grpdesc, size_t *cntp);

/** Returns the state; RD_KAFKA_CONSUMER_GROUP_STATE_DEAD if the group does not exist. */
RD_EXPORT
rd_kafka_consumer_group_state_t rd_kafka_ConsumerGroupDescription_state(const rd_kafka_ConsumerGroupDescription_t *grpdesc);

/** Returns the coordinator; NULL if the group has an error. */
RD_EXPORT
const rd_kafka_Node_t *rd_kafka_ConsumerGroupDescription_coordinator(const rd_kafka_ConsumerGroupDescription_t *grpdesc);

/** Returns the protocol of the members. */
RD_EXPORT
rd_kafka_consumer_group_type_t rd_kafka_ConsumerGroupDescription_type(const rd_kafka_ConsumerGroupDescription_t *grpdesc);

/** Returns the number of members. */
RD_EXPORT
size_t rd_kafka_ConsumerGroupDescription_member_count(const rd_kafka_ConsumerGroupDescription_t *grpdesc);

/** Returns a member by its index, or NULL. */
RD_EXPORT
const rd_kafka_MemberDescription_t *rd_kafka_ConsumerGroupDescription_member(const rd_kafka_ConsumerGroupDescription_t *grpdesc, size_t idx);

/** Returns the client.id of the member. */
RD_EXPORT
const char *rd_kafka_MemberDescription_client_id(const rd_kafka_MemberDescription_t *member);

/** Returns the group.instance.id of a static member; NULL for others. */
RD_EXPORT
const char *rd_kafka_MemberDescription_group_instance_id(const rd_kafka_MemberDescription_t *member);

/** Returns the member ID. */
RD_EXPORT
const char *rd_kafka_MemberDescription_consumer_id(const rd_kafka_MemberDescription_t *member);

/** Returns the host that the coordinator sees. */
RD_EXPORT
const char *rd_kafka_MemberDescription_host(const rd_kafka_MemberDescription_t *member);

/** Returns the assignment of the member. */
RD_EXPORT
const rd_kafka_MemberAssignment_t *rd_kafka_MemberDescription_assignment(const rd_kafka_MemberDescription_t *member);

/** Returns the partitions. The list lives as long as the event. */
RD_EXPORT
const rd_kafka_topic_partition_list_t *rd_kafka_MemberAssignment_partitions(const rd_kafka_MemberAssignment_t *assignment);

/** Returns the target assignment of a member of a group of the consumer protocol; NULL for other groups. */
RD_EXPORT
const rd_kafka_MemberAssignment_t *rd_kafka_MemberDescription_target_assignment(const rd_kafka_MemberDescription_t *member);

/** Creates a group to delete; NULL without a group ID. */
RD_EXPORT
rd_kafka_DeleteGroup_t *rd_kafka_DeleteGroup_new(const char *group);

/** Frees a group to delete. */
RD_EXPORT
void rd_kafka_DeleteGroup_destroy(rd_kafka_DeleteGroup_t *del_group);

/** Frees the elements of an array, not the array. */
RD_EXPORT
void rd_kafka_DeleteGroup_destroy_array(rd_kafka_DeleteGroup_t **del_groups, size_t del_group_cnt);

/** Deletes groups that have no members, with their committed offsets. Each group has a result of its own. */
RD_EXPORT
void rd_kafka_DeleteGroups(rd_kafka_t *rk, rd_kafka_DeleteGroup_t **del_groups, size_t del_group_cnt, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Returns the results, in the order of the call. They live as long as the event. */
RD_EXPORT
const rd_kafka_group_result_t **rd_kafka_DeleteGroups_result_groups(const rd_kafka_DeleteGroups_result_t *result, size_t *cntp);

/** Creates a request for the offsets of these partitions, which are copied; of all partitions with NULL. */
RD_EXPORT
rd_kafka_ListConsumerGroupOffsets_t *rd_kafka_ListConsumerGroupOffsets_new(const char *group_id, const rd_kafka_topic_partition_list_t *partitions);

/** Frees a request. */
RD_EXPORT
void rd_kafka_ListConsumerGroupOffsets_destroy(rd_kafka_ListConsumerGroupOffsets_t *list_grpoffsets);

/** Frees the elements of an array, not the array. */
RD_EXPORT
void rd_kafka_ListConsumerGroupOffsets_destroy_array(rd_kafka_ListConsumerGroupOffsets_t **list_grpoffsets, size_t list_grpoffset_cnt);

/** Lists the committed offsets of one group. Partitions without one have RD_KAFKA_OFFSET_INVALID. A call takes exactly one object. */
RD_EXPORT
void rd_kafka_ListConsumerGroupOffsets(rd_kafka_t *rk, rd_kafka_ListConsumerGroupOffsets_t **list_grpoffsets, size_t list_grpoffsets_cnt, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Returns the result of the group, an array of one. It lives as long as the event. */
RD_EXPORT
const rd_kafka_group_result_t **rd_kafka_ListConsumerGroupOffsets_result_groups(const rd_kafka_ListConsumerGroupOffsets_result_t *result, size_t *cntp);

/** Creates a request to commit the offsets of these partitions, which are copied. */
RD_EXPORT
rd_kafka_AlterConsumerGroupOffsets_t *rd_kafka_AlterConsumerGroupOffsets_new(const char *group_id, const rd_kafka_topic_partition_list_t *partitions);

/** Frees a request. */
RD_EXPORT
void rd_kafka_AlterConsumerGroupOffsets_destroy(rd_kafka_AlterConsumerGroupOffsets_t *alter_grpoffsets);

/** Frees the elements of an array, not the array. */
RD_EXPORT
void rd_kafka_AlterConsumerGroupOffsets_destroy_array(rd_kafka_AlterConsumerGroupOffsets_t **alter_grpoffsets, size_t alter_grpoffset_cnt);

/** Commits offsets for one group, which must not have members. Each partition has an error of its own. A call takes exactly one object. */
RD_EXPORT
void rd_kafka_AlterConsumerGroupOffsets(rd_kafka_t *rk, rd_kafka_AlterConsumerGroupOffsets_t **alter_grpoffsets, size_t alter_grpoffsets_cnt, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Returns the result of the group, an array of one. It lives as long as the event. */
RD_EXPORT
const rd_kafka_group_result_t **rd_kafka_AlterConsumerGroupOffsets_result_groups(const rd_kafka_AlterConsumerGroupOffsets_result_t *result, size_t *cntp);

/** Creates a request to delete the offsets of these partitions, which are copied. */
RD_EXPORT
rd_kafka_DeleteConsumerGroupOffsets_t *rd_kafka_DeleteConsumerGroupOffsets_new(const char *group, const rd_kafka_topic_partition_list_t *partitions);

/** Frees a request. */
RD_EXPORT
void rd_kafka_DeleteConsumerGroupOffsets_destroy(rd_kafka_DeleteConsumerGroupOffsets_t *del_grpoffsets);

/** Frees the elements of an array, not the array. */
RD_EXPORT
void rd_kafka_DeleteConsumerGroupOffsets_destroy_array(rd_kafka_DeleteConsumerGroupOffsets_t **del_grpoffsets, size_t del_grpoffset_cnt);

/** Deletes committed offsets of one group, of topics that no member subscribes to. Each partition has an error of its own. A call takes exactly one object. */
RD_EXPORT
void rd_kafka_DeleteConsumerGroupOffsets(rd_kafka_t *rk, rd_kafka_DeleteConsumerGroupOffsets_t **del_grpoffsets, size_t del_grpoffsets_cnt, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Returns the result of the group, an array of one. It lives as long as the event. */
RD_EXPORT
const rd_kafka_group_result_t **rd_kafka_DeleteConsumerGroupOffsets_result_groups(const rd_kafka_DeleteConsumerGroupOffsets_result_t *result, size_t *cntp);

/** Returns the partition with the offset and the leader epoch, or with its error. */
RD_EXPORT
const rd_kafka_topic_partition_t *rd_kafka_ListOffsetsResultInfo_topic_partition(const rd_kafka_ListOffsetsResultInfo_t *result_info);

/** Returns the timestamp of the record that was looked up by time, otherwise -1. */
RD_EXPORT
int64_t rd_kafka_ListOffsetsResultInfo_timestamp(const rd_kafka_ListOffsetsResultInfo_t *result_info);

/** Returns the result for each partition, in the order of the call. The results live as long as the event. */
RD_EXPORT
const rd_kafka_ListOffsetsResultInfo_t **rd_kafka_ListOffsets_result_infos(const rd_kafka_ListOffsets_result_t *result, size_t *cntp);

/** Requests offsets from the leaders of partitions: each element's offset is one of RD_KAFKA_OFFSET_SPEC_* or a timestamp in milliseconds. The result is an RD_KAFKA_EVENT_LISTOFFSETS_RESULT. An empty list, or a duplicate partition, is RD_KAFKA_RESP_ERR__INVALID_ARG. */
RD_EXPORT
void rd_kafka_ListOffsets(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *topic_partitions, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Returns the mechanism of a credential. */
RD_EXPORT
rd_kafka_ScramMechanism_t rd_kafka_ScramCredentialInfo_mechanism(const rd_kafka_ScramCredentialInfo_t *scram_credential_info);

/** Returns the number of iterations of a credential. */
RD_EXPORT
int32_t rd_kafka_ScramCredentialInfo_iterations(const rd_kafka_ScramCredentialInfo_t *scram_credential_info);

/** Returns the name of a described user. */
RD_EXPORT
const char *rd_kafka_UserScramCredentialsDescription_user(const rd_kafka_UserScramCredentialsDescription_t *description);

/** Returns the error of a described user, never NULL: the code is RD_KAFKA_RESP_ERR_NO_ERROR after a success. It lives as long as the event. */
RD_EXPORT
const rd_kafka_error_t *rd_kafka_UserScramCredentialsDescription_error(const rd_kafka_UserScramCredentialsDescription_t *description);

/** Returns the number of credentials of a described user. */
RD_EXPORT
size_t rd_kafka_UserScramCredentialsDescription_scramcredentialinfo_count(const rd_kafka_UserScramCredentialsDescription_t *description);

/** Returns the credential at this index, or NULL if there are fewer. It lives as long as the event. */
RD_EXPORT
const rd_kafka_ScramCredentialInfo_t *rd_kafka_UserScramCredentialsDescription_scramcredentialinfo(const rd_kafka_UserScramCredentialsDescription_t *description, size_t idx);

/** Returns the described users, in the order of the request; they live as long as the event. */
RD_EXPORT
const rd_kafka_UserScramCredentialsDescription_t **rd_kafka_DescribeUserScramCredentials_result_descriptions(const rd_kafka_DescribeUserScramCredentials_result_t *result, size_t *cntp);

/** Describes the SCRAM credentials of these users, or of all if users is NULL or user_cnt is 0. The event RD_KAFKA_EVENT_DESCRIBEUSERSCRAMCREDENTIALS_RESULT on rkqu has the result. Names must not be empty or repeated. */
RD_EXPORT
void rd_kafka_DescribeUserScramCredentials(rd_kafka_t *rk, const char **users, size_t user_cnt, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Creates the alteration that sets a credential of a user. The salt is random if salt_size is 0. The library derives the salted password when the alteration is sent. NULL if username is NULL. */
RD_EXPORT
rd_kafka_UserScramCredentialAlteration_t *rd_kafka_UserScramCredentialUpsertion_new(const char *username, rd_kafka_ScramMechanism_t mechanism, int32_t iterations, const unsigned char *password, size_t password_size, const unsigned char *salt, size_t salt_size);

/** Creates the alteration that deletes a credential of a user. NULL if username is NULL. */
RD_EXPORT
rd_kafka_UserScramCredentialAlteration_t *rd_kafka_UserScramCredentialDeletion_new(const char *username, rd_kafka_ScramMechanism_t mechanism);

/** Frees an alteration. */
RD_EXPORT
void rd_kafka_UserScramCredentialAlteration_destroy(rd_kafka_UserScramCredentialAlteration_t *alteration);

/** Frees each alteration of an array; the array itself stays the caller's. */
RD_EXPORT
void rd_kafka_UserScramCredentialAlteration_destroy_array(rd_kafka_UserScramCredentialAlteration_t **alterations, size_t alteration_cnt);

/** Returns the user of a response. */
RD_EXPORT
const char *rd_kafka_AlterUserScramCredentials_result_response_user(const rd_kafka_AlterUserScramCredentials_result_response_t *response);

/** Returns the error of a response, never NULL: the code is RD_KAFKA_RESP_ERR_NO_ERROR after a success. It lives as long as the event. */
RD_EXPORT
const rd_kafka_error_t *rd_kafka_AlterUserScramCredentials_result_response_error(const rd_kafka_AlterUserScramCredentials_result_response_t *response);

/** Returns a response for each user of the request; they live as long as the event. */
RD_EXPORT
const rd_kafka_AlterUserScramCredentials_result_response_t **rd_kafka_AlterUserScramCredentials_result_responses(const rd_kafka_AlterUserScramCredentials_result_t *result, size_t *cntp);

/** Sets and deletes SCRAM credentials. The event RD_KAFKA_EVENT_ALTERUSERSCRAMCREDENTIALS_RESULT on rkqu has a response for each user. */
RD_EXPORT
void rd_kafka_AlterUserScramCredentials(rd_kafka_t *rk, rd_kafka_UserScramCredentialAlteration_t **alterations, size_t alteration_cnt, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Returns the error of a rule that was to be created, or NULL if it was created or existed already. It lives as long as the event. */
RD_EXPORT
const rd_kafka_error_t *rd_kafka_acl_result_error(const rd_kafka_acl_result_t *aclres);

/** Returns the name of an operation, such as "IDEMPOTENT_WRITE", or "UNSUPPORTED" for another number. */
RD_EXPORT
const char *rd_kafka_AclOperation_name(rd_kafka_AclOperation_t acl_operation);

/** Returns the name of an effect, such as "ALLOW", or "UNSUPPORTED" for another number. */
RD_EXPORT
const char *rd_kafka_AclPermissionType_name(rd_kafka_AclPermissionType_t acl_permission_type);

/** Creates a rule for rd_kafka_CreateAcls. Returns NULL and writes the reason to errstr if a text is NULL, or if a number is one that only filters may have. */
RD_EXPORT
rd_kafka_AclBinding_t *rd_kafka_AclBinding_new(rd_kafka_ResourceType_t restype, const char *name, rd_kafka_ResourcePatternType_t resource_pattern_type, const char *principal, const char *host, rd_kafka_AclOperation_t operation, rd_kafka_AclPermissionType_t permission_type, char *errstr, size_t errstr_size);

/** Creates a filter of rules. A text that is NULL matches all. Returns NULL and writes the reason to errstr if a number is unknown. */
RD_EXPORT
rd_kafka_AclBindingFilter_t *rd_kafka_AclBindingFilter_new(rd_kafka_ResourceType_t restype, const char *name, rd_kafka_ResourcePatternType_t resource_pattern_type, const char *principal, const char *host, rd_kafka_AclOperation_t operation, rd_kafka_AclPermissionType_t permission_type, char *errstr, size_t errstr_size);

/** Returns the resource type of a rule or filter. RD_KAFKA_RESOURCE_BROKER stands for the cluster; types that this enumeration lacks are RD_KAFKA_RESOURCE_UNKNOWN. */
RD_EXPORT
rd_kafka_ResourceType_t rd_kafka_AclBinding_restype(const rd_kafka_AclBinding_t *acl);

/** Returns the resource name of a rule or filter, or NULL. It lives as long as the rule. */
RD_EXPORT
const char *rd_kafka_AclBinding_name(const rd_kafka_AclBinding_t *acl);

/** Returns the principal of a rule or filter, or NULL. It lives as long as the rule. */
RD_EXPORT
const char *rd_kafka_AclBinding_principal(const rd_kafka_AclBinding_t *acl);

/** Returns the host of a rule or filter, or NULL. It lives as long as the rule. */
RD_EXPORT
const char *rd_kafka_AclBinding_host(const rd_kafka_AclBinding_t *acl);

/** Returns the operation of a rule or filter. Operations that the enumeration lacks are RD_KAFKA_ACL_OPERATION_UNKNOWN. */
RD_EXPORT
rd_kafka_AclOperation_t rd_kafka_AclBinding_operation(const rd_kafka_AclBinding_t *acl);

/** Returns the effect of a rule or filter. */
RD_EXPORT
rd_kafka_AclPermissionType_t rd_kafka_AclBinding_permission_type(const rd_kafka_AclBinding_t *acl);

/** Returns the pattern type of a rule or filter. */
RD_EXPORT
rd_kafka_ResourcePatternType_t rd_kafka_AclBinding_resource_pattern_type(const rd_kafka_AclBinding_t *acl);

/** Returns the error of a rule that was to be deleted, or NULL. It lives as long as the rule. */
RD_EXPORT
const rd_kafka_error_t *rd_kafka_AclBinding_error(const rd_kafka_AclBinding_t *acl);

/** Frees a rule or filter of the application. */
RD_EXPORT
void rd_kafka_AclBinding_destroy(rd_kafka_AclBinding_t *acl_binding);

/** Frees each rule or filter of an array; the array itself stays the caller's. */
RD_EXPORT
void rd_kafka_AclBinding_destroy_array(rd_kafka_AclBinding_t **acl_bindings, size_t acl_bindings_cnt);

/** Returns the results of the rules, in the order of the request; they live as long as the event. */
RD_EXPORT
const rd_kafka_acl_result_t **rd_kafka_CreateAcls_result_acls(const rd_kafka_CreateAcls_result_t *result, size_t *cntp);

/** Creates rules of the brokers' authorizer. The event RD_KAFKA_EVENT_CREATEACLS_RESULT on rkqu has a result for each rule. */
RD_EXPORT
void rd_kafka_CreateAcls(rd_kafka_t *rk, rd_kafka_AclBinding_t **new_acls, size_t new_acls_cnt, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Returns the rules that matched; they live as long as the event. */
RD_EXPORT
const rd_kafka_AclBinding_t **rd_kafka_DescribeAcls_result_acls(const rd_kafka_DescribeAcls_result_t *result, size_t *cntp);

/** Describes the rules that match a filter. The event RD_KAFKA_EVENT_DESCRIBEACLS_RESULT on rkqu has the result. */
RD_EXPORT
void rd_kafka_DescribeAcls(rd_kafka_t *rk, rd_kafka_AclBindingFilter_t *acl_filter, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Returns a response for each filter, in the order of the request; they live as long as the event. */
RD_EXPORT
const rd_kafka_DeleteAcls_result_response_t **rd_kafka_DeleteAcls_result_responses(const rd_kafka_DeleteAcls_result_t *result, size_t *cntp);

/** Returns the error of a filter, or NULL. It lives as long as the event. */
RD_EXPORT
const rd_kafka_error_t *rd_kafka_DeleteAcls_result_response_error(const rd_kafka_DeleteAcls_result_response_t *result_response);

/** Returns the rules that a filter matched, each with rd_kafka_AclBinding_error; they live as long as the event. */
RD_EXPORT
const rd_kafka_AclBinding_t **rd_kafka_DeleteAcls_result_response_matching_acls(const rd_kafka_DeleteAcls_result_response_t *result_response, size_t *matching_acls_cntp);

/** Deletes the rules that match filters. The event RD_KAFKA_EVENT_DELETEACLS_RESULT on rkqu has a response for each filter. */
RD_EXPORT
void rd_kafka_DeleteAcls(rd_kafka_t *rk, rd_kafka_AclBindingFilter_t **del_acls, size_t del_acls_cnt, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Creates the arguments of rd_kafka_ElectLeaders; the list is copied, and NULL stands for all partitions. */
RD_EXPORT
rd_kafka_ElectLeaders_t *rd_kafka_ElectLeaders_new(rd_kafka_ElectionType_t election_type, rd_kafka_topic_partition_list_t *partitions);

/** Frees the arguments of rd_kafka_ElectLeaders. */
RD_EXPORT
void rd_kafka_ElectLeaders_destroy(rd_kafka_ElectLeaders_t *elect_leaders);

/** Elects leaders of partitions. The event RD_KAFKA_EVENT_ELECTLEADERS_RESULT on rkqu has a result for each partition; an election that is not needed is the error RD_KAFKA_RESP_ERR_ELECTION_NOT_NEEDED, or left out if all partitions were requested. */
RD_EXPORT
void rd_kafka_ElectLeaders(rd_kafka_t *rk, rd_kafka_ElectLeaders_t *elect_leaders, const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *rkqu);

/** Returns the results of the partitions; they live as long as the event. */
RD_EXPORT
const rd_kafka_topic_partition_result_t **rd_kafka_ElectLeaders_result_partitions(const rd_kafka_ElectLeaders_result_t *result, size_t *cntp);

/** Sets the token of OAUTHBEARER, its expiry in milliseconds since 1970, the name of its principal, and extensions as alternating keys and values. Error: RD_KAFKA_RESP_ERR__STATE without OAUTHBEARER, RD_KAFKA_RESP_ERR__INVALID_ARG with the reason in errstr. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_oauthbearer_set_token(rd_kafka_t *rk, const char *token_value, int64_t md_lifetime_ms, const char *md_principal_name, const char **extensions, size_t extension_size, char *errstr, size_t errstr_size);

/** Reports that no token could be obtained, with the reason. The last token is used until it expires, and the next request comes in ten seconds. */
RD_EXPORT
rd_kafka_resp_err_t rd_kafka_oauthbearer_set_token_failure(rd_kafka_t *rk, const char *errstr);

/** Obtains the producer ID of transactional.id, fences an earlier producer with the same ID and ends its transaction. Call it once, before producing. Errors: after RD_KAFKA_RESP_ERR__TIMED_OUT, which is retriable, the next call continues; the error is fatal if this producer was fenced or lacks permissions. -1 waits for twice transaction.timeout.ms. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_init_transactions(rd_kafka_t *rk, int timeout_ms);

/** Begins a transaction, without a request. Messages can only be produced between this call and the end of the transaction. Error: RD_KAFKA_RESP_ERR__STATE if one is open already, or before rd_kafka_init_transactions() has succeeded. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_begin_transaction(rd_kafka_t *rk);

/** Adds the offsets of the next messages to read to the transaction: they are committed for the group if the transaction is. Partitions without a valid offset are left out. The metadata of the consumer must be current: a member that was replaced is refused. The call waits at most transaction.timeout.ms. The consumer must not commit automatically. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_send_offsets_to_transaction(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *offsets, const rd_kafka_consumer_group_metadata_t *cgmetadata, int timeout_ms);

/** Waits until all messages are delivered, then commits the transaction. It serves delivery reports by callback; if they are events, another thread must poll them. Errors: after a retriable one, call it again; the outcome is undecided until then. After one that requires an abort, call rd_kafka_abort_transaction(). -1 waits for twice transaction.timeout.ms. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_commit_transaction(rd_kafka_t *rk, int timeout_ms);

/** Removes the messages that were not sent from the queue, waits for those in flight, and aborts the transaction. It serves delivery reports as rd_kafka_commit_transaction() does. Error: after a retriable one, call it again. -1 waits for twice transaction.timeout.ms. */
RD_EXPORT
rd_kafka_error_t *rd_kafka_abort_transaction(rd_kafka_t *rk, int timeout_ms);

#ifdef __cplusplus
}
#endif

#endif
