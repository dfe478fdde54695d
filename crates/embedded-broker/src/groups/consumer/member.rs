//! A member of a group of the consumer protocol: its subscription, epoch and assignment.

use std::time::Duration;

use ottla_protocol::{
    error_code::ErrorCode,
    generated::consumer_group_heartbeat::{ConsumerGroupHeartbeatRequest, request},
    pattern::Pattern,
    time::Instant,
    uuid::Uuid,
};
use ottla_sorted::{SortedMap, SortedSet};

use super::super::{
    assignor::{Assignor, Partitions},
    migration::ClassicSide,
};
use crate::{provisioning::Refusal, topics::Topics};

/// One member.
#[derive(Debug)]
pub(crate) struct ConsumerMember {
    pub epoch: i32,
    pub instance_id: Option<String>,
    pub rack_id: Option<String>,
    pub client_id: String,
    pub topic_names: SortedSet<String>,
    pub topic_regex: Option<TopicRegex>,
    /// The classic side of a member that uses the classic protocol.
    pub classic: Option<ClassicSide>,
    /// The member's target assignment.
    pub target: Partitions,
    pub(in crate::groups) previous_epoch: i32,
    pub(in crate::groups) assignor: Option<Assignor>,
    pub(in crate::groups) rebalance_timeout: Duration,
    pub(in crate::groups) state: MemberState,
    /// The assignment that the member has received.
    pub(in crate::groups) assigned: Partitions,
    /// Partitions that the member was asked to revoke and may still own.
    pub(in crate::groups) revoking: Partitions,
    /// The epoch in which the member got each of its partitions.
    pub(in crate::groups) has_since: SortedMap<(Uuid, i32), i32>,
    /// The time at which the member's session expires without a request of the member.
    pub(in crate::groups) expires: Instant,
    /// The deadline for revoking `revoking`; the member is removed afterwards.
    pub(in crate::groups) revokes_until: Instant,
}

/// A member's progress towards its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::groups) enum MemberState {
    Stable,
    /// The member has to revoke partitions first.
    UnrevokedPartitions,
    /// Other members have to release partitions of its target first.
    UnreleasedPartitions,
}

impl ConsumerMember {
    /// Returns all partitions that the member may own, including those that it was asked to revoke.
    pub fn owned(&self) -> Partitions {
        let mut owned = self.assigned.clone();
        for (topic, partitions) in &self.revoking {
            owned.entry(*topic).or_default().extend(partitions);
        }
        owned
    }

    pub(in crate::groups) fn new() -> Self {
        Self {
            epoch: 0,
            instance_id: None,
            rack_id: None,
            client_id: String::new(),
            topic_names: SortedSet::new(),
            topic_regex: None,
            classic: None,
            assigned: Partitions::new(),
            target: Partitions::new(),
            previous_epoch: 0,
            assignor: None,
            rebalance_timeout: Duration::ZERO,
            state: MemberState::Stable,
            revoking: Partitions::new(),
            has_since: SortedMap::new(),
            expires: Instant::FAR_FUTURE,
            revokes_until: Instant::FAR_FUTURE,
        }
    }

    /// Updates the member from a heartbeat; returns true if its subscription changed.
    pub(in crate::groups) fn update(
        &mut self,
        body: &ConsumerGroupHeartbeatRequest,
        client_id: String,
        assignor: Option<Assignor>,
        topic_regex: Option<Option<TopicRegex>>,
    ) -> bool {
        self.client_id = client_id;
        self.classic = None;
        if body.instance_id.is_some() {
            self.instance_id.clone_from(&body.instance_id);
        }
        if body.rack_id.is_some() {
            self.rack_id.clone_from(&body.rack_id);
        }
        if let Ok(timeout) = u64::try_from(body.rebalance_timeout_ms) {
            self.rebalance_timeout = Duration::from_millis(timeout);
        }
        self.assignor = assignor.or(self.assignor);
        let mut changed = false;
        if let Some(names) = &body.subscribed_topic_names {
            let names = names.iter().cloned().collect();
            changed = self.topic_names != names;
            self.topic_names = names;
        }
        if let Some(regex) = topic_regex {
            let text = |regex: &Option<TopicRegex>| regex.as_ref().map(|regex| regex.text.clone());
            changed |= text(&self.topic_regex) != text(&regex);
            self.topic_regex = regex;
        }
        changed
    }

