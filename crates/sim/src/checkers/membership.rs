//! Checks the requests of group members on the wire: each uses the member ID and the generation or epoch that the
//! coordinator last reported, until the coordinator ends that membership.
//!
//! | checker | what must hold |
//! |---|---|
//! | membership | no generation or epoch that the coordinator did not report, or that a newer one replaced (I12); no request of a member ID that the coordinator does not know; no commit without a member, or of a partition that the member gave up; static members keep their place when they close; few OffsetFetch at a time (I9) |
//! | assignment | a leader assigns each partition once, to a subscriber; without faults it assigns all of them, and evenly (I14) |
//! | heartbeats | without faults, a member sends something at least every third of its session (I13) |
//! | outside | a consumer outside its group does not ask for committed offsets |
//! | settled | without faults, a member that has partitions joins only after its commits have a response |
//! | storm | a member repeats its requests, and asks for its coordinator and for metadata, at most as often as its intervals and back-offs allow (I9) |
//! | after fatal | a member that failed for good sends nothing but commits in flight (I16) |
//!
//! A request may be written long after it was made, while its connection is established. Therefore an ID or a generation
//! counts as outdated only after `OUTDATED`.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use ottla_core::machine::Instant;
use ottla_protocol::{
    api::ApiKey,
    consumer_protocol::{ConsumerProtocolAssignment, ConsumerProtocolSubscription},
    error_code::ErrorCode,
    generated::{
        consumer_group_heartbeat::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse},
        join_group::JoinGroupResponse,
        offset_commit::{OffsetCommitRequest, request::Topic},
    },
    uuid::Uuid,
};

use super::{
    Broken,
    assignments::{LedMembers, check_assignment},
    group_messages::{GroupRequest, GroupResponse},
    member_rates::MemberRates,
    openings::Openings,
};

/// What is expected of a member.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// `session.timeout.ms`.
    pub session: Duration,
    /// The interval of heartbeats.
    pub heartbeat: Duration,
    /// It has an instance ID, and never unsubscribes.
    pub is_static: bool,
    /// Requests and connections may fail.
    pub has_faults: bool,
}

/// The memberships of the clients that [`Membership::expect`] named.
#[derive(Debug, Default)]
pub struct Membership {
    members: BTreeMap<usize, Member>,
    /// The numbers of partitions that each topic had, and since when.
    topics: BTreeMap<String, Vec<(Instant, i32)>>,
    /// The names of topics by their IDs.
    names: BTreeMap<Uuid, String>,
}

#[derive(Debug)]
struct Member {
    terms: Terms,
    /// The requests without a response.
    open: BTreeMap<(u64, i32), Open>,
    /// The connections that carry its requests.
    openings: Openings,
    /// The number of memberships that began or ended: responses of earlier ones are ignored.
    round: u64,
    /// IDs that the coordinator no longer knows, or that left.
    dead: BTreeMap<String, Instant>,
    /// IDs that only a heartbeat showed to be unknown: a member that joins meanwhile ignores that.
    doubtful: BTreeSet<String>,
    /// The member ID and the generation of the last JoinGroup response, and when it came.
    joined: Option<(String, i32, Instant)>,
    /// The generation before that one, under the same ID: generations start again when a group is converted.
    joined_before: Option<i32>,
    /// The highest generation that was sent on each link.
    sent: BTreeMap<u64, i32>,
    /// The member epoch.
    epoch: Option<i32>,
    /// The connection that carried the last heartbeat that joins, as long as it is open.
    joined_on: Option<u64>,
    /// The time at which the last member epoch ended.
    ended: Option<Instant>,
    /// The coordinator counts the member.
    is_member: bool,
    /// The time since which the member knows that it is outside its group.
    outside: Option<Instant>,
    /// The member has asked for its coordinator since it asked for offsets.
    has_looked_up: bool,
    /// The time at which the last acknowledged request was sent.
    acknowledged: Option<Instant>,
    /// The time at which the last request was sent whose response reported no rebalance.
    undisturbed: Option<Instant>,
    /// The partitions of the consumer protocol that the coordinator assigned last, and that the member reported last.
    target: PartitionsById,
    reported: (PartitionsById, Instant),
    /// The partitions of all targets since the last report: the member may have taken any of them over.
    offered: PartitionsById,
    /// The time since which the member has to revoke partitions of an earlier target.
    gives_up: Option<Instant>,
    /// The time at which the last request was sent that keeps the session alive.
    spoke: Option<Instant>,
    failed: Option<Instant>,
    /// The partitions of the last two assignments of a classic member; only the last one if it is eager.
    assigned: (Partitions, Partitions),
    /// The rate at which the member sent requests.
    rates: MemberRates,
    /// True from an assignment until the member is refused.
    is_stable: bool,
    /// True from a JoinGroup response until the assignment.
    is_between: bool,
    /// True if the members of the group give all partitions up before they join.
    is_eager: bool,
    /// The members of the generation that this member leads: the topics and partitions of each.
    led: LedMembers,
}

