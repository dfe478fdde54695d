//! A group of the consumer protocol (KIP-848): the broker assigns, and members learn of it by their heartbeats.
//!
//! Three epochs: the group's rises when a member comes, goes or subscribes to something else, or when its topics change.
//! The next heartbeat then computes the target assignment of that epoch. Each member is brought to it by steps of its own,
//! and has the target's epoch when it has given up what is no longer its own: first it is told what it may keep, and only
//! when its heartbeat says that it owns nothing else it gets what is new, as far as others have given that up.
//!
//! Unlike Kafka, a regular expression is applied at once, where Kafka answers first and has found the topics by a later
//! heartbeat, and assignments are computed as soon as they are needed (`group.consumer.assignment.interval.ms=0`).
//!
//! ```text
//!  heartbeat ─► who is it (join, fence) ─► subscriptions, topics ─► target ─► reconcile ─► answer
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use ottla_protocol::{
    error_code::ErrorCode,
    generated::consumer_group_heartbeat::{
        ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, request, response,
    },
    time::Instant,
    uuid::Uuid,
};
use regex_lite::{Regex, RegexBuilder};

use super::assignor::{Assignor, Partitions, Subscriber};
use crate::{provisioning::Refusal, topics::Topics};

/// The epoch of who leaves.
pub(crate) const LEAVES: i32 = -1;
/// The epoch of a static member that leaves and may come back.
pub(crate) const LEAVES_FOR_A_WHILE: i32 = -2;

/// So many bytes may a regular expression take: a few characters can ask for any number of repetitions.
const REGEX_SIZE: usize = 1 << 20;

/// A group to which the broker assigns.
#[derive(Debug)]
pub(crate) struct ConsumerGroup {
    pub epoch: i32,
    /// The group's epoch when the target assignment was computed.
    pub assignment_epoch: i32,
    pub members: BTreeMap<String, ConsumerMember>,
    /// Static members: instance id to member id.
    instances: BTreeMap<String, String>,
    /// The topics that the members subscribed to, and how many partitions they have.
    topics: BTreeMap<Uuid, i32>,
    /// The state of the cluster's topics from which that was found out.
    topics_version: u64,
}

/// One member.
#[derive(Debug)]
pub(crate) struct ConsumerMember {
    pub epoch: i32,
    pub instance_id: Option<String>,
    pub rack_id: Option<String>,
    pub client_id: String,
    pub topic_names: BTreeSet<String>,
    pub topic_regex: Option<TopicRegex>,
    /// What it is to have in the end.
    pub target: Partitions,
    previous_epoch: i32,
    assignor: Option<Assignor>,
    rebalance_timeout: Duration,
    state: MemberState,
    /// What it is told to have.
    assigned: Partitions,
    /// What it was told to give up, and still may have.
    revoking: Partitions,
    /// The epochs in which it got what it has.
    has_since: BTreeMap<(Uuid, i32), i32>,
    /// The member is gone if nothing was heard of it until then.
    expires: Instant,
    /// And if it has not given up until then what it was told to.
    revokes_until: Instant,
}

/// How far a member has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberState {
    Stable,
    /// It has to give partitions up first.
    UnrevokedPartitions,
    /// Others have to give up what is to be its own.
    UnreleasedPartitions,
}

/// A regular expression that topics' names match as a whole.
#[derive(Clone, Debug)]
pub(crate) struct TopicRegex {
    pub text: String,
    regex: Regex,
}

/// Partitions that were given to members by hand: by member id, topics' names and partitions.
pub(crate) type ManualTarget = BTreeMap<String, BTreeSet<(String, i32)>>;

/// What holds for all groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings<'a> {
    pub session_timeout: Duration,
    pub heartbeat_interval: Duration,
    pub max_size: usize,
    /// In place of what the assignor would say.
    pub manual: Option<&'a ManualTarget>,
}

/// A heartbeat whose words make sense.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    pub body: ConsumerGroupHeartbeatRequest,
    pub client_id: String,
    pub assignor: Option<Assignor>,
    /// `Some(None)`: no longer subscribed to one. A wrong one is refused only to who is in the right epoch.
    pub topic_regex: Result<Option<Option<TopicRegex>>, Refusal>,
}

