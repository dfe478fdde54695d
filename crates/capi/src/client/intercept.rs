//! Calling the interceptors of a client, and adding them.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    io,
    sync::{Arc, Weak, atomic::Ordering},
};

use crate::{
    client::{
        handle::Client,
        interceptors::{
            BrokerStateChange, Commit, Destroy, OfMessage, OfThread, RequestSent, ResponseReceived,
            THREAD_BROKER, kind,
        },
    },
    ffi::{
        argument::{Ref, Text},
        boundary::guarded_for,
        cancel::Uncancelled,
        codes::{RespErr, code},
        export,
        gate::Gate,
        list::List,
        lock::assert_none_held,
        types::rd_kafka_message_t,
    },
    produce::acknowledgements::Acknowledged,
};

/// The on_acknowledgement interceptors of a producer, for the thread that calls them.
pub(super) struct AcknowledgementInterceptors(pub(super) Weak<Client>);

impl Acknowledged for AcknowledgementInterceptors {
    fn acknowledged(&self, message: *mut rd_kafka_message_t, gate: &Gate) {
        if let Some(client) = self.0.upgrade() {
            guarded_for(Arc::as_ptr(&client), (), || client.intercept_acknowledged(message, gate));
        }
    }

    fn thread_changed(&self, starts: bool, gate: &Gate) {
        let Some(_pass) = gate.enter("on_thread_start or on_thread_exit") else { return };
        if let Some(client) = self.0.upgrade() {
            client.intercept_thread(starts, THREAD_BROKER, c"acknowledgements", gate);
        }
    }

    fn is_without_thread(&self, error: &io::Error) {
        if let Some(client) = self.0.upgrade() {
            let line = format!("can't start the thread of on_acknowledgement interceptors: {error}");
            client.log(3, c"INTERCEPT", &line);
        }
    }
}

impl Client {
    /// Passes an acknowledged message to the interceptors, on their thread. One that destroys the client is the last.
    #[cold]
    fn intercept_acknowledged(&self, message: *mut rd_kafka_message_t, gate: &Gate) {
        let Some(_pass) = gate.enter("on_acknowledgement") else { return };
        let chain = self.interceptors().of_messages(|chains| &chains.acknowledgement);
        let _uncancelled = Uncancelled::begin();
        assert_none_held("an interceptor");
        for (name, function, opaque) in &chain.0 {
            // SAFETY: the plug-in's function gets a message that lives until it returns.
            let code = unsafe { function(self.as_c(), message, opaque.0) };
            if !gate.is_open() {
                return;
            }
            self.intercepted(name, code);
        }
    }

    /// Calls the on_new interceptors of the configuration.
    pub(crate) fn intercept_new(&self) {
        let _uncancelled = Uncancelled::begin();
        assert_none_held("an interceptor");
        for (name, function, opaque) in &self.conf().interceptors.new.0 {
            let mut errstr: [c_char; 256] = [0; 256];
            // SAFETY: the plug-in's function gets a buffer of this size; the last byte is set to zero afterwards.
            let (code, why) = unsafe {
                let code = function(self.as_c(), self.conf(), opaque.0, errstr.as_mut_ptr(), errstr.len());
                errstr[255] = 0;
                (code, CStr::from_ptr(errstr.as_ptr()).to_string_lossy().into_owned())
            };
            if code != code::NO_ERROR {
                self.log(4, c"ICFAIL", &format!("interceptor {name} failed on_new: {why} ({code})"));
            }
        }
    }

    /// Passes a message to the interceptors of a kind.
    #[cold]
    pub(crate) fn intercept_message(&self, kind: u32, message: *mut rd_kafka_message_t) {
        let chain = self.interceptors().of_messages(|chains| match kind {
            kind::SEND => &chains.send,
            kind::ACKNOWLEDGEMENT => &chains.acknowledgement,
            _ => &chains.consume,
        });
        let _uncancelled = Uncancelled::begin();
        assert_none_held("an interceptor");
        for (name, function, opaque) in &chain.0 {
            // SAFETY: the plug-in's function gets a message that lives until it returns.
            let code = unsafe { function(self.as_c(), message, opaque.0) };
            self.intercepted(name, code);
        }
    }

