//! Consuming: the assigned consumer, and the older calls that name a topic and a partition.

use std::{
    collections::BTreeSet,
    ffi::{c_char, c_int, c_void},
    ptr,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use ottla::{Consumer, ErrorKind, Offset, OffsetSpec};

use crate::{
    boundary::{guarded_for, handle, text},
    client::Client,
    codes::code,
    conf::{ConsumeCb, TopicConf},
    error::{ErrorObject, code_of, fail, set_last},
    list::List,
    message::{error_message, rd_kafka_message_destroy},
    op::{ErrorMessage, Op},
    queue::{self, Queue},
    time::{Patience, timeout},
    topic::Topic,
    types::{
        OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID, OFFSET_STORED, OFFSET_TAIL_BASE, rd_kafka_message_t,
        rd_kafka_topic_partition_t,
    },
};

/// A place in the interface's numbers.
fn place(offset: i64) -> Option<Offset> {
    match offset {
        0.. => Some(Offset::At(offset)),
        OFFSET_END => Some(Offset::End),
        OFFSET_BEGINNING => Some(Offset::Beginning),
        OFFSET_STORED | OFFSET_INVALID => Some(Offset::Stored),
        ..=OFFSET_TAIL_BASE => Some(Offset::Tail(OFFSET_TAIL_BASE.saturating_sub(offset))),
        _ => None,
    }
}

/// A list as places to fetch from.
fn places(elements: &[rd_kafka_topic_partition_t]) -> Option<Vec<(String, i32, Offset)>> {
    elements
        .iter()
        .map(|element| Some((element.name().to_owned(), element.partition, place(element.offset)?)))
        .collect()
}

/// True if a partition stands there twice.
fn repeats(elements: &[rd_kafka_topic_partition_t]) -> bool {
    let mut seen = BTreeSet::new();
    !elements.iter().all(|element| seen.insert((element.name(), element.partition)))
}

/// The consumer behind a handle.
///
/// # Safety
///
/// NULL or a client of this library.
pub(crate) unsafe fn consumer_of<'a>(rk: *const Client) -> Result<(&'a Client, &'a Consumer), c_int> {
    // SAFETY: as the caller says.
    let client = unsafe { Client::of(rk) }.ok_or(code::_INVALID_ARG)?;
    if client.is_producer() {
        return Err(code::_UNKNOWN_GROUP);
    }
    Ok((client, client.consumer().ok_or(code::_ALL_BROKERS_DOWN)?))
}

/// How long closing waits for a commit.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

impl Client {
    /// Partitions with a queue of their own go there again after they were assigned anew.
    fn route_again(&self, consumer: &Consumer) {
        for ((topic, partition), queue) in &*self.partition_queues().lock() {
            // A partition that is not assigned has no route.
            let _ = consumer.set_route(topic, *partition, queue.route());
        }
    }

