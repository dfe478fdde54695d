//! What a consumer has read so far, as it is kept for the next one: stored in the client first, committed to the group from
//! time to time or when the application says so.
//!
//! With `enable.auto.offset.store` the stored offset of a partition is its position, from the first message on that the
//! application got. Commits by themselves need no call of the application and no thread: the owner of the cluster reminds of
//! them in time.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{c_int, c_void},
    ptr,
    sync::Arc,
    time::{Duration, Instant},
};

use ottla::{CommitAnswer, Consumer, GroupOffset};
use parking_lot::{Condvar, Mutex};

use crate::{
    boundary::{Opaque, guarded, guarded_for, handle},
    client::Client,
    codes::code,
    conf::ListCb,
    consume::consumer_of,
    error::{ErrorObject, code_of},
    list::{List, Listed},
    message::Held,
    op::{Op, topic_of, wants},
    queue::Queue,
    task,
    time::timeout,
    topic::Topic,
    types::{OFFSET_INVALID, event_type, rd_kafka_message_t, rd_kafka_topic_partition_t},
};

/// The offsets that are kept for the next one who reads.
#[derive(Debug)]
pub(crate) struct Offsets {
    /// `enable.auto.offset.store`.
    by_position: bool,
    has_group: bool,
    state: Mutex<State>,
    under_way: Arc<UnderWay>,
}

/// Commits that nobody waits for and that are not answered yet.
#[derive(Debug, Default)]
struct UnderWay {
    count: Mutex<usize>,
    answered: Condvar,
}

/// One of them, until it is answered or given up.
struct OnItsWay(Arc<UnderWay>);

impl UnderWay {
    fn begin(self: &Arc<Self>) -> OnItsWay {
        *self.count.lock() += 1;
        OnItsWay(Arc::clone(self))
    }
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        *self.0.count.lock() -= 1;
        self.0.answered.notify_all();
    }
}

#[derive(Debug)]
struct State {
    partitions: BTreeMap<(String, i32), Kept>,
    /// These are kept in files, and never committed to the group.
    in_files: BTreeSet<(String, i32)>,
    /// When partitions are committed by themselves.
    timer: Timer,
    /// The same of those that the older calls read, whose topics say it.
    of_older: BTreeMap<(String, i32), Timer>,
    /// For when a reminder is under way.
    reminder: Option<Instant>,
}

/// When something is committed by itself.
#[derive(Clone, Copy, Debug, Default)]
struct Timer {
    /// `auto.commit.interval.ms`, if it is.
    interval: Option<Duration>,
    /// Set by the first message, and from then on as long as something is kept.
    next: Option<Instant>,
}

#[derive(Clone, Debug, Default)]
struct Kept {
    /// The application got a message: the position counts.
    is_consumed: bool,
    /// What the application stored itself: offset, leader epoch, metadata.
    stored: Option<(i64, i32, String)>,
    /// What was committed last.
    committed: Option<i64>,
}

/// The outcome of a commit, for the application.
#[derive(Debug)]
pub(crate) struct Committed {
    pub(crate) code: c_int,
    pub(crate) list: Listed,
    pub(crate) callback: Option<ListCb>,
    pub(crate) opaque: Opaque,
}

/// Where the outcome of a commit goes, and how it is told there.
type Told = (Arc<Queue>, Option<ListCb>, Opaque);

/// How long a commit goes on trying.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(60);

impl Offsets {
    /// Without a group nothing is committed by itself.
    pub(crate) fn new(client: impl Fn(&str) -> Option<String>) -> Self {
        let is_true = |name| client(name).is_some_and(|value| value == "true");
        let millis = client("auto.commit.interval.ms").and_then(|value| value.parse().ok()).unwrap_or(0);
        let has_group = client("group.id").is_some_and(|group| !group.is_empty());
        let commits = has_group && is_true("enable.auto.commit") && millis > 0;
        let interval = commits.then(|| Duration::from_millis(millis));
        Self {
            by_position: is_true("enable.auto.offset.store"),
            has_group,
            state: Mutex::new(State {
                partitions: BTreeMap::new(),
                in_files: BTreeSet::new(),
                timer: Timer { interval, next: None },
                of_older: BTreeMap::new(),
                reminder: None,
            }),
            under_way: Arc::default(),
        }
    }

