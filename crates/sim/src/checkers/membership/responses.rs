//! What responses change for a member: its generation or epoch, its target, and whether the coordinator counts it.

use super::*;

impl Member {
    pub(super) fn adopt(&mut self, now: Instant, open: &Open, response: &GroupResponse) {
        let is_joining = self.open.values().any(|open| matches!(open.asked, Asked::Join | Asked::Sync));
        match response {
            GroupResponse::Join(response) => match response.error_code {
                ErrorCode::NONE => self.join(now, response),
                code => self.refuse(now, code, &open.id, false),
            },
            GroupResponse::Sync(response) => match response.error_code {
                ErrorCode::NONE => {
                    self.acknowledge(now);
                    self.undisturbed = Some(now);
                    (self.is_stable, self.is_between) = (true, false);
                    let decoded = ConsumerProtocolAssignment::from_bytes(&response.assignment);
                    let topics = decoded.into_iter().flat_map(|(_, decoded)| decoded.assigned_partitions);
                    let partitions = topics.flat_map(|topic| {
                        let numbers = topic.partitions.into_iter();
                        numbers.map(move |number| (topic.topic.clone(), number)).collect::<Vec<_>>()
                    });
                    self.assigned.1 = std::mem::replace(&mut self.assigned.0, partitions.collect());
                }
                code => self.refuse(now, code, &open.id, false),
            },
            GroupResponse::Heartbeat(response) => match response.error_code {
                ErrorCode::NONE => {
                    self.acknowledge(open.sent);
                    self.undisturbed = self.undisturbed.max(Some(open.sent));
                }
                ErrorCode::REBALANCE_IN_PROGRESS => self.acknowledge(open.sent),
                code => {
                    if code == ErrorCode::UNKNOWN_MEMBER_ID && !self.dead.contains_key(&open.id) {
                        self.doubtful.insert(open.id.clone());
                    }
                    self.refuse(now, code, &open.id, is_joining);
                }
            },
            GroupResponse::ConsumerHeartbeat(response) => match response.error_code {
                ErrorCode::NONE => {
                    let epoch = Some(response.member_epoch).filter(|epoch| *epoch > 0);
                    if epoch != self.epoch || response.assignment.is_some() {
                        self.rates.note_change(now);
                    }
                    self.epoch = epoch;
                    self.acknowledge(open.sent);
                    self.adopt_target(open.sent, response);
                }
                ErrorCode::UNKNOWN_MEMBER_ID
                | ErrorCode::FENCED_MEMBER_EPOCH
                | ErrorCode::GROUP_ID_NOT_FOUND => self.end_epoch(now),
                _ => {}
            },
        }
    }

    /// The coordinator counts the rebalance timeout from the target that lacks a partition of the one before, until the
    /// member reports what it has then.
    fn adopt_target(&mut self, sent: Instant, response: &ConsumerGroupHeartbeatResponse) {
        if let Some(assignment) = &response.assignment {
            let assigned = assignment.topic_partitions.iter();
            let target: PartitionsById = assigned
                .flat_map(|topic| topic.partitions.iter().map(|number| (topic.topic_id, *number)))
                .collect();
            if !self.target.is_subset(&target) {
                self.gives_up.get_or_insert(sent);
            }
            self.offered.extend(&target);
            self.target = target;
        }
        let (reported, at) = &self.reported;
        if self.gives_up.is_some_and(|since| since < *at) && reported.is_subset(&self.target) {
            self.gives_up = None;
        }
        if self.gives_up.is_none() {
            self.undisturbed = Some(sent);
        }
    }

    /// The member belongs to a generation.
    fn join(&mut self, now: Instant, response: &JoinGroupResponse) {
        let (id, generation) = (response.member_id.clone(), response.generation_id);
        // The coordinator of a converted group admits any ID.
        self.dead.remove(&id);
        self.doubtful.remove(&id);
        // A member that lost its session may find its generation unchanged. Its commits from before may still wait for a
        // connection.
        let is_same = self.joined.as_ref().is_some_and(|(of, last, _)| *of == id && *last == generation);
        let before = self.joined.replace((id.clone(), generation, now));
        self.joined_before = before.filter(|(of, ..)| *of == id).map(|(_, generation, _)| generation);
        // Requests of the generation before may still be waiting for a connection.
        self.sent.clear();
        self.acknowledge(now);
        self.undisturbed = Some(now);
        (self.is_stable, self.is_between) = (false, true);
        self.rates.note_change(now);
        // The coordinator counts the session from its response.
        self.spoke = Some(now);
        self.is_eager = response.protocol_name.as_deref() != Some("cooperative-sticky");
        if self.is_eager && !is_same {
            self.assigned = Default::default();
        }
        let members = response.members.iter().filter_map(|member| {
            let (_, subscription) = ConsumerProtocolSubscription::from_bytes(&member.metadata).ok()?;
            let owned = subscription.owned_partitions.into_iter().flat_map(|owned| {
                owned.partitions.into_iter().map(move |number| (owned.topic.clone(), number))
            });
            let topics = subscription.topics.into_iter().collect();
            Some((member.member_id.clone(), (topics, owned.collect())))
        });
        self.led = members.collect();
    }

    pub(super) fn acknowledge(&mut self, sent: Instant) {
        self.is_member = true;
        self.outside = None;
        self.acknowledged = self.acknowledged.max(Some(sent));
    }

    /// The coordinator refused a request with this member ID. The request may have waited for a connection while the
    /// member got another ID.
    pub(super) fn refuse(&mut self, now: Instant, code: ErrorCode, id: &str, is_joining: bool) {
        let is_out = matches!(code, ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::ILLEGAL_GENERATION);
        if is_joining {
            // The generation of before has nothing left that heartbeats would keep.
            self.is_member &= !is_out;
            return;
        }
        if code == ErrorCode::UNKNOWN_MEMBER_ID && !id.is_empty() {
            self.dead.insert(id.to_owned(), now);
        }
        let is_current = self.joined.as_ref().is_none_or(|(joined, ..)| joined == id);
        if is_out && is_current {
            self.is_member = false;
        }
    }
}