    /// Passes a consumed message to the interceptors. Errors are not records.
    #[cold]
    pub(crate) fn intercept_consumed(&self, message: *mut rd_kafka_message_t) {
        // SAFETY: the caller has the message.
        if unsafe { !(*message).err.is_error() } {
            self.intercept_message(kind::CONSUME, message);
        }
    }

    /// Calls the on_commit interceptors.
    pub(crate) fn intercept_commit(&self, offsets: *const List, code: RespErr) {
        if self.interceptors().has(kind::COMMIT) {
            let chain = self.interceptors().chains.lock().commit.clone();
            let _uncancelled = Uncancelled::begin();
            assert_none_held("an interceptor");
            for (name, function, opaque) in &chain.0 {
                // SAFETY: the plug-in's function gets a list that lives until it returns.
                let code = unsafe { function(self.as_c(), offsets, code, opaque.0) };
                self.intercepted(name, code);
            }
        }
    }

    /// Calls the thread interceptors when a thread starts or ends, or starts or stops serving this client.
    pub(crate) fn intercept_thread(&self, starts: bool, kind: c_int, name: &CStr, gate: &Gate) {
        let chain = {
            let chains = self.interceptors().chains.lock();
            if starts { chains.thread_start.clone() } else { chains.thread_exit.clone() }
        };
        let _uncancelled = Uncancelled::begin();
        assert_none_held("an interceptor");
        for (who, function, opaque) in &chain.0 {
            // SAFETY: the plug-in's function gets a text that lives until it returns.
            let code = unsafe { function(self.as_c(), kind, name.as_ptr(), opaque.0) };
            if gate.is_given_up() {
                return;
            }
            self.intercepted(who, code);
        }
    }

    /// Calls the on_destroy interceptors.
    pub(crate) fn intercept_destroy(&self) {
        let chain = std::mem::take(&mut self.interceptors().chains.lock().destroy);
        let _uncancelled = Uncancelled::begin();
        assert_none_held("an interceptor");
        for (name, function, opaque) in &chain.0 {
            // SAFETY: the plug-in's function.
            let code = unsafe { function(self.as_c(), opaque.0) };
            self.intercepted(name, code);
        }
    }

    pub(super) fn intercepted(&self, name: &str, code: RespErr) {
        if code != code::NO_ERROR {
            self.log(4, c"ICFAIL", &format!("interceptor {name} returned {code}"));
        }
    }
}

macro_rules! of_client {
    ($($name:ident, $chain:ident: $type:ty, $flag:ident;)*) => {$(
        export!(
            #[local(code::_FATAL)]
            fn $name(rk: Ref<Client>, ic_name: Text, function: Option<$type>, ic_opaque: *mut c_void) -> RespErr {
                match (rk.get(), ic_name.get()) {
                    (Some(client), _) if client.is_share_consumer() => code::_NOT_IMPLEMENTED,
                    (Some(client), Some(_)) if !client.heeds(kind::$flag) => code::_STATE,
                    (Some(client), Some(name)) => {
                        let interceptors = client.interceptors();
                        let added = interceptors.chains.lock().$chain.add(&name, function, ic_opaque, false);
                        if added == code::NO_ERROR {
                            interceptors.kinds.fetch_or(kind::$flag, Ordering::Release);
                        }
                        added
                    }
                    _ => code::_INVALID_ARG,
                }
            }
        );
    )*};
}

of_client! {
    rd_kafka_interceptor_add_on_destroy, destroy: Destroy, OTHER;
    rd_kafka_interceptor_add_on_send, send: OfMessage, SEND;
    rd_kafka_interceptor_add_on_acknowledgement, acknowledgement: OfMessage, ACKNOWLEDGEMENT;
    rd_kafka_interceptor_add_on_consume, consume: OfMessage, CONSUME;
    rd_kafka_interceptor_add_on_commit, commit: Commit, COMMIT;
    rd_kafka_interceptor_add_on_request_sent, request_sent: RequestSent, REQUEST_SENT;
    rd_kafka_interceptor_add_on_response_received, response_received: ResponseReceived, RESPONSE_RECEIVED;
    rd_kafka_interceptor_add_on_thread_start, thread_start: OfThread, THREAD;
    rd_kafka_interceptor_add_on_thread_exit, thread_exit: OfThread, THREAD;
    rd_kafka_interceptor_add_on_broker_state_change, broker_state_change: BrokerStateChange, BROKER_STATE_CHANGE;
}