    /// Waits until the commits that are under way are answered.
    fn wait_for_commits(&self, until: Instant) {
        let mut count = self.under_way.count.lock();
        while *count > 0 && !self.under_way.answered.wait_until(&mut count, until).timed_out() {}
    }

    /// A partition is read by the older calls: its topic says how often its offset is committed, and the client's
    /// configuration, which is of groups, does not.
    pub(crate) fn begin_older(&self, topic: &str, partition: i32, interval: Option<Duration>) {
        let timer = Timer { interval: interval.filter(|_| self.has_group), next: None };
        self.state.lock().of_older.insert((topic.to_owned(), partition), timer);
    }

    /// The older calls read it no more.
    pub(crate) fn end_older(&self, topic: &str, partition: i32) {
        self.state.lock().of_older.remove(&(topic.to_owned(), partition));
    }

    /// The application gets messages of a partition.
    fn note_consumed(&self, topic: &str, partition: i32) {
        if !self.by_position {
            return;
        }
        let (mut state, key) = (self.state.lock(), (topic.to_owned(), partition));
        state.start_timer(&key);
        let kept = state.partitions.entry(key).or_default();
        kept.is_consumed = true;
        kept.stored = None;
    }

    /// The application stores an offset.
    fn store(&self, topic: &str, partition: i32, place: (i64, i32, String)) {
        let (mut state, key) = (self.state.lock(), (topic.to_owned(), partition));
        state.start_timer(&key);
        let kept = state.partitions.entry(key).or_default();
        (kept.is_consumed, kept.stored) = (false, Some(place));
    }

    /// What is stored of a partition.
    pub(crate) fn stored(
        &self,
        consumer: &Consumer,
        topic: &str,
        partition: i32,
    ) -> Option<(i64, i32, String)> {
        let kept = self.state.lock().partitions.get(&(topic.to_owned(), partition)).cloned()?;
        match kept.stored {
            Some(stored) => Some(stored),
            None if kept.is_consumed => Some((consumer.position(topic, partition)?, -1, String::new())),
            None => None,
        }
    }

    /// Partitions are read from elsewhere, or no more: what was stored of them means nothing.
    pub(crate) fn forget(&self, topic: &str, partition: i32) {
        self.state.lock().partitions.remove(&(topic.to_owned(), partition));
    }

    /// The same of all.
    pub(crate) fn forget_all(&self) {
        self.state.lock().partitions.clear();
    }

    /// What is stored of a partition is kept in a file, not by the group.
    pub(crate) fn keep_in_file(&self, topic: &str, partition: i32) {
        self.state.lock().in_files.insert((topic.to_owned(), partition));
    }

    /// It is kept by the group again.
    pub(crate) fn keep_in_group(&self, topic: &str, partition: i32) {
        self.state.lock().in_files.remove(&(topic.to_owned(), partition));
    }

    /// What is stored and not committed.
    fn uncommitted(&self, consumer: &Consumer) -> Vec<GroupOffset> {
        self.uncommitted_of(consumer, |_, _| true)
    }

    /// The same of those partitions that are committed by themselves.
    fn uncommitted_by_itself(&self, consumer: &Consumer) -> Vec<GroupOffset> {
        self.uncommitted_of(consumer, |state, partition| state.timer_of(partition).interval.is_some())
    }

    fn uncommitted_of(
        &self,
        consumer: &Consumer,
        which: impl Fn(&State, &(String, i32)) -> bool,
    ) -> Vec<GroupOffset> {
        let names: Vec<_> = {
            let state = self.state.lock();
            let is_meant =
                |partition: &&(String, i32)| !state.in_files.contains(*partition) && which(&state, partition);
            state.partitions.keys().filter(is_meant).cloned().collect()
        };
        let mut offsets = Vec::new();
        for (topic, partition) in names {
            let Some((offset, leader_epoch, metadata)) = self.stored(consumer, &topic, partition) else {
                continue;
            };
            let state = self.state.lock();
            let known = state.partitions.get(&(topic.clone(), partition)).and_then(|kept| kept.committed);
            if offset >= 0 && known != Some(offset) {
                offsets.push(GroupOffset { topic: topic.into(), partition, offset, leader_epoch, metadata });
            }
        }
        offsets
    }

    /// Remembers what need not be committed again.
    fn note_committed(&self, offsets: &[GroupOffset], answer: &CommitAnswer) {
        let Ok(results) = answer else { return };
        let mut state = self.state.lock();
        for (offset, result) in offsets.iter().zip(results) {
            if result.is_ok()
                && let Some(kept) = state.partitions.get_mut(&(offset.topic.to_string(), offset.partition))
            {
                kept.committed = Some(offset.offset);
            }
        }
    }

