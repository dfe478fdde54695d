//! The metrics that a client pushes, compressed or not: the first byte is the codec, the second says whether the others have to be
//! compressed.

use ottla_embedded_broker::{BrokerId, ClientTelemetry, Cluster, ClusterOptions};
use ottla_protocol::{
    compress::{Compression, compress},
    generated::push_telemetry::PushTelemetryRequest,
    time::Instant,
    uuid::Uuid,
};

use super::{broker::framed, bytes::Bytes};

const NOW: Instant = Instant::from_nanos(1_000_000_000);

/// Runs the target.
pub fn run(input: &[u8]) {
    let mut input = Bytes::new(input);
    let (codec, is_compressed) = (input.byte(), input.byte() & 1 == 1);
    let metrics = match Compression::from_id(codec % 8) {
        Some(codec) if !is_compressed => {
            let mut packed = Vec::new();
            let bytes = input.rest();
            compress(codec, None, [bytes].into_iter(), &mut packed).expect("everything can be compressed");
            packed
        }
        _ => input.rest().to_vec(),
    };
    let options =
        ClusterOptions { brokers: 1, client_telemetry: ClientTelemetry::Mock, ..Default::default() };
    let mut cluster = Cluster::new(options);
    let connection = cluster.open(NOW, BrokerId(1)).expect("the broker is up");
    let push = PushTelemetryRequest {
        client_instance_id: Uuid([7; 16]),
        compression_type: (codec % 8).cast_signed(),
        metrics,
        ..Default::default()
    };
    let mut body = Vec::new();
    push.encode(0, &mut body).expect("the request can be encoded");
    cluster.handle_bytes(NOW, connection, &framed(72, 0, 1, &body));
    assert!(cluster.poll_output().is_some(), "the broker responds");
    for push in cluster.control().telemetry().take_pushes() {
        let (points, attributes) = (push.points(), push.resource_attributes());
        assert!(points.len() + attributes.len() <= push.metrics.len(), "each has a byte at least");
    }
}