impl TopicRegex {
    /// Kafka's are RE2's; what is the same in both is taken here.
    pub fn new(text: &str) -> Result<Self, Refusal> {
        let refuse = |error| {
            let message =
                format!("SubscribedTopicRegex `{text}` is not a valid regular expression: {error}.");
            (ErrorCode::INVALID_REGULAR_EXPRESSION, message)
        };
        let compile = |text: &str| RegexBuilder::new(text).size_limit(REGEX_SIZE).build();
        // Compiled alone as well: a `)(` must not be made good by what is put around it.
        compile(text).map_err(refuse)?;
        let regex = compile(&format!("^(?:{text})$")).map_err(refuse)?;
        Ok(Self { text: text.to_owned(), regex })
    }
}

impl ConsumerGroup {
    pub fn new() -> Self {
        Self {
            epoch: 1,
            assignment_epoch: 0,
            members: BTreeMap::new(),
            instances: BTreeMap::new(),
            topics: BTreeMap::new(),
            topics_version: 0,
        }
    }

    /// A heartbeat of who stays or comes.
    pub fn heartbeat(
        &mut self,
        now: Instant,
        topics: &Topics,
        settings: &Settings<'_>,
        heartbeat: Heartbeat,
    ) -> Result<ConsumerGroupHeartbeatResponse, Refusal> {
        let joins = heartbeat.body.member_epoch == 0;
        let asked_for_all = joins
            || (heartbeat.body.rebalance_timeout_ms != -1
                && (heartbeat.body.subscribed_topic_names.is_some()
                    || heartbeat.body.subscribed_topic_regex.is_some())
                && heartbeat.body.topic_partitions.is_some());
        self.check_size(&heartbeat.body, settings.max_size)?;
        let Heartbeat { body, client_id, assignor, topic_regex } = heartbeat;
        let topic_regex = if joins {
            // Who joins may take another one's place: then it is too late to refuse.
            let regex = topic_regex?;
            self.admit(&body)?;
            regex
        } else {
            self.admit(&body)?;
            topic_regex?
        };
        let member_id = body.member_id.clone();
        let member = self.members.entry(member_id.clone()).or_insert_with(ConsumerMember::new);
        let subscribes_anew = member.update(&body, client_id, assignor, topic_regex);
        member.expires = now + settings.session_timeout;
        if let Some(instance_id) = &body.instance_id {
            self.instances.insert(instance_id.clone(), member_id.clone());
        }
        let topics_changed = self.look_at_topics(topics, settings.manual, subscribes_anew);
        if subscribes_anew || topics_changed {
            self.epoch += 1;
        }
        if self.epoch > self.assignment_epoch {
            self.compute_target(topics, settings.manual);
        }
        let was_assigned = self.members.get(&member_id).map(|member| member.assigned.clone());
        self.reconcile(now, &member_id, body.topic_partitions.as_deref());
        let Some(member) = self.members.get(&member_id) else {
            return Err((ErrorCode::UNKNOWN_SERVER_ERROR, "The member is lost.".to_owned()));
        };
        let changed = was_assigned.as_ref() != Some(&member.assigned);
        let assignment = (asked_for_all || changed).then(|| response::Assignment {
            topic_partitions: member
                .assigned
                .iter()
                .map(|(topic_id, partitions)| response::TopicPartition {
                    topic_id: *topic_id,
                    partitions: partitions.iter().copied().collect(),
                })
                .collect(),
        });
        let interval = i32::try_from(settings.heartbeat_interval.as_millis()).unwrap_or(i32::MAX);
        Ok(ConsumerGroupHeartbeatResponse {
            member_epoch: member.epoch,
            member_id: Some(member_id),
            heartbeat_interval_ms: interval,
            assignment,
            ..Default::default()
        })
    }

    /// A heartbeat of who goes.
    pub fn leave(
        &mut self,
        body: &ConsumerGroupHeartbeatRequest,
    ) -> Result<ConsumerGroupHeartbeatResponse, Refusal> {
        match &body.instance_id {
            Some(instance_id) => self.check_instance(instance_id, &body.member_id)?,
            None if !self.members.contains_key(&body.member_id) => {
                return Err(unknown_member(&body.group_id, &body.member_id));
            }
            None => {}
        }
        if body.member_epoch == LEAVES_FOR_A_WHILE {
            // It keeps what it has until its session is over, and nobody needs to move.
            if let Some(member) = self.members.get_mut(&body.member_id) {
                member.epoch = LEAVES_FOR_A_WHILE;
                member.revoking.clear();
                member.revokes_until = Instant::FAR_FUTURE;
            }
        } else {
            self.remove(&body.member_id);
        }
        Ok(ConsumerGroupHeartbeatResponse {
            member_id: Some(body.member_id.clone()),
            member_epoch: body.member_epoch,
            ..Default::default()
        })
    }