    /// When to remind of the next commit, if that is not known yet.
    fn take_next_reminder(&self) -> Option<Instant> {
        let mut state = self.state.lock();
        let next = state.of_older.values().chain([&state.timer]).filter_map(|timer| timer.next).min()?;
        state.reminder.is_none_or(|known| next < known).then(|| *state.reminder.insert(next))
    }

    /// A reminder came: what is due is to be committed now, unless an earlier commit is still under way.
    fn handle_reminder(&self, consumer: &Consumer, at: Instant) -> Vec<GroupOffset> {
        let now = Instant::now();
        let is_due = |timer: &Timer| timer.next.is_some_and(|next| next <= now);
        let is_free = *self.under_way.count.lock() == 0;
        let offsets = if is_free {
            self.uncommitted_of(consumer, |state, partition| is_due(state.timer_of(partition)))
        } else {
            Vec::new()
        };
        let mut state = self.state.lock();
        state.reminder = state.reminder.filter(|known| *known != at);
        state.restart_timers(now);
        offsets
    }
}

impl State {
    fn timer_of(&self, partition: &(String, i32)) -> &Timer {
        self.of_older.get(partition).unwrap_or(&self.timer)
    }

    /// Something of a partition is to be committed.
    fn start_timer(&mut self, partition: &(String, i32)) {
        let timer = self.of_older.get_mut(partition).unwrap_or(&mut self.timer);
        if let (Some(interval), None) = (timer.interval, timer.next) {
            timer.next = Some(Instant::now() + interval);
        }
    }

    /// Timers that are due begin anew, as long as there may be something for them to commit.
    fn restart_timers(&mut self, now: Instant) {
        let (partitions, of_older) = (&self.partitions, &self.of_older);
        let has_other = partitions.keys().any(|partition| !of_older.contains_key(partition));
        let restart = |timer: &mut Timer, is_kept: bool| {
            if timer.next.is_some_and(|next| next <= now) {
                timer.next = timer.interval.filter(|_| is_kept).map(|interval| now + interval);
            }
        };
        restart(&mut self.timer, has_other);
        for (partition, timer) in &mut self.of_older {
            restart(timer, self.partitions.contains_key(partition));
        }
    }
}

impl Client {
    /// The application gets messages of a partition.
    pub(crate) fn note_consumed(&self, consumer: &Consumer, topic: &str, partition: i32) {
        self.offsets().note_consumed(topic, partition);
        self.remind_of_commits(consumer);
    }

    /// Sees to it that what is kept is committed in time, whether the application calls then or not.
    fn remind_of_commits(&self, consumer: &Consumer) {
        let Some(at) = self.offsets().take_next_reminder() else { return };
        let reminder = consumer.after(at.saturating_duration_since(Instant::now()));
        let me = self.weak();
        task::spawn(async move {
            // It comes on an I/O thread, or never if the client ends.
            if reminder.await
                && let Some(client) = me.upgrade()
                && !client.is_closing()
                && let Some(consumer) = client.consumer()
            {
                let offsets = client.offsets().handle_reminder(consumer, at);
                if !offsets.is_empty() {
                    client.commit_later(consumer, offsets, None);
                }
                client.remind_of_commits(consumer);
            }
        });
    }

    /// Commits what is stored because its partitions go, and waits for that and for commits that are under way as long as
    /// `timeout`.
    pub(crate) fn commit_before_leaving(&self, consumer: &Consumer, timeout: Duration) {
        let until = Instant::now() + timeout;
        let offsets = self.offsets().uncommitted_by_itself(consumer);
        self.commit_now(consumer, &offsets, timeout);
        self.offsets().wait_for_commits(until);
    }

    /// A partition is not read any more by the older calls.
    pub(crate) fn stop_older(&self, consumer: &Consumer, topic: &str, partition: i32, timeout: Duration) {
        let mut offsets = self.offsets().uncommitted_by_itself(consumer);
        offsets.retain(|offset| *offset.topic == *topic && offset.partition == partition);
        self.commit_now(consumer, &offsets, timeout);
        self.offsets().end_older(topic, partition);
    }

