//! Administrative calls: what is asked, and the events that answer.
//!
//! ```text
//!  here ───── a call on its way: a future of `ottla::Admin` that ends as an event;  options
//!  topics ─── create, delete, more partitions;  offsets ── list offsets;  records ── delete them
//!  cluster ── describe the cluster and its topics;  configs ── describe and change configurations
//! ```
//!
//! What a call is told is copied before it returns. What an event shows lives as long as the event.

mod cluster;
mod configs;
mod offsets;
mod options;
mod records;
mod topics;

use std::{
    ffi::{CString, c_int},
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    ptr,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use ottla::{Admin, Error, ErrorKind};
use parking_lot::Mutex;

pub(crate) use options::AdminOptions;

use crate::{
    boundary::{Handle, Opaque, c_text, guarded_for, handle, text_of},
    client::Client,
    codes::code,
    error::code_of,
    event::Event,
    op::Op,
    queue::Queue,
};

/// What an event shows.
#[derive(Debug)]
pub(crate) enum Answer {
    Topics(Listed<topics::TopicResult>),
    Offsets(Listed<offsets::ListedInfo>),
    Cluster(cluster::ClusterResult),
    Descriptions(cluster::TopicsResult),
    Configs(Listed<configs::ConfigResource>),
    Records(records::ShownList),
}

/// Why there is nothing to show.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: c_int,
    pub(crate) text: String,
}

type Outcome = Result<Answer, Failure>;

/// Objects that do not move, and the array of pointers to them that C sees.
#[derive(Debug)]
pub(crate) struct Listed<T> {
    pointers: Box<[*const T]>,
    /// Behind the pointers.
    _items: Box<[T]>,
}

// SAFETY: the pointers lead to what the list owns.
unsafe impl<T: Send> Send for Listed<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Listed<T> {}

impl<T> Listed<T> {
    fn new(items: impl IntoIterator<Item = T>) -> Self {
        let items: Box<[T]> = items.into_iter().collect();
        Self { pointers: items.iter().map(ptr::from_ref).collect(), _items: items }
    }

    /// The array for C and its size; NULL if there is nothing.
    ///
    /// # Safety
    ///
    /// `cntp` is NULL or writable.
    unsafe fn show(list: Option<&Self>, cntp: *mut usize) -> *const *const T {
        // SAFETY: as the caller says.
        unsafe { show(list.map_or(&[], |list| &list.pointers), cntp) }
    }
}

/// An array for C and its size; NULL if there is nothing.
///
/// # Safety
///
/// `cntp` is NULL or writable.
unsafe fn show<T>(list: &[T], cntp: *mut usize) -> *const T {
    if !cntp.is_null() {
        // SAFETY: as the caller says.
        unsafe { *cntp = list.len() };
    }
    if list.is_empty() { ptr::null() } else { list.as_ptr() }
}

