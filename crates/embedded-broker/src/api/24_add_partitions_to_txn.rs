//! AddPartitionsToTxn (24), versions 0 to 5: adds partitions to the transaction of a producer. Clients send versions 0 to
//! 3; the later ones, with several transactions at once, are for brokers, which also check partitions with them.
//!
//! If one of the partitions is refused, none is added: the others get OPERATION_NOT_ATTEMPTED.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::add_partitions_to_txn::{
        AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, request, response,
    },
};

use crate::{
    acls::AclOperation,
    cluster::Cluster,
    connection::Request,
    transactions::{Participant, ProducerKey},
};

/// A partition of a topic with its error.
type Checked = (String, i32, ErrorCode);

impl Cluster {
    pub(crate) fn add_partitions_to_txn(
        &mut self,
        request: &mut Request,
        body: AddPartitionsToTxnRequest,
    ) -> AddPartitionsToTxnResponse {
        let mut response =
            AddPartitionsToTxnResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        if request.version >= 4 {
            if let Err(error) = self.check_cluster_access(request, AclOperation::ClusterAction) {
                response.error_code = error;
                return response;
            }
            for transaction in body.transactions {
                let results = self.add_partitions_of(request, &transaction);
                if results.iter().any(|(_, _, error)| *error == ErrorCode::UNSUPPORTED_VERSION) {
                    let error_code = ErrorCode::UNSUPPORTED_VERSION;
                    return AddPartitionsToTxnResponse { error_code, ..Default::default() };
                }
                let topic_results = by_topic(results);
                let transactional_id = transaction.transactional_id;
                response
                    .results_by_transaction
                    .push(response::ResultsByTransaction { transactional_id, topic_results });
            }
            return response;
        }
        let topics = body.v3_and_below_topics.into_iter();
        let transaction = request::Transaction {
            transactional_id: body.v3_and_below_transactional_id,
            producer_id: body.v3_and_below_producer_id,
            producer_epoch: body.v3_and_below_producer_epoch,
            verify_only: false,
            topics: topics
                .map(|topic| request::Topic { name: topic.name, partitions: topic.partitions })
                .collect(),
        };
        let topics = by_topic(self.add_partitions_of(request, &transaction)).into_iter();
        response.results_by_topic_v3_and_below = topics
            .map(|topic| response::ResultsByTopicV3AndBelow {
                name: topic.name,
                results_by_partition: topic
                    .results_by_partition
                    .into_iter()
                    .map(|partition| response::ResultsByTopicV3AndBelowResultsByPartition {
                        partition_index: partition.partition_index,
                        partition_error_code: partition.partition_error_code,
                    })
                    .collect(),
            })
            .collect();
        response
    }

    fn add_partitions_of(
        &mut self,
        request: &mut Request,
        transaction: &request::Transaction,
    ) -> Vec<Checked> {
        let id = &transaction.transactional_id;
        let mut checked = self.check_partitions_of(request, transaction);
        let is_refused = checked.iter().any(|(_, _, error)| *error != ErrorCode::NONE);
        if is_refused {
            for (_, _, error) in checked.iter_mut().filter(|(_, _, error)| *error == ErrorCode::NONE) {
                *error = ErrorCode::OPERATION_NOT_ATTEMPTED;
            }
        }
        let injected = self.injected_error(request, id, -1).map_or(Ok(()), Err);
        let admitted = injected.and_then(|()| {
            // The brokers that send later versions have checked their clients.
            if request.version < 4 {
                self.check_transaction_access(request, AclOperation::Write, id)?;
            }
            if is_refused { Ok(()) } else { self.check_transaction_coordinator(request, id) }
        });
        if let Err(error) = admitted {
            checked.iter_mut().for_each(|partition| partition.2 = error);
            return checked;
        }
        if is_refused {
            return checked;
        }
        let producer = ProducerKey { id: transaction.producer_id, epoch: transaction.producer_epoch };
        if transaction.verify_only {
            for (topic, partition, error) in &mut checked {
                let participant = Participant::Partition(topic.clone(), *partition);
                *error =
                    self.admit_to_transaction(id, producer, participant, false).err().unwrap_or_default();
            }
            return checked;
        }
        let participants = checked.iter().map(|(topic, partition, _)| (topic.clone(), *partition));
        let participants: Vec<_> = participants.map(|(t, p)| Participant::Partition(t, p)).collect();
        let version = if request.version >= 4 { 2 } else { 0 };
        let added = self.add_to_transaction(id, producer, &participants, version);
        let error = match added.err().unwrap_or_default() {
            ErrorCode::PRODUCER_FENCED if request.version < 2 => ErrorCode::INVALID_PRODUCER_EPOCH,
            error => error,
        };
        checked.iter_mut().for_each(|partition| partition.2 = error);
        checked
    }

    /// Returns the partitions that the request names, with the errors of those that can't be added.
    fn check_partitions_of(
        &mut self,
        request: &mut Request,
        transaction: &request::Transaction,
    ) -> Vec<Checked> {
        let mut checked = Vec::new();
        for topic in &transaction.topics {
            for partition in &topic.partitions {
                let error = match request.version {
                    0..=3 => self.topic_error(request, &topic.name, *partition),
                    _ => self.injected_error(request, &topic.name, *partition),
                };
                let index = self.topics.by_name(&topic.name);
                let is_known = index.is_some_and(|index| self.topics.partition(index, *partition).is_some());
                let unknown = if is_known { ErrorCode::NONE } else { ErrorCode::UNKNOWN_TOPIC_OR_PARTITION };
                checked.push((topic.name.clone(), *partition, error.unwrap_or(unknown)));
            }
        }
        checked
    }
}

fn by_topic(checked: Vec<Checked>) -> Vec<response::TopicResult> {
    let mut topics: Vec<response::TopicResult> = Vec::new();
    for (name, partition_index, partition_error_code) in checked {
        let result = response::TopicResultResultsByPartition { partition_index, partition_error_code };
        match topics.iter_mut().find(|topic| topic.name == name) {
            Some(topic) => topic.results_by_partition.push(result),
            None => topics.push(response::TopicResult { name, results_by_partition: vec![result] }),
        }
    }
    topics
}