    fn commit_now(&self, consumer: &Consumer, offsets: &[GroupOffset], timeout: Duration) {
        if !offsets.is_empty() {
            let answer = consumer.commit(offsets, timeout);
            self.tell_committed(offsets, &answer, None);
        }
    }

    /// Commits what is stored, if that is done by itself, without waiting for what is due.
    pub(crate) fn commit_at_once(&self, consumer: &Consumer) {
        let offsets = self.offsets().uncommitted_by_itself(consumer);
        if !offsets.is_empty() {
            self.commit_later(consumer, offsets, None);
        }
    }

    /// Partitions are about to be taken away or assigned anew.
    pub(crate) fn leave_partitions(&self, consumer: &Consumer) {
        self.commit_at_once(consumer);
        self.offsets().forget_all();
    }

    /// Sends a commit; its outcome becomes an entry of a queue or of the consumer's.
    fn commit_later(&self, consumer: &Consumer, offsets: Vec<GroupOffset>, to: Option<Told>) {
        let under_way = self.offsets().under_way.begin();
        let answer = consumer.commit_async(&offsets, COMMIT_TIMEOUT);
        let me = self.weak();
        task::spawn(async move {
            let _under_way = under_way;
            let answer = answer.await;
            if let Some(client) = me.upgrade() {
                client.tell_committed(&offsets, &answer, to);
            }
        });
    }

    fn tell_committed(&self, offsets: &[GroupOffset], answer: &CommitAnswer, to: Option<Told>) {
        self.offsets().note_committed(offsets, answer);
        let (code, list) = outcome(offsets, answer);
        self.intercept_commit(list.as_ptr(), code);
        self.push_committed(code, list, to);
    }

    /// Tells of a commit, if the application wants to hear of it.
    fn push_committed(&self, code: c_int, list: Listed, to: Option<Told>) {
        let conf = self.conf();
        let own = conf.callbacks.offset_commit;
        let is_wanted = own.is_some() || wants(conf.events, event_type::OFFSET_COMMIT);
        let own =
            self.consumer_queue().filter(|_| is_wanted).map(|queue| (Arc::clone(queue), own, conf.opaque));
        if let Some((queue, callback, opaque)) = to.or(own) {
            queue.push(Op::Committed(Box::new(Committed { code, list, callback, opaque })));
        }
    }

    /// Calls the callback of a commit.
    pub(crate) fn serve_committed(&self, committed: &Committed) {
        if let Some(callback) = committed.callback {
            // SAFETY: the application's function, with a list that lives until it returns.
            unsafe { callback(self, committed.code, committed.list.as_ptr(), committed.opaque.0) };
        }
    }
}

/// A commit's code, and its offsets with the code of each.
fn outcome(offsets: &[GroupOffset], answer: &CommitAnswer) -> (c_int, Listed) {
    let mut list = Listed::default();
    let (mut failed, mut last) = (0, code::NO_ERROR);
    for (place, offset) in offsets.iter().enumerate() {
        let code = match answer {
            Ok(results) => match &results[place] {
                Ok(()) => code::NO_ERROR,
                Err(error) => code_of(error),
            },
            Err(error) => code_of(error),
        };
        if code != code::NO_ERROR {
            (failed, last) = (failed + 1, code);
        }
        list.add(&offset.topic, offset.partition, offset.offset, code);
    }
    let code = match answer {
        Err(error) => code_of(error),
        Ok(_) if failed == offsets.len() => last,
        Ok(_) => code::NO_ERROR,
    };
    (code, list)
}

/// An element as an offset to be committed; `None` where there is none.
fn group_offset(element: &rd_kafka_topic_partition_t) -> Option<GroupOffset> {
    (element.offset >= 0).then(|| GroupOffset {
        topic: element.name().into(),
        partition: element.partition,
        offset: element.offset,
        leader_epoch: element.leader_epoch(),
        metadata: element.metadata_text(),
    })
}

