//! The transactional producer: `rd_kafka_init_transactions` and its relatives.
//!
//! `ottla_core::txn` defines the behaviour; this module adds the deadlines of the calls. Commits and aborts serve
//! delivery reports while they wait, unless reports are events: then another thread must poll them.
//!
//! # Pitfalls
//!
//! - The other calls call no callback: bindings of other languages prepare only some
//!   calls for callbacks, and terminate the process in the others (`transactional_producer.c`).
//! - A served report may call any function, even the one that destroys the client: no lock is held meanwhile, and the
//!   call holds the client (`transactional_producer.c`).

use std::{ffi::c_int, future::Future, sync::Arc, time::Duration, time::Instant};

use ottla_core::{
    offsets::committed::GroupOffset,
    produce::transaction::{
        api::{FunctionNames, TransactionApi},
        error::{TransactionError, TransactionResult},
    },
    txn::{call::TransactionCalls, command::TransactionOffsets},
};

use crate::{
    client::handle::Client,
    ffi::{
        argument::{Part, Ref},
        codes::{RespErr, code},
        error::{ErrorObject, code_of},
        export,
        list::List,
        time::deadline,
    },
    group::metadata::GroupMetadata,
};

/// The additional time of calls about offsets: the cluster actor ends them by itself with a more precise error.
const GRACE: Duration = Duration::from_secs(1);
/// The time limit of `rd_kafka_begin_transaction`, which only waits for an I/O thread that a callback of another client
/// may block.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(10);

impl ErrorObject {
    fn of_transaction(error: &TransactionError) -> Self {
        let text = error.to_string();
        let code = code_of(error.error());
        match error {
            TransactionError::Fatal(_) => Self::fatal(code, text),
            _ => Self::new(code, text).classed(error.is_retriable(), error.requires_abort()),
        }
    }
}

impl Client {
    /// Returns the transactional functions, unless the client has none or has a fatal error.
    fn transactions(&self) -> Result<TransactionCalls, ErrorObject> {
        if !self.is_producer() {
            return Err(ErrorObject::new(code::_INVALID_ARG, "only a producer has transactions"));
        }
        // A client without a transactional ID has no such functions, whatever its state is.
        let is_configured = self.property("transactional.id").is_some_and(|id| !id.is_empty());
        if let Some((code, text)) = self.fatal().filter(|_| is_configured) {
            return Err(ErrorObject::fatal(code, text));
        }
        let Some(producer) = self.producer() else {
            return Err(ErrorObject::new(code::_DESTROY, "the producer is being destroyed"));
        };
        let transactions = producer.core().transactions.iter();
        transactions.for_each(|transactions| transactions.set_names(FunctionNames::Librdkafka));
        let calls = TransactionCalls::new(producer.core(), Arc::clone(producer.handle().commands()) as _);
        calls.map_err(|error| ErrorObject::of_transaction(&error))
    }

    /// Error: the reason why the client takes no message at present, whatever the message is.
    pub(crate) fn check_may_produce(&self) -> Result<(), RespErr> {
        if let Some((code, _)) = self.fatal() {
            return Err(if code == code::NO_ERROR { code::_STATE } else { code::_FATAL });
        }
        let transactions = self.producer().and_then(|producer| producer.core().transactions.as_ref());
        let may_send = transactions.is_none_or(|transactions| transactions.state().may_send());
        if may_send { Ok(()) } else { Err(code::_STATE) }
    }

    /// Runs one of the functions until its deadline.
    fn in_transaction(
        &self,
        run: impl FnOnce(&TransactionCalls) -> TransactionResult,
    ) -> Result<(), ErrorObject> {
        let calls = self.transactions()?;
        run(&calls).map_err(|error| {
            if let TransactionError::Fatal(cause) = &error {
                // The event that reports the error may arrive after this call has returned.
                self.set_fatal(code_of(cause), &cause.to_string());
            }
            ErrorObject::of_transaction(&error)
        })
    }

    /// Commits or aborts.
    fn end_transaction(
        &self,
        calls: &TransactionCalls,
        api: TransactionApi,
        timeout_ms: c_int,
    ) -> TransactionResult {
        let until = bounded(calls, timeout_ms);
        let late = || calls.timed_out(api);
        let call = calls.start(api)?;
        let result = self.wait_serving(call.run(), until).ok_or_else(late)?;
        call.end(result)
    }