    /// A LeaveGroup request, by which an administrator removes members.
    pub fn remove_member(&mut self, member_id: &str, instance_id: Option<&str>) -> Result<(), ErrorCode> {
        let by_instance = match instance_id {
            Some(instance_id) if member_id.is_empty() => {
                Some(self.instances.get(instance_id).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?.clone())
            }
            Some(instance_id) => {
                self.check_instance(instance_id, member_id).map_err(|(code, _)| code)?;
                None
            }
            None => None,
        };
        let member_id = by_instance.as_deref().unwrap_or(member_id);
        if !self.members.contains_key(member_id) {
            return Err(ErrorCode::UNKNOWN_MEMBER_ID);
        }
        self.remove(member_id);
        Ok(())
    }

    /// What is given by hand has changed: the next heartbeat computes another target assignment.
    pub fn retarget(&mut self, topics: &Topics, manual: Option<&ManualTarget>) {
        self.look_at_topics(topics, manual, true);
        self.epoch += 1;
    }

    /// May offsets be committed by this member (or, with a negative epoch, by somebody who is none)? If it is behind, that
    /// depends on the partition ([`check_commit_of`](Self::check_commit_of)).
    pub fn check_commit(&self, version: i16, member_id: &str, epoch: i32) -> Result<(), ErrorCode> {
        if epoch < 0 && self.members.is_empty() {
            return Ok(());
        }
        let member = self.members.get(member_id).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
        // Older versions don't know the errors that such a member must understand.
        if version < 9 {
            return Err(ErrorCode::UNSUPPORTED_VERSION);
        }
        if epoch <= member.epoch { Ok(()) } else { Err(ErrorCode::STALE_MEMBER_EPOCH) }
    }

    /// Whether a member that says that it is in this epoch may commit for this partition: also in an older epoch than its own,
    /// if it has had the partition since then (KIP-1251).
    pub fn check_commit_of(
        &self,
        member_id: &str,
        epoch: i32,
        topic: Uuid,
        partition: i32,
    ) -> Result<(), ErrorCode> {
        let Some(member) = self.members.get(member_id).filter(|member| member.epoch != epoch) else {
            return Ok(());
        };
        let since = member.has_since.get(&(topic, partition));
        if since.is_some_and(|since| *since <= epoch) { Ok(()) } else { Err(ErrorCode::STALE_MEMBER_EPOCH) }
    }

    /// May committed offsets be told to this member (or to somebody who doesn't say who it is)?
    pub fn check_offset_fetch(&self, member_id: Option<&str>, epoch: i32) -> Result<(), ErrorCode> {
        if member_id.is_none() && epoch < 0 {
            return Ok(());
        }
        let member = self.members.get(member_id.unwrap_or_default()).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
        member.check_epoch(epoch)
    }

