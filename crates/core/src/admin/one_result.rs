//! Calls of one request, whose response has one result.

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    message::{Message, Request},
    primitive::Reader,
};

use super::{AdminCall, Operation, Verdict, millis, undecodable};
use crate::{
    completion::Completion,
    contract::route::{EncodeBody, Route},
    error::{Error, ErrorKind},
};

/// Creates the request in a version; the broker may take this number of milliseconds.
type CreateRequest<R> = dyn Fn(i16, i32) -> R + Send + Sync;
/// Reads the result from the response in a version.
type ReadResponse<R, T> = dyn Fn(<R as Request>::Response, i16) -> Result<T, Error> + Send;

/// A call of one request, whose response has one result. It is repeated after retriable errors.
pub(super) struct OneResult<R: Request, T> {
    route: Route,
    versions: RangeInclusive<i16>,
    request: Arc<CreateRequest<R>>,
    read: Box<ReadResponse<R, T>>,
    doubt: Doubt<T>,
    /// True if a request was sent whose outcome is unknown.
    is_in_doubt: bool,
    result: Option<T>,
}

/// The reaction to a request whose outcome is unknown, because the connection was lost or the broker did not respond.
enum Doubt<T> {
    /// The request is repeated: a second one has no other effect than the first.
    Repeat,
    /// The request is repeated. If the broker then responds with one of these codes, the first one had its effect.
    RepeatUntil(&'static [ErrorCode], T),
    /// The call fails with this explanation.
    Fail(&'static str),
}

impl<R, T> OneResult<R, T>
where
    R: Request + 'static,
    T: Send + 'static,
{
    /// Creates the call; `route` is the destination.
    pub(super) fn new(
        route: Route,
        request: impl Fn(i16, i32) -> R + Send + Sync + 'static,
        read: impl Fn(R::Response, i16) -> Result<T, Error> + Send + 'static,
    ) -> Self {
        Self {
            route,
            versions: R::API_KEY.versions(),
            request: Arc::new(request),
            read: Box::new(read),
            doubt: Doubt::Repeat,
            is_in_doubt: false,
            result: None,
        }
    }

    /// Uses no version before this one.
    pub(super) fn since_version(mut self, first: i16) -> Self {
        self.versions = first..=*self.versions.end();
        self
    }

    /// If the outcome of a request is unknown, one of these codes in the next response means that it had its effect.
    pub(super) fn done_after_doubt(mut self, codes: &'static [ErrorCode], result: T) -> Self {
        self.doubt = Doubt::RepeatUntil(codes, result);
        self
    }

    /// If the outcome of a request is unknown, the call fails with this explanation.
    pub(super) fn fail_in_doubt(mut self, explanation: &'static str) -> Self {
        self.doubt = Doubt::Fail(explanation);
        self
    }

    fn handle_error(&mut self, error: Error) -> Result<Verdict, Error> {
        use ErrorKind::{Broker, Disconnected, RequestTimedOut};
        if let (Broker(code), true, Doubt::RepeatUntil(codes, _)) =
            (error.kind(), self.is_in_doubt, &self.doubt)
            && codes.contains(&code)
            && let Doubt::RepeatUntil(_, result) = std::mem::replace(&mut self.doubt, Doubt::Repeat)
        {
            self.result = Some(result);
            return Ok(Verdict::Done);
        }
        if matches!(error.kind(), Disconnected | RequestTimedOut | Broker(ErrorCode::REQUEST_TIMED_OUT)) {
            self.is_in_doubt = true;
            if let Doubt::Fail(explanation) = self.doubt {
                let detail = format!("{explanation}; {}", error.as_cause());
                return Ok(Verdict::Failed(Error::new(ErrorKind::TimedOut, detail)));
            }
        }
        Err(error)
    }

    /// Returns the call.
    pub(super) fn call(self, timeout: Duration, done: Completion<Result<T, Error>>) -> AdminCall {
        AdminCall::operation(Asking { what: self, done }, timeout)
    }
}

struct Asking<R: Request, T> {
    what: OneResult<R, T>,
    done: Completion<Result<T, Error>>,
}

impl<R, T> Operation for Asking<R, T>
where
    R: Request + 'static,
    T: Send + 'static,
{
    fn api(&self) -> ApiKey {
        R::API_KEY
    }

    fn versions(&self) -> RangeInclusive<i16> {
        self.what.versions.clone()
    }

    fn route(&self) -> Route {
        self.what.route.clone()
    }

    fn encode(&self, timeout: Duration) -> EncodeBody {
        let (request, timeout_ms) = (Arc::clone(&self.what.request), millis(timeout));
        Box::new(move |version, out| request(version, timeout_ms).encode(version, out))
    }

    fn handle_response(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        let what = &mut self.what;
        let response =
            <R::Response as Message>::decode(&mut Reader::new(body), version).map_err(|e| undecodable(&e))?;
        match (what.read)(response, version) {
            Ok(result) => {
                what.result = Some(result);
                Ok(Verdict::Done)
            }
            Err(error) => what.handle_error(error),
        }
    }

    fn handle_failure(&mut self, error: Error) -> Result<Verdict, Error> {
        self.what.handle_error(error)
    }

    fn finish(self: Box<Self>, error: Option<Error>) {
        let missing = || error.unwrap_or_else(|| Error::new(ErrorKind::Bug, "a call ended without a result"));
        self.done.complete(self.what.result.ok_or_else(missing));
    }
}
