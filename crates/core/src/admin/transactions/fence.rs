//! Fences the producer of a transactional ID: its epoch rises, and its open transaction is aborted.

use std::{sync::Arc, time::Duration};

use ottla_protocol::generated::init_producer_id::InitProducerIdRequest;

use crate::{
    admin::{AdminCall, check, millis, one_result::OneResult},
    completion::Completion,
    contract::route::{CoordinatorKey, Route},
    error::Error,
};

/// The producer ID and epoch of a transactional ID after its producer was fenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FencedProducer {
    /// The producer ID.
    pub producer_id: i64,
    /// The epoch that fences the producer.
    pub producer_epoch: i16,
}

/// Fences the producer of a transactional ID. The coordinator creates the ID if it does not know it.
pub fn fence_producer(
    transactional_id: impl Into<Arc<str>>,
    timeout: Duration,
    done: Completion<Result<FencedProducer, Error>>,
) -> AdminCall {
    let id: Arc<str> = transactional_id.into();
    let route = Route::Coordinator(CoordinatorKey::transaction(Arc::clone(&id)));
    let request = move |_, _| InitProducerIdRequest {
        transactional_id: Some(id.to_string()),
        // Brokers limit the timeout of transactions; there is none afterwards.
        transaction_timeout_ms: millis(timeout).clamp(1, 60_000),
        ..InitProducerIdRequest::default()
    };
    let call = OneResult::new(route, request, |response, _| {
        check(response.error_code, None)?;
        Ok(FencedProducer { producer_id: response.producer_id, producer_epoch: response.producer_epoch })
    });
    call.call(timeout, done)
}