    /// As Kafka writes it.
    pub fn state_name(&self) -> &'static str {
        let is_there = |member: &ConsumerMember| {
            member.state == MemberState::Stable && member.epoch == self.assignment_epoch
        };
        if self.members.is_empty() {
            "Empty"
        } else if self.epoch > self.assignment_epoch {
            "Assigning"
        } else if self.members.values().all(is_there) {
            "Stable"
        } else {
            "Reconciling"
        }
    }

    /// The assignor that most members want. Who says nothing takes what comes.
    pub fn assignor(&self) -> Assignor {
        let mut votes: BTreeMap<Assignor, usize> = BTreeMap::new();
        for assignor in self.members.values().filter_map(|member| member.assignor) {
            *votes.entry(assignor).or_default() += 1;
        }
        let most = votes.values().max().copied();
        votes
            .iter()
            .find(|(_, count)| Some(**count) == most)
            .map_or_else(Assignor::default, |(wanted, _)| *wanted)
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        let gone = self.members.iter().filter(|(_, member)| member.due() <= now).map(|(id, _)| id.clone());
        for member_id in gone.collect::<Vec<_>>() {
            self.remove(&member_id);
        }
    }

    /// When the group has to be looked at next, if at all.
    pub fn next_due(&self) -> Option<Instant> {
        self.members.values().map(ConsumerMember::due).min()
    }

    fn check_size(&self, body: &ConsumerGroupHeartbeatRequest, max_size: usize) -> Result<(), Refusal> {
        let takes_over = body.instance_id.as_ref().is_some_and(|id| self.instances.contains_key(id));
        if self.members.len() < max_size || self.members.contains_key(&body.member_id) || takes_over {
            return Ok(());
        }
        let message = format!(
            "The consumer group has reached its maximum capacity of {max_size} members; set group.consumer.max.size \
             higher or use fewer members."
        );
        Err((ErrorCode::GROUP_MAX_SIZE_REACHED, message))
    }

    /// Who it is, and whether it may go on or come in. A static member that is back takes the place of its predecessor.
    fn admit(&mut self, body: &ConsumerGroupHeartbeatRequest) -> Result<(), Refusal> {
        let joins = body.member_epoch == 0;
        if let Some(instance_id) = &body.instance_id {
            match self.instances.get(instance_id) {
                None if joins => {}
                Some(known) if joins => {
                    let known = known.clone();
                    // Also who has the same member id: there may be two processes of one configuration.
                    if self.members.get(&known).is_some_and(|member| member.epoch != LEAVES_FOR_A_WHILE) {
                        let message = format!(
                            "Static member {} with instance id {instance_id} cannot join the group because the instance id is \
                             owned by {known} member.",
                            body.member_id
                        );
                        return Err((ErrorCode::UNRELEASED_INSTANCE_ID, message));
                    }
                    self.replace_static(&known, &body.member_id);
                }
                _ => self.check_instance(instance_id, &body.member_id)?,
            }
        }
        match self.members.get(&body.member_id) {
            Some(member) => member.check_heartbeat(body),
            None if joins => Ok(()),
            None => Err(unknown_member(&body.group_id, &body.member_id)),
        }
    }

    fn check_instance(&self, instance_id: &str, member_id: &str) -> Result<(), Refusal> {
        match self.instances.get(instance_id) {
            None => Err((ErrorCode::UNKNOWN_MEMBER_ID, format!("Instance id {instance_id} is unknown."))),
            Some(known) if known != member_id => {
                let message = format!(
                    "Static member {member_id} with instance id {instance_id} was fenced by member {known}."
                );
                Err((ErrorCode::FENCED_INSTANCE_ID, message))
            }
            Some(_) => Ok(()),
        }
    }

    fn replace_static(&mut self, known: &str, member_id: &str) {
        if let Some(mut member) = self.members.remove(known) {
            (member.epoch, member.previous_epoch, member.state) = (0, 0, MemberState::Stable);
            self.members.insert(member_id.to_owned(), member);
        }
    }

    fn remove(&mut self, member_id: &str) {
        let Some(member) = self.members.remove(member_id) else { return };
        if let Some(instance_id) = &member.instance_id {
            self.instances.remove(instance_id);
        }
        self.epoch += 1;
    }

    /// Finds out which topics the members subscribed to; true if these, or their partitions, are others than before.
    fn look_at_topics(&mut self, topics: &Topics, manual: Option<&ManualTarget>, must: bool) -> bool {
        if !must && self.topics_version == topics.version() {
            return false;
        }
        self.topics_version = topics.version();
        let by_hand = manual.into_iter().flat_map(BTreeMap::values).flatten().map(|(name, _)| name.as_str());
        let mut ids: BTreeSet<Uuid> = by_hand.filter_map(|name| id_of(topics, name)).collect();
        for member in self.members.values() {
            ids.extend(member.subscribed(topics));
        }
        let found = ids.into_iter().map(|id| (id, partition_count(topics, id))).collect();
        let changed = self.topics != found;
        self.topics = found;
        changed
    }

    fn compute_target(&mut self, topics: &Topics, manual: Option<&ManualTarget>) {
        self.assignment_epoch = self.epoch;
        let targets = match manual {
            Some(manual) => {
                let of = |id| manual.get(id).map_or_else(Partitions::new, |wanted| resolve(topics, wanted));
                self.members.keys().map(of).collect()
            }
            None => {
                let subscribers: Vec<_> = self
                    .members
                    .iter()
                    .map(|(member_id, member)| Subscriber {
                        member_id,
                        instance_id: member.instance_id.as_deref(),
                        topics: member.subscribed(topics),
                        target: &member.target,
                    })
                    .collect();
                self.assignor().assign(&self.topics, &subscribers)
            }
        };
        for (member, target) in self.members.values_mut().zip(targets) {
            member.target = target;
        }
    }

    /// Brings a member one step nearer to its target. `owned` is what it says that it has, if it says that.
    fn reconcile(&mut self, now: Instant, member_id: &str, owned: Option<&[request::TopicPartition]>) {
        let Some(member) = self.members.get(member_id) else { return };
        let epoch = match member.state {
            MemberState::Stable if member.epoch == self.assignment_epoch => return,
            MemberState::UnrevokedPartitions if owns_any(owned, &member.revoking) => return,
            // It has given up what it was told to: that was the step to the next epoch.
            MemberState::UnrevokedPartitions => member.epoch + 1,
            MemberState::Stable | MemberState::UnreleasedPartitions => member.epoch,
        };
        let mut assigned = intersection(&member.assigned, &member.target);
        let revoking = difference(&member.assigned, &assigned);
        let missing = difference(&member.target, &assigned);
        let (free, unreleased) = self.split_by_owner(member_id, missing);
        let assignment_epoch = self.assignment_epoch;
        let Some(member) = self.members.get_mut(member_id) else { return };
        let (state, epoch, revoking) = if !revoking.is_empty() && owns_any(owned, &revoking) {
            member.revokes_until = now + member.rebalance_timeout;
            (MemberState::UnrevokedPartitions, epoch, revoking)
        } else {
            for (topic, partitions) in free {
                assigned.entry(topic).or_default().extend(partitions);
            }
            member.revokes_until = Instant::FAR_FUTURE;
            let state = if unreleased { MemberState::UnreleasedPartitions } else { MemberState::Stable };
            (state, assignment_epoch, Partitions::new())
        };
        if member.epoch != epoch {
            member.previous_epoch = member.epoch;
            member.epoch = epoch;
        }
        (member.state, member.assigned, member.revoking) = (state, assigned, revoking);
        member.note_since_when();
    }

    /// What of `wanted` no other member has, and whether there is more.
    fn split_by_owner(&self, member_id: &str, wanted: Partitions) -> (Partitions, bool) {
        let mut free = wanted;
        let mut unreleased = false;
        let others = self.members.iter().filter(|(id, _)| *id != member_id).map(|(_, member)| member);
        for (topic, partitions) in others.flat_map(|other| other.assigned.iter().chain(&other.revoking)) {
            if let Some(free) = free.get_mut(topic) {
                unreleased |= partitions.iter().filter(|partition| free.remove(partition)).count() > 0;
            }
        }
        free.retain(|_, partitions| !partitions.is_empty());
        (free, unreleased)
    }
}

