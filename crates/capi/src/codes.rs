//! The error codes of the interface: generated facts (code and name), and for our own codes what they mean.

/// Code, name without its prefix, meaning; an empty meaning is that of Kafka's own table.
pub(crate) const CODES: &[(i32, &str, &str)] = &[
    (-200, "_BEGIN", "first code of this library"),
    (-199, "_BAD_MSG", "A message or answer is malformed"),
    (-198, "_BAD_COMPRESSION", "Compressed data is invalid"),
    (-197, "_DESTROY", "The client or broker handle is being destroyed"),
    (-196, "_FAIL", "Communication with the broker failed"),
    (-195, "_TRANSPORT", "The broker connection failed"),
    (-194, "_CRIT_SYS_RESOURCE", "A system resource is exhausted"),
    (-193, "_RESOLVE", "Host name resolution failed"),
    (-192, "_MSG_TIMED_OUT", "Message timed out"),
    (-191, "_PARTITION_EOF", "No more messages in the partition at the moment"),
    (-190, "_UNKNOWN_PARTITION", "Unknown partition"),
    (-189, "_FS", "File or file system error"),
    (-188, "_UNKNOWN_TOPIC", "Unknown topic"),
    (-187, "_ALL_BROKERS_DOWN", "No broker can be reached"),
    (-186, "_INVALID_ARG", "Invalid argument or configuration"),
    (-185, "_TIMED_OUT", "Timed out"),
    (-184, "_QUEUE_FULL", "Queue full"),
    (-183, "_ISR_INSUFF", "Too few replicas are in sync"),
    (-182, "_NODE_UPDATE", "A broker node was updated"),
    (-181, "_SSL", "TLS error"),
    (-180, "_WAIT_COORD", "Waiting for the coordinator"),
    (-179, "_UNKNOWN_GROUP", "Unknown group"),
    (-178, "_IN_PROGRESS", "Operation in progress"),
    (-177, "_PREV_IN_PROGRESS", "An earlier operation is still in progress"),
    (-176, "_EXISTING_SUBSCRIPTION", "Conflicts with the present subscription"),
    (-175, "_ASSIGN_PARTITIONS", "Assign partitions"),
    (-174, "_REVOKE_PARTITIONS", "Revoke partitions"),
    (-173, "_CONFLICT", "Conflicting use"),
    (-172, "_STATE", "Not allowed in this state"),
    (-171, "_UNKNOWN_PROTOCOL", "Unknown protocol"),
    (-170, "_NOT_IMPLEMENTED", "Not implemented"),
    (-169, "_AUTHENTICATION", "Authentication failed"),
    (-168, "_NO_OFFSET", "No offset stored"),
    (-167, "_OUTDATED", "Outdated"),
    (-166, "_TIMED_OUT_QUEUE", "Timed out in the queue"),
    (-165, "_UNSUPPORTED_FEATURE", "The broker does not support this feature"),
    (-164, "_WAIT_CACHE", "Waiting for cached information"),
    (-163, "_INTR", "Interrupted"),
    (-162, "_KEY_SERIALIZATION", "The key could not be serialised"),
    (-161, "_VALUE_SERIALIZATION", "The value could not be serialised"),
    (-160, "_KEY_DESERIALIZATION", "The key could not be deserialised"),
    (-159, "_VALUE_DESERIALIZATION", "The value could not be deserialised"),
    (-158, "_PARTIAL", "Partial answer"),
    (-157, "_READ_ONLY", "Read-only"),
    (-156, "_NOENT", "No such entry"),
    (-155, "_UNDERFLOW", "Read beyond the end"),
    (-154, "_INVALID_TYPE", "Invalid type"),
    (-153, "_RETRY", "Try again"),
    (-152, "_PURGE_QUEUE", "Purged from the queue"),
    (-151, "_PURGE_INFLIGHT", "Purged in flight"),
    (-150, "_FATAL", "Fatal error"),
    (-149, "_INCONSISTENT", "Inconsistent state"),
    (-148, "_GAPLESS_GUARANTEE", "Messages would be missing in between"),
    (-147, "_MAX_POLL_EXCEEDED", "The application did not poll within max.poll.interval.ms"),
    (-146, "_UNKNOWN_BROKER", "Unknown broker"),
    (-145, "_NOT_CONFIGURED", "Not configured"),
    (-144, "_FENCED", "Fenced off by a newer instance"),
    (-143, "_APPLICATION", "Error of the application"),
    (-142, "_ASSIGNMENT_LOST", "The assignment was lost"),
    (-141, "_NOOP", "Nothing was done"),
    (-140, "_AUTO_OFFSET_RESET", "No offset to start from, and auto.offset.reset is error"),
    (-139, "_LOG_TRUNCATION", "The log of the partition was truncated"),
    (-138, "_INVALID_DIFFERENT_RECORD", "Another record of the batch was invalid"),
    (-137, "_DESTROY_BROKER", "The broker handle is being destroyed"),
    (-100, "_END", "last code of this library"),
    (-1, "UNKNOWN", "Unknown broker error"),
    (0, "NO_ERROR", "Success"),
    (1, "OFFSET_OUT_OF_RANGE", ""),
    (2, "INVALID_MSG", ""),
    (3, "UNKNOWN_TOPIC_OR_PART", ""),
    (4, "INVALID_MSG_SIZE", ""),
    (5, "LEADER_NOT_AVAILABLE", ""),
    (6, "NOT_LEADER_FOR_PARTITION", ""),
    (7, "REQUEST_TIMED_OUT", ""),
    (8, "BROKER_NOT_AVAILABLE", ""),
    (9, "REPLICA_NOT_AVAILABLE", ""),
    (10, "MSG_SIZE_TOO_LARGE", ""),
    (11, "STALE_CTRL_EPOCH", ""),
    (12, "OFFSET_METADATA_TOO_LARGE", ""),
    (13, "NETWORK_EXCEPTION", ""),
    (14, "COORDINATOR_LOAD_IN_PROGRESS", ""),
    (15, "COORDINATOR_NOT_AVAILABLE", ""),
    (16, "NOT_COORDINATOR", ""),
    (17, "TOPIC_EXCEPTION", ""),
    (18, "RECORD_LIST_TOO_LARGE", ""),
    (19, "NOT_ENOUGH_REPLICAS", ""),
    (20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", ""),
    (21, "INVALID_REQUIRED_ACKS", ""),
    (22, "ILLEGAL_GENERATION", ""),
    (23, "INCONSISTENT_GROUP_PROTOCOL", ""),
    (24, "INVALID_GROUP_ID", ""),
    (25, "UNKNOWN_MEMBER_ID", ""),
    (26, "INVALID_SESSION_TIMEOUT", ""),
    (27, "REBALANCE_IN_PROGRESS", ""),
    (28, "INVALID_COMMIT_OFFSET_SIZE", ""),
    (29, "TOPIC_AUTHORIZATION_FAILED", ""),
    (30, "GROUP_AUTHORIZATION_FAILED", ""),
    (31, "CLUSTER_AUTHORIZATION_FAILED", ""),
    (32, "INVALID_TIMESTAMP", ""),
    (33, "UNSUPPORTED_SASL_MECHANISM", ""),
    (34, "ILLEGAL_SASL_STATE", ""),
    (35, "UNSUPPORTED_VERSION", ""),
    (36, "TOPIC_ALREADY_EXISTS", ""),
    (37, "INVALID_PARTITIONS", ""),
    (38, "INVALID_REPLICATION_FACTOR", ""),
    (39, "INVALID_REPLICA_ASSIGNMENT", ""),
    (40, "INVALID_CONFIG", ""),
    (41, "NOT_CONTROLLER", ""),
    (42, "INVALID_REQUEST", ""),
    (43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", ""),
    (44, "POLICY_VIOLATION", ""),
    (45, "OUT_OF_ORDER_SEQUENCE_NUMBER", ""),
    (46, "DUPLICATE_SEQUENCE_NUMBER", ""),
    (47, "INVALID_PRODUCER_EPOCH", ""),
    (48, "INVALID_TXN_STATE", ""),
    (49, "INVALID_PRODUCER_ID_MAPPING", ""),
    (50, "INVALID_TRANSACTION_TIMEOUT", ""),
    (51, "CONCURRENT_TRANSACTIONS", ""),
    (52, "TRANSACTION_COORDINATOR_FENCED", ""),
    (53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", ""),
    (54, "SECURITY_DISABLED", ""),
    (55, "OPERATION_NOT_ATTEMPTED", ""),
    (56, "KAFKA_STORAGE_ERROR", ""),
    (57, "LOG_DIR_NOT_FOUND", ""),
    (58, "SASL_AUTHENTICATION_FAILED", ""),
    (59, "UNKNOWN_PRODUCER_ID", ""),
    (60, "REASSIGNMENT_IN_PROGRESS", ""),
    (61, "DELEGATION_TOKEN_AUTH_DISABLED", ""),
    (62, "DELEGATION_TOKEN_NOT_FOUND", ""),
    (63, "DELEGATION_TOKEN_OWNER_MISMATCH", ""),
    (64, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", ""),
    (65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", ""),
    (66, "DELEGATION_TOKEN_EXPIRED", ""),
    (67, "INVALID_PRINCIPAL_TYPE", ""),
    (68, "NON_EMPTY_GROUP", ""),
    (69, "GROUP_ID_NOT_FOUND", ""),
    (70, "FETCH_SESSION_ID_NOT_FOUND", ""),
    (71, "INVALID_FETCH_SESSION_EPOCH", ""),
    (72, "LISTENER_NOT_FOUND", ""),
    (73, "TOPIC_DELETION_DISABLED", ""),
    (74, "FENCED_LEADER_EPOCH", ""),
    (75, "UNKNOWN_LEADER_EPOCH", ""),
    (76, "UNSUPPORTED_COMPRESSION_TYPE", ""),
    (77, "STALE_BROKER_EPOCH", ""),
    (78, "OFFSET_NOT_AVAILABLE", ""),
    (79, "MEMBER_ID_REQUIRED", ""),
    (80, "PREFERRED_LEADER_NOT_AVAILABLE", ""),
    (81, "GROUP_MAX_SIZE_REACHED", ""),
    (82, "FENCED_INSTANCE_ID", ""),
    (83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", ""),
    (84, "ELECTION_NOT_NEEDED", ""),
    (85, "NO_REASSIGNMENT_IN_PROGRESS", ""),
    (86, "GROUP_SUBSCRIBED_TO_TOPIC", ""),
    (87, "INVALID_RECORD", ""),
    (88, "UNSTABLE_OFFSET_COMMIT", ""),
    (89, "THROTTLING_QUOTA_EXCEEDED", ""),
    (90, "PRODUCER_FENCED", ""),
    (91, "RESOURCE_NOT_FOUND", ""),
    (92, "DUPLICATE_RESOURCE", ""),
    (93, "UNACCEPTABLE_CREDENTIAL", ""),
    (94, "INCONSISTENT_VOTER_SET", ""),
    (95, "INVALID_UPDATE_VERSION", ""),
    (96, "FEATURE_UPDATE_FAILED", ""),
    (97, "PRINCIPAL_DESERIALIZATION_FAILURE", ""),
    (100, "UNKNOWN_TOPIC_ID", ""),
    (103, "INCONSISTENT_TOPIC_ID", ""),
    (110, "FENCED_MEMBER_EPOCH", ""),
    (111, "UNRELEASED_INSTANCE_ID", ""),
    (112, "UNSUPPORTED_ASSIGNOR", ""),
    (113, "STALE_MEMBER_EPOCH", ""),
    (114, "MISMATCHED_ENDPOINT_TYPE", ""),
    (115, "UNSUPPORTED_ENDPOINT_TYPE", ""),
    (116, "UNKNOWN_CONTROLLER_ID", ""),
    (117, "UNKNOWN_SUBSCRIPTION_ID", ""),
    (118, "TELEMETRY_TOO_LARGE", ""),
    (119, "INVALID_REGISTRATION", ""),
    (120, "TRANSACTION_ABORTABLE", ""),
    (121, "INVALID_RECORD_STATE", ""),
    (122, "SHARE_SESSION_NOT_FOUND", ""),
    (123, "INVALID_SHARE_SESSION_EPOCH", ""),
    (124, "FENCED_STATE_EPOCH", ""),
    (125, "INVALID_VOTER_KEY", ""),
    (126, "DUPLICATE_VOTER", ""),
    (127, "VOTER_NOT_FOUND", ""),
    (128, "INVALID_REGULAR_EXPRESSION", ""),
    (129, "REBOOTSTRAP_REQUIRED", ""),
    (130, "STREAMS_INVALID_TOPOLOGY", ""),
    (131, "STREAMS_INVALID_TOPOLOGY_EPOCH", ""),
    (132, "STREAMS_TOPOLOGY_FENCED", ""),
    (133, "SHARE_SESSION_LIMIT_REACHED", ""),
];

#[allow(dead_code, reason = "all of the interface's codes")]
/// The codes by name.
pub(crate) mod code {
    pub(crate) const _BEGIN: i32 = -200;
    pub(crate) const _BAD_MSG: i32 = -199;
    pub(crate) const _BAD_COMPRESSION: i32 = -198;
    pub(crate) const _DESTROY: i32 = -197;
    pub(crate) const _FAIL: i32 = -196;
    pub(crate) const _TRANSPORT: i32 = -195;
    pub(crate) const _CRIT_SYS_RESOURCE: i32 = -194;
    pub(crate) const _RESOLVE: i32 = -193;
    pub(crate) const _MSG_TIMED_OUT: i32 = -192;
    pub(crate) const _PARTITION_EOF: i32 = -191;
    pub(crate) const _UNKNOWN_PARTITION: i32 = -190;
    pub(crate) const _FS: i32 = -189;
    pub(crate) const _UNKNOWN_TOPIC: i32 = -188;
    pub(crate) const _ALL_BROKERS_DOWN: i32 = -187;
    pub(crate) const _INVALID_ARG: i32 = -186;
    pub(crate) const _TIMED_OUT: i32 = -185;
    pub(crate) const _QUEUE_FULL: i32 = -184;
    pub(crate) const _ISR_INSUFF: i32 = -183;
    pub(crate) const _NODE_UPDATE: i32 = -182;
    pub(crate) const _SSL: i32 = -181;
    pub(crate) const _WAIT_COORD: i32 = -180;
    pub(crate) const _UNKNOWN_GROUP: i32 = -179;
    pub(crate) const _IN_PROGRESS: i32 = -178;
    pub(crate) const _PREV_IN_PROGRESS: i32 = -177;
    pub(crate) const _EXISTING_SUBSCRIPTION: i32 = -176;
    pub(crate) const _ASSIGN_PARTITIONS: i32 = -175;
    pub(crate) const _REVOKE_PARTITIONS: i32 = -174;
    pub(crate) const _CONFLICT: i32 = -173;
    pub(crate) const _STATE: i32 = -172;
    pub(crate) const _UNKNOWN_PROTOCOL: i32 = -171;
    pub(crate) const _NOT_IMPLEMENTED: i32 = -170;
    pub(crate) const _AUTHENTICATION: i32 = -169;
    pub(crate) const _NO_OFFSET: i32 = -168;
    pub(crate) const _OUTDATED: i32 = -167;
    pub(crate) const _TIMED_OUT_QUEUE: i32 = -166;
    pub(crate) const _UNSUPPORTED_FEATURE: i32 = -165;
    pub(crate) const _WAIT_CACHE: i32 = -164;
    pub(crate) const _INTR: i32 = -163;
    pub(crate) const _KEY_SERIALIZATION: i32 = -162;
    pub(crate) const _VALUE_SERIALIZATION: i32 = -161;
    pub(crate) const _KEY_DESERIALIZATION: i32 = -160;
    pub(crate) const _VALUE_DESERIALIZATION: i32 = -159;
    pub(crate) const _PARTIAL: i32 = -158;
    pub(crate) const _READ_ONLY: i32 = -157;
    pub(crate) const _NOENT: i32 = -156;
    pub(crate) const _UNDERFLOW: i32 = -155;
    pub(crate) const _INVALID_TYPE: i32 = -154;
    pub(crate) const _RETRY: i32 = -153;
    pub(crate) const _PURGE_QUEUE: i32 = -152;
    pub(crate) const _PURGE_INFLIGHT: i32 = -151;
    pub(crate) const _FATAL: i32 = -150;
    pub(crate) const _INCONSISTENT: i32 = -149;
    pub(crate) const _GAPLESS_GUARANTEE: i32 = -148;
    pub(crate) const _MAX_POLL_EXCEEDED: i32 = -147;
    pub(crate) const _UNKNOWN_BROKER: i32 = -146;
    pub(crate) const _NOT_CONFIGURED: i32 = -145;
    pub(crate) const _FENCED: i32 = -144;
    pub(crate) const _APPLICATION: i32 = -143;
    pub(crate) const _ASSIGNMENT_LOST: i32 = -142;
    pub(crate) const _NOOP: i32 = -141;
    pub(crate) const _AUTO_OFFSET_RESET: i32 = -140;
    pub(crate) const _LOG_TRUNCATION: i32 = -139;
    pub(crate) const _INVALID_DIFFERENT_RECORD: i32 = -138;
    pub(crate) const _DESTROY_BROKER: i32 = -137;
    pub(crate) const _END: i32 = -100;
    pub(crate) const UNKNOWN: i32 = -1;
    pub(crate) const NO_ERROR: i32 = 0;
    pub(crate) const OFFSET_OUT_OF_RANGE: i32 = 1;
    pub(crate) const INVALID_MSG: i32 = 2;
    pub(crate) const UNKNOWN_TOPIC_OR_PART: i32 = 3;
    pub(crate) const INVALID_MSG_SIZE: i32 = 4;
    pub(crate) const LEADER_NOT_AVAILABLE: i32 = 5;
    pub(crate) const NOT_LEADER_FOR_PARTITION: i32 = 6;
    pub(crate) const REQUEST_TIMED_OUT: i32 = 7;
    pub(crate) const BROKER_NOT_AVAILABLE: i32 = 8;
    pub(crate) const REPLICA_NOT_AVAILABLE: i32 = 9;
    pub(crate) const MSG_SIZE_TOO_LARGE: i32 = 10;
    pub(crate) const STALE_CTRL_EPOCH: i32 = 11;
    pub(crate) const OFFSET_METADATA_TOO_LARGE: i32 = 12;
    pub(crate) const NETWORK_EXCEPTION: i32 = 13;
    pub(crate) const COORDINATOR_LOAD_IN_PROGRESS: i32 = 14;
    pub(crate) const COORDINATOR_NOT_AVAILABLE: i32 = 15;
    pub(crate) const NOT_COORDINATOR: i32 = 16;
    pub(crate) const TOPIC_EXCEPTION: i32 = 17;
    pub(crate) const RECORD_LIST_TOO_LARGE: i32 = 18;
    pub(crate) const NOT_ENOUGH_REPLICAS: i32 = 19;
    pub(crate) const NOT_ENOUGH_REPLICAS_AFTER_APPEND: i32 = 20;
    pub(crate) const INVALID_REQUIRED_ACKS: i32 = 21;
    pub(crate) const ILLEGAL_GENERATION: i32 = 22;
    pub(crate) const INCONSISTENT_GROUP_PROTOCOL: i32 = 23;
    pub(crate) const INVALID_GROUP_ID: i32 = 24;
    pub(crate) const UNKNOWN_MEMBER_ID: i32 = 25;
    pub(crate) const INVALID_SESSION_TIMEOUT: i32 = 26;
    pub(crate) const REBALANCE_IN_PROGRESS: i32 = 27;
    pub(crate) const INVALID_COMMIT_OFFSET_SIZE: i32 = 28;
    pub(crate) const TOPIC_AUTHORIZATION_FAILED: i32 = 29;
    pub(crate) const GROUP_AUTHORIZATION_FAILED: i32 = 30;
    pub(crate) const CLUSTER_AUTHORIZATION_FAILED: i32 = 31;
    pub(crate) const INVALID_TIMESTAMP: i32 = 32;
    pub(crate) const UNSUPPORTED_SASL_MECHANISM: i32 = 33;
    pub(crate) const ILLEGAL_SASL_STATE: i32 = 34;
    pub(crate) const UNSUPPORTED_VERSION: i32 = 35;
    pub(crate) const TOPIC_ALREADY_EXISTS: i32 = 36;
    pub(crate) const INVALID_PARTITIONS: i32 = 37;
    pub(crate) const INVALID_REPLICATION_FACTOR: i32 = 38;
    pub(crate) const INVALID_REPLICA_ASSIGNMENT: i32 = 39;
    pub(crate) const INVALID_CONFIG: i32 = 40;
    pub(crate) const NOT_CONTROLLER: i32 = 41;
    pub(crate) const INVALID_REQUEST: i32 = 42;
    pub(crate) const UNSUPPORTED_FOR_MESSAGE_FORMAT: i32 = 43;
    pub(crate) const POLICY_VIOLATION: i32 = 44;
    pub(crate) const OUT_OF_ORDER_SEQUENCE_NUMBER: i32 = 45;
    pub(crate) const DUPLICATE_SEQUENCE_NUMBER: i32 = 46;
    pub(crate) const INVALID_PRODUCER_EPOCH: i32 = 47;
    pub(crate) const INVALID_TXN_STATE: i32 = 48;
    pub(crate) const INVALID_PRODUCER_ID_MAPPING: i32 = 49;
    pub(crate) const INVALID_TRANSACTION_TIMEOUT: i32 = 50;
    pub(crate) const CONCURRENT_TRANSACTIONS: i32 = 51;
    pub(crate) const TRANSACTION_COORDINATOR_FENCED: i32 = 52;
    pub(crate) const TRANSACTIONAL_ID_AUTHORIZATION_FAILED: i32 = 53;
    pub(crate) const SECURITY_DISABLED: i32 = 54;
    pub(crate) const OPERATION_NOT_ATTEMPTED: i32 = 55;
    pub(crate) const KAFKA_STORAGE_ERROR: i32 = 56;
    pub(crate) const LOG_DIR_NOT_FOUND: i32 = 57;
    pub(crate) const SASL_AUTHENTICATION_FAILED: i32 = 58;
    pub(crate) const UNKNOWN_PRODUCER_ID: i32 = 59;
    pub(crate) const REASSIGNMENT_IN_PROGRESS: i32 = 60;
    pub(crate) const DELEGATION_TOKEN_AUTH_DISABLED: i32 = 61;
    pub(crate) const DELEGATION_TOKEN_NOT_FOUND: i32 = 62;
    pub(crate) const DELEGATION_TOKEN_OWNER_MISMATCH: i32 = 63;
    pub(crate) const DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: i32 = 64;
    pub(crate) const DELEGATION_TOKEN_AUTHORIZATION_FAILED: i32 = 65;
    pub(crate) const DELEGATION_TOKEN_EXPIRED: i32 = 66;
    pub(crate) const INVALID_PRINCIPAL_TYPE: i32 = 67;
    pub(crate) const NON_EMPTY_GROUP: i32 = 68;
    pub(crate) const GROUP_ID_NOT_FOUND: i32 = 69;
    pub(crate) const FETCH_SESSION_ID_NOT_FOUND: i32 = 70;
    pub(crate) const INVALID_FETCH_SESSION_EPOCH: i32 = 71;
    pub(crate) const LISTENER_NOT_FOUND: i32 = 72;
    pub(crate) const TOPIC_DELETION_DISABLED: i32 = 73;
    pub(crate) const FENCED_LEADER_EPOCH: i32 = 74;
    pub(crate) const UNKNOWN_LEADER_EPOCH: i32 = 75;
    pub(crate) const UNSUPPORTED_COMPRESSION_TYPE: i32 = 76;
    pub(crate) const STALE_BROKER_EPOCH: i32 = 77;
    pub(crate) const OFFSET_NOT_AVAILABLE: i32 = 78;
    pub(crate) const MEMBER_ID_REQUIRED: i32 = 79;
    pub(crate) const PREFERRED_LEADER_NOT_AVAILABLE: i32 = 80;
    pub(crate) const GROUP_MAX_SIZE_REACHED: i32 = 81;
    pub(crate) const FENCED_INSTANCE_ID: i32 = 82;
    pub(crate) const ELIGIBLE_LEADERS_NOT_AVAILABLE: i32 = 83;
    pub(crate) const ELECTION_NOT_NEEDED: i32 = 84;
    pub(crate) const NO_REASSIGNMENT_IN_PROGRESS: i32 = 85;
    pub(crate) const GROUP_SUBSCRIBED_TO_TOPIC: i32 = 86;
    pub(crate) const INVALID_RECORD: i32 = 87;
    pub(crate) const UNSTABLE_OFFSET_COMMIT: i32 = 88;
    pub(crate) const THROTTLING_QUOTA_EXCEEDED: i32 = 89;
    pub(crate) const PRODUCER_FENCED: i32 = 90;
    pub(crate) const RESOURCE_NOT_FOUND: i32 = 91;
    pub(crate) const DUPLICATE_RESOURCE: i32 = 92;
    pub(crate) const UNACCEPTABLE_CREDENTIAL: i32 = 93;
    pub(crate) const INCONSISTENT_VOTER_SET: i32 = 94;
    pub(crate) const INVALID_UPDATE_VERSION: i32 = 95;
    pub(crate) const FEATURE_UPDATE_FAILED: i32 = 96;
    pub(crate) const PRINCIPAL_DESERIALIZATION_FAILURE: i32 = 97;
    pub(crate) const UNKNOWN_TOPIC_ID: i32 = 100;
    pub(crate) const INCONSISTENT_TOPIC_ID: i32 = 103;
    pub(crate) const FENCED_MEMBER_EPOCH: i32 = 110;
    pub(crate) const UNRELEASED_INSTANCE_ID: i32 = 111;
    pub(crate) const UNSUPPORTED_ASSIGNOR: i32 = 112;
    pub(crate) const STALE_MEMBER_EPOCH: i32 = 113;
    pub(crate) const MISMATCHED_ENDPOINT_TYPE: i32 = 114;
    pub(crate) const UNSUPPORTED_ENDPOINT_TYPE: i32 = 115;
    pub(crate) const UNKNOWN_CONTROLLER_ID: i32 = 116;
    pub(crate) const UNKNOWN_SUBSCRIPTION_ID: i32 = 117;
    pub(crate) const TELEMETRY_TOO_LARGE: i32 = 118;
    pub(crate) const INVALID_REGISTRATION: i32 = 119;
    pub(crate) const TRANSACTION_ABORTABLE: i32 = 120;
    pub(crate) const INVALID_RECORD_STATE: i32 = 121;
    pub(crate) const SHARE_SESSION_NOT_FOUND: i32 = 122;
    pub(crate) const INVALID_SHARE_SESSION_EPOCH: i32 = 123;
    pub(crate) const FENCED_STATE_EPOCH: i32 = 124;
    pub(crate) const INVALID_VOTER_KEY: i32 = 125;
    pub(crate) const DUPLICATE_VOTER: i32 = 126;
    pub(crate) const VOTER_NOT_FOUND: i32 = 127;
    pub(crate) const INVALID_REGULAR_EXPRESSION: i32 = 128;
    pub(crate) const REBOOTSTRAP_REQUIRED: i32 = 129;
    pub(crate) const STREAMS_INVALID_TOPOLOGY: i32 = 130;
    pub(crate) const STREAMS_INVALID_TOPOLOGY_EPOCH: i32 = 131;
    pub(crate) const STREAMS_TOPOLOGY_FENCED: i32 = 132;
    pub(crate) const SHARE_SESSION_LIMIT_REACHED: i32 = 133;
    pub(crate) const END_ALL: i32 = 134;
}
