//! The names of the result events of admin calls.

use std::ffi::{CStr, c_int};

use super::ottla;

/// The names of result events, and of their calls.
const KINDS: [(c_int, &CStr); 24] = [
    (100, c"CreateTopicsResult"),
    (101, c"DeleteTopicsResult"),
    (102, c"CreatePartitionsResult"),
    (103, c"AlterConfigsResult"),
    (104, c"DescribeConfigsResult"),
    (105, c"DeleteRecordsResult"),
    (106, c"DeleteGroupsResult"),
    (107, c"DeleteConsumerGroupOffsetsResult"),
    (1 << 10, c"CreateAclsResult"),
    (1 << 11, c"DescribeAclsResult"),
    (1 << 12, c"DeleteAclsResult"),
    (1 << 13, c"ListConsumerGroupsResult"),
    (1 << 14, c"DescribeConsumerGroupsResult"),
    (1 << 15, c"ListConsumerGroupOffsetsResult"),
    (1 << 16, c"AlterConsumerGroupOffsetsResult"),
    (1 << 17, c"IncrementalAlterConfigsResult"),
    (1 << 18, c"DescribeUserScramCredentials"),
    (1 << 19, c"AlterUserScramCredentials"),
    (1 << 20, c"DescribeTopicsResult"),
    (1 << 21, c"DescribeClusterResult"),
    (1 << 22, c"ListOffsetsResult"),
    (1 << 23, c"ElectLeadersResult"),
    (ottla::RESULT, ottla::RESULT_NAME),
    (0, c"(NONE)"),
];

/// Returns the name of a result event.
pub(crate) fn of_result(kind: c_int) -> Option<&'static CStr> {
    KINDS.iter().find(|(known, _)| *known == kind).map(|(_, name)| *name)
}
