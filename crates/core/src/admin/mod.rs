//! Administrative calls: what is asked of the cluster as a whole.
//!
//! ```text
//!  AdminCall ──► AdminCalls ── request ──► controller or any broker ──► answer ──► per topic: done, or again later
//!                    └── offsets ──► one request per leader ──► merged
//! ```
//!
//! A call is an operation: it knows its request, judges the answer, and may want to be sent again where a topic's answer
//! says that the controller moved or that the broker was busy. [`topics`] has the operations on topics, [`describe`]
//! those that only look.

pub mod describe;
pub mod topics;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    sync::Arc,
    time::Duration,
};

use ottla_protocol::api::ApiKey;

use crate::{
    broker::connection::Response,
    cluster::{
        Route, RoutedRequest,
        metadata::{Metadata, TopicError},
    },
    completion::Completion,
    error::{Error, ErrorKind},
    fetch::offsets::{OffsetAnswers, OffsetLookups, OffsetQuery},
    machine::{Instant, earliest},
    mail::EncodeBody,
};

/// An administrative call.
#[derive(Debug)]
pub struct AdminCall(Call);

enum Call {
    Operation(Box<dyn Operation>, Duration),
    ListOffsets(OffsetQuery, Completion<OffsetAnswers>),
}

/// The calls under way.
#[derive(Debug)]
pub struct AdminCalls {
    calls: BTreeMap<u64, Running>,
    next_call: u64,
    offsets: OffsetLookups,
    request_timeout: Duration,
    retry_backoff: Duration,
    outputs: VecDeque<AdminOutput>,
}

/// What the calls want from the cluster's owner.
#[derive(Debug)]
pub enum AdminOutput {
    /// Something needs newer metadata.
    RefreshMetadata,
    /// A request; its number comes back with the answer.
    Request(u64, Route, RoutedRequest),
}

struct Running {
    operation: Box<dyn Operation>,
    deadline: Instant,
    state: State,
    last_error: Option<Error>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Due,
    Asked,
    Later(Instant),
}

/// One kind of call: what to send, and what to make of the answer.
pub(crate) trait Operation: Send {
    /// The API.
    fn api(&self) -> ApiKey;
    /// Who is asked.
    fn route(&self) -> Route;
    /// What is sent; the broker may take `timeout`.
    fn encode(&self, timeout: Duration) -> EncodeBody;
    /// An answer came, in this version.
    fn handle_answer(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error>;
    /// Tells whoever waits. With an error, what has no answer of its own yet failed with it.
    fn finish(self: Box<Self>, error: Option<Error>);
}

/// What is to be done after an answer.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Everything has its answer.
    Done,
    /// Some of it is worth another try, because of this.
    Again(Error),
}

impl AdminCall {
    pub(crate) fn operation(operation: impl Operation + 'static, timeout: Duration) -> Self {
        Self(Call::Operation(Box::new(operation), timeout))
    }

    /// Offsets of partitions, asked from their leaders.
    pub const fn list_offsets(query: OffsetQuery, done: Completion<OffsetAnswers>) -> Self {
        Self(Call::ListOffsets(query, done))
    }
}

impl AdminCalls {
    /// No calls yet.
    pub(crate) const fn new(request_timeout: Duration, retry_backoff: Duration) -> Self {
        Self {
            calls: BTreeMap::new(),
            next_call: 0,
            offsets: OffsetLookups::new(0, request_timeout, retry_backoff),
            request_timeout,
            retry_backoff,
            outputs: VecDeque::new(),
        }
    }

    /// Begins a call.
    pub(crate) fn start(&mut self, now: Instant, call: AdminCall) {
        match call.0 {
            Call::Operation(operation, timeout) => {
                let running =
                    Running { operation, deadline: now + timeout, state: State::Due, last_error: None };
                self.calls.insert(self.next_call, running);
                self.next_call += 1;
            }
            Call::ListOffsets(query, done) => self.offsets.start_query(now, &query, done),
        }
    }

