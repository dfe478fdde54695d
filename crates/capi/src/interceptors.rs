//! Interceptors: functions of plug-ins that look at what passes, and the libraries that bring them.
//!
//! Those of a configuration are called while it is made; the last of them, on_new, adds those of the client.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    ptr,
    sync::{
        Weak,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use ottla::{ErrorKind, Exchange, Observer, Peer};
use parking_lot::Mutex;

use crate::{
    boundary::{Opaque, c_text, guarded_local, text},
    client::Client,
    codes::code,
    conf::{CONF_UNKNOWN, Conf},
    debug::Contexts,
    error::code_of_kind,
    gate::Gate,
    list::List,
    types::rd_kafka_message_t,
};

type ConfSet =
    unsafe extern "C" fn(*mut Conf, *const c_char, *const c_char, *mut c_char, usize, *mut c_void) -> c_int;
type ConfDup = unsafe extern "C" fn(*mut Conf, *const Conf, usize, *mut *const c_char, *mut c_void) -> c_int;
type ConfDestroy = unsafe extern "C" fn(*mut c_void) -> c_int;
type New = unsafe extern "C" fn(*const Client, *const Conf, *mut c_void, *mut c_char, usize) -> c_int;
type Destroy = unsafe extern "C" fn(*const Client, *mut c_void) -> c_int;
type OfMessage = unsafe extern "C" fn(*const Client, *mut rd_kafka_message_t, *mut c_void) -> c_int;
type Commit = unsafe extern "C" fn(*const Client, *const List, c_int, *mut c_void) -> c_int;
type RequestSent = unsafe extern "C" fn(
    *const Client,
    c_int,
    *const c_char,
    i32,
    i16,
    i16,
    i32,
    usize,
    *mut c_void,
) -> c_int;
type ResponseReceived = unsafe extern "C" fn(
    *const Client,
    c_int,
    *const c_char,
    i32,
    i16,
    i16,
    i32,
    usize,
    i64,
    c_int,
    *mut c_void,
) -> c_int;
type OfThread = unsafe extern "C" fn(*const Client, c_int, *const c_char, *mut c_void) -> c_int;
type BrokerStateChange = unsafe extern "C" fn(
    *const Client,
    i32,
    *const c_char,
    *const c_char,
    c_int,
    *const c_char,
    *mut c_void,
) -> c_int;

/// Interceptors of one kind, in the order in which they were added.
#[derive(Clone, Debug)]
struct Chain<F>(Vec<(String, F, Opaque)>);

/// A function, to be told from others.
trait Function: Copy {
    fn address(self) -> usize;
}

macro_rules! functions {
    ($($kind:ty)*) => {$(
        impl Function for $kind {
            fn address(self) -> usize {
                self as usize
            }
        }
    )*};
}

functions!(ConfSet ConfDup ConfDestroy New Destroy OfMessage Commit RequestSent ResponseReceived OfThread BrokerStateChange);

impl<F> Default for Chain<F> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<F: Function> Chain<F> {
    /// A name may come with the same function once, and `many` times if so it is for this kind.
    fn add(&mut self, name: &str, function: Option<F>, opaque: *mut c_void, many: bool) -> c_int {
        let Some(function) = function else { return code::_INVALID_ARG };
        let is_known =
            |(known, other, _): &(String, F, Opaque)| known == name && other.address() == function.address();
        if !many && self.0.iter().any(is_known) {
            return code::_CONFLICT;
        }
        self.0.push((name.to_owned(), function, Opaque(opaque)));
        code::NO_ERROR
    }
}

/// The interceptors of a configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConfInterceptors {
    set: Chain<ConfSet>,
    dup: Chain<ConfDup>,
    destroy: Chain<ConfDestroy>,
    new: Chain<New>,
}

/// The interceptors of a client.
#[derive(Debug, Default)]
pub(crate) struct Interceptors {
    /// Which kinds there are, by [`kind`].
    kinds: AtomicU32,
    chains: Mutex<Chains>,
}

#[derive(Debug, Default)]
struct Chains {
    destroy: Chain<Destroy>,
    send: Chain<OfMessage>,
    acknowledgement: Chain<OfMessage>,
    consume: Chain<OfMessage>,
    commit: Chain<Commit>,
    request_sent: Chain<RequestSent>,
    response_received: Chain<ResponseReceived>,
    thread_start: Chain<OfThread>,
    thread_exit: Chain<OfThread>,
    broker_state_change: Chain<BrokerStateChange>,
}