impl Failure {
    fn new(code: c_int, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// A call that could not be made at all.
    fn misuse(text: impl Into<String>) -> Self {
        Self::new(code::_INVALID_ARG, text)
    }

    /// A call that ended with an error. One that found no broker to answer it tried until its time was over.
    fn of(error: &Error) -> Self {
        let code = match error.kind() {
            ErrorKind::Resolve
            | ErrorKind::Connect
            | ErrorKind::Disconnected
            | ErrorKind::AllBrokersDown
            | ErrorKind::RequestTimedOut => code::_TIMED_OUT,
            _ => code_in_result(error),
        };
        Self::new(code, error.to_string())
    }
}

/// The code of one part's error: that of the brokers where they have one.
fn code_in_result(error: &Error) -> c_int {
    match error.kind() {
        ErrorKind::UnknownTopic | ErrorKind::UnknownPartition => code::UNKNOWN_TOPIC_OR_PART,
        _ => code_of(error),
    }
}

/// The error of the whole call, if every part has the same one and no broker gave it.
fn common_failure<'a>(errors: impl Iterator<Item = Option<&'a Error>>) -> Option<Failure> {
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

/// A call under way. Whoever wakes it, usually an I/O thread, finishes it.
struct Call {
    kind: c_int,
    opaque: Opaque,
    queue: Arc<Queue>,
    answer: Mutex<Option<Pin<Box<dyn Future<Output = Outcome> + Send>>>>,
}

impl Call {
    fn tell(&self, outcome: Outcome) {
        let event = Event::of_answer(self.kind, self.opaque, outcome);
        self.queue.push(Op::Event(Box::new(event)));
    }
}

impl Wake for Call {
    fn wake(self: Arc<Self>) {
        let mut answer = self.answer.lock();
        let Some(future) = answer.as_mut() else { return };
        let waker = Waker::from(Arc::clone(&self));
        let poll = || future.as_mut().poll(&mut Context::from_waker(&waker));
        // The thread is one of the client's I/O threads, which goes on whatever happens here.
        let outcome = match catch_unwind(AssertUnwindSafe(poll)) {
            Ok(Poll::Pending) => return,
            Ok(Poll::Ready(outcome)) => outcome,
            Err(panic) => {
                let text = format!("a bug of the library, please report it: {}", text_of(&*panic));
                if let Some(client) = self.queue.client() {
                    client.set_fatal(code::_FAIL, &text);
                }
                Err(Failure::new(code::_FATAL, text))
            }
        };
        *answer = None;
        drop(answer);
        self.tell(outcome);
    }
}

/// Makes a call; the event goes to the queue, without one to the client's main queue.
///
/// # Safety
///
/// NULL, or a client, options and a queue.
unsafe fn call<F>(
    rk: *const Client,
    options: *const AdminOptions,
    rkqu: *const Queue,
    kind: c_int,
    ask: impl FnOnce(&Admin, &ottla::AdminOptions) -> Result<F, Failure>,
) where
    F: Future<Output = Outcome> + Send + 'static,
{
    guarded_for(rk, (), || {
        // SAFETY: as the caller says.
        unsafe {
            let Some(client) = Client::of(rk) else { return };
            let queue = Queue::of(rkqu).unwrap_or_else(|| Arc::clone(client.main()));
            let own;
            let options = match handle(options) {
                Some(options) => options,
                None => {
                    own = AdminOptions::new(client, 0);
                    &own
                }
            };
            let (opaque, answer) = (options.opaque(), Mutex::new(None));
            let call = Arc::new(Call { kind, opaque, queue, answer });
            let failed = |code| Failure::new(code, "the client can't be used");
            let asked = client.admin().map_err(failed).and_then(|admin| ask(&admin, &options.for_admin()));
            match asked {
                Ok(future) => {
                    *call.answer.lock() = Some(Box::pin(future));
                    call.wake();
                }
                Err(failure) => call.tell(Err(failure)),
            }
        }
    });
}

/// The objects behind an array of handles.
///
/// # Safety
///
/// NULL, or an array of that size whose elements are NULL or handles.
unsafe fn objects<'a, T: Handle>(
    array: *const *const T,
    count: usize,
    what: &str,
) -> Result<Vec<&'a T>, Failure> {
    if count == 0 {
        return Err(Failure::misuse(format!("no {what}: at least one is needed")));
    }
    if array.is_null() || count > c_int::MAX as usize {
        return Err(Failure::misuse(format!("{count} {what}, but not where they are")));
    }
    // SAFETY: as the caller says.
    let found: Option<Vec<&T>> = (0..count).map(|at| unsafe { handle(*array.add(at)) }).collect();
    found.ok_or_else(|| Failure::misuse(format!("one of the {what} is NULL or none")))
}

/// Frees an object.
///
/// # Safety
///
/// NULL or an object from `Box::into_raw` that nobody uses any more.
unsafe fn destroy<T: Handle>(object: *mut T) {
    // SAFETY: as the caller says.
    crate::boundary::guarded_local((), || unsafe { crate::graves::bury(object) });
}

/// Frees the objects of an array, which stays the caller's.
///
/// # Safety
///
/// NULL or an array of that size.
unsafe fn each<T>(array: *const *mut T, count: usize, mut destroy: impl FnMut(*mut T)) {
    if array.is_null() {
        return;
    }
    for at in 0..count {
        // SAFETY: as the caller says.
        destroy(unsafe { *array.add(at) });
    }
}

