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
