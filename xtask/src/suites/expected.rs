//! Tests of other projects that fail with Ottla's library for a reason, and suites that no package registry has.

/// The suite, the test, and the reason.
pub const EXPECTED: [(&str, &str, &str); 4] = [
    ("confluent-kafka-go", "TestConsumerLog", DEBUG_LINES),
    ("confluent-kafka-go", "TestAdminAPIs", TEXT),
    ("confluent-kafka-go-static", "TestConsumerLog", DEBUG_LINES),
    ("confluent-kafka-go-static", "TestAdminAPIs", TEXT),
];

const DEBUG_LINES: &str =
    "it waits for debug lines about the states of librdkafka's group (CGRPSTATE, CGRPQUERY)";
const TEXT: &str = "it compares the text of a timeout, `Failed while waiting for controller`";

/// What is not checked, and why.
pub const NOT_CHECKED: [(&str, &str); 3] = [
    (
        "confluent-kafka",
        "its packages on PyPI have no tests; tests/interop/python_with_our_library.sh runs its sources and its wheel",
    ),
    (
        "librdkafka",
        "its tests are in no package registry; cargo xtask abi compares both libraries call by call",
    ),
    ("confluent-kafka-dotnet", "its tests are in no package registry"),
];