    /// Checks the member's epoch; epoch 0 joins again. The previous epoch is accepted if the member owns no partition
    /// that it shouldn't, because the response with the new epoch may have been lost.
    pub(in crate::groups) fn check_heartbeat(
        &self,
        body: &ConsumerGroupHeartbeatRequest,
    ) -> Result<(), Refusal> {
        let (reported, known) = (body.member_epoch, self.epoch);
        let word = match reported.cmp(&known) {
            _ if reported == 0 => return Ok(()),
            std::cmp::Ordering::Equal => return Ok(()),
            std::cmp::Ordering::Greater => "greater",
            std::cmp::Ordering::Less => {
                let owned = body.topic_partitions.as_deref();
                if reported == self.previous_epoch && owned.is_some_and(|owned| self.is_assigned_all(owned)) {
                    return Ok(());
                }
                "smaller"
            }
        };
        let message = format!(
            "The consumer group member has a {word} member epoch ({reported}) than the one known by the group coordinator \
             ({known}). The member must abandon all its partitions and rejoin."
        );
        Err((ErrorCode::FENCED_MEMBER_EPOCH, message))
    }

    pub(in crate::groups) fn check_epoch(&self, epoch: i32) -> Result<(), ErrorCode> {
        if epoch == self.epoch { Ok(()) } else { Err(ErrorCode::STALE_MEMBER_EPOCH) }
    }

    fn is_assigned_all(&self, owned: &[request::TopicPartition]) -> bool {
        owned.iter().all(|topic| {
            let assigned = self.assigned.get(&topic.topic_id);
            topic.partitions.iter().all(|p| assigned.is_some_and(|assigned| assigned.contains(p)))
        })
    }

    pub(in crate::groups) fn note_since_when(&mut self) {
        let owned = self.owned().into_iter();
        let owned = owned.flat_map(|(topic, partitions)| partitions.into_iter().map(move |p| (topic, p)));
        let before = std::mem::take(&mut self.has_since);
        self.has_since = owned.map(|key| (key, before.get(&key).copied().unwrap_or(self.epoch))).collect();
    }

    /// Returns the topics that the member subscribes to.
    pub(crate) fn subscribed(&self, topics: &Topics) -> SortedSet<Uuid> {
        let by_name = self.topic_names.iter().filter_map(|name| id_of(topics, name));
        let mut subscribed: SortedSet<Uuid> = by_name.collect();
        if let Some(TopicRegex { pattern, .. }) = &self.topic_regex {
            let matching = topics.in_order().filter(|(_, topic)| pattern.is_match(&topic.name));
            subscribed.extend(matching.map(|(_, topic)| topic.id));
        }
        subscribed
    }

    pub(in crate::groups) fn due(&self) -> Instant {
        self.expires.min(self.revokes_until)
    }
}

/// A regular expression that must match a whole topic name.
#[derive(Clone, Debug)]
pub(crate) struct TopicRegex {
    pub text: String,
    pattern: Pattern,
}

impl TopicRegex {
    /// Compiles an expression. Kafka uses RE2; only the common syntax is accepted here, and the size is bounded.
    pub fn new(text: &str) -> Result<Self, Refusal> {
        let refuse = |error| {
            let message =
                format!("SubscribedTopicRegex `{text}` is not a valid regular expression: {error}.");
            (ErrorCode::INVALID_REGULAR_EXPRESSION, message)
        };
        let pattern = Pattern::whole(text).map_err(refuse)?;
        Ok(Self { text: text.to_owned(), pattern })
    }
}

/// Returns the ID of a topic.
pub(in crate::groups) fn id_of(topics: &Topics, name: &str) -> Option<Uuid> {
    topics.by_name(name).and_then(|index| topics.get(index)).map(|topic| topic.id)
}

/// Returns the number of partitions of a topic; 0 for an unknown topic.
pub(super) fn partition_count(topics: &Topics, id: Uuid) -> i32 {
    let topic = topics.by_id(id).and_then(|index| topics.get(index));
    topic.map_or(0, |topic| i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX))
}