pub(super) type Partitions = BTreeSet<(String, i32)>;
type PartitionsById = BTreeSet<(Uuid, i32)>;

/// A request without a response.
#[derive(Debug)]
struct Open {
    asked: Asked,
    /// The member ID in the request.
    id: String,
    round: u64,
    sent: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Join,
    Sync,
    Heartbeat,
    ConsumerHeartbeat,
    Commit,
    Fetch,
    Other,
}

/// The time after which no earlier request is still written.
const OUTDATED: Duration = Duration::from_secs(7);
/// The time that a thread may take between a commit and JoinGroup.
const MEANWHILE: Duration = Duration::from_millis(5);
/// The maximum number of OffsetFetch requests in flight on a connection: partitions that are assigned meanwhile do not
/// wait for the response to an earlier request.
const FETCHES: usize = 5;

impl Membership {
    /// Checks this client from now on.
    pub fn expect(&mut self, client: usize, terms: Terms) {
        let member = Member {
            terms,
            open: BTreeMap::new(),
            openings: Openings::default(),
            round: 0,
            dead: BTreeMap::new(),
            doubtful: BTreeSet::new(),
            joined: None,
            joined_before: None,
            sent: BTreeMap::new(),
            epoch: None,
            joined_on: None,
            outside: None,
            has_looked_up: false,
            ended: None,
            is_member: false,
            acknowledged: None,
            undisturbed: None,
            target: BTreeSet::new(),
            reported: (BTreeSet::new(), Instant::ZERO),
            offered: BTreeSet::new(),
            gives_up: None,
            spoke: None,
            failed: None,
            assigned: Default::default(),
            rates: MemberRates::default(),
            is_stable: false,
            is_between: false,
            is_eager: false,
            led: BTreeMap::new(),
        };
        self.members.insert(client, member);
    }

    /// Sets the number of partitions that a topic has from now on.
    pub fn set_topic(&mut self, now: Instant, name: &str, id: Uuid, partitions: i32) {
        self.topics.entry(name.to_owned()).or_default().push((now, partitions));
        self.names.insert(id, name.to_owned());
    }

    /// The client failed for good.
    pub fn fail(&mut self, now: Instant, client: usize) {
        if let Some(member) = self.members.get_mut(&client) {
            member.failed.get_or_insert(now);
            member.is_member = false;
        }
    }

    /// The member does not poll, so that it is not expected to keep its session.
    pub fn rest(&mut self, client: usize) {
        if let Some(member) = self.members.get_mut(&client) {
            member.is_member = false;
        }
    }

    /// Notes whether the member knows no generation and no epoch of its own.
    pub fn set_outside(&mut self, now: Instant, client: usize, is_outside: bool) {
        if let Some(member) = self.members.get_mut(&client) {
            member.outside = is_outside.then(|| member.outside.unwrap_or(now));
        }
    }

    /// Returns true if the coordinator counts the member.
    pub fn is_member(&self, client: usize) -> bool {
        self.members.get(&client).is_some_and(|member| member.is_member)
    }

    /// Returns when the last request was sent that the coordinator acknowledged.
    pub fn acknowledged(&self, client: usize) -> Option<Instant> {
        self.members.get(&client)?.acknowledged
    }

    /// Returns the time of the last request whose response reported no rebalance: the coordinator can't have begun one
    /// before.
    pub fn undisturbed(&self, client: usize) -> Option<Instant> {
        self.members.get(&client)?.undisturbed
    }