    /// The queue of a partition, made if there is none.
    fn partition_queue(&self, consumer: &Consumer, topic: &str, partition: i32) -> (Arc<Queue>, bool) {
        let mut queues = self.partition_queues().lock();
        let mut is_new = false;
        let queue = queues.entry((topic.to_owned(), partition)).or_insert_with(|| {
            is_new = true;
            let queue = Queue::new();
            queue.set_client(self.weak());
            queue
        });
        let _ = consumer.set_route(topic, partition, queue.route());
        (Arc::clone(queue), is_new)
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_assign(rk: *const Client, partitions: *const List) -> c_int {
    guarded_for(rk, code::_FATAL, || {
        // SAFETY: NULL or a client and a list, says the caller.
        let ((client, consumer), list) = match unsafe { (consumer_of(rk), List::of(partitions)) } {
            (Ok(both), list) => (both, list),
            (Err(code), _) => return code,
        };
        // SAFETY: as before.
        if unsafe { List::is_gone(partitions) } {
            return code::_INVALID_ARG;
        }
        let elements = list.map_or(&[][..], List::elements);
        let Some(places) = places(elements).filter(|_| !repeats(elements)) else {
            return code::_INVALID_ARG;
        };
        client.note_partitions(c"ASSIGN", "Assigned", elements);
        client.leave_partitions(consumer);
        match consumer.assign(&places) {
            Ok(()) => {
                client.route_again(consumer);
                code::NO_ERROR
            }
            Err(error) => code_of(&error),
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_incremental_assign(
    rk: *const Client,
    partitions: *const List,
) -> *mut ErrorObject {
    guarded_for(rk, ptr::null_mut(), || {
        // SAFETY: NULL or a client and a list, says the caller.
        ErrorObject::answer(match unsafe { (consumer_of(rk), List::of(partitions)) } {
            (Err(code), _) => Err(ErrorObject::new(code, "this is no consumer")),
            (_, None) => Err(ErrorObject::new(code::_INVALID_ARG, "no partitions were given")),
            (Ok((client, consumer)), Some(list)) => match places(list.elements()) {
                None => Err(ErrorObject::new(code::_INVALID_ARG, "an offset is none")),
                Some(_) if repeats(list.elements()) => {
                    Err(ErrorObject::new(code::_INVALID_ARG, "a partition stands in the list twice"))
                }
                Some(places) => {
                    let known = consumer.assignment();
                    if let Some((topic, partition, _)) = places
                        .iter()
                        .find(|(topic, partition, _)| known.iter().any(|(t, p)| t == topic && p == partition))
                    {
                        let text = format!("{topic} [{partition}] is assigned already");
                        Err(ErrorObject::new(code::_CONFLICT, text))
                    } else {
                        client.note_partitions(c"ASSIGN", "Added to the assignment", list.elements());
                        let result =
                            consumer.incremental_assign(&places).map_err(|error| ErrorObject::from(&error));
                        client.route_again(consumer);
                        result
                    }
                }
            },
        })
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_incremental_unassign(
    rk: *const Client,
    partitions: *const List,
) -> *mut ErrorObject {
    guarded_for(rk, ptr::null_mut(), || {
        // SAFETY: NULL or a client and a list, says the caller.
        ErrorObject::answer(match unsafe { (consumer_of(rk), List::of(partitions)) } {
            (Err(code), _) => Err(ErrorObject::new(code, "this is no consumer")),
            (_, None) => Err(ErrorObject::new(code::_INVALID_ARG, "no partitions were given")),
            (Ok((client, consumer)), Some(list)) => {
                let pairs: Vec<_> =
                    list.elements().iter().map(|e| (e.name().to_owned(), e.partition)).collect();
                client.note_partitions(c"ASSIGN", "Taken from the assignment", list.elements());
                client.commit_at_once(consumer);
                let result = consumer.incremental_unassign(&pairs).map_err(|error| match error.kind() {
                    // A partition that is not assigned is a wrong argument here.
                    ErrorKind::State => ErrorObject::new(code::_INVALID_ARG, error.to_string()),
                    _ => ErrorObject::from(&error),
                });
                if result.is_ok() {
                    pairs.iter().for_each(|(topic, partition)| client.offsets().forget(topic, *partition));
                }
                result
            }
        })
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_assignment(rk: *const Client, partitions: *mut *mut List) -> c_int {
    guarded_for(rk, code::_FATAL, || {
        // SAFETY: NULL or a client and a writable place, says the caller.
        unsafe {
            let (_, consumer) = match consumer_of(rk) {
                Ok(both) => both,
                Err(code) => return code,
            };
            if partitions.is_null() {
                return code::_INVALID_ARG;
            }
            let assigned = consumer.assignment();
            let list = List::with_capacity(assigned.len());
            if let Some(list) = list.as_mut() {
                for (topic, partition) in assigned {
                    list.add(topic.as_bytes(), partition);
                }
            }
            *partitions = list;
            code::NO_ERROR
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_consumer_poll(
    rk: *const Client,
    timeout_ms: c_int,
) -> *mut rd_kafka_message_t {
    guarded_for(rk, ptr::null_mut(), || {
        // SAFETY: NULL or a client, says the caller.
        let Some(client) = (unsafe { Client::of(rk) }) else { return ptr::null_mut() };
        let Some(queue) = client.consumer_queue() else { return ptr::null_mut() };
        queue.pop_message(client, &mut Patience::new(timeout_ms)).unwrap_or(ptr::null_mut())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_poll_set_consumer(rk: *const Client) -> c_int {
    guarded_for(rk, code::_FATAL, || {
        // SAFETY: NULL or a client, says the caller.
        let Some(client) = (unsafe { Client::of(rk) }) else { return code::_INVALID_ARG };
        match client.consumer_queue() {
            Some(queue) => {
                client.main().forward(Some(Arc::clone(queue)));
                code::NO_ERROR
            }
            None => code::_UNKNOWN_GROUP,
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_consumer_close(rk: *const Client) -> c_int {
    guarded_for(rk, code::_FATAL, || {
        // SAFETY: NULL or a client, says the caller.
        match unsafe { consumer_of(rk) } {
            Ok((client, consumer)) => {
                // There is no group to leave: what is left is to commit and to stop fetching.
                client.commit_before_leaving(consumer, CLOSE_TIMEOUT);
                client.offsets().forget_all();
                let _ = consumer.assign(&[] as &[(&str, i32, Offset)]);
                client.set_closed();
                code::NO_ERROR
            }
            Err(code) => code,
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_consumer_closed(rk: *const Client) -> c_int {
    // SAFETY: NULL or a client, says the caller.
    unsafe { Client::of(rk) }.map_or(0, |client| client.is_closed().into())
}

/// Pauses or resumes, and tells each element how it went.
///
/// # Safety
///
/// NULL or a client and a list that nobody else uses now.
unsafe fn pause_or_resume(rk: *const Client, partitions: *mut List, pause: bool) -> c_int {
    guarded_for(rk, code::_FATAL, || {
        // SAFETY: as the caller says.
        let (Some(client), Some(list)) = (unsafe { (Client::of(rk), List::of_mut(partitions)) }) else {
            return code::_INVALID_ARG;
        };
        let consumer = client.consumer();
        let (facility, what) = if pause { (c"PAUSE", "Pausing") } else { (c"RESUME", "Resuming") };
        client.note_partitions(facility, what, list.elements());
        if client.is_producer() {
            client.hold_back(list, pause);
            return code::NO_ERROR;
        }
        for element in list.elements_mut() {
            let pair = [(element.name(), element.partition)];
            let result = match consumer {
                Some(consumer) if pause => consumer.pause(&pair),
                Some(consumer) => consumer.resume(&pair),
                None => {
                    element.err = code::_ALL_BROKERS_DOWN;
                    continue;
                }
            };
            element.err = if result.is_ok() { code::NO_ERROR } else { code::_UNKNOWN_PARTITION };
        }
        code::NO_ERROR
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_pause_partitions(rk: *const Client, partitions: *mut List) -> c_int {
    // SAFETY: as the caller says.
    unsafe { pause_or_resume(rk, partitions, true) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_resume_partitions(rk: *const Client, partitions: *mut List) -> c_int {
    // SAFETY: as the caller says.
    unsafe { pause_or_resume(rk, partitions, false) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_position(rk: *const Client, partitions: *mut List) -> c_int {
    guarded_for(rk, code::_FATAL, || {
        // SAFETY: NULL or a client and a list that nobody else uses now, says the caller.
        let ((_, consumer), list) = match unsafe { (consumer_of(rk), List::of_mut(partitions)) } {
            (Ok(both), Some(list)) => (both, list),
            (Err(code), _) => return code,
            _ => return code::_INVALID_ARG,
        };
        for element in list.elements_mut() {
            element.err = code::NO_ERROR;
            element.offset = consumer.position(element.name(), element.partition).unwrap_or(OFFSET_INVALID);
        }
        code::NO_ERROR
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_seek(
    rkt: *const Topic,
    partition: i32,
    offset: i64,
    timeout_ms: c_int,
) -> c_int {
    guarded_for(rkt, code::_FATAL, || {
        // SAFETY: NULL or a topic, says the caller.
        let Some(topic) = (unsafe { handle::<Topic>(rkt) }) else { return code::_INVALID_ARG };
        let Some(consumer) = topic.client().consumer() else { return code::_STATE };
        seek(topic.client(), consumer, topic.name(), partition, offset, timeout_ms)
    })
}

fn seek(
    client: &Client,
    consumer: &Consumer,
    topic: &str,
    partition: i32,
    offset: i64,
    timeout_ms: c_int,
) -> c_int {
    let Some(from) = place(offset) else { return code::_INVALID_ARG };
    match consumer.seek(topic, partition, from, timeout(timeout_ms)) {
        Ok(_) => {
            client.offsets().forget(topic, partition);
            code::NO_ERROR
        }
        Err(error) => code_of(&error),
    }
}

/// Seeks every element, all at once; each learns its own fate.
fn seek_all(client: &Client, consumer: &Consumer, list: &mut List, timeout_ms: c_int) {
    let until = Instant::now().checked_add(timeout(timeout_ms));
    let mut begun = Vec::with_capacity(list.elements().len());
    for element in list.elements() {
        begun.push(match place(element.offset) {
            Some(from) => {
                consumer.seek_begin(element.name(), element.partition, from).map_err(|error| code_of(&error))
            }
            None => Err(code::_INVALID_ARG),
        });
    }
    for (element, begun) in list.elements_mut().iter_mut().zip(begun) {
        let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
        let sought = match begun {
            Ok(_) if timeout_ms == 0 => Ok(()),
            Ok(begun) => begun.wait(left).map(|_| ()).map_err(|error| code_of(&error)),
            Err(code) => Err(code),
        };
        if sought.is_ok() {
            client.offsets().forget(element.name(), element.partition);
        }
        element.err = sought.err().unwrap_or(code::NO_ERROR);
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_seek_partitions(
    rk: *const Client,
    partitions: *mut List,
    timeout_ms: c_int,
) -> *mut ErrorObject {
    guarded_for(rk, ptr::null_mut(), || {
        // SAFETY: NULL or a client and a list that nobody else uses now, says the caller.
        ErrorObject::answer(match unsafe { (consumer_of(rk), List::of_mut(partitions)) } {
            (Err(code), _) => Err(ErrorObject::new(code, "this is no consumer")),
            (_, None) => Err(ErrorObject::new(code::_INVALID_ARG, "no partitions were given")),
            (Ok((client, consumer)), Some(list)) => {
                client.note_partitions(c"SEEK", "Seeking", list.elements());
                seek_all(client, consumer, list, timeout_ms);
                Ok(())
            }
        })
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_queue_get_partition(
    rk: *const Client,
    topic: *const c_char,
    partition: i32,
) -> *const Queue {
    guarded_for(rk, ptr::null(), || {
        // SAFETY: NULL or a client and a text, says the caller.
        let (both, topic) = unsafe { (consumer_of(rk), text(topic)) };
        let (Ok((client, consumer)), Some(topic)) = (both, topic) else { return ptr::null() };
        let (queue, is_new) = client.partition_queue(consumer, &topic, partition);
        if is_new {
            queue.forward(client.consumer_queue().cloned());
        }
        queue::raw(Some(queue))
    })
}

/// Begins to fetch a partition for the older calls.
///
/// # Safety
///
/// NULL or a topic and a queue.
unsafe fn start(rkt: *const Topic, partition: i32, offset: i64, to: Option<Arc<Queue>>) -> c_int {
    guarded_for(rkt, -1, || {
        // SAFETY: as the caller says.
        let topic = unsafe { handle::<Topic>(rkt) };
        let (Some(topic), Some(from)) = (topic, place(offset)) else { return fail(code::_INVALID_ARG) };
        if partition < 0 {
            return fail(code::_UNKNOWN_PARTITION);
        }
        let client = topic.client();
        // Whoever polls another client's queue asks that client for messages, and gets none of this one's.
        let is_its = |queue: &Arc<Queue>| queue.client().is_some_and(|owner| Arc::ptr_eq(&owner, client));
        if !to.as_ref().is_none_or(is_its) {
            return fail(code::_INVALID_ARG);
        }
        let Some(consumer) = client.consumer() else { return fail(code::_INVALID_ARG) };
        if consumer.assignment().iter().any(|(name, number)| name == topic.name() && *number == partition) {
            return fail(code::_CONFLICT);
        }
        // The client may not have had brokers to start with when the topic was made.
        topic.set_auto_offset_reset();
        let from = match client.start_offset_file(topic, partition, from) {
            None => {
                client.offsets().begin_older(topic.name(), partition, topic.auto_commit_interval());
                from
            }
            Some(Ok(from)) => from,
            Some(Err(text)) => {
                // Nothing is fetched, as after any other error of the partition that `auto.offset.reset` can't mend.
                let (queue, _) = client.partition_queue(consumer, topic.name(), partition);
                queue.forward(to);
                let counted = client.topic(topic.name(), None).ok();
                let error =
                    error_message(code::_AUTO_OFFSET_RESET, &text, counted, partition, OFFSET_INVALID);
                queue.push(Op::Message(ErrorMessage(error)));
                return 0;
            }
        };
        if let Err(error) = consumer.incremental_assign(&[(topic.name(), partition, from)]) {
            client.stop_offset_file(topic.name(), partition);
            client.offsets().end_older(topic.name(), partition);
            return fail(code_of(&error));
        }
        client.simple_count().fetch_add(1, Ordering::Relaxed);
        let (queue, _) = client.partition_queue(consumer, topic.name(), partition);
        queue.forward(to);
        0
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_consume_start(rkt: *const Topic, partition: i32, offset: i64) -> c_int {
    // SAFETY: as the caller says.
    unsafe { start(rkt, partition, offset, None) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_consume_start_queue(
    rkt: *const Topic,
    partition: i32,
    offset: i64,
    rkqu: *const Queue,
) -> c_int {
    // SAFETY: as the caller says.
    match unsafe { Queue::of(rkqu) } {
        // SAFETY: as the caller says.
        Some(queue) => unsafe { start(rkt, partition, offset, Some(queue)) },
        None => fail(code::_INVALID_ARG),
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_consume_stop(rkt: *const Topic, partition: i32) -> c_int {
    guarded_for(rkt, -1, || {
        // SAFETY: NULL or a topic, says the caller.
        let Some(topic) = (unsafe { handle::<Topic>(rkt) }) else { return fail(code::_INVALID_ARG) };
        let client = topic.client();
        let Some(consumer) = client.consumer() else { return fail(code::_INVALID_ARG) };
        client.stop_older(consumer, topic.name(), partition, CLOSE_TIMEOUT);
        client.stop_offset_file(topic.name(), partition);
        let result = consumer.incremental_unassign(&[(topic.name(), partition)]);
        client.offsets().forget(topic.name(), partition);
        let queue = client.partition_queues().lock().remove(&(topic.name().to_owned(), partition));
        if let Some(queue) = queue {
            queue.forward(None);
            queue.clear();
        }
        match result {
            Ok(()) => 0,
            Err(_) => fail(code::_UNKNOWN_PARTITION),
        }
    })
}

/// The queue from which a partition is consumed by the older calls.
///
/// # Safety
///
/// NULL or a topic.
unsafe fn started<'a>(rkt: *const Topic, partition: i32) -> Option<(&'a Topic, Arc<Queue>)> {
    // SAFETY: as the caller says.
    let topic = unsafe { handle::<Topic>(rkt) }?;
    let queues = topic.client().partition_queues().lock();
    let queue = queues.get(&(topic.name().to_owned(), partition)).cloned();
    drop(queues);
    if queue.is_none() {
        set_last(code::_UNKNOWN_PARTITION);
    }
    Some((topic, queue?))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_consume(
    rkt: *const Topic,
    partition: i32,
    timeout_ms: c_int,
) -> *mut rd_kafka_message_t {
    guarded_for(rkt, ptr::null_mut(), || {
        // SAFETY: NULL or a topic, says the caller.
        match unsafe { started(rkt, partition) } {
            Some((topic, queue)) => one(&queue, topic.client(), timeout_ms),
            None => ptr::null_mut(),
        }
    })
}

fn one(queue: &Arc<Queue>, client: &Client, timeout_ms: c_int) -> *mut rd_kafka_message_t {
    queue.pop_message(client, &mut Patience::new(timeout_ms)).unwrap_or_else(|| {
        set_last(code::_TIMED_OUT);
        ptr::null_mut()
    })
}

/// Fills the application's array.
///
/// # Safety
///
/// `into` has `size` places, or is NULL.
unsafe fn batch(
    queue: &Arc<Queue>,
    client: &Client,
    timeout_ms: c_int,
    into: *mut *mut rd_kafka_message_t,
    size: usize,
) -> isize {
    if into.is_null() {
        return fail(code::_INVALID_ARG) as isize;
    }
    // SAFETY: as the caller says.
    let into = unsafe { std::slice::from_raw_parts_mut(into, size) };
    queue.pop_messages(client, &mut Patience::new(timeout_ms), into, true) as isize
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_consume_batch(
    rkt: *const Topic,
    partition: i32,
    timeout_ms: c_int,
    rkmessages: *mut *mut rd_kafka_message_t,
    rkmessages_size: usize,
) -> isize {
    guarded_for(rkt, -1, || {
        // SAFETY: NULL or a topic, and an array of that size, says the caller.
        unsafe {
            match started(rkt, partition) {
                Some((topic, queue)) => {
                    batch(&queue, topic.client(), timeout_ms, rkmessages, rkmessages_size)
                }
                None => -1,
            }
        }
    })
}

/// Hands messages to a callback until there are none, or as many as `of` says.
fn callback(
    queue: &Arc<Queue>,
    client: &Client,
    of: &TopicConf,
    timeout_ms: c_int,
    consume_cb: Option<ConsumeCb>,
    opaque: *mut c_void,
) -> c_int {
    let Some(consume_cb) = consume_cb else { return fail(code::_INVALID_ARG) };
    // The callback may destroy the client.
    let _held = client.weak().upgrade();
    let most =
        of.raw.get("consume.callback.max.messages").ok().and_then(|most| most.parse().ok()).unwrap_or(0);
    let mut patience = Patience::new(timeout_ms);
    let mut count = 0;
    while let Some(message) = queue.pop_message(client, &mut patience) {
        // SAFETY: the application's function, with a message that lives until it returns.
        unsafe {
            consume_cb(message, opaque);
            rd_kafka_message_destroy(message);
        }
        count += 1;
        if count == most || queue::take_yield() || client.is_closing() {
            break;
        }
        if count == 1 {
            patience = Patience::new(0);
        }
    }
    count
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_consume_callback(
    rkt: *const Topic,
    partition: i32,
    timeout_ms: c_int,
    consume_cb: Option<ConsumeCb>,
    opaque: *mut c_void,
) -> c_int {
    guarded_for(rkt, -1, || {
        // SAFETY: NULL or a topic, says the caller.
        match unsafe { started(rkt, partition) } {
            Some((topic, queue)) => {
                callback(&queue, topic.client(), topic.conf(), timeout_ms, consume_cb, opaque)
            }
            None => -1,
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_consume_queue(
    rkqu: *const Queue,
    timeout_ms: c_int,
) -> *mut rd_kafka_message_t {
    guarded_for(rkqu, ptr::null_mut(), || {
        // SAFETY: NULL or a queue, says the caller.
        let queue = unsafe { Queue::of(rkqu) };
        match queue.and_then(|queue| Some((queue.client()?, queue))) {
            Some((client, queue)) => one(&queue, &client, timeout_ms),
            None => ptr::null_mut(),
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_consume_batch_queue(
    rkqu: *const Queue,
    timeout_ms: c_int,
    rkmessages: *mut *mut rd_kafka_message_t,
    rkmessages_size: usize,
) -> isize {
    guarded_for(rkqu, -1, || {
        // SAFETY: NULL or a queue, and an array of that size, says the caller.
        unsafe {
            let queue = Queue::of(rkqu);
            match queue.and_then(|queue| Some((queue.client()?, queue))) {
                Some((client, queue)) => batch(&queue, &client, timeout_ms, rkmessages, rkmessages_size),
                None => fail(code::_INVALID_ARG) as isize,
            }
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_consume_callback_queue(
    rkqu: *const Queue,
    timeout_ms: c_int,
    consume_cb: Option<ConsumeCb>,
    opaque: *mut c_void,
) -> c_int {
    guarded_for(rkqu, -1, || {
        // SAFETY: NULL or a queue, says the caller.
        let queue = unsafe { Queue::of(rkqu) };
        match queue.and_then(|queue| Some((queue.client()?, queue))) {
            Some((client, queue)) => {
                callback(&queue, &client, client.default_topic_conf(), timeout_ms, consume_cb, opaque)
            }
            None => fail(code::_INVALID_ARG),
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_query_watermark_offsets(
    rk: *const Client,
    topic: *const c_char,
    partition: i32,
    low: *mut i64,
    high: *mut i64,
    timeout_ms: c_int,
) -> c_int {
    guarded_for(rk, code::_FATAL, || {
        // SAFETY: NULL or a client, a text and writable places, says the caller.
        unsafe {
            let (Some(client), Some(topic)) = (Client::of(rk), text(topic)) else {
                return code::_INVALID_ARG;
            };
            let admin = match client.admin() {
                Ok(admin) => admin,
                Err(code) => return code,
            };
            let questions =
                [(&*topic, partition, OffsetSpec::Earliest), (&*topic, partition, OffsetSpec::Latest)];
            let answers = match admin.list_offsets(&questions, timeout(timeout_ms)) {
                Ok(answers) => answers,
                Err(error) => return code_of(&error),
            };
            for (answer, to) in answers.iter().zip([low, high]) {
                match answer {
                    Ok(answer) if !to.is_null() => *to = answer.offset,
                    Ok(_) => {}
                    Err(error) => return code_of(error),
                }
            }
            code::NO_ERROR
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_get_watermark_offsets(
    rk: *const Client,
    topic: *const c_char,
    partition: i32,
    low: *mut i64,
    high: *mut i64,
) -> c_int {
    guarded_for(rk, code::_FATAL, || {
        // SAFETY: NULL or a client, a text and writable places, says the caller.
        unsafe {
            let (both, Some(topic)) = (consumer_of(rk), text(topic)) else { return code::_INVALID_ARG };
            let (_, consumer) = match both {
                Ok(both) => both,
                Err(code) => return code,
            };
            // Of what was not fetched nothing is known, which is no error.
            let known = consumer.cached_watermarks(&topic, partition);
            let (is_low, is_high) = known.unwrap_or((OFFSET_INVALID, OFFSET_INVALID));
            if !low.is_null() {
                *low = is_low;
            }
            if !high.is_null() {
                *high = is_high;
            }
            code::NO_ERROR
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_offsets_for_times(
    rk: *const Client,
    offsets: *mut List,
    timeout_ms: c_int,
) -> c_int {
    guarded_for(rk, code::_FATAL, || {
        // SAFETY: NULL or a client and a list that nobody else uses now, says the caller.
        let (Some(client), Some(list)) = (unsafe { (Client::of(rk), List::of_mut(offsets)) }) else {
            return code::_INVALID_ARG;
        };
        let admin = match client.admin() {
            Ok(admin) => admin,
            Err(code) => return code,
        };
        let questions: Vec<_> = list
            .elements()
            .iter()
            .map(|element| {
                let spec = match element.offset {
                    OFFSET_BEGINNING => OffsetSpec::Earliest,
                    OFFSET_END => OffsetSpec::Latest,
                    time => OffsetSpec::Timestamp(time),
                };
                (element.name().to_owned(), element.partition, spec)
            })
            .collect();
        let questions: Vec<_> =
            questions.iter().map(|(topic, partition, spec)| (topic.as_str(), *partition, *spec)).collect();
        if questions.is_empty() {
            return code::_INVALID_ARG;
        }
        let answers = match admin.list_offsets(&questions, timeout(timeout_ms)) {
            Ok(answers) => answers,
            Err(error) => return code_of(&error),
        };
        let mut failed = 0;
        for (answer, element) in answers.iter().zip(list.elements_mut()) {
            match answer {
                // -1 is "no such message", which the interface calls the end.
                Ok(answer) => (element.offset, element.err) = (answer.offset, code::NO_ERROR),
                Err(error) => {
                    (element.offset, element.err) = (OFFSET_INVALID, code_of(error));
                    failed += 1;
                }
            }
        }
        match answers.first() {
            Some(Err(error)) if failed == answers.len() => code_of(error),
            _ => code::NO_ERROR,
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rd_kafka_assignment_lost(_: *const Client) -> c_int {
    // Without a group nobody takes an assignment away.
    0
}