/// The names of result events, and of the calls that they answer.
const KINDS: [(c_int, &std::ffi::CStr); 23] = [
    (100, c"CreateTopicsResult"),
    (101, c"DeleteTopicsResult"),
    (102, c"CreatePartitionsResult"),
    (103, c"AlterConfigsResult"),
    (104, c"DescribeConfigsResult"),
    (105, c"DeleteRecordsResult"),
    (106, c"DeleteGroupsResult"),
    (107, c"DeleteConsumerGroupOffsetsResult"),
    (1 << 10, c"CreateAclsResult"),
    (1 << 11, c"DescribeAclsResult"),
    (1 << 12, c"DeleteAclsResult"),
    (1 << 13, c"ListConsumerGroupsResult"),
    (1 << 14, c"DescribeConsumerGroupsResult"),
    (1 << 15, c"ListConsumerGroupOffsetsResult"),
    (1 << 16, c"AlterConsumerGroupOffsetsResult"),
    (1 << 17, c"IncrementalAlterConfigsResult"),
    (1 << 18, c"DescribeUserScramCredentialsResult"),
    (1 << 19, c"AlterUserScramCredentialsResult"),
    (1 << 20, c"DescribeTopicsResult"),
    (1 << 21, c"DescribeClusterResult"),
    (1 << 22, c"ListOffsetsResult"),
    (1 << 23, c"ElectLeadersResult"),
    (0, c"(NONE)"),
];

/// The name of a result event.
pub(crate) fn event_name(kind: c_int) -> Option<&'static std::ffi::CStr> {
    KINDS.iter().find(|(known, _)| *known == kind).map(|(_, name)| *name)
}

/// Answers a call that is not there yet with an event of its kind.
///
/// # Safety
///
/// NULL, or a client, options and a queue.
pub(crate) unsafe fn not_yet(
    name: &str,
    text: String,
    rk: *const Client,
    options: *const AdminOptions,
    queue: *const Queue,
) {
    let call_name = name.trim_start_matches("rd_kafka_");
    let is_its = |result: &str| result.strip_suffix("Result") == Some(call_name);
    let found = KINDS.iter().find(|(_, result)| result.to_str().is_ok_and(is_its));
    let kind = found.map_or(crate::types::event_type::ERROR, |(kind, _)| *kind);
    let ask = |_: &Admin, _: &ottla::AdminOptions| -> Result<std::future::Ready<Outcome>, Failure> {
        Err(Failure::new(code::_NOT_IMPLEMENTED, text))
    };
    // SAFETY: as the caller says.
    unsafe { call(rk, options, queue, kind, ask) };
}

/// A text of an error, or of none.
fn error_text(error: Option<&Error>) -> CString {
    error.map_or_else(CString::default, |error| c_text(&error.to_string()))
}

/// The functions that say whether an event is the result of a call.
macro_rules! results {
    ($($name:ident: $kind:expr),* $(,)?) => {$(
        /// See the header.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(event: *const Event) -> *const Event {
            // SAFETY: NULL or an event, says the caller.
            match unsafe { handle(event) } {
                Some(found) if found.kind == $kind => event,
                _ => ptr::null(),
            }
        }
    )*};
}

results! {
    rd_kafka_event_CreateTopics_result: topics::CREATED,
    rd_kafka_event_DeleteTopics_result: topics::DELETED,
    rd_kafka_event_CreatePartitions_result: topics::EXTENDED,
    rd_kafka_event_ListOffsets_result: offsets::LISTED,
    rd_kafka_event_DescribeTopics_result: cluster::TOPICS,
    rd_kafka_event_DescribeCluster_result: cluster::CLUSTER,
    rd_kafka_event_DescribeConfigs_result: configs::DESCRIBED,
    rd_kafka_event_IncrementalAlterConfigs_result: configs::CHANGED,
    rd_kafka_event_AlterConfigs_result: configs::REPLACED,
    rd_kafka_event_DeleteRecords_result: records::DELETED,
}
