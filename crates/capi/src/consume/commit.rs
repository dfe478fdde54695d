//! Commits by the application, and automatic commits.

use std::{
    ffi::{c_int, c_void},
    ptr,
    sync::Arc,
    time::{Duration, Instant},
};

use ottla::Consumer;
use ottla_core::{
    cluster::{command::Command, reminders::Reminder},
    completion::completion,
    error::{Error, ErrorKind},
    offsets::committed::{CommitResult, GroupOffset},
};
use ottla_net::clock;
use ottla_protocol::{
    uuid::Uuid,
    vocabulary::{LeaderEpoch, TopicPartition},
};

use crate::{
    client::{callbacks::ListCb, handle::Client, op::Op, queue::Queue, topic::Topic},
    consume::{
        consumer::{group_consumer_of, open_consumer_of},
        message::Held,
        offsets::Committed,
    },
    ffi::{
        argument::{Part, PartMut, Ref},
        boundary::Opaque,
        codes::{RespErr, code},
        error::code_of,
        export,
        list::{List, Listed},
        task,
        types::{OFFSET_INVALID, rd_kafka_message_t, rd_kafka_topic_partition_t},
    },
    group::state::Phase,
};

/// The queue for the outcome of a commit, and the callback and pointer for it.
type Recipient = (Arc<Queue>, Option<ListCb>, Opaque);

/// How long a commit is retried, unless `default.api.timeout.ms` is set.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(60);

/// A commit: its offsets in the order of their partitions, and the list's other partitions, which callbacks get, too.
struct Commit {
    offsets: Vec<GroupOffset>,
    /// Partitions of the application's list, or else of the assignment, that have no offset.
    others: Vec<TopicPartition>,
}

impl Commit {
    /// Commits the offsets of a list; without a list, the stored offsets.
    fn of(client: &Client, consumer: &Consumer, list: Option<&List>) -> Self {
        let Some(list) = list else {
            return Self::of_stored(consumer, client.offsets().uncommitted(consumer));
        };
        let elements = list.elements();
        let others = elements.iter().filter(|element| element.offset < 0);
        let others = others.map(|element| TopicPartition::new(element.name(), element.partition)).collect();
        Self { offsets: sorted(elements.iter().filter_map(group_offset).collect()), others }
    }

    /// Commits stored offsets of the assignment.
    fn of_stored(consumer: &Consumer, offsets: Vec<GroupOffset>) -> Self {
        let mut others = consumer.assignment();
        others.retain(|key| {
            !offsets.iter().any(|offset| offset.topic == key.topic && offset.partition == key.partition)
        });
        Self { offsets: sorted(offsets), others }
    }

    /// Returns the code of the commit, which is that of the last partition that failed, and the list for callbacks.
    fn outcome(&self, result: &CommitResult) -> (RespErr, Listed) {
        if self.offsets.is_empty() {
            return (code::_NO_OFFSET, self.listed(&[]));
        }
        let codes: Vec<RespErr> = match result {
            Ok(results) => results
                .iter()
                .map(|result| result.as_ref().err().map_or(code::NO_ERROR, code_of_commit))
                .collect(),
            Err(error) => vec![code_of_commit(error); self.offsets.len()],
        };
        let last = codes.iter().rfind(|code| **code != code::NO_ERROR);
        (last.copied().unwrap_or(code::NO_ERROR), self.listed(&codes))
    }

    /// Returns all partitions in their order; without offsets they are in the order of the list.
    fn listed(&self, codes: &[RespErr]) -> Listed {
        let mut partitions: Vec<_> =
            self.others.iter().map(|key| (&*key.topic, key.partition, None)).collect();
        let committed = self.offsets.iter().zip(codes);
        partitions.extend(committed.map(|both| (&*both.0.topic, both.0.partition, Some(both))));
        if !self.offsets.is_empty() {
            partitions.sort_by_key(|(topic, number, _)| (*topic, *number));
        }
        let mut list = Listed::default();
        for (topic, partition, committed) in partitions {
            match committed {
                Some((offset, code)) => {
                    list.add_with_metadata(topic, partition, offset.offset, *code, &offset.metadata);
                    list.set_leader_epoch_of_last(LeaderEpoch::to_wire(offset.leader_epoch));
                }
                None => list.add(topic, partition, OFFSET_INVALID, code::NO_ERROR),
            }
        }
        list
    }
}

/// Sorts offsets by partition.
fn sorted(mut offsets: Vec<GroupOffset>) -> Vec<GroupOffset> {
    offsets.sort_by(|one, other| (&one.topic, one.partition).cmp(&(&other.topic, other.partition)));
    offsets
}