impl ConsumerMember {
    /// What it has, also if it was told to give that up.
    pub fn owned(&self) -> Partitions {
        let mut owned = self.assigned.clone();
        for (topic, partitions) in &self.revoking {
            owned.entry(*topic).or_default().extend(partitions);
        }
        owned
    }

    fn new() -> Self {
        Self {
            epoch: 0,
            instance_id: None,
            rack_id: None,
            client_id: String::new(),
            topic_names: BTreeSet::new(),
            topic_regex: None,
            assigned: Partitions::new(),
            target: Partitions::new(),
            previous_epoch: 0,
            assignor: None,
            rebalance_timeout: Duration::ZERO,
            state: MemberState::Stable,
            revoking: Partitions::new(),
            has_since: BTreeMap::new(),
            expires: Instant::FAR_FUTURE,
            revokes_until: Instant::FAR_FUTURE,
        }
    }

    /// Takes over what the heartbeat says; true if the member subscribes to something else than before.
    fn update(
        &mut self,
        body: &ConsumerGroupHeartbeatRequest,
        client_id: String,
        assignor: Option<Assignor>,
        topic_regex: Option<Option<TopicRegex>>,
    ) -> bool {
        self.client_id = client_id;
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

    /// The member is where it says it is, or begins anew. One epoch behind is forgiven, if nothing would be owned twice: the
    /// answer that told it of the newer one may have been lost.
    fn check_heartbeat(&self, body: &ConsumerGroupHeartbeatRequest) -> Result<(), Refusal> {
        let (told, known) = (body.member_epoch, self.epoch);
        let word = match told.cmp(&known) {
            _ if told == 0 => return Ok(()),
            std::cmp::Ordering::Equal => return Ok(()),
            std::cmp::Ordering::Greater => "greater",
            std::cmp::Ordering::Less => {
                let owned = body.topic_partitions.as_deref();
                if told == self.previous_epoch && owned.is_some_and(|owned| self.is_assigned_all(owned)) {
                    return Ok(());
                }
                "smaller"
            }
        };
        let message = format!(
            "The consumer group member has a {word} member epoch ({told}) than the one known by the group coordinator \
             ({known}). The member must abandon all its partitions and rejoin."
        );
        Err((ErrorCode::FENCED_MEMBER_EPOCH, message))
    }

    fn check_epoch(&self, epoch: i32) -> Result<(), ErrorCode> {
        if epoch == self.epoch { Ok(()) } else { Err(ErrorCode::STALE_MEMBER_EPOCH) }
    }

    fn is_assigned_all(&self, owned: &[request::TopicPartition]) -> bool {
        owned.iter().all(|topic| {
            let assigned = self.assigned.get(&topic.topic_id);
            topic.partitions.iter().all(|p| assigned.is_some_and(|assigned| assigned.contains(p)))
        })
    }

    fn note_since_when(&mut self) {
        let owned = self.owned().into_iter();
        let owned = owned.flat_map(|(topic, partitions)| partitions.into_iter().map(move |p| (topic, p)));
        let before = std::mem::take(&mut self.has_since);
        self.has_since = owned.map(|key| (key, before.get(&key).copied().unwrap_or(self.epoch))).collect();
    }

    fn subscribed(&self, topics: &Topics) -> BTreeSet<Uuid> {
        let by_name = self.topic_names.iter().filter_map(|name| id_of(topics, name));
        let mut subscribed: BTreeSet<Uuid> = by_name.collect();
        if let Some(TopicRegex { regex, .. }) = &self.topic_regex {
            let matching = topics.in_order().filter(|(_, topic)| regex.is_match(&topic.name));
            subscribed.extend(matching.map(|(_, topic)| topic.id));
        }
        subscribed
    }

    fn due(&self) -> Instant {
        self.expires.min(self.revokes_until)
    }
}

fn unknown_member(group: &str, member_id: &str) -> Refusal {
    (ErrorCode::UNKNOWN_MEMBER_ID, format!("Member {member_id} is not a member of group {group}."))
}

fn id_of(topics: &Topics, name: &str) -> Option<Uuid> {
    topics.by_name(name).and_then(|index| topics.get(index)).map(|topic| topic.id)
}

fn partition_count(topics: &Topics, id: Uuid) -> i32 {
    let topic = topics.by_id(id).and_then(|index| topics.get(index));
    topic.map_or(0, |topic| i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX))
}