    fn wait_for_call(
        &self,
        calls: &TransactionCalls,
        api: TransactionApi,
        until: Option<Instant>,
        call: impl Future<Output = TransactionResult>,
    ) -> TransactionResult {
        self.wait_quietly(call, until).unwrap_or_else(|| Err(calls.timed_out(api)))
    }
}

/// Returns the deadline of a call. -1 stands for twice `transaction.timeout.ms`, because no call may block without a
/// limit.
fn bounded(calls: &TransactionCalls, timeout_ms: c_int) -> Option<Instant> {
    deadline(timeout_ms).or_else(|| Instant::now().checked_add(2 * calls.transaction_timeout()))
}

/// Returns the client. Error: the handle is NULL or destroyed.
fn client_of<'a>(rk: Ref<'a, Client>) -> Result<&'a Client, ErrorObject> {
    rk.get().ok_or_else(|| ErrorObject::new(code::_INVALID_ARG, "no client was given"))
}

export!(
    #[on(rk, std::ptr::null_mut())]
    fn rd_kafka_init_transactions(rk: Ref<Client>, timeout_ms: c_int) -> *mut ErrorObject {
        ErrorObject::from_result(client_of(rk).and_then(|client| {
            client.in_transaction(|calls| {
                let until = bounded(calls, timeout_ms);
                client.wait_for_call(calls, TransactionApi::Init, until, calls.init())
            })
        }))
    }
);

export!(
    #[on(rk, std::ptr::null_mut())]
    fn rd_kafka_begin_transaction(rk: Ref<Client>) -> *mut ErrorObject {
        ErrorObject::from_result(client_of(rk).and_then(|client| {
            client.in_transaction(|calls| {
                let until = Instant::now().checked_add(BEGIN_TIMEOUT);
                client.wait_for_call(calls, TransactionApi::Begin, until, calls.begin())
            })
        }))
    }
);

export!(
    #[on(rk, std::ptr::null_mut())]
    fn rd_kafka_send_offsets_to_transaction(
        rk: Ref<Client>,
        offsets: Part<List>,
        cgmetadata: Ref<GroupMetadata>,
        timeout_ms: c_int,
    ) -> *mut ErrorObject {
        ErrorObject::from_result(client_of(rk).and_then(|client| {
            let (Some(list), Some(group)) = (List::passed(offsets), cgmetadata.get()) else {
                let text = "pass a list of offsets and the metadata of a group";
                return Err(ErrorObject::new(code::_INVALID_ARG, text));
            };
            // Elements without an offset are left out. If none has one, there is nothing to send in any state.
            let valid = list.elements().iter().filter(|element| element.offset >= 0);
            let offsets: Vec<GroupOffset> = valid.map(|element| element.group_offset()).collect();
            if offsets.is_empty() {
                return client.transactions().map(drop);
            }
            client.in_transaction(|calls| {
                let longest = calls.transaction_timeout();
                let timeout = u64::try_from(timeout_ms).map_or(longest, Duration::from_millis).min(longest);
                let call = TransactionOffsets { offsets, group: group.of_transaction(), timeout };
                let until = Instant::now().checked_add(timeout + GRACE);
                client.wait_for_call(calls, TransactionApi::SendOffsets, until, calls.send_offsets(call))
            })
        }))
    }
);

export!(
    #[on(rk, std::ptr::null_mut())]
    fn rd_kafka_commit_transaction(rk: Ref<Client>, timeout_ms: c_int) -> *mut ErrorObject {
        ErrorObject::from_result(client_of(rk).and_then(|client| {
            client.in_transaction(|calls| client.end_transaction(calls, TransactionApi::Commit, timeout_ms))
        }))
    }
);

export!(
    #[on(rk, std::ptr::null_mut())]
    fn rd_kafka_abort_transaction(rk: Ref<Client>, timeout_ms: c_int) -> *mut ErrorObject {
        ErrorObject::from_result(client_of(rk).and_then(|client| {
            client.in_transaction(|calls| client.end_transaction(calls, TransactionApi::Abort, timeout_ms))
        }))
    }
);
