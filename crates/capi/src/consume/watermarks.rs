//! The first and last offsets of partitions, and the offsets of timestamps.

use std::ffi::c_int;

use ottla_core::{
    error::{Error, ErrorKind},
    offsets::list_offsets::OffsetSpec,
};
use ottla_protocol::vocabulary::LeaderEpoch;

use crate::{
    client::handle::Client,
    consume::consumer::consumer_of,
    ffi::{
        argument::{PartMut, Place, Ref, Text},
        codes::{RespErr, code},
        error::code_of,
        export,
        list::List,
        types::{OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID},
    },
};

/// How often a broker may refuse to return an offset before the call fails.
const REFUSALS: u32 = 3;

/// Returns the code of an offset query without a result. Missing topics, partitions and leaders have one code; a leader
/// that can't be reached is retried until the timeout.
fn code_of_offset_query(error: &Error) -> RespErr {
    match error.kind() {
        ErrorKind::UnknownTopic => code::_UNKNOWN_PARTITION,
        ErrorKind::Resolve
        | ErrorKind::Connect
        | ErrorKind::Proxy
        | ErrorKind::Disconnected
        | ErrorKind::RequestTimedOut => code::_TIMED_OUT,
        _ => match code_of(error) {
            code::LEADER_NOT_AVAILABLE => code::_UNKNOWN_PARTITION,
            code => code,
        },
    }
}

/// Returns the code of an offset query that failed as a whole. Before a broker is known, there is nothing to wait for.
fn code_of_failed_query(client: &Client, error: &Error) -> RespErr {
    match code_of_offset_query(error) {
        code::_TIMED_OUT if client.learned_brokers().is_empty() => code::_ALL_BROKERS_DOWN,
        code => code,
    }
}

export!(
    #[on(rk, code::_FATAL)]
    fn rd_kafka_query_watermark_offsets(
        rk: Ref<Client>,
        topic: Text,
        partition: i32,
        low: Place<i64>,
        high: Place<i64>,
        timeout_ms: c_int,
    ) -> RespErr {
        let (Some(client), Some(topic)) = (rk.get(), topic.get()) else {
            return code::_INVALID_ARG;
        };
        let admin = match client.admin() {
            Ok(admin) => admin,
            Err(code) => return code,
        };
        let questions =
            [(&*topic, partition, OffsetSpec::Earliest), (&*topic, partition, OffsetSpec::Latest)];
        let results = match admin.list_offsets_up_to(&questions, client.query_timeout(timeout_ms), REFUSALS) {
            Ok(results) => results,
            Err(error) => return code_of_failed_query(client, &error),
        };
        for (result, to) in results.iter().zip([low, high]) {
            match result {
                Ok(result) => to.put(result.offset.unwrap_or(OFFSET_END)),
                Err(error) => return code_of_failed_query(client, error),
            }
        }
        code::NO_ERROR
    }
);

export!(
    #[on(rk, code::_FATAL)]
    fn rd_kafka_get_watermark_offsets(
        rk: Ref<Client>,
        topic: Text,
        partition: i32,
        low: Place<i64>,
        high: Place<i64>,
    ) -> RespErr {
        let (both, Some(topic)) = (consumer_of(rk), topic.get()) else { return code::_INVALID_ARG };
        // The watermarks of a partition that was not fetched are unknown, as all are in a producer; the call succeeds.
        let known = match both {
            Ok((_, consumer)) => consumer.cached_watermarks(&topic, partition),
            Err(code::_UNKNOWN_GROUP) => None,
            Err(code) => return code,
        };
        let (is_low, is_high) = known.unwrap_or((OFFSET_INVALID, OFFSET_INVALID));
        low.put(is_low);
        high.put(is_high);
        code::NO_ERROR
    }
);

/// Sets the error of each element of a query that failed as a whole, and returns the code of the query.
fn mark_failed(list: &mut List, code: RespErr) -> RespErr {
    let is_unsent = code == code::_ALL_BROKERS_DOWN;
    let each = if is_unsent { code::_IN_PROGRESS } else { code::NO_ERROR };
    list.elements_mut().iter_mut().for_each(|element| element.err = each);
    code
}

export!(
    #[on(rk, code::_FATAL)]
    fn rd_kafka_offsets_for_times(rk: Ref<Client>, offsets: PartMut<List>, timeout_ms: c_int) -> RespErr {
        let (Some(client), Some(list)) = (rk.get(), List::passed_mut(offsets)) else {
            return code::_INVALID_ARG;
        };
        let admin = match client.admin() {
            Ok(admin) => admin,
            Err(code) => return code,
        };
        let questions: Vec<_> = list
            .elements()
            .iter()
            .map(|element| {
                let spec = match element.offset {
                    OFFSET_BEGINNING => OffsetSpec::Earliest,
                    OFFSET_END => OffsetSpec::Latest,
                    time => OffsetSpec::Timestamp(time),
                };
                (element.name().to_owned(), element.partition, spec)
            })
            .collect();
        let questions: Vec<_> =
            questions.iter().map(|(topic, partition, spec)| (topic.as_str(), *partition, *spec)).collect();
        if questions.is_empty() {
            return code::_INVALID_ARG;
        }
        let results = match admin.list_offsets_up_to(&questions, client.query_timeout(timeout_ms), REFUSALS) {
            Ok(results) => results,
            Err(error) => return mark_failed(list, code_of_failed_query(client, &error)),
        };
        let has_result = results.iter().any(Result::is_ok);
        for (result, element) in results.iter().zip(list.elements_mut()) {
            match result {
                // -1 means that there is no such message; the interface represents it as the end.
                Ok(result) => {
                    (element.offset, element.err) = (result.offset.unwrap_or(OFFSET_END), code::NO_ERROR);
                    element.set_leader_epoch(LeaderEpoch::to_wire(result.leader_epoch));
                }
                // The element keeps the timestamp, so that the application can repeat the query.
                Err(error) => match error.kind() {
                    ErrorKind::UnknownTopic => element.err = code::UNKNOWN_TOPIC_OR_PART,
                    ErrorKind::UnknownPartition => element.err = code::_UNKNOWN_PARTITION,
                    _ if has_result => element.err = code_of(error),
                    // If no offset was found at all, the result of the call reports the error.
                    _ => element.err = code::NO_ERROR,
                },
            }
        }
        if has_result {
            return code::NO_ERROR;
        }
        // What a broker refused says more than what no broker was asked about.
        let is_missing =
            |error: &&Error| matches!(error.kind(), ErrorKind::UnknownTopic | ErrorKind::UnknownPartition);
        let errors = || results.iter().filter_map(|result| result.as_ref().err());
        let Some(error) = errors().find(|error| !is_missing(error)).or_else(|| errors().next()) else {
            return code::NO_ERROR;
        };
        match code_of_failed_query(client, error) {
            code::_ALL_BROKERS_DOWN => mark_failed(list, code::_ALL_BROKERS_DOWN),
            code => code,
        }
    }
);