/// The partitions that there are, of those that were named.
fn resolve(topics: &Topics, wanted: &BTreeSet<(String, i32)>) -> Partitions {
    let mut found = Partitions::new();
    for (name, partition) in wanted {
        if let Some(id) = id_of(topics, name)
            && (0..partition_count(topics, id)).contains(partition)
        {
            found.entry(id).or_default().insert(*partition);
        }
    }
    found
}

/// Whether a member that says that it owns this owns any of `revoked`. Who says nothing may own them all.
fn owns_any(owned: Option<&[request::TopicPartition]>, revoked: &Partitions) -> bool {
    owned.is_none_or(|owned| {
        owned.iter().any(|topic| {
            let revoked = revoked.get(&topic.topic_id);
            revoked.is_some_and(|revoked| topic.partitions.iter().any(|p| revoked.contains(p)))
        })
    })
}

fn intersection(of: &Partitions, with: &Partitions) -> Partitions {
    select(of, with, |partitions, others| partitions.intersection(others).copied().collect())
}

fn difference(of: &Partitions, without: &Partitions) -> Partitions {
    select(of, without, |partitions, others| partitions.difference(others).copied().collect())
}

fn select(
    of: &Partitions,
    by: &Partitions,
    choose: impl Fn(&BTreeSet<i32>, &BTreeSet<i32>) -> BTreeSet<i32>,
) -> Partitions {
    let none = BTreeSet::new();
    let chosen =
        of.iter().map(|(topic, partitions)| (*topic, choose(partitions, by.get(topic).unwrap_or(&none))));
    chosen.filter(|(_, partitions)| !partitions.is_empty()).collect()
}
