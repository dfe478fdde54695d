//! The names of requests in the statistics, and those that are counted from the start.

use ottla_protocol::api::ApiKey;

/// Requests of every client, under librdkafka's names.
const EVERY: &[&str] = &[
    "ApiVersion",
    "DescribeCluster",
    "DescribeProducers",
    "DescribeTransactions",
    "FindCoordinator",
    "GetTelemetrySubscriptions",
    "ListOffsets",
    "ListTransactions",
    "Metadata",
    "PushTelemetry",
    "SaslAuthenticate",
    "SaslHandshake",
    "ShareAcknowledge",
    "ShareFetch",
    "ShareGroupHeartbeat",
];
/// Requests of producers.
const PRODUCER: &[&str] =
    &["AddOffsetsToTxn", "AddPartitionsToTxn", "EndTxn", "InitProducerId", "Produce", "TxnOffsetCommit"];
/// Requests of consumers.
const CONSUMER: &[&str] =
    &["Fetch", "Heartbeat", "JoinGroup", "LeaveGroup", "OffsetCommit", "OffsetFetch", "SyncGroup"];

/// Returns the requests that are listed for a kind of client even where none was sent.
pub(super) fn of(kind: &str) -> impl Iterator<Item = &'static str> {
    let own = match kind {
        "producer" => PRODUCER,
        "consumer" => CONSUMER,
        _ => &[],
    };
    EVERY.iter().chain(own).copied()
}

/// Returns a request's name in the statistics. Dashboards know ApiVersions by librdkafka's name.
pub(crate) fn name(api: ApiKey) -> &'static str {
    match api {
        ApiKey::ApiVersions => "ApiVersion",
        api => api.name(),
    }
}
