//! The partitions that are assigned to a consumer with a `group.id`.
//!
//! # Pitfalls
//!
//! - A NULL list has a meaning of its own (`rd_kafka_assign`: nothing; `rd_kafka_commit`: all stored offsets). A
//!   destroyed list is refused instead of being treated as NULL (`table.c`).

use std::{ptr, sync::Arc};

use ottla::Consumer;
use ottla_core::error::ErrorKind;

use crate::{
    client::{
        handle::Client,
        queue::{self, Queue},
    },
    consume::{
        consumer::{consumer_of, group_consumer_of},
        offset_spec::{Places, places, repeats},
    },
    ffi::{
        argument::{Part, PartMut, Ref, Text},
        codes::{RespErr, code},
        error::{ErrorObject, code_of},
        export,
        list::List,
        types::rd_kafka_topic_partition_t,
    },
    group::{
        assign::{Change, change_assignment, contradiction_in_group},
        state::Phase,
    },
};

impl Client {
    /// Routes partitions to their own queues again after a new assignment.
    fn route_again(&self, consumer: &Consumer) {
        let routes: Vec<_> = {
            let queues = self.partition_queues().lock();
            queues.iter().map(|(partition, queue)| (partition.clone(), queue.route())).collect()
        };
        for ((topic, partition), route) in routes {
            // Partitions that are not assigned have no route. The consumer notifies the application.
            let _ = consumer.core().set_route(&topic, partition, route);
        }
    }

    /// Returns the queue of a partition, which the first call creates, and whether it is new.
    pub(super) fn partition_queue(
        &self,
        consumer: &Consumer,
        topic: &str,
        partition: i32,
    ) -> (Arc<Queue>, bool) {
        let mut is_new = false;
        let queue = {
            let mut queues = self.partition_queues().lock();
            let queue = queues.entry((topic.to_owned(), partition)).or_insert_with(|| {
                is_new = true;
                let queue = Queue::new();
                queue.set_client(self.object());
                queue.set_for_messages();
                queue
            });
            Arc::clone(queue)
        };
        // The consumer notifies the application.
        let _ = consumer.core().set_route(topic, partition, queue.route());
        (queue, is_new)
    }
}

/// Adds partitions to the assignment of a group member, or replaces it.
fn change_in_group(
    client: &Client,
    consumer: &Consumer,
    change: Change,
    elements: &[rd_kafka_topic_partition_t],
) -> Result<(), ErrorObject> {
    let is_alone = matches!(change, Change::Replace(_));
    change_assignment(client, consumer, change)?;
    client.offsets().begin_assignment(elements, is_alone);
    client.route_again(consumer);
    Ok(())
}

export!(
    #[on(rk, code::_FATAL)]
    fn rd_kafka_assign(rk: Ref<Client>, partitions: Part<List>) -> RespErr {
        let ((client, consumer), list) = match (group_consumer_of(rk), List::passed(partitions)) {
            (Ok(both), list) => (both, list),
            (Err(code), _) => return code,
        };
        if List::is_gone(partitions) {
            return code::_INVALID_ARG;
        }
        let elements = list.map_or(&[][..], List::elements);
        let Some(places) = places(elements).filter(|_| !repeats(elements)) else {
            return code::_INVALID_ARG;
        };
        client.logging().note_partitions(c"ASSIGN", "Assigned", elements);
        if client.is_in_group(consumer) {
            return match change_in_group(client, consumer, Change::Replace(places), elements) {
                Ok(()) => code::NO_ERROR,
                Err(error) => error.code(),
            };
        }
        client.leave_partitions(consumer);
        match consumer.assign_with_epochs(&places.starts, &places.epochs) {
            Ok(()) => {
                client.offsets().begin_assignment(elements, true);
                client.route_again(consumer);
                code::NO_ERROR
            }
            Err(error) => code_of(&error),
        }
    }
);

