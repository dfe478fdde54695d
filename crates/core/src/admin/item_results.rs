//! Calls of one request with items that have a result each. Items whose error is temporary are requested again.

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    message::{Message, Request},
    primitive::Reader,
};
use ottla_sorted::{SortedMap, SortedSet};

use super::{AdminCall, Operation, Verdict, millis, undecodable};
use crate::{
    completion::Completion,
    contract::route::{EncodeBody, Route},
    error::{Error, ErrorKind},
};

/// The results of items, in the order of the call.
pub type ItemResults<K, T> = Vec<(K, Result<T, Error>)>;

/// Returns the result of each key, in this order, from those that were found and those that failed.
pub(super) fn results_in_order<K: Ord, T>(
    keys: &[K],
    mut found: SortedMap<K, T>,
    mut failed: SortedMap<K, Error>,
) -> Vec<Result<T, Error>> {
    let missing = || Error::new(ErrorKind::Bug, "a call ended without a result");
    let results = keys.iter().map(|key| match failed.remove(key) {
        Some(error) => Err(error),
        None => found.remove(key).ok_or_else(missing),
    });
    results.collect()
}

/// Creates the request for these items in a version; the broker may take this number of milliseconds.
type CreateRequest<R, K> = dyn Fn(&[K], i16, i32) -> R + Send + Sync;
/// Reads the results of the requested items from the response. Error: all of them failed.
type ReadResponse<R, K, T> =
    dyn Fn(&[K], <R as Request>::Response) -> Result<ItemResults<K, T>, Error> + Send;

/// A call of one request with items that have a result each.
pub(super) struct Items<R: Request, K, T> {
    route: Route,
    versions: RangeInclusive<i16>,
    keys: Vec<K>,
    request: Arc<CreateRequest<R, K>>,
    read: Box<ReadResponse<R, K, T>>,
}

/// Returns true if an item with this error is requested again. Other errors that Kafka counts as retriable are final here: the
/// controller knows all topics, so a topic that it does not know does not exist.
const fn is_temporary(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::NOT_CONTROLLER | ErrorCode::THROTTLING_QUOTA_EXCEEDED | ErrorCode::REQUEST_TIMED_OUT
    )
}

impl<R, K, T> Items<R, K, T>
where
    R: Request + 'static,
    K: Ord + Clone + Send + Sync + 'static,
    T: Send + 'static,
{
    /// Creates the call for items with these distinct keys. The controller gets the request.
    pub(super) fn new(
        keys: Vec<K>,
        request: impl Fn(&[K], i16, i32) -> R + Send + Sync + 'static,
        read: impl Fn(&[K], R::Response) -> Result<ItemResults<K, T>, Error> + Send + 'static,
    ) -> Self {
        Self {
            route: Route::Controller,
            versions: R::API_KEY.versions(),
            keys,
            request: Arc::new(request),
            read: Box::new(read),
        }
    }

    /// Sends the requests to another destination than the controller.
    pub(super) fn to(mut self, route: Route) -> Self {
        self.route = route;
        self
    }

    /// Uses no version before this one.
    pub(super) fn since_version(mut self, first: i16) -> Self {
        self.versions = first..=*self.versions.end();
        self
    }

    /// Returns the call. It fails as a whole if no item has a result or an error of its own.
    pub(super) fn call(
        self,
        timeout: Duration,
        done: Completion<Result<ItemResults<K, T>, Error>>,
    ) -> AdminCall {
        let calling = Calling { what: self, results: SortedMap::new(), temporary: SortedMap::new(), done };
        AdminCall::operation(calling, timeout)
    }
}

struct Calling<R: Request, K, T> {
    what: Items<R, K, T>,
    results: SortedMap<K, Result<T, Error>>,
    /// The last temporary error of items without a result.
    temporary: SortedMap<K, Error>,
    done: Completion<Result<ItemResults<K, T>, Error>>,
}

impl<R: Request, K: Ord + Clone, T> Calling<R, K, T> {
    /// Returns the items without a result.
    fn lacking(&self) -> Vec<K> {
        self.what.keys.iter().filter(|key| !self.results.contains_key(key)).cloned().collect()
    }
}

impl<R, K, T> Operation for Calling<R, K, T>
where
    R: Request + 'static,
    K: Ord + Clone + Send + Sync + 'static,
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
        let (request, keys, timeout_ms) = (Arc::clone(&self.what.request), self.lacking(), millis(timeout));
        Box::new(move |version, out| request(&keys, version, timeout_ms).encode(version, out))
    }

    fn handle_response(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        let lacking = self.lacking();
        let response =
            <R::Response as Message>::decode(&mut Reader::new(body), version).map_err(|e| undecodable(&e))?;
        let requested: SortedSet<&K> = lacking.iter().collect();
        let mut last = None;
        for (key, result) in (self.what.read)(&lacking, response)? {
            // A response may contain items that were not requested, or an item twice.
            if !requested.contains(&key) || self.results.contains_key(&key) {
                continue;
            }
            match result {
                Err(error) if matches!(error.kind(), ErrorKind::Broker(code) if is_temporary(code)) => {
                    self.temporary.insert(key, error.clone());
                    last = Some(error);
                }
                result => drop(self.results.insert(key, result)),
            }
        }
        match last {
            Some(error) => Ok(Verdict::Again(error)),
            None if self.results.len() == self.what.keys.len() => Ok(Verdict::Done),
            None => Err(Error::new(ErrorKind::BadResponse, "the response leaves an item out")),
        }
    }

    fn finish(mut self: Box<Self>, error: Option<Error>) {
        let rest = error.unwrap_or_else(|| Error::new(ErrorKind::Bug, "a call ended without a result"));
        let is_empty = self.results.is_empty() && self.temporary.is_empty();
        if is_empty && !self.what.keys.is_empty() {
            self.done.complete(Err(rest));
            return;
        }
        let results = self.what.keys.into_iter().map(|key| {
            let temporary = self.temporary.remove(&key);
            let missing = || Err(temporary.unwrap_or_else(|| rest.clone()));
            let result = self.results.remove(&key).unwrap_or_else(missing);
            (key, result)
        });
        self.done.complete(Ok(results.collect()));
    }
}

/// Pairs the results of a response with the items of the request, by position. Error: their numbers differ.
pub(super) fn by_position<K: Clone, W, T>(
    keys: &[K],
    results: Vec<W>,
    read: impl Fn(W) -> Result<T, Error>,
) -> Result<ItemResults<K, T>, Error> {
    if results.len() != keys.len() {
        let detail = format!("the response has {} results for {} items", results.len(), keys.len());
        return Err(Error::new(ErrorKind::BadResponse, detail));
    }
    Ok(keys.iter().cloned().zip(results.into_iter().map(read)).collect())
}
