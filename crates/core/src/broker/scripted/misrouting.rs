//! Connections that state the IDs of the cluster and the node that they are for (KIP-1242).

use std::{io::IoSlice, sync::Arc};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::api_versions::{ApiVersionsRequest, ApiVersionsResponse},
    header::RequestHeader,
    primitive::Reader,
    vocabulary::NodeId,
};

use super::at;
use crate::{
    broker::of_requests,
    connection::{Connection, ConnectionOutput, ConnectionSettings, buffer::BufferPool},
    error::{Error, ErrorKind},
    rng::Rng,
};

fn connection(node: Option<NodeId>) -> Connection {
    let (settings, buffers) = (Arc::new(ConnectionSettings::default()), BufferPool::default());
    Connection::new(settings, "b".into(), 9092, node, buffers, Rng::from_seed(1))
}

/// Returns the first request of a connection, which is written completely.
fn first_request(connection: &mut Connection) -> (RequestHeader, ApiVersionsRequest) {
    connection.want(at(1));
    while let Some(output) = connection.poll_output() {
        match output {
            ConnectionOutput::Resolve { port, .. } => {
                connection.handle_resolved(at(1), Ok(vec![([127, 0, 0, 1], port).into()]));
            }
            ConnectionOutput::Connect(_) => connection.handle_connected(at(1)),
            _ => {}
        }
    }
    let mut slices = [IoSlice::new(&[]); 4];
    let count = connection.unsent(&mut slices);
    let bytes: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.to_vec()).collect();
    connection.handle_written(at(1), bytes.len(), &mut Vec::new());
    let mut reader = Reader::new(&bytes[4..]);
    let header = RequestHeader::decode(&mut reader).expect("a header");
    assert_eq!(header.api_key, ApiKey::ApiVersions as i16);
    let request = ApiVersionsRequest::decode(&mut reader, header.api_version).expect("it can be decoded");
    (header, request)
}

/// Responds with an error in the version of the request, and returns why the connection was closed.
fn refuse(connection: &mut Connection, header: &RequestHeader, error_code: ErrorCode) -> Option<Error> {
    let mut body = Vec::new();
    let response = ApiVersionsResponse { error_code, ..Default::default() };
    response.encode(header.api_version, &mut body).expect("it can be encoded");
    let mut frame = ((body.len() + 4) as u32).to_be_bytes().to_vec();
    frame.extend(header.correlation_id.to_be_bytes());
    frame.extend(body);
    connection.read_space()[..frame.len()].copy_from_slice(&frame);
    connection.handle_read(at(2), frame.len());
    assert!(connection.next_response(at(2)).is_none());
    std::iter::from_fn(|| connection.poll_output()).find_map(|output| match output {
        ConnectionOutput::Down { error, .. } => Some(error),
        _ => None,
    })
}

#[test]
fn connection_to_a_node_states_the_ids_once_both_are_known() {
    let known: Option<Arc<str>> = Some("c".into());
    for (node, cluster) in [(None, None), (NodeId::from_wire(3), None), (None, known)] {
        let mut connection = connection(node);
        cluster.into_iter().for_each(|id| connection.set_cluster_id(at(0), id));
        let (header, request) = first_request(&mut connection);
        assert_eq!(header.api_version, 5);
        assert_eq!((request.cluster_id, request.node_id), (None, -1), "{node:?}");
    }
    let mut connection = connection(NodeId::from_wire(3));
    connection.set_cluster_id(at(0), "c".into());
    let (_, request) = first_request(&mut connection);
    assert_eq!((request.cluster_id.as_deref(), request.node_id), (Some("c"), 3));
}

#[test]
fn refused_connection_names_the_node_and_the_cluster() {
    let mut connection = connection(NodeId::from_wire(3));
    connection.set_cluster_id(at(0), "c".into());
    let (header, _) = first_request(&mut connection);
    let error = refuse(&mut connection, &header, ErrorCode::REBOOTSTRAP_REQUIRED).expect("it is closed");
    assert_eq!(error.kind(), ErrorKind::Broker(ErrorCode::REBOOTSTRAP_REQUIRED));
    assert!(error.to_string().contains("node 3 of cluster \"c\""), "{error}");
    assert!(!connection.is_ready());
}

#[test]
fn older_broker_is_asked_again_without_the_ids() {
    let mut connection = connection(NodeId::from_wire(3));
    connection.set_cluster_id(at(0), "c".into());
    let (header, _) = first_request(&mut connection);
    let newer = RequestHeader { api_version: 0, ..header };
    assert_eq!(refuse(&mut connection, &newer, ErrorCode::UNSUPPORTED_VERSION), None);
    let (header, request) = first_request(&mut connection);
    assert_eq!((header.api_version, request.cluster_id, request.node_id), (0, None, -1));
}

#[test]
fn connection_for_a_cluster_ends_when_another_one_is_known() {
    for (first, ends) in [(None, false), (Some("c"), false), (Some("d"), true)] {
        let mut connection = connection(NodeId::from_wire(3));
        if let Some(first) = first {
            connection.set_cluster_id(at(0), first.into());
        }
        first_request(&mut connection);
        connection.set_cluster_id(at(1), "c".into());
        let ended = std::iter::from_fn(|| connection.poll_output())
            .any(|output| matches!(output, ConnectionOutput::Down { .. }));
        assert_eq!(ended, ends, "{first:?}");
        if ends {
            connection.handle_timeout(at(10_000));
            let (_, request) = first_request(&mut connection);
            assert_eq!(request.cluster_id.as_deref(), Some("c"));
        }
    }
}

#[test]
fn requests_of_a_refused_connection_are_lost_and_not_refused() {
    let refusal = Error::broker(ErrorCode::REBOOTSTRAP_REQUIRED, Some("elsewhere")).with_api("ApiVersions");
    let lost = of_requests(&refusal);
    assert_eq!(lost.kind(), ErrorKind::Disconnected);
    assert!(lost.to_string().contains("elsewhere"), "{lost}");
    let other = Error::new(ErrorKind::Authentication, "");
    assert_eq!(of_requests(&other), other);
}