    /// Checks that the member keeps its session.
    pub fn check_silence(&self, now: Instant, client: usize) -> Result<(), Broken> {
        let Some(member) = self.members.get(&client) else { return Ok(()) };
        let most = member.terms.session / 3;
        match member.spoke {
            Some(at) if member.is_member && !member.terms.has_faults && now - at > most => {
                let what = format!("client {client} sent nothing to its coordinator for {:?}", now - at);
                Err(Broken::new("heartbeats", what))
            }
            _ => Ok(()),
        }
    }

    /// A client opens a connection.
    pub fn open(&mut self, now: Instant, client: usize, link: u64) {
        if let Some(member) = self.members.get_mut(&client) {
            member.openings.open(now, link);
        }
    }

    /// Forgets a connection.
    pub fn close(&mut self, link: u64) {
        for member in self.members.values_mut() {
            member.openings.close(link);
            member.open.retain(|(of, _), _| *of != link);
            member.sent.remove(&link);
            member.joined_on = member.joined_on.filter(|on| *on != link);
        }
    }

    /// Checks a request.
    pub fn sent(
        &mut self,
        now: Instant,
        client: usize,
        key: (u64, i32),
        request: &GroupRequest,
    ) -> Result<(), Broken> {
        let Some(member) = self.members.get_mut(&client) else { return Ok(()) };
        let checked = match request {
            GroupRequest::Sync(request) => {
                check_assignment(now, &member.led, &self.topics, request, member.terms.has_faults)
                    .map_err(|what| ("assignment", what))
            }
            _ => Ok(()),
        };
        let checked = checked.and_then(|()| {
            if member.failed.is_some_and(|at| at + OUTDATED < now) {
                return Err(("after fatal", "a member that failed sends a request".to_owned()));
            }
            let made = member.openings.made(now, key.0);
            member.check_settled(made, request).map_err(|what| ("settled", what))?;
            member.rates.note(now, request, member.terms.heartbeat).map_err(|what| ("storm", what))?;
            member.check_asks(made, request).map_err(|what| ("outside", what))?;
            member.check(now, made, key, request, &self.names).map_err(|what| ("membership", what))
        });
        checked.map_err(|(checker, what)| {
            Broken::new(checker, format!("client {client}: {what}, in {request:?}"))
        })
    }

    /// Checks how often a member asks for its coordinator and for metadata.
    pub fn asked(&mut self, now: Instant, client: usize, api: ApiKey) -> Result<(), Broken> {
        let Some(member) = self.members.get_mut(&client) else { return Ok(()) };
        member.has_looked_up |= api == ApiKey::FindCoordinator;
        let counted = member.rates.note_query(now, api);
        counted.map_err(|what| Broken::new("storm", format!("client {client}: {what}")))
    }

    /// Adopts a response.
    pub fn received(&mut self, now: Instant, client: usize, key: (u64, i32), response: &GroupResponse) {
        let Some(member) = self.members.get_mut(&client) else { return };
        if let Some(open) = member.open.remove(&key)
            && open.round == member.round
        {
            member.adopt(now, &open, response);
        }
    }

    /// A response came that [`GroupResponse`] does not describe.
    pub fn finished(&mut self, client: usize, key: (u64, i32)) {
        if let Some(member) = self.members.get_mut(&client) {
            member.open.remove(&key);
        }
    }
}

