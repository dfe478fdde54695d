//! The interceptors of a client: functions of plug-ins that observe messages, requests and threads.

use std::{
    ffi::{c_char, c_int, c_void},
    sync::atomic::{AtomicU32, Ordering},
};

use crate::{
    client::{
        chain::{Chain, functions},
        contexts::Contexts,
        log::Log,
    },
    ffi::{
        codes::RespErr,
        gate::Gate,
        list::List,
        lock::Mutex,
        types::{rd_kafka_message_t, rd_kafka_t},
    },
};

pub(super) type Destroy = unsafe extern "C" fn(*const rd_kafka_t, *mut c_void) -> RespErr;
pub(super) type OfMessage =
    unsafe extern "C" fn(*const rd_kafka_t, *mut rd_kafka_message_t, *mut c_void) -> RespErr;
pub(super) type Commit =
    unsafe extern "C" fn(*const rd_kafka_t, *const List, RespErr, *mut c_void) -> RespErr;
pub(super) type RequestSent = unsafe extern "C" fn(
    *const rd_kafka_t,
    c_int,
    *const c_char,
    i32,
    i16,
    i16,
    i32,
    usize,
    *mut c_void,
) -> RespErr;
pub(super) type ResponseReceived = unsafe extern "C" fn(
    *const rd_kafka_t,
    c_int,
    *const c_char,
    i32,
    i16,
    i16,
    i32,
    usize,
    i64,
    RespErr,
    *mut c_void,
) -> RespErr;
pub(super) type OfThread =
    unsafe extern "C" fn(*const rd_kafka_t, c_int, *const c_char, *mut c_void) -> RespErr;
pub(super) type BrokerStateChange = unsafe extern "C" fn(
    *const rd_kafka_t,
    i32,
    *const c_char,
    *const c_char,
    c_int,
    *const c_char,
    *mut c_void,
) -> RespErr;

functions!(Destroy OfMessage Commit RequestSent ResponseReceived OfThread BrokerStateChange);

/// The interceptors of a client.
#[derive(Debug, Default)]
pub(crate) struct Interceptors {
    /// The kinds for which there are interceptors, as bits of [`kind`].
    pub(super) kinds: AtomicU32,
    pub(super) chains: Mutex<Chains>,
}

#[derive(Debug, Default)]
pub(super) struct Chains {
    pub(super) destroy: Chain<Destroy>,
    pub(super) send: Chain<OfMessage>,
    pub(super) acknowledgement: Chain<OfMessage>,
    pub(super) consume: Chain<OfMessage>,
    pub(super) commit: Chain<Commit>,
    pub(super) request_sent: Chain<RequestSent>,
    pub(super) response_received: Chain<ResponseReceived>,
    pub(super) thread_start: Chain<OfThread>,
    pub(super) thread_exit: Chain<OfThread>,
    pub(super) broker_state_change: Chain<BrokerStateChange>,
}

/// The gates for calls of interceptors of connections and threads. They are shut when the client ends.
#[derive(Debug, Default)]
pub(super) struct Gates {
    /// Requests, responses and broker states.
    pub(super) traffic: Gate,
    /// I/O threads.
    pub(super) threads: Gate,
}

/// Bits for the kinds of interceptors that are checked often.
pub(crate) mod kind {
    pub(crate) const SEND: u32 = 1;
    pub(crate) const ACKNOWLEDGEMENT: u32 = 2;
    pub(crate) const CONSUME: u32 = 4;
    pub(crate) const COMMIT: u32 = 8;
    pub(crate) const REQUEST_SENT: u32 = 16;
    pub(crate) const RESPONSE_RECEIVED: u32 = 32;
    pub(crate) const BROKER_STATE_CHANGE: u32 = 64;
    pub(crate) const THREAD: u32 = 128;
    pub(crate) const OTHER: u32 = 256;
    /// The kinds that need an observer of connections and I/O threads.
    pub(crate) const OBSERVED: u32 = REQUEST_SENT | RESPONSE_RECEIVED | BROKER_STATE_CHANGE | THREAD;
}

/// `RD_KAFKA_THREAD_BACKGROUND`.
pub(crate) const THREAD_BACKGROUND: c_int = 1;
/// `RD_KAFKA_THREAD_BROKER`.
pub(super) const THREAD_BROKER: c_int = 2;

impl Interceptors {
    /// Returns true if there are interceptors of one of these kinds.
    #[inline]
    pub(crate) fn has(&self, kinds: u32) -> bool {
        self.kinds.load(Ordering::Acquire) & kinds != 0
    }

    /// Logs the interceptors.
    pub(super) fn note(&self, log: &Log) {
        fn names<F>(kind: &'static str, chain: &Chain<F>) -> impl Iterator<Item = (&'static str, String)> {
            chain.0.iter().map(move |(name, ..)| (kind, name.clone())).collect::<Vec<_>>().into_iter()
        }
        if !log.wants(Contexts::INTERCEPTOR) {
            return;
        }
        let all: Vec<_> = {
            let chains = self.chains.lock();
            names("on_destroy", &chains.destroy)
                .chain(names("on_send", &chains.send))
                .chain(names("on_acknowledgement", &chains.acknowledgement))
                .chain(names("on_consume", &chains.consume))
                .chain(names("on_commit", &chains.commit))
                .chain(names("on_request_sent", &chains.request_sent))
                .chain(names("on_response_received", &chains.response_received))
                .chain(names("on_thread_start", &chains.thread_start))
                .chain(names("on_thread_exit", &chains.thread_exit))
                .chain(names("on_broker_state_change", &chains.broker_state_change))
                .collect()
        };
        for (kind, name) in all {
            log.debug(Contexts::INTERCEPTOR, c"INTERCEPT", || format!("Interceptor {name} is called {kind}"));
        }
    }

    pub(super) fn of_messages(&self, chain: impl FnOnce(&Chains) -> &Chain<OfMessage>) -> Chain<OfMessage> {
        chain(&self.chains.lock()).clone()
    }
}