export!(
    #[on(rk, ptr::null_mut())]
    fn rd_kafka_incremental_assign(rk: Ref<Client>, partitions: Part<List>) -> *mut ErrorObject {
        ErrorObject::from_result(match (group_consumer_of(rk), List::passed(partitions)) {
            (_, None) => Err(ErrorObject::new(code::_INVALID_ARG, "no partitions were given")),
            (Err(code), _) => {
                Err(ErrorObject::new(code, "only a consumer with a `group.id` can be assigned partitions"))
            }
            (Ok((client, consumer)), Some(list)) => match places(list.elements()) {
                None => Err(ErrorObject::new(code::_INVALID_ARG, "an offset is none")),
                Some(_) if repeats(list.elements()) => {
                    Err(ErrorObject::new(code::_INVALID_ARG, "the list contains a partition twice"))
                }
                Some(places) => {
                    let change = Change::Add(places.clone());
                    let Places { starts, epochs } = places;
                    if client.is_in_group(consumer)
                        && let Some(text) = contradiction_in_group(consumer, &change)
                    {
                        return ErrorObject::new(code::_STATE, text).into_raw();
                    }
                    let known = consumer.assignment();
                    if let Some((topic, partition, _)) = starts.iter().find(|(topic, partition, _)| {
                        known.iter().any(|key| *key.topic == **topic && key.partition == *partition)
                    }) {
                        let text = format!("{topic} [{partition}] is assigned already");
                        Err(ErrorObject::new(code::_CONFLICT, text))
                    } else {
                        client.logging().note_partitions(
                            c"ASSIGN",
                            "Added to the assignment",
                            list.elements(),
                        );
                        if client.is_in_group(consumer) {
                            let result = change_in_group(client, consumer, change, list.elements());
                            return ErrorObject::from_result(result);
                        }
                        let result = consumer
                            .incremental_assign_with_epochs(&starts, &epochs)
                            .map_err(|error| ErrorObject::from(&error));
                        if result.is_ok() {
                            client.offsets().begin_assignment(list.elements(), false);
                        }
                        client.route_again(consumer);
                        result
                    }
                }
            },
        })
    }
);

export!(
    #[on(rk, ptr::null_mut())]
    fn rd_kafka_incremental_unassign(rk: Ref<Client>, partitions: Part<List>) -> *mut ErrorObject {
        ErrorObject::from_result(match (group_consumer_of(rk), List::passed(partitions)) {
            (_, None) => Err(ErrorObject::new(code::_INVALID_ARG, "no partitions were given")),
            (Err(code), _) => {
                Err(ErrorObject::new(code, "only a consumer with a `group.id` can be assigned partitions"))
            }
            (Ok((client, consumer)), Some(list)) => {
                let pairs: Vec<_> =
                    list.elements().iter().map(|e| (e.name().to_owned(), e.partition)).collect();
                client.logging().note_partitions(c"ASSIGN", "Taken from the assignment", list.elements());
                if client.is_in_group(consumer) {
                    return ErrorObject::from_result(change_assignment(
                        client,
                        consumer,
                        Change::Remove(pairs),
                    ));
                }
                client.commit_at_once(consumer);
                let result = consumer.incremental_unassign(&pairs).map_err(|error| match error.kind() {
                    // Here, a partition that is not assigned is an invalid argument.
                    ErrorKind::State => ErrorObject::new(code::_INVALID_ARG, error.to_string()),
                    _ => ErrorObject::from(&error),
                });
                if result.is_ok() {
                    pairs.iter().for_each(|(topic, partition)| client.offsets().forget(topic, *partition));
                }
                result
            }
        })
    }
);

export!(
    #[on(rk, code::_FATAL)]
    fn rd_kafka_assignment(rk: Ref<Client>, partitions: PartMut<*mut List>) -> RespErr {
        // SAFETY: the lists were just created, and there is no other pointer to them.
        unsafe {
            let (client, consumer) = match group_consumer_of(rk) {
                Ok(both) => both,
                Err(code) => return code,
            };
            let Some(partitions) = partitions.get() else { return code::_INVALID_ARG };
            if client.membership().phase() == Phase::Closed {
                return code::_DESTROY;
            }
            let assigned = consumer.assignment();
            let list = List::with_capacity(assigned.len());
            if let Some(list) = list.as_mut() {
                for key in assigned {
                    let (offset, epoch) = client.offsets().assigned(&key.topic, key.partition);
                    if let Some(element) = list.add(key.topic.as_bytes(), key.partition).as_mut() {
                        element.offset = offset;
                        element.set_leader_epoch(epoch);
                    }
                }
            }
            *partitions = list;
            code::NO_ERROR
        }
    }
);

export!(
    #[on(rk, ptr::null())]
    fn rd_kafka_queue_get_partition(rk: Ref<Client>, topic: Text, partition: i32) -> *const Queue {
        let (both, topic) = (consumer_of(rk), topic.get());
        let (Ok((client, consumer)), Some(topic)) = (both, topic) else { return ptr::null() };
        let (queue, is_new) = client.partition_queue(consumer, &topic, partition);
        if is_new {
            queue.forward(client.consumer_queue().cloned());
        }
        queue::raw(Some(queue))
    }
);