impl Member {
    fn check(
        &mut self,
        now: Instant,
        made: Instant,
        key: (u64, i32),
        request: &GroupRequest,
        names: &BTreeMap<Uuid, String>,
    ) -> Result<(), String> {
        let link = key.0;
        let asked = match request {
            GroupRequest::Join(request) => {
                if !self.doubtful.contains(&request.member_id) {
                    self.check_id(now, &request.member_id)?;
                }
                // The member has given the one before up, and ignores its response.
                self.open.retain(|_, open| open.asked != Asked::Join);
                // Without an assignment there is nothing that heartbeats would keep while the coordinator holds the
                // request back.
                if self.is_between {
                    self.is_member = false;
                }
                Asked::Join
            }
            GroupRequest::Sync(request) => {
                self.check_id(now, &request.member_id)?;
                let joined = self.joined.as_ref().map(|(id, generation, _)| (&**id, *generation));
                if joined != Some((&*request.member_id, request.generation_id)) {
                    return Err(format!("it joined {joined:?}"));
                }
                Asked::Sync
            }
            GroupRequest::Heartbeat(request) => {
                self.check_id(now, &request.member_id)?;
                self.check_generation(now, link, &request.member_id, request.generation_id)?;
                Asked::Heartbeat
            }
            GroupRequest::Commit(request) => {
                let generation = request.generation_id_or_member_epoch;
                if request.member_id.is_empty() || generation < 0 {
                    return Err("a subscribed consumer commits without being a member".to_owned());
                }
                self.check_id(now, &request.member_id)?;
                match (&self.joined, self.epoch) {
                    (Some((_, joined, _)), _) => {
                        let is_current = *joined == generation;
                        self.check_generation(now, link, &request.member_id, generation)?;
                        if is_current {
                            self.check_committed(request, names)?;
                        }
                    }
                    (None, Some(epoch)) if generation > epoch => {
                        return Err(format!("the coordinator reported epoch {epoch}"));
                    }
                    (None, Some(epoch)) if generation == epoch => self.check_reported(request, names)?,
                    (None, None) if self.ended.is_none_or(|at| at + OUTDATED < now) => {
                        return Err("the coordinator does not count the member".to_owned());
                    }
                    _ => {}
                }
                Asked::Commit
            }
            GroupRequest::Leave(request) => {
                if self.terms.is_static {
                    return Err("a static member leaves that only closes".to_owned());
                }
                self.dead.extend(request.members.iter().map(|member| (member.member_id.clone(), now)));
                self.is_member = false;
                Asked::Other
            }
            GroupRequest::ConsumerHeartbeat(request) => {
                self.check_consumer_heartbeat(now, made, link, request)?;
                Asked::ConsumerHeartbeat
            }
            GroupRequest::Fetch(_) => {
                let open =
                    self.open.iter().filter(|((of, _), open)| *of == link && open.asked == Asked::Fetch);
                if open.count() >= FETCHES {
                    return Err("too many requests of this kind at once".to_owned());
                }
                Asked::Fetch
            }
        };
        if !matches!(asked, Asked::Other | Asked::Commit | Asked::Fetch) {
            self.spoke = Some(now);
        }
        let (id, round) = (request.member_id().to_owned(), self.round);
        self.open.insert(key, Open { asked, id, round, sent: now });
        Ok(())
    }

    fn check_consumer_heartbeat(
        &mut self,
        now: Instant,
        made: Instant,
        link: u64,
        request: &ConsumerGroupHeartbeatRequest,
    ) -> Result<(), String> {
        if request.member_epoch < 0 && made < now && self.has_joined_elsewhere(link) {
            self.is_member = false;
        } else {
            self.check_epoch(now, request.member_epoch)?;
        }
        if request.member_epoch == 0 {
            self.joined_on = Some(link);
        }
        if let Some(owned) = &request.topic_partitions {
            let owned = owned
                .iter()
                .flat_map(|topic| topic.partitions.iter().map(|number| (topic.topic_id, *number)));
            self.reported = (owned.collect(), now);
            self.offered.clone_from(&self.target);
        }
        Ok(())
    }

    /// A member that joins has responses to the commits that were made before: the coordinator would refuse them in the
    /// next generation. Those that were made meanwhile are sent when it joins.
    fn check_settled(&mut self, made: Instant, request: &GroupRequest) -> Result<(), String> {
        let GroupRequest::Join(_) = request else { return Ok(()) };
        // If the coordinator refuses to join, the next request follows without another wait for commits.
        let is_first = std::mem::take(&mut self.is_stable);
        if !is_first || !self.is_member || self.terms.has_faults {
            return Ok(());
        }
        let is_earlier = |open: &&Open| open.asked == Asked::Commit && open.sent + MEANWHILE < made;
        let commits = self.open.values().filter(is_earlier).count();
        if commits == 0 { Ok(()) } else { Err(format!("it joins while {commits} commits have no response")) }
    }

    /// A consumer outside its group does not ask for committed offsets: another member may commit more meanwhile. A
    /// request from before may have waited until the coordinator was found.
    fn check_asks(&mut self, made: Instant, request: &GroupRequest) -> Result<(), String> {
        let GroupRequest::Fetch(_) = request else { return Ok(()) };
        let has_waited = std::mem::take(&mut self.has_looked_up);
        match self.outside.filter(|since| !has_waited && *since + MEANWHILE < made) {
            Some(since) => Err(format!("it is outside its group since {since:?}")),
            None => Ok(()),
        }
    }