/// Commits a list, or what is stored.
///
/// # Safety
///
/// NULL or a client, and NULL or a list that nobody else uses now.
unsafe fn commit(rk: *const Client, list: *mut List, is_async: bool) -> c_int {
    // SAFETY: as the caller says.
    let ((client, consumer), list) = match unsafe { (consumer_of(rk), List::of_mut(list)) } {
        // SAFETY: as the caller says.
        (Ok(_), None) if unsafe { List::is_gone(list) } => return code::_INVALID_ARG,
        (Ok(both), list) => (both, list),
        (Err(code), _) => return code,
    };
    if client.property("group.id").is_none_or(|group| group.is_empty()) {
        return code::_UNKNOWN_GROUP;
    }
    let offsets: Vec<GroupOffset> = match &list {
        Some(list) => list.elements().iter().filter_map(group_offset).collect(),
        None => client.offsets().uncommitted(consumer),
    };
    if is_async {
        if offsets.is_empty() {
            client.push_committed(code::_NO_OFFSET, Listed::default(), None);
        } else {
            client.commit_later(consumer, offsets, None);
        }
        return code::NO_ERROR;
    }
    if offsets.is_empty() {
        return code::_NO_OFFSET;
    }
    let answer = consumer.commit(&offsets, COMMIT_TIMEOUT);
    client.offsets().note_committed(&offsets, &answer);
    let (code, told) = outcome(&offsets, &answer);
    client.intercept_commit(told.as_ptr(), code);
    if let Some(list) = list {
        told.copy_codes(list);
    }
    code
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_commit(rk: *const Client, offsets: *const List, is_async: c_int) -> c_int {
    // SAFETY: NULL or a client and a list that nobody else uses now, says the caller. The interface lets the elements'
    // errors be written.
    guarded_for(rk, code::_FATAL, || unsafe { commit(rk, offsets.cast_mut(), is_async != 0) })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_commit_message(
    rk: *const Client,
    message: *const rd_kafka_message_t,
    is_async: c_int,
) -> c_int {
    guarded_for(rk, code::_FATAL, || {
        // SAFETY: NULL or a message, says the caller.
        let Some(message) = (unsafe { message.as_ref() }) else { return code::_INVALID_ARG };
        if message.err != code::NO_ERROR {
            return code::_INVALID_ARG;
        }
        let Some(topic) = topic_of(message) else { return code::_INVALID_ARG };
        let mut list = Listed::default();
        list.add(topic.name(), message.partition, message.offset + 1, code::NO_ERROR);
        // SAFETY: NULL or a client, says the caller; the list is ours.
        unsafe { commit(rk, list.as_ptr(), is_async != 0) }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_commit_queue(
    rk: *const Client,
    offsets: *const List,
    rkqu: *const Queue,
    cb: Option<ListCb>,
    commit_opaque: *mut c_void,
) -> c_int {
    guarded_for(rk, code::_FATAL, || {
        // SAFETY: NULL or a client, a list and a queue, says the caller.
        let ((client, consumer), list, to) =
            match unsafe { (consumer_of(rk), List::of(offsets), Queue::of(rkqu)) } {
                // SAFETY: as before.
                (Ok(_), None, _) if unsafe { List::is_gone(offsets) } => return code::_INVALID_ARG,
                (Ok(both), list, to) => (both, list, to),
                (Err(code), ..) => return code,
            };
        if client.property("group.id").is_none_or(|group| group.is_empty()) {
            return code::_UNKNOWN_GROUP;
        }
        let opaque = Opaque(commit_opaque);
        let offsets: Vec<GroupOffset> = match list {
            Some(list) => list.elements().iter().filter_map(group_offset).collect(),
            None => client.offsets().uncommitted(consumer),
        };
        match to {
            Some(to) if offsets.is_empty() => {
                client.push_committed(code::_NO_OFFSET, Listed::default(), Some((to, cb, opaque)));
            }
            Some(to) => client.commit_later(consumer, offsets, Some((to, cb, opaque))),
            None => {
                let (code, list) = if offsets.is_empty() {
                    (code::_NO_OFFSET, Listed::default())
                } else {
                    let answer = consumer.commit(&offsets, COMMIT_TIMEOUT);
                    client.offsets().note_committed(&offsets, &answer);
                    outcome(&offsets, &answer)
                };
                client.serve_committed(&Committed { code, list, callback: cb, opaque });
                return code;
            }
        }
        code::NO_ERROR
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_committed(
    rk: *const Client,
    partitions: *mut List,
    timeout_ms: c_int,
) -> c_int {
    guarded_for(rk, code::_FATAL, || {
        // SAFETY: NULL or a client and a list that nobody else uses now, says the caller.
        let ((client, consumer), list) = match unsafe { (consumer_of(rk), List::of_mut(partitions)) } {
            (Ok(both), Some(list)) => (both, list),
            (Err(code), _) => return code,
            _ => return code::_INVALID_ARG,
        };
        if client.property("group.id").is_none_or(|group| group.is_empty()) {
            return code::_UNKNOWN_GROUP;
        }
        let questions: Vec<_> =
            list.elements().iter().map(|element| (element.name().to_owned(), element.partition)).collect();
        let questions: Vec<_> =
            questions.iter().map(|(topic, partition)| (topic.as_str(), *partition)).collect();
        let answers = match consumer.committed(&questions, timeout(timeout_ms)) {
            Ok(answers) => answers,
            Err(error) => return code_of(&error),
        };
        for (element, answer) in list.elements_mut().iter_mut().zip(&answers) {
            element.set_metadata(b"");
            (element.offset, element.err) = match answer {
                Ok(Some(known)) => {
                    element.set_metadata(known.metadata.as_bytes());
                    element.set_leader_epoch(known.leader_epoch);
                    (known.offset, code::NO_ERROR)
                }
                Ok(None) => (OFFSET_INVALID, code::NO_ERROR),
                Err(error) => (OFFSET_INVALID, code_of(error)),
            };
        }
        code::NO_ERROR
    })
}

/// Stores an offset of a partition that is read.
fn store(
    client: &Client,
    consumer: &Consumer,
    topic: &str,
    partition: i32,
    place: (i64, i32, String),
) -> c_int {
    if partition < 0 {
        return code::_UNKNOWN_PARTITION;
    }
    if !consumer.assignment().iter().any(|(name, number)| name == topic && *number == partition) {
        return code::_STATE;
    }
    client.offsets().store(topic, partition, place);
    client.remind_of_commits(consumer);
    code::NO_ERROR
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_offset_store(rkt: *const Topic, partition: i32, offset: i64) -> c_int {
    guarded_for(rkt, code::_FATAL, || {
        // SAFETY: NULL or a topic, says the caller.
        let Some(topic) = (unsafe { handle::<Topic>(rkt) }) else { return code::_INVALID_ARG };
        let client = topic.client();
        let Some(consumer) = client.consumer() else { return code::_INVALID_ARG };
        store(client, consumer, topic.name(), partition, (offset.saturating_add(1), -1, String::new()))
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_offsets_store(rk: *const Client, offsets: *mut List) -> c_int {
    guarded_for(rk, code::_FATAL, || {
        // SAFETY: NULL or a client and a list that nobody else uses now, says the caller.
        let ((client, consumer), list) = match unsafe { (consumer_of(rk), List::of_mut(offsets)) } {
            (Ok(both), Some(list)) => (both, list),
            (Err(code), _) => return code,
            _ => return code::_INVALID_ARG,
        };
        if client.offsets().by_position {
            return code::_INVALID_ARG;
        }
        let mut stored = 0;
        let mut last = code::NO_ERROR;
        for element in list.elements_mut() {
            let place = (element.offset, element.leader_epoch(), element.metadata_text());
            element.err = store(client, consumer, element.name(), element.partition, place);
            match element.err {
                code::NO_ERROR => stored += 1,
                code => last = code,
            }
        }
        if stored == 0 { last } else { code::NO_ERROR }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_offset_store_message(
    message: *const rd_kafka_message_t,
) -> *mut ErrorObject {
    guarded(ptr::null_mut(), || {
        // SAFETY: NULL or a message of this library, says the caller.
        let message = unsafe { message.as_ref() };
        let Some(message) = message.filter(|message| message.err == code::NO_ERROR) else {
            let text = "an error is no message whose offset could be stored";
            return ErrorObject::answer(Err(ErrorObject::new(code::_INVALID_ARG, text)));
        };
        let Some(topic) = topic_of(message) else {
            return ErrorObject::answer(Err(ErrorObject::new(
                code::_INVALID_ARG,
                "the message has no topic",
            )));
        };
        let client = topic.client();
        let Some(consumer) = client.consumer() else {
            return ErrorObject::answer(Err(ErrorObject::new(code::_INVALID_ARG, "this is no consumer")));
        };
        // SAFETY: it was just looked at.
        let epoch = unsafe { Held::of(message) }.map_or(-1, |held| held.leader_epoch);
        let place = (message.offset + 1, epoch, String::new());
        ErrorObject::answer(match store(client, consumer, topic.name(), message.partition, place) {
            code::NO_ERROR => Ok(()),
            code => {
                let text = format!("{} [{}] is not assigned", topic.name(), message.partition);
                Err(ErrorObject::new(code, text))
            }
        })
    })
}
