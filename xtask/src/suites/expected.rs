//! Tests of other projects that fail with Ottla's library for a reason, and suites that no package registry has.

/// The suite, the test, and the reason.
pub const EXPECTED: [(&str, &str, &str); 0] = [];

/// What is not checked, and why.
pub const NOT_CHECKED: [(&str, &str); 4] = [
    (
        "confluent-kafka",
        "its packages on PyPI have no tests; tests/interop/python_with_our_library.sh runs its sources and its wheel",
    ),
    ("@confluentinc/kafka-javascript", "its package on npm has no tests"),
    (
        "librdkafka",
        "its tests are in no package registry; cargo xtask abi compares both libraries call by call",
    ),
    ("confluent-kafka-dotnet", "its tests are in no package registry"),
];
