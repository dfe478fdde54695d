//! An admin call: a future that ends as an event, and the parts that all calls share.

use std::{
    any::Any,
    ffi::{CString, c_int},
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    sync::Arc,
    task::Poll,
};

use ottla::Admin;
use ottla_core::error::{Error, ErrorKind};

use super::options::AdminOptions;
use crate::{
    client::{
        event::{Event, Failure, ResultBody},
        handle::Client,
        op::Op,
        queue::Queue,
    },
    ffi::{
        argument::{Handles, Place, Ref},
        boundary::{Handle, Opaque, c_text, text_of},
        codes::{RespErr, code},
        error::code_of,
        task,
    },
};

/// The outcome of a call.
pub(super) type Outcome = Result<ResultBody, Failure>;

/// Returns the result of a call, which its event shows.
pub(super) fn found<T: Any + Send>(what: T) -> Outcome {
    Ok(Box::new(what))
}

/// Objects that do not move, and the array of pointers to them that C sees.
#[derive(Debug)]
pub(super) struct Listed<T> {
    pointers: Box<[*const T]>,
    /// The targets of the pointers.
    pub(super) _items: Box<[T]>,
}

// SAFETY: the pointers lead to objects that the list owns.
unsafe impl<T: Send> Send for Listed<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Listed<T> {}

impl<T> Listed<T> {
    pub(super) fn new(items: impl IntoIterator<Item = T>) -> Self {
        let items: Box<[T]> = items.into_iter().collect();
        Self { pointers: items.iter().map(ptr::from_ref).collect(), _items: items }
    }

    /// Returns the array for C and its size; NULL without a list.
    pub(super) fn show(list: Option<&Self>, cntp: Place<usize>) -> *const *const T {
        show(list.map_or(&[], |list| &list.pointers), cntp)
    }
}

/// Returns an array for C and its size; NULL if it is empty.
pub(super) fn show<T>(list: &[T], cntp: Place<usize>) -> *const T {
    cntp.put(list.len());
    if list.is_empty() { ptr::null() } else { list.as_ptr() }
}

impl Failure {
    pub(super) fn new(code: RespErr, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// Returns the failure of a call that could not be made at all.
    pub(super) fn misuse(text: impl Into<String>) -> Self {
        Self::new(code::_INVALID_ARG, text)
    }

    /// Returns the failure of a call that ended with an error. A call that found no broker to respond was retried until
    /// its timeout.
    pub(super) fn of(error: &Error) -> Self {
        let code = match error.kind() {
            ErrorKind::Resolve
            | ErrorKind::Connect
            | ErrorKind::Proxy
            | ErrorKind::Disconnected
            | ErrorKind::AllBrokersDown
            | ErrorKind::RequestTimedOut => code::_TIMED_OUT,
            _ => code_in_result(error),
        };
        Self::new(code, error.to_string())
    }
}

/// Returns the code of the error of one part: the broker's, if there is one.
pub(super) fn code_in_result(error: &Error) -> RespErr {
    match error.kind() {
        ErrorKind::UnknownTopic | ErrorKind::UnknownPartition => code::UNKNOWN_TOPIC_OR_PART,
        _ => code_of(error),
    }
}

/// Returns the error of the whole call, if every part has the same one and it is not a broker's.
pub(super) fn common_failure<'a>(errors: impl Iterator<Item = Option<&'a Error>>) -> Option<Failure> {
    let mut first = None;
    for error in errors {
        let error = error?;
        match error.kind() {
            ErrorKind::Broker(_) | ErrorKind::UnknownTopic | ErrorKind::UnknownPartition => return None,
            _ => first = first.or(Some(error)),
        }
    }
    first.map(Failure::of)
}

/// Requires that one of the partitions has a leader: leaders are looked up first, and without one no broker is asked.
///
/// # Errors
///
/// None of the partitions exists.
pub(super) fn require_leader<T>(results: &[Result<T, Error>]) -> Result<(), Failure> {
    let is_missing = |result: &Result<T, Error>| {
        let kind = result.as_ref().err().map(Error::kind);
        matches!(kind, Some(ErrorKind::UnknownTopic | ErrorKind::UnknownPartition))
    };
    if results.iter().all(is_missing) {
        return Err(Failure::new(code::_NOENT, "Failed to query partition leaders: No leaders found"));
    }
    Ok(())
}

/// A call in flight. The thread that wakes it, usually an I/O thread, finishes it.
struct Call {
    kind: c_int,
    opaque: Opaque,
    queue: Arc<Queue>,
}

impl Call {
    fn report(&self, outcome: Outcome) {
        let event = Event::of_result(self.kind, self.opaque, outcome);
        self.queue.push(Op::Event(Box::new(event)));
    }

    /// Waits for the outcome. A panic counts as an outcome: the thread is one of the client's I/O threads, which has to
    /// continue in any case.
    async fn finish(self, future: impl Future<Output = Outcome>) {
        let mut future = Box::pin(future);
        let outcome = poll_fn(|context| {
            catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))).unwrap_or_else(|panic| {
                let text = format!("a bug of the library, please report it: {}", text_of(&*panic));
                if let Some(client) = self.queue.client() {
                    client.set_fatal(code::_FAIL, &text);
                }
                Poll::Ready(Err(Failure::new(code::_FATAL, text)))
            })
        });
        let outcome = outcome.await;
        drop(future);
        self.report(outcome);
    }
}

/// Makes a call; the event goes to the given queue, or without one to the client's main queue.
pub(super) fn call<F>(
    rk: Ref<Client>,
    options: Ref<AdminOptions>,
    rkqu: Ref<Queue>,
    kind: c_int,
    ask: impl FnOnce(&Admin, &ottla::AdminOptions) -> Result<F, Failure>,
) where
    F: Future<Output = Outcome> + Send + 'static,
{
    let Some(client) = rk.get() else { return };
    let queue = rkqu.counted().unwrap_or_else(|| Arc::clone(client.main()));
    let own;
    let options = match options.get() {
        Some(options) => options,
        None => {
            own = AdminOptions::new(client, 0);
            &own
        }
    };
    let call = Call { kind, opaque: options.opaque(), queue };
    let failed = |code| Failure::new(code, "the client can't be used");
    let asked = client.admin().map_err(failed).and_then(|admin| ask(&admin, &options.for_admin()));
    match asked {
        Ok(future) => task::spawn(call.finish(future)),
        Err(failure) => call.report(Err(failure)),
    }
}

/// Returns the objects of an array, of which there is at least one.
pub(super) fn objects<'a, T: Handle>(
    array: Handles<'a, T>,
    count: usize,
    what: &str,
) -> Result<Vec<&'a T>, Failure> {
    if count == 0 {
        return Err(Failure::misuse(format!("no {what}: at least one is needed")));
    }
    if array.is_null() || count > c_int::MAX as usize {
        return Err(Failure::misuse(format!(
            "{count} {what}, but the array is NULL or the number too large"
        )));
    }
    array.get(count).ok_or_else(|| Failure::misuse(format!("one of the {what} is NULL or of another kind")))
}

/// Returns the text of an error as C sees it, or none.
pub(super) fn error_text(error: Option<&Error>) -> CString {
    error.map_or_else(CString::default, |error| c_text(&error.to_string()))
}