impl Client {
    /// Handles the delivery of a partition's messages to the application.
    pub(crate) fn note_consumed(&self, consumer: &Consumer, topic: &str, partition: i32) {
        self.offsets().note_consumed(topic, partition);
        self.remind_of_commits(consumer);
    }

    /// Schedules the automatic commit of stored offsets, which does not depend on calls of the application.
    pub(super) fn remind_of_commits(&self, consumer: &Consumer) {
        let Some(at) = self.offsets().take_next_reminder() else { return };
        let (done, reminder) = completion();
        let after = at.saturating_duration_since(Instant::now());
        consumer.handle().command(Command::Remind(Reminder { at: clock::now() + after, done }));
        let me = self.weak();
        task::spawn(async move {
            // Runs on an I/O thread; dropped if the client ends.
            if reminder.await.is_some()
                && let Some(client) = me.upgrade()
                && !client.is_closing()
                && let Some(consumer) = client.consumer()
            {
                let offsets = client.offsets().handle_reminder(consumer, at);
                if !offsets.is_empty() {
                    client.commit_later(consumer, Commit::of_stored(consumer, offsets), None);
                }
                client.remind_of_commits(consumer);
            }
        });
    }

    /// Commits stored offsets before their partitions are revoked. Waits for that commit and for commits in flight, up
    /// to `timeout`.
    pub(crate) fn commit_before_leaving(&self, consumer: &Consumer, timeout: Duration) {
        let until = Instant::now() + timeout;
        let offsets = self.offsets().uncommitted_by_itself(consumer);
        self.commit_now(consumer, offsets, timeout);
        self.offsets().wait_for_commits(until);
    }

    /// Handles the end of reading a partition by the older calls.
    pub(crate) fn stop_older(&self, consumer: &Consumer, topic: &str, partition: i32, timeout: Duration) {
        let mut offsets = self.offsets().uncommitted_by_itself(consumer);
        offsets.retain(|offset| *offset.topic == *topic && offset.partition == partition);
        self.commit_now(consumer, offsets, timeout);
        self.offsets().end_older(topic, partition);
    }

    fn commit_now(&self, consumer: &Consumer, offsets: Vec<GroupOffset>, timeout: Duration) {
        if !offsets.is_empty() {
            let commit = Commit::of_stored(consumer, offsets);
            let result = consumer.commit(&commit.offsets, timeout);
            self.report_commit(&commit, &result, None);
        }
    }

    /// Commits the stored offsets, if automatic commits are enabled, without waiting for the interval.
    pub(crate) fn commit_at_once(&self, consumer: &Consumer) {
        let offsets = self.offsets().uncommitted_by_itself(consumer);
        if !offsets.is_empty() {
            self.commit_later(consumer, Commit::of_stored(consumer, offsets), None);
        }
    }

    /// Commits and forgets stored offsets, before the assignment is replaced.
    pub(crate) fn leave_partitions(&self, consumer: &Consumer) {
        self.commit_at_once(consumer);
        self.offsets().forget_all();
    }

    /// Reports an automatic commit of the group, if the application requested the outcome.
    pub(crate) fn report_automatic_commit(
        &self,
        consumer: &Consumer,
        offsets: &[GroupOffset],
        result: &CommitResult,
    ) {
        // The results are in the order of the offsets.
        let Some(queue) = self.consumer_queue() else { return };
        let conf = self.conf();
        let own = conf.callbacks.offset_commit;
        let to = own.is_some().then(|| (Arc::clone(queue), own, conf.opaque));
        let mut commit = Commit::of_stored(consumer, Vec::new());
        commit.others.retain(|key| {
            !offsets.iter().any(|offset| offset.topic == key.topic && offset.partition == key.partition)
        });
        commit.offsets = offsets.to_vec();
        self.offsets().note_committed(&commit.offsets, result);
        let (code, list) = commit.outcome(result);
        self.intercept_commit(list.as_ptr(), code);
        if to.is_some() {
            self.push_committed(code, list, to);
        }
    }

    /// Sends a commit; its outcome becomes an entry of the given queue or of the consumer's.
    fn commit_later(&self, consumer: &Consumer, commit: Commit, to: Option<Recipient>) {
        let under_way = self.offsets().begin_commit();
        let result = consumer.commit_async(&commit.offsets, self.default_timeout(COMMIT_TIMEOUT));
        let me = self.weak();
        task::spawn(async move {
            let _under_way = under_way;
            let result = result.await;
            if let Some(client) = me.upgrade() {
                client.report_commit(&commit, &result, to);
            }
        });
    }

    fn report_commit(&self, commit: &Commit, result: &CommitResult, to: Option<Recipient>) -> RespErr {
        self.offsets().note_committed(&commit.offsets, result);
        let (code, list) = commit.outcome(result);
        self.intercept_commit(list.as_ptr(), code);
        self.push_committed(code, list, to);
        code
    }