/// Kinds that are looked for often.
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
    /// What needs a [`Witness`](super::Witness).
    pub(crate) const WITNESSED: u32 = REQUEST_SENT | RESPONSE_RECEIVED | BROKER_STATE_CHANGE | THREAD;
}

/// `RD_KAFKA_THREAD_BACKGROUND`.
pub(crate) const THREAD_BACKGROUND: c_int = 1;
/// `RD_KAFKA_THREAD_BROKER`.
const THREAD_BROKER: c_int = 2;

impl Interceptors {
    /// True if there are interceptors of one of these kinds.
    #[inline]
    pub(crate) fn has(&self, kinds: u32) -> bool {
        self.kinds.load(Ordering::Acquire) & kinds != 0
    }

    /// Writes down which there are.
    pub(crate) fn note(&self, client: &Client) {
        fn names<F>(kind: &'static str, chain: &Chain<F>) -> impl Iterator<Item = (&'static str, String)> {
            chain.0.iter().map(move |(name, ..)| (kind, name.clone())).collect::<Vec<_>>().into_iter()
        }
        if !client.logging().wants(Contexts::INTERCEPTOR) {
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
            client.debug(Contexts::INTERCEPTOR, c"INTERCEPT", || {
                format!("Interceptor {name} is called {kind}")
            });
        }
    }

    fn of_messages(&self, chain: impl FnOnce(&Chains) -> &Chain<OfMessage>) -> Chain<OfMessage> {
        chain(&self.chains.lock()).clone()
    }
}

impl Client {
    /// The interceptors of the configuration are told of the client.
    pub(crate) fn intercept_new(&self) {
        for (name, function, opaque) in &self.conf().interceptors.new.0 {
            let mut errstr: [c_char; 256] = [0; 256];
            // SAFETY: the plug-in's function, with a buffer of this size that ends with a zero byte afterwards.
            let (code, why) = unsafe {
                let code = function(self, self.conf(), opaque.0, errstr.as_mut_ptr(), errstr.len());
                errstr[255] = 0;
                (code, CStr::from_ptr(errstr.as_ptr()).to_string_lossy().into_owned())
            };
            if code != code::NO_ERROR {
                self.log(3, c"ICFAIL", &format!("interceptor {name} failed on_new: {why} ({code})"));
            }
        }
    }

    /// Shows a message to the interceptors of a kind.
    #[cold]
    pub(crate) fn intercept_message(&self, kind: u32, message: *mut rd_kafka_message_t) {
        let chain = self.interceptors().of_messages(|chains| match kind {
            kind::SEND => &chains.send,
            kind::ACKNOWLEDGEMENT => &chains.acknowledgement,
            _ => &chains.consume,
        });
        for (name, function, opaque) in &chain.0 {
            // SAFETY: the plug-in's function, with a message that lives until it returns.
            let code = unsafe { function(self, message, opaque.0) };
            self.intercepted(name, code);
        }
    }

    /// Tells of the outcome of a commit.
    pub(crate) fn intercept_commit(&self, offsets: *const List, code: c_int) {
        if self.interceptors().has(kind::COMMIT) {
            let chain = self.interceptors().chains.lock().commit.clone();
            for (name, function, opaque) in &chain.0 {
                // SAFETY: the plug-in's function, with a list that lives until it returns.
                let code = unsafe { function(self, offsets, code, opaque.0) };
                self.intercepted(name, code);
            }
        }
    }

    /// Tells that a thread of this client's starts or ends, or begins or ceases to serve it.
    pub(crate) fn intercept_thread(&self, starts: bool, kind: c_int, name: &CStr, gate: &Gate) {
        let chain = {
            let chains = self.interceptors().chains.lock();
            if starts { chains.thread_start.clone() } else { chains.thread_exit.clone() }
        };
        for (who, function, opaque) in &chain.0 {
            // SAFETY: the plug-in's function, with a text that lives until it returns.
            let code = unsafe { function(self, kind, name.as_ptr(), opaque.0) };
            if gate.is_given_up() {
                return;
            }
            self.intercepted(who, code);
        }
    }

    /// Tells that the client goes.
    pub(crate) fn intercept_destroy(&self) {
        let chain = std::mem::take(&mut self.interceptors().chains.lock().destroy);
        for (name, function, opaque) in &chain.0 {
            // SAFETY: the plug-in's function.
            let code = unsafe { function(self, opaque.0) };
            self.intercepted(name, code);
        }
    }

    fn intercepted(&self, name: &str, code: c_int) {
        if code != code::NO_ERROR {
            self.log(4, c"ICFAIL", &format!("interceptor {name} answered {code}"));
        }
    }
}

