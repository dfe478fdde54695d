//! What the answers to heartbeats mean to a member, whatever the kind of its group: consumer, share or streams.

use std::time::Duration;

use ottla_protocol::error_code::ErrorCode;

use crate::{
    backoff::Backoff,
    error::{Error, ErrorKind},
    rng::Rng,
};

/// The interval of heartbeats until the coordinator sets it, and if it sets none.
pub(crate) const DEFAULT_INTERVAL: Duration = Duration::from_secs(5);

/// Returns true if the coordinator of the group is another node.
pub(crate) const fn has_moved(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::COORDINATOR_NOT_AVAILABLE | ErrorCode::NOT_COORDINATOR)
}

/// Returns true if the coordinator would refuse the same heartbeat again.
pub(crate) const fn is_permanent(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::GROUP_ID_NOT_FOUND
            | ErrorCode::GROUP_MAX_SIZE_REACHED
            | ErrorCode::UNSUPPORTED_ASSIGNOR
            | ErrorCode::INVALID_REQUEST
            | ErrorCode::UNSUPPORTED_VERSION
            | ErrorCode::GROUP_AUTHORIZATION_FAILED
            | ErrorCode::INVALID_REGULAR_EXPRESSION
            | ErrorCode::INVALID_GROUP_ID
    )
}

/// Returns the interval that a response sets, in milliseconds.
pub(crate) fn heartbeat_interval(millis: i32) -> Duration {
    u64::try_from(millis).ok().filter(|millis| *millis > 0).map_or(DEFAULT_INTERVAL, Duration::from_millis)
}

/// Returns the wait before a heartbeat that failed is repeated: none if the coordinator moved just now.
pub(crate) fn retry_wait(error: &Error, backoff: &mut Backoff, rng: &mut Rng) -> Duration {
    let wait = backoff.next(rng);
    let has_moved = matches!(error.kind(), ErrorKind::Broker(code) if has_moved(code));
    if has_moved && backoff.failures() == 1 { Duration::ZERO } else { wait }
}