    /// Sends what is due.
    pub(crate) fn advance(&mut self, now: Instant, metadata: &Metadata) {
        for (number, call) in &mut self.calls {
            if call.state != State::Due {
                continue;
            }
            call.state = State::Asked;
            let operation = &call.operation;
            let timeout = self.request_timeout.min(call.deadline - now);
            let request = RoutedRequest {
                api: operation.api(),
                versions: operation.api().versions(),
                timeout,
                encode: operation.encode(timeout),
            };
            if operation.route() == Route::Controller && !metadata.nodes.contains_key(&metadata.controller_id)
            {
                self.outputs.push_back(AdminOutput::RefreshMetadata);
            }
            self.outputs.push_back(AdminOutput::Request(number * 2, operation.route(), request));
        }
        self.offsets.advance(now, metadata);
        while let Some((number, leader, request)) = self.offsets.poll_request() {
            self.outputs.push_back(AdminOutput::Request(number * 2 + 1, Route::Node(leader), request));
        }
        if self.offsets.take_wants_metadata() {
            self.outputs.push_back(AdminOutput::RefreshMetadata);
        }
    }

    /// What the cluster's owner has to do next.
    pub(crate) fn poll_output(&mut self) -> Option<AdminOutput> {
        self.outputs.pop_front()
    }

    /// The topics whose leaders are needed.
    pub(crate) fn wanted_topics(&self, names: &mut BTreeSet<Arc<str>>) {
        self.offsets.wanted_topics(names);
    }

    /// New metadata came; true if some leader is unknown.
    pub(crate) fn handle_metadata(
        &mut self,
        now: Instant,
        metadata: &Metadata,
        errors: &[TopicError],
    ) -> bool {
        self.offsets.handle_metadata(now, metadata, errors)
    }

    /// An answer to a request, or why there is none.
    pub(crate) fn handle_answer(&mut self, now: Instant, number: u64, result: Result<Response, Error>) {
        if number % 2 == 1 {
            return self.offsets.handle_answer(now, number / 2, result);
        }
        let Some(call) = self.calls.get_mut(&(number / 2)) else { return };
        let api = call.operation.api().name();
        let verdict = result.and_then(|response| {
            call.operation
                .handle_answer(response.body(), response.request.version)
                .map_err(|e| e.with_api(api))
        });
        match verdict {
            Ok(Verdict::Done) => self.finish(number / 2, None),
            Ok(Verdict::Again(error)) => {
                call.last_error = Some(error);
                call.state = State::Later(now + self.retry_backoff);
                self.outputs.push_back(AdminOutput::RefreshMetadata);
            }
            Err(error) if error.is_retriable() => {
                call.last_error = Some(error);
                call.state = State::Later(now + self.retry_backoff);
                self.outputs.push_back(AdminOutput::RefreshMetadata);
            }
            Err(error) => self.finish(number / 2, Some(error)),
        }
    }

    /// Fires what is due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.offsets.handle_timeout(now);
        let mut late = Vec::new();
        for (number, call) in &mut self.calls {
            if call.deadline <= now {
                late.push(*number);
            } else if matches!(call.state, State::Later(at) if at <= now) {
                call.state = State::Due;
            }
        }
        for number in late {
            let call = &mut self.calls.get_mut(&number);
            let last = call.as_mut().and_then(|call| call.last_error.take());
            let error = last.unwrap_or_else(|| Error::new(ErrorKind::TimedOut, "no broker answered in time"));
            self.finish(number, Some(error));
        }
    }

    /// When to call [`AdminCalls::handle_timeout`].
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.calls.values().fold(self.offsets.poll_timeout(), |deadline, call| {
            let later = match call.state {
                State::Later(at) => Some(at),
                _ => None,
            };
            earliest(deadline, earliest(later, Some(call.deadline)))
        })
    }

    /// The client closes: whoever waits is told.
    pub(crate) fn close(&mut self) {
        for (_, call) in std::mem::take(&mut self.calls) {
            call.operation.finish(Some(Error::new(ErrorKind::Closed, "")));
        }
        self.offsets.close();
    }

    fn finish(&mut self, number: u64, error: Option<Error>) {
        if let Some(call) = self.calls.remove(&number) {
            let api = call.operation.api().name();
            call.operation.finish(error.map(|error| error.with_api(api)));
        }
    }
}

/// The error of an answer that can't be decoded.
pub(crate) fn undecodable(error: &ottla_protocol::primitive::DecodeError) -> Error {
    Error::new(ErrorKind::BadResponse, error.to_string())
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Operation(operation, _) => operation.api().name(),
            Self::ListOffsets(..) => "ListOffsets",
        })
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.operation.api().name(), self.state)
    }
}