/// Shows a client's interceptors what passes on its connections, and which I/O threads serve it.
#[derive(Debug)]
pub(crate) struct Witness {
    client: Weak<Client>,
    traffic: Gate,
    threads: Gate,
}

impl Witness {
    pub(crate) fn new(client: Weak<Client>) -> Self {
        Self { client, traffic: Gate::default(), threads: Gate::default() }
    }

    /// Nobody is told of requests, answers and states any more: what the interceptors have may go.
    /// The error names what did not return.
    pub(crate) fn shut_traffic(&self, until: Instant) -> Result<(), &'static str> {
        self.traffic.shut(until)
    }

    /// Nor of threads.
    pub(crate) fn shut_threads(&self, until: Instant) -> Result<(), &'static str> {
        self.threads.shut(until)
    }

    /// Calls each function of a kind, if there are any.
    fn tell<F: Copy>(
        &self,
        kind: u32,
        chain: impl FnOnce(&Chains) -> &Chain<F>,
        call: impl Fn(&Client, F, *mut c_void) -> c_int,
    ) {
        let Some(client) = self.client.upgrade() else { return };
        if !client.interceptors().has(kind) {
            return;
        }
        let Some(_pass) = self.traffic.enter("an interceptor of requests, answers or broker states") else {
            return;
        };
        let functions = chain(&client.interceptors().chains.lock()).0.clone();
        for (name, function, opaque) in &functions {
            let code = call(&client, *function, opaque.0);
            if self.traffic.is_given_up() {
                return;
            }
            client.intercepted(name, code);
        }
    }

    /// Tells how a request ended.
    fn tell_answer(&self, peer: &Peer<'_>, request: &Exchange, size: usize, micros: i64, code: c_int) {
        let (name, node) = (c_text(&peer.to_string()), peer.node_id.unwrap_or(-1));
        let Exchange { api, version, correlation_id, .. } = *request;
        // The interface says that the socket is not told here.
        let socket = -1;
        self.tell(
            kind::RESPONSE_RECEIVED,
            |chains| &chains.response_received,
            // SAFETY: the plug-in's function, with a text that lives until it returns.
            |client, function, opaque| unsafe {
                function(
                    client,
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

    fn tell_thread(&self, starts: bool, name: &str) {
        let Some(client) = self.client.upgrade() else { return };
        let Some(_pass) = self.threads.enter("on_thread_start or on_thread_exit") else { return };
        client.intercept_thread(starts, THREAD_BROKER, &c_text(name), &self.threads);
    }
}

impl Observer for Witness {
    fn request_sent(&self, peer: &Peer<'_>, request: &Exchange) {
        let (name, node) = (c_text(&peer.to_string()), peer.node_id.unwrap_or(-1));
        let Exchange { api, version, correlation_id, size } = *request;
        self.tell(
            kind::REQUEST_SENT,
            |chains| &chains.request_sent,
            // SAFETY: the plug-in's function, with a text that lives until it returns.
            |client, function, opaque| unsafe {
                let socket = peer.socket.unwrap_or(-1);
                function(
                    client,
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
        self.tell_answer(peer, response, response.size, micros, code::NO_ERROR);
    }

    fn response_lost(&self, peer: &Peer<'_>, request: &Exchange, why: ErrorKind) {
        self.tell_answer(peer, request, 0, -1, code_of_kind(why));
    }

    fn state_changed(&self, peer: &Peer<'_>, state: &'static str) {
        let (host, state) = (c_text(peer.host), c_text(state));
        self.tell(
            kind::BROKER_STATE_CHANGE,
            |chains| &chains.broker_state_change,
            |client, function, opaque| {
                let protocol = c_text(&client.property("security.protocol").unwrap_or_default());
                let (node, port) = (peer.node_id.unwrap_or(-1), c_int::from(peer.port));
                // SAFETY: the plug-in's function, with texts that live until it returns.
                unsafe {
                    function(client, node, protocol.as_ptr(), host.as_ptr(), port, state.as_ptr(), opaque)
                }
            },
        );
    }

    fn thread_starts(&self, name: &str) {
        self.tell_thread(true, name);
    }

    fn thread_ends(&self, name: &str) {
        self.tell_thread(false, name);
    }
}

impl ConfInterceptors {
    /// Asks the interceptors whether one of them knows a property; `None` if none does.
    ///
    /// # Safety
    ///
    /// The configuration, texts and a buffer of that size.
    pub(crate) unsafe fn set(
        &self,
        conf: *mut Conf,
        name: *const c_char,
        value: *const c_char,
        errstr: *mut c_char,
        size: usize,
    ) -> Option<c_int> {
        self.set.0.iter().find_map(|(_, function, opaque)| {
            // SAFETY: as the caller says.
            let told = unsafe { function(conf, name, value, errstr, size, opaque.0) };
            (told != CONF_UNKNOWN).then_some(told)
        })
    }

    /// Tells that a copy is made.
    pub(crate) fn dup(&self, new: *mut Conf, old: *const Conf, filters: &mut [*const c_char]) {
        for (_, function, opaque) in &self.dup.0 {
            // SAFETY: the plug-in's function with configurations, and so many texts.
            unsafe { function(new, old, filters.len(), filters.as_mut_ptr(), opaque.0) };
        }
    }

    /// Tells that the configuration goes.
    pub(crate) fn destroy(&self) {
        for (_, function, opaque) in &self.destroy.0 {
            // SAFETY: the plug-in's function.
            unsafe { function(opaque.0) };
        }
    }
}

/// Loads libraries, separated by semicolons, and lets each look at the configuration.
pub(crate) fn load_plugins(conf: *mut Conf, paths: &str) -> Result<(), String> {
    for path in paths.split(';').map(str::trim).filter(|path| !path.is_empty()) {
        let with_suffix = format!("{path}.so");
        let mut candidates = [path, &with_suffix].into_iter().filter_map(|path| CString::new(path).ok());
        // A library stays: its functions are called until the process ends.
        let library = candidates.find_map(|path| {
            // SAFETY: the application wants this library's code to run.
            let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            (!library.is_null()).then_some(library)
        });
        let Some(library) = library else {
            return Err(format!("can't load plug-in `{path}`: {}", dl_error()));
        };
        // SAFETY: a library that was just loaded, and a name.
        let init = unsafe { libc::dlsym(library, c"conf_init".as_ptr()) };
        if init.is_null() {
            return Err(format!("plug-in `{path}` has no function conf_init"));
        }
        let mut errstr: [c_char; 512] = [0; 512];
        let mut opaque = ptr::null_mut();
        // SAFETY: the interface says what type this function has; the buffer ends with a zero byte afterwards.
        let (code, why) = unsafe {
            let init: unsafe extern "C" fn(*mut Conf, *mut *mut c_void, *mut c_char, usize) -> c_int =
                std::mem::transmute(init);
            let code = init(conf, &raw mut opaque, errstr.as_mut_ptr(), errstr.len());
            errstr[511] = 0;
            (code, CStr::from_ptr(errstr.as_ptr()).to_string_lossy().into_owned())
        };
        if code != code::NO_ERROR {
            return Err(format!("plug-in `{path}` failed: {why} ({code})"));
        }
    }
    Ok(())
}

/// What the loader said last.
fn dl_error() -> String {
    // SAFETY: the answer is NULL or a text that lives until this thread's next call of the loader.
    unsafe {
        let error = libc::dlerror();
        if error.is_null() { String::new() } else { CStr::from_ptr(error).to_string_lossy().into_owned() }
    }
}

macro_rules! of_conf {
    ($($name:ident, $chain:ident: $kind:ty, $many:literal;)*) => {$(
        /// See the header.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            conf: *mut Conf,
            ic_name: *const c_char,
            function: Option<$kind>,
            ic_opaque: *mut c_void,
        ) -> c_int {
            guarded_local(code::_FATAL, || {
                // SAFETY: NULL or a configuration, and a text, says the caller.
                match unsafe { (Conf::changeable(conf), text(ic_name)) } {
                    (Some(conf), Some(name)) => conf.interceptors.$chain.add(&name, function, ic_opaque, $many),
                    _ => code::_INVALID_ARG,
                }
            })
        }
    )*};
}

of_conf! {
    rd_kafka_conf_interceptor_add_on_conf_set, set: ConfSet, false;
    rd_kafka_conf_interceptor_add_on_conf_dup, dup: ConfDup, false;
    rd_kafka_conf_interceptor_add_on_conf_destroy, destroy: ConfDestroy, true;
    rd_kafka_conf_interceptor_add_on_new, new: New, false;
}

macro_rules! of_client {
    ($($name:ident, $chain:ident: $type:ty, $flag:ident;)*) => {$(
        /// See the header.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            rk: *const Client,
            ic_name: *const c_char,
            function: Option<$type>,
            ic_opaque: *mut c_void,
        ) -> c_int {
            guarded_local(code::_FATAL, || {
                // SAFETY: NULL or a client, and a text, says the caller.
                match unsafe { (Client::of(rk), text(ic_name)) } {
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
            })
        }
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