    /// Reports a commit, if the application requested the outcome.
    fn push_committed(&self, code: RespErr, list: Listed, to: Option<Recipient>) {
        let conf = self.conf();
        let own = conf.callbacks.offset_commit;
        // Events need the callback, too: the function is not called, it says that the outcome is wanted.
        let own = own.is_some().then(|| (Arc::clone(self.main()), own, conf.opaque));
        if let Some((queue, callback, opaque)) = to.or(own) {
            queue.push(Op::Committed(Box::new(Committed {
                code,
                list,
                callback,
                opaque,
                is_refused: false,
            })));
        }
    }

    /// Refuses a commit of a closed consumer: a call that waits learns of it, or the callback when its queue is polled.
    fn refuse_commit(
        &self,
        to: Option<Arc<Queue>>,
        list: *mut List,
        callback: Option<ListCb>,
        opaque: *mut c_void,
    ) -> RespErr {
        if let Some(queue) = to {
            let list = Listed::copy_of(list);
            let opaque = Opaque(opaque);
            let refused = Committed { code: code::_DESTROY, list, callback, opaque, is_refused: true };
            queue.push(Op::Committed(Box::new(refused)));
            return code::NO_ERROR;
        }
        if let Some(callback) = callback {
            // SAFETY: the application's function gets the application's list.
            unsafe { callback(self.as_c(), code::_DESTROY, list, opaque) };
        }
        code::_DESTROY
    }

    /// Calls the callback of a commit.
    pub(crate) fn serve_committed(&self, committed: &Committed) {
        if let Some(callback) = committed.callback {
            // SAFETY: the application's function gets a list that lives until it returns.
            unsafe { callback(self.as_c(), committed.code, committed.list.as_ptr(), committed.opaque.0) };
        }
    }
}

/// Returns the code for the error of a commit. If the generation has ended, or the consumer is not a member, the commit was not
/// sent: then it is the code of the coordinator for this case. Nor is it if the topic was recreated: the old one does not exist.
fn code_of_commit(error: &Error) -> RespErr {
    match (error.kind(), error.context().refusal) {
        (ErrorKind::State, Some(code)) => code.into(),
        (ErrorKind::State, None) => code::ILLEGAL_GENERATION,
        (ErrorKind::TopicRecreated, _) => code::UNKNOWN_TOPIC_OR_PART,
        _ => code_of(error),
    }
}

/// Returns the offset of an element to be committed, if it has one.
fn group_offset(element: &rd_kafka_topic_partition_t) -> Option<GroupOffset> {
    (element.offset >= 0).then(|| GroupOffset {
        topic: element.name().into(),
        partition: element.partition,
        offset: element.offset,
        leader_epoch: LeaderEpoch::from_wire(element.leader_epoch()),
        metadata: element.metadata_text(),
        topic_id: None,
    })
}

/// Commits a list, or the stored offsets. `of` is the ID of the topic that the list is about, if it is known.
fn commit(
    client: &Client,
    consumer: &Consumer,
    list: Option<&List>,
    is_async: bool,
    of: Result<Option<Uuid>, Error>,
) -> RespErr {
    if client.fatal().is_some() {
        return code::_FATAL;
    }
    if client.membership().phase() == Phase::Closed {
        return if is_async { code::NO_ERROR } else { code::_DESTROY };
    }
    if list.is_none() && consumer.group().is_assignment_lost() {
        return code::_ASSIGNMENT_LOST;
    }
    let mut commit = Commit::of(client, consumer, list);
    match of {
        Ok(None) => {}
        Ok(id) => commit.offsets.iter_mut().for_each(|offset| offset.topic_id = id),
        Err(error) => {
            let code = client.report_commit(&commit, &Err(error), None);
            return if is_async { code::NO_ERROR } else { code };
        }
    }
    if commit.offsets.is_empty() {
        client.push_committed(code::_NO_OFFSET, commit.listed(&[]), None);
        return if is_async { code::NO_ERROR } else { code::_NO_OFFSET };
    }
    if is_async {
        client.commit_later(consumer, commit, None);
        return code::NO_ERROR;
    }
    let result = consumer.commit(&commit.offsets, client.default_timeout(COMMIT_TIMEOUT));
    // The callback runs in a later poll, as after an asynchronous commit.
    client.report_commit(&commit, &result, None)
}

