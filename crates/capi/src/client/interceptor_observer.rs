//! Interceptors of connections and I/O threads.

use std::{
    ffi::{c_int, c_void},
    sync::{Arc, Weak},
    time::Duration,
};

use ottla_core::{
    error::ErrorKind,
    observer::{Exchange, Observer, Peer},
};

use crate::{
    client::{
        chain::Chain,
        handle::Client,
        interceptors::{Chains, Gates, THREAD_BROKER, kind},
    },
    ffi::{
        boundary::c_text,
        codes::{RespErr, code},
        error::code_of_kind,
    },
};

/// The observer that calls a client's interceptors for requests, responses, broker states and I/O threads.
#[derive(Debug)]
pub(super) struct InterceptorObserver {
    client: Weak<Client>,
    gates: Arc<Gates>,
}

impl InterceptorObserver {
    pub(super) const fn new(client: Weak<Client>, gates: Arc<Gates>) -> Self {
        Self { client, gates }
    }

    /// Calls each interceptor of a kind.
    fn notify<F: Copy>(
        &self,
        kind: u32,
        chain: impl FnOnce(&Chains) -> &Chain<F>,
        call: impl Fn(&Client, F, *mut c_void) -> RespErr,
    ) {
        let Some(client) = self.client.upgrade() else { return };
        if !client.interceptors().has(kind) {
            return;
        }
        let Some(_pass) = self.gates.traffic.enter("an interceptor of requests, results or broker states")
        else {
            return;
        };
        let functions = chain(&client.interceptors().chains.lock()).0.clone();
        for (name, function, opaque) in &functions {
            let code = call(&client, *function, opaque.0);
            if self.gates.traffic.is_given_up() {
                return;
            }
            client.intercepted(name, code);
        }
    }

    /// Reports how a request ended.
    fn report_response(&self, peer: &Peer<'_>, request: &Exchange, size: usize, micros: i64, code: RespErr) {
        let (name, node) = (c_text(&peer.to_string()), peer.node_id.unwrap_or(-1));
        let Exchange { api, version, correlation_id, .. } = *request;
        // The header says that this call has no socket.
        let socket = -1;
        self.notify(
            kind::RESPONSE_RECEIVED,
            |chains| &chains.response_received,
            // SAFETY: the plug-in's function gets a text that lives until it returns.
            |client, function, opaque| unsafe {
                function(
                    client.as_c(),
                    socket,
                    name.as_ptr(),
                    node,
                    api as i16,
                    version,
                    correlation_id,
                    size,
                    micros,
                    code,
                    opaque,
                )
            },
        );
    }

    fn notify_thread(&self, starts: bool, name: &str) {
        let Some(client) = self.client.upgrade() else { return };
        let Some(_pass) = self.gates.threads.enter("on_thread_start or on_thread_exit") else { return };
        client.intercept_thread(starts, THREAD_BROKER, &c_text(name), &self.gates.threads);
    }
}

impl Observer for InterceptorObserver {
    fn request_sent(&self, peer: &Peer<'_>, request: &Exchange) {
        let (name, node) = (c_text(&peer.to_string()), peer.node_id.unwrap_or(-1));
        let Exchange { api, version, correlation_id, size } = *request;
        self.notify(
            kind::REQUEST_SENT,
            |chains| &chains.request_sent,
            // SAFETY: the plug-in's function gets a text that lives until it returns.
            |client, function, opaque| unsafe {
                let socket = peer.socket.unwrap_or(-1);
                function(
                    client.as_c(),
                    socket,
                    name.as_ptr(),
                    node,
                    api as i16,
                    version,
                    correlation_id,
                    size,
                    opaque,
                )
            },
        );
    }

    fn response_received(&self, peer: &Peer<'_>, response: &Exchange, round_trip: Duration) {
        let micros = i64::try_from(round_trip.as_micros()).unwrap_or(i64::MAX);
        self.report_response(peer, response, response.size, micros, code::NO_ERROR);
    }

    fn response_lost(&self, peer: &Peer<'_>, request: &Exchange, why: ErrorKind) {
        self.report_response(peer, request, 0, -1, code_of_kind(why));
    }

    fn state_changed(&self, peer: &Peer<'_>, state: &'static str) {
        let (host, state) = (c_text(peer.host), c_text(state));
        self.notify(
            kind::BROKER_STATE_CHANGE,
            |chains| &chains.broker_state_change,
            |client, function, opaque| {
                let protocol = c_text(&client.property("security.protocol").unwrap_or_default());
                let (node, port) = (peer.node_id.unwrap_or(-1), c_int::from(peer.port));
                // SAFETY: the plug-in's function gets texts that live until it returns.
                unsafe {
                    function(
                        client.as_c(),
                        node,
                        protocol.as_ptr(),
                        host.as_ptr(),
                        port,
                        state.as_ptr(),
                        opaque,
                    )
                }
            },
        );
    }

    fn thread_starts(&self, name: &str) {
        self.notify_thread(true, name);
    }

    fn thread_ends(&self, name: &str) {
        self.notify_thread(false, name);
    }
}
