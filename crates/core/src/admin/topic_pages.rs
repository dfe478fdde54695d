//! The descriptions of topics by DescribeTopicPartitions (KIP-966), which returns a page of partitions at a time.
//!
//! ```text
//!  names ── request from the cursor on ──► page: partitions in the order of names ── cursor ──► next request
//!                                                                                 └─ none ──► Done, or BadResponse
//!                                                                                              if a topic is left out
//! ```

use ottla_protocol::{
    generated::describe_topic_partitions::{
        DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, request, response,
    },
    primitive::Reader,
    uuid::Uuid,
    vocabulary::LeaderEpoch,
};
use ottla_sorted::SortedMap;

use super::{
    Verdict,
    describe::{AuthorizedOperations, PartitionDescription, TopicDescription, error_of},
    undecodable,
};
use crate::{
    contract::route::EncodeBody,
    error::{Error, ErrorKind},
};

/// The descriptions of the topics so far, and where the next page begins.
#[derive(Debug)]
pub(super) struct TopicPages {
    /// The topics that the pages are about, sorted.
    names: Vec<String>,
    cursor: Option<(String, i32)>,
    found: SortedMap<String, TopicDescription>,
}

impl TopicPages {
    /// Creates the state before the first page.
    pub(super) fn new(mut names: Vec<String>) -> Self {
        names.sort_unstable();
        names.dedup();
        Self { names, cursor: None, found: SortedMap::new() }
    }

    /// Encodes the request of the next page.
    pub(super) fn encode(&self) -> EncodeBody {
        let is_due = |name: &&String| self.cursor.as_ref().is_none_or(|(first, _)| *name >= first);
        let topics =
            self.names.iter().filter(is_due).map(|name| request::Topic { name: name.clone() }).collect();
        let cursor = self.cursor.clone();
        let cursor =
            cursor.map(|(topic_name, partition_index)| request::Cursor { topic_name, partition_index });
        let request = DescribeTopicPartitionsRequest { topics, cursor, ..Default::default() };
        Box::new(move |version, out| request.encode(version, out))
    }

    /// Adds a page. Error: it leaves a topic out, or does not lead on.
    pub(super) fn handle_response(
        &mut self,
        body: &[u8],
        version: i16,
        with_operations: bool,
    ) -> Result<Verdict, Error> {
        let response = DescribeTopicPartitionsResponse::decode(&mut Reader::new(body), version)
            .map_err(|e| undecodable(&e))?;
        let next = response.next_cursor.map(|next| (next.topic_name, next.partition_index));
        if let Some(next) = &next
            && self.cursor.as_ref().is_some_and(|cursor| next <= cursor)
        {
            let (topic, partition) = next;
            let detail = format!("the page after topic \"{topic}\" [{partition}] does not lead on");
            return Err(Error::new(ErrorKind::BadResponse, detail));
        }
        for topic in response.topics {
            self.add(topic, with_operations);
        }
        self.cursor = next;
        if self.cursor.is_some() {
            return Ok(Verdict::Next);
        }
        self.names.retain(|name| !self.found.contains_key(name));
        match self.names.first() {
            None => Ok(Verdict::Done),
            Some(name) => {
                let error = Error::new(ErrorKind::BadResponse, "the response leaves the topic out");
                Err(error.with_topic(&**name))
            }
        }
    }

    /// Adds a topic, or the following partitions of one, unless it was not requested.
    fn add(&mut self, topic: response::Topic, with_operations: bool) {
        let Some(name) = topic.name.filter(|name| self.names.binary_search(name).is_ok()) else { return };
        let partitions = topic.partitions.into_iter().map(|one| partition_of(&name, one));
        if let Some(found) = self.found.get_mut(&name) {
            if self.cursor.as_ref().is_some_and(|(continued, _)| *continued == name) {
                found.partitions.extend(partitions);
            }
            return;
        }
        let operations = Some(topic.topic_authorized_operations).filter(|_| with_operations);
        let description = TopicDescription {
            id: (topic.topic_id != Uuid::ZERO).then(|| topic.topic_id.to_string()),
            is_internal: topic.is_internal,
            error: error_of(topic.error_code).map(|error| error.with_topic(&*name)),
            partitions: partitions.collect(),
            authorized_operations: operations.and_then(AuthorizedOperations::new),
            name: name.clone(),
        };
        self.found.insert(name, description);
    }

    /// Returns the descriptions, sorted by name. With an error, the topics without one have that error, or all fail.
    pub(super) fn into_result(self, error: Option<Error>) -> Result<Vec<TopicDescription>, Error> {
        let Self { names, mut found, cursor } = self;
        if let Some(error) = error {
            // The topic at the cursor lacks partitions.
            cursor.into_iter().for_each(|(topic, _)| drop(found.remove(&topic)));
            if found.is_empty() {
                return Err(error);
            }
            for name in names {
                let failed = || TopicDescription::refused(&*name, error.clone().with_topic(&*name));
                found.entry(name.clone()).or_insert_with(failed);
            }
        }
        let mut topics: Vec<TopicDescription> = found.into_values().collect();
        for topic in &mut topics {
            topic.partitions.sort_by_key(|partition| partition.id);
            topic.partitions.dedup_by_key(|partition| partition.id);
        }
        Ok(topics)
    }
}

fn partition_of(topic: &str, one: response::Partition) -> PartitionDescription {
    PartitionDescription {
        id: one.partition_index,
        leader: Some(one.leader_id).filter(|leader| *leader >= 0),
        leader_epoch: LeaderEpoch::from_wire(one.leader_epoch),
        replicas: one.replica_nodes,
        in_sync_replicas: one.isr_nodes,
        offline_replicas: one.offline_replicas,
        eligible_leader_replicas: one.eligible_leader_replicas,
        last_known_eligible_leader_replicas: one.last_known_elr,
        error: error_of(one.error_code).map(|error| error.with_partition(topic, one.partition_index)),
    }
}