export!(
    #[on(rk, code::_FATAL)]
    fn rd_kafka_commit(rk: Ref<Client>, offsets: Part<List>, is_async: c_int) -> RespErr {
        match group_consumer_of(rk) {
            Err(code) => code,
            Ok(_) if List::is_gone(offsets) => code::_INVALID_ARG,
            Ok((client, consumer)) => {
                commit(client, consumer, List::passed(offsets), is_async != 0, Ok(None))
            }
        }
    }
);

export!(
    #[on(rk, code::_FATAL)]
    fn rd_kafka_commit_message(
        rk: Ref<Client>,
        message: Part<rd_kafka_message_t>,
        is_async: c_int,
    ) -> RespErr {
        let records = Held::original(message).and_then(Held::fetched);
        let Some(message) = message.get() else { return code::_INVALID_ARG };
        if message.err != code::NO_ERROR {
            return code::_INVALID_ARG;
        }
        let Some(topic) = Topic::of_message(message) else { return code::_INVALID_ARG };
        let mut list = Listed::default();
        list.add(topic.name(), message.partition, message.offset + 1, code::NO_ERROR);
        match group_consumer_of(rk) {
            Err(code) => code,
            Ok((client, consumer)) => {
                let of = records.map_or(Ok(None), |records| consumer.core().topic_id_of(records));
                commit(client, consumer, list.get(), is_async != 0, of)
            }
        }
    }
);

export!(
    #[on(rk, code::_FATAL)]
    fn rd_kafka_commit_queue(
        rk: Ref<Client>,
        offsets: Part<List>,
        rkqu: Ref<Queue>,
        cb: Option<ListCb>,
        commit_opaque: *mut c_void,
    ) -> RespErr {
        let ((client, consumer), list, to) =
            match (group_consumer_of(rk), List::passed(offsets), rkqu.counted()) {
                (Ok(_), None, _) if List::is_gone(offsets) => return code::_INVALID_ARG,
                (Ok(both), list, to) => (both, list, to),
                (Err(code), ..) => return code,
            };
        if client.membership().phase() == Phase::Closed {
            let list = list.map_or(ptr::null_mut(), |list| ptr::from_ref(list).cast_mut());
            return client.refuse_commit(to, list, cb, commit_opaque);
        }
        let opaque = Opaque(commit_opaque);
        let commit = Commit::of(client, consumer, list);
        match to {
            Some(to) if commit.offsets.is_empty() => {
                client.push_committed(code::_NO_OFFSET, commit.listed(&[]), Some((to, cb, opaque)));
            }
            Some(to) => client.commit_later(consumer, commit, Some((to, cb, opaque))),
            None => {
                let (code, list) = if commit.offsets.is_empty() {
                    (code::_NO_OFFSET, commit.listed(&[]))
                } else {
                    let result = consumer.commit(&commit.offsets, client.default_timeout(COMMIT_TIMEOUT));
                    client.offsets().note_committed(&commit.offsets, &result);
                    commit.outcome(&result)
                };
                match cb {
                    Some(_) => client.serve_committed(&Committed {
                        code,
                        list,
                        callback: cb,
                        opaque,
                        is_refused: false,
                    }),
                    None => client.push_committed(code, list, None),
                }
                return code;
            }
        }
        code::NO_ERROR
    }
);

export!(
    #[on(rk, code::_FATAL)]
    fn rd_kafka_committed(rk: Ref<Client>, partitions: PartMut<List>, timeout_ms: c_int) -> RespErr {
        let ((client, consumer), list) = match (group_consumer_of(rk), List::passed_mut(partitions)) {
            (_, None) => return code::_INVALID_ARG,
            (Ok(both), Some(list)) => (both, list),
            (Err(code), _) => return code,
        };
        let elements = list.elements().iter();
        let questions: Vec<_> =
            elements.map(|element| TopicPartition::new(element.name(), element.partition)).collect();
        // The offsets of the list are reset before the request, even if it fails.
        list.elements_mut().iter_mut().for_each(|element| element.offset = OFFSET_INVALID);
        if let Err(code) = open_consumer_of(rk) {
            return code;
        }
        let results = match consumer.committed(&questions, client.query_timeout(timeout_ms)) {
            Ok(results) => results,
            Err(error) => return code_of(&error),
        };
        for (element, result) in list.elements_mut().iter_mut().zip(&results) {
            element.set_metadata(b"");
            element.set_leader_epoch(-1);
            (element.offset, element.err) = match result {
                Ok(Some(known)) => {
                    element.set_metadata(known.metadata.as_bytes());
                    element.set_leader_epoch(LeaderEpoch::to_wire(known.leader_epoch));
                    (known.offset, code::NO_ERROR)
                }
                Ok(None) => (OFFSET_INVALID, code::NO_ERROR),
                Err(error) => (OFFSET_INVALID, code_of(error)),
            };
        }
        code::NO_ERROR
    }
);