    fn check_id(&self, now: Instant, id: &str) -> Result<(), String> {
        match self.dead.get(id) {
            Some(at) if *at + OUTDATED < now => {
                Err(format!("the membership of {id} ended {:?} before", now - *at))
            }
            _ => Ok(()),
        }
    }

    /// The generation is the one that the member joined, and it never falls on a connection.
    fn check_generation(&mut self, now: Instant, link: u64, id: &str, generation: i32) -> Result<(), String> {
        let Some((joined, current, since)) = &self.joined else {
            return Err("the member never joined".to_owned());
        };
        let is_current = joined == id && *current == generation;
        let is_unknown = generation > *current && self.joined_before != Some(generation);
        if !is_current && *since + OUTDATED < now || joined == id && is_unknown {
            return Err(format!("it joined generation {current} as {joined} at {since:?}"));
        }
        if joined == id
            && generation <= *current
            && let Some(before) = self.sent.insert(link, generation)
            && before > generation
        {
            return Err(format!("generation {generation} after {before}"));
        }
        Ok(())
    }

    /// A classic member commits only what its generation assigned or, in a cooperative group, the one before.
    fn check_committed(
        &self,
        request: &OffsetCommitRequest,
        names: &BTreeMap<Uuid, String>,
    ) -> Result<(), String> {
        for topic in &request.topics {
            // From version 10 on, topics have IDs instead of names.
            let name = if topic.name.is_empty() { names.get(&topic.topic_id) } else { Some(&topic.name) };
            let name = name.ok_or_else(|| format!("no topic has the ID {}", topic.topic_id))?;
            for partition in &topic.partitions {
                let key = (name.clone(), partition.partition_index);
                if !self.assigned.0.contains(&key) && !self.assigned.1.contains(&key) {
                    return Err(format!("{key:?} is not assigned to the member"));
                }
            }
        }
        Ok(())
    }

    /// A member of the consumer protocol commits only what it reported last as its own, or was assigned since.
    fn check_reported(
        &self,
        request: &OffsetCommitRequest,
        names: &BTreeMap<Uuid, String>,
    ) -> Result<(), String> {
        let is_of = |topic: &Topic, id: Uuid| topic.topic_id == id || names.get(&id) == Some(&topic.name);
        let own = || self.reported.0.iter().chain(&self.offered);
        for topic in &request.topics {
            for number in topic.partitions.iter().map(|partition| partition.partition_index) {
                if !own().any(|(id, own)| *own == number && is_of(topic, *id)) {
                    let name = names.get(&topic.topic_id).unwrap_or(&topic.name);
                    return Err(format!("the member gave {name} [{number}] up"));
                }
            }
        }
        Ok(())
    }

    /// Returns true if the member joined on another connection, which is still open. A heartbeat that leaves the previous
    /// coordinator may have waited for its connection, and is written after the member joined at the next one.
    fn has_joined_elsewhere(&self, link: u64) -> bool {
        self.joined_on.is_some_and(|on| on != link)
    }

    fn check_epoch(&mut self, now: Instant, epoch: i32) -> Result<(), String> {
        if epoch > 0 {
            if self.epoch != Some(epoch) {
                return Err(format!("the coordinator reported epoch {:?}", self.epoch));
            }
            return Ok(());
        }
        if epoch == -1 && self.terms.is_static {
            return Err("a static member leaves for good that only closes".to_owned());
        }
        if epoch == -2 && !self.terms.is_static {
            return Err("a dynamic member leaves as a static one".to_owned());
        }
        self.round += 1;
        self.end_epoch(now);
        Ok(())
    }

    fn end_epoch(&mut self, now: Instant) {
        if self.epoch.take().is_some() {
            self.ended = Some(now);
        }
        (self.target, self.gives_up) = (BTreeSet::new(), None);
        self.offered.clear();
        self.is_member = false;
    }

    fn adopt(&mut self, now: Instant, open: &Open, response: &GroupResponse) {
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

    fn acknowledge(&mut self, sent: Instant) {
        self.is_member = true;
        self.outside = None;
        self.acknowledged = self.acknowledged.max(Some(sent));
    }

    /// The coordinator refused a request with this member ID. The request may have waited for a connection while the
    /// member got another ID.
    fn refuse(&mut self, now: Instant, code: ErrorCode, id: &str, is_joining: bool) {
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
