//! DescribeShareGroupOffsets (90), versions 0 and 1: the start offsets of share groups, and from version 1 on their
//! lag. -1 for partitions that were never fetched.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::describe_share_group_offsets::{
        DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse, request, response,
    },
    uuid::Uuid,
};
use ottla_sorted::SortedMap;

use crate::{cluster::Cluster, connection::Request, share_groups::ShareGroup};

impl Cluster {
    pub(crate) fn describe_share_group_offsets(
        &mut self,
        request: &mut Request,
        body: DescribeShareGroupOffsetsRequest,
    ) -> DescribeShareGroupOffsetsResponse {
        let mut response = DescribeShareGroupOffsetsResponse {
            throttle_time_ms: request.throttle_ms(),
            ..Default::default()
        };
        for requested in body.groups {
            let group_id = requested.group_id;
            let checked = self.check_group(request, &group_id);
            let mut described = response::Group { group_id: group_id.clone(), ..Default::default() };
            let is_permitted =
                |topic: &request::Topic| self.topic_refusal(request, &topic.topic_name).is_none();
            let named =
                requested.topics.map(|topics| topics.into_iter().partition::<Vec<_>, _>(is_permitted));
            let asks_nothing = named
                .as_ref()
                .is_some_and(|(permitted, refused)| permitted.is_empty() && !refused.is_empty());
            match (checked, self.share_groups.groups.get(&group_id)) {
                (Err(error), _) => described.error_code = error,
                (Ok(()), _) if asks_nothing => {}
                (Ok(()), None) => {
                    described.error_code = ErrorCode::GROUP_ID_NOT_FOUND;
                    described.error_message = Some(format!("Group {group_id} not found."));
                }
                (Ok(()), Some(group)) => {
                    let topics = match &named {
                        Some((permitted, _)) => permitted.clone(),
                        None => self.share_topics(group).into_iter().filter(is_permitted).collect(),
                    };
                    described.topics = topics
                        .into_iter()
                        .map(|topic| self.share_offsets(group, topic, request.version))
                        .collect();
                }
            }
            if described.error_code == ErrorCode::NONE {
                let refused = named.into_iter().flat_map(|(_, refused)| refused);
                described.topics.extend(refused.map(refused_topic));
            }
            response.groups.push(described);
        }
        response
    }

    /// Returns the partitions that a share group has fetched from or subscribed to.
    fn share_topics(&self, group: &ShareGroup) -> Vec<request::Topic> {
        let mut topics: SortedMap<&str, Vec<i32>> = SortedMap::new();
        let subscribed = group.members.values().flat_map(|member| &member.topics);
        let subscribed = subscribed.filter_map(|name| self.topics.by_name(name));
        for topic in subscribed.chain(group.partitions.keys().map(|(topic, _)| *topic)) {
            let Some(topic) = self.topics.get(topic) else { continue };
            topics
                .entry(&topic.name)
                .or_insert_with(|| topic.partitions.iter().map(|partition| partition.index).collect());
        }
        let topics = topics.into_iter();
        topics.map(|(name, partitions)| request::Topic { topic_name: name.to_owned(), partitions }).collect()
    }

    fn share_offsets(&self, group: &ShareGroup, topic: request::Topic, version: i16) -> response::Topic {
        let index = self.topics.by_name(&topic.topic_name);
        let partitions = topic.partitions.into_iter().map(|partition_index| {
            let mut described =
                response::Partition { partition_index, start_offset: -1, ..Default::default() };
            let Some(index) = index else {
                described.error_code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
                return described;
            };
            if version >= 1 {
                described.lag = -1;
            }
            let Some(partition) = self.topics.partition(index, partition_index) else {
                described.error_code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
                return described;
            };
            if let Some(state) = group.partitions.get(&(index, partition_index)) {
                described.start_offset = state.start_offset();
                described.leader_epoch = partition.leader_epoch;
                if version >= 1 {
                    described.lag = state.lag(partition.log.high_watermark());
                }
            }
            described
        });
        response::Topic {
            partitions: partitions.collect(),
            topic_id: index.and_then(|index| self.topics.get(index)).map_or(Uuid::ZERO, |topic| topic.id),
            topic_name: topic.topic_name,
        }
    }
}

/// Returns the part of a response about a topic that the client may not describe.
fn refused_topic(topic: request::Topic) -> response::Topic {
    let partition = |partition_index| response::Partition {
        partition_index,
        start_offset: -1,
        error_code: ErrorCode::TOPIC_AUTHORIZATION_FAILED,
        ..Default::default()
    };
    response::Topic {
        topic_name: topic.topic_name,
        topic_id: Uuid::ZERO,
        partitions: topic.partitions.into_iter().map(partition).collect(),
    }
}
