//! The consumer behind a handle.

use ottla::Consumer;

use crate::{
    client::handle::Client,
    ffi::{
        argument::Ref,
        codes::{RespErr, code},
    },
    group::state::Phase,
};

/// Returns the consumer behind a handle.
pub(crate) fn consumer_of(rk: Ref<'_, Client>) -> Result<(&Client, &Consumer), RespErr> {
    let client = rk.get().ok_or(code::_INVALID_ARG)?;
    if client.is_producer() {
        return Err(code::_UNKNOWN_GROUP);
    }
    Ok((client, client.consumer().ok_or(code::_ALL_BROKERS_DOWN)?))
}

/// Returns the consumer behind a handle, for calls that need a `group.id`.
pub(crate) fn group_consumer_of(rk: Ref<'_, Client>) -> Result<(&Client, &Consumer), RespErr> {
    let client = rk.get().ok_or(code::_INVALID_ARG)?;
    if !client.has_group() {
        return Err(code::_UNKNOWN_GROUP);
    }
    consumer_of(rk)
}

/// Returns the consumer behind a handle, for calls that need a consumer with a `group.id` that is not closed.
pub(crate) fn open_consumer_of(rk: Ref<'_, Client>) -> Result<(&Client, &Consumer), RespErr> {
    let both = group_consumer_of(rk)?;
    if both.0.membership().phase() == Phase::Closed { Err(code::_DESTROY) } else { Ok(both) }
}
