//! Checks the requests of group members on the wire: each uses the member ID and the generation or epoch that the
//! coordinator last reported, until the coordinator ends that membership.
//!
//! | checker | what must hold |
//! |---|---|
//! | membership | no generation or epoch that the coordinator did not report, or that a newer one replaced (I12); no request of a member ID that the coordinator does not know; no commit without a member, or of a partition that the member gave up; static members keep their place when they close; few OffsetFetch at a time (I9) |
//! | assignment | a leader assigns each partition once, to a subscriber; without faults it assigns all of them, and evenly (I14) |
//! | heartbeats | without faults, a member sends something at least every third of its session (I13) |
//! | withdrawn | without faults, a member reports what it keeps as soon as its application has answered a withdrawal |
//! | outside | a consumer outside its group does not ask for committed offsets |
//! | settled | without faults, a member that has partitions joins only after its commits have a response |
//! | storm | a member repeats its requests, and asks for its coordinator and for metadata, at most as often as its intervals and back-offs allow (I9) |
//! | after fatal | a member that failed for good sends nothing but commits in flight (I16) |
//!
//! `requests` has the rules, and `responses` what the coordinator reported.
//!
//! A request may be written long after it was made, while its connection is established. Therefore an ID or a generation
//! counts as outdated only after `OUTDATED`.

mod requests;
mod responses;

use std::time::Duration;

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
use ottla_sorted::{SortedMap, SortedSet};

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
    members: SortedMap<usize, Member>,
    /// The numbers of partitions that each topic had, and since when.
    topics: SortedMap<String, Vec<(Instant, i32)>>,
    /// The names of topics by their IDs.
    names: SortedMap<Uuid, String>,
}

#[derive(Debug)]
struct Member {
    terms: Terms,
    /// The requests without a response.
    open: SortedMap<(u64, i32), Open>,
    /// The connections that carry its requests.
    openings: Openings,
    /// The number of memberships that began or ended: responses of earlier ones are ignored.
    round: u64,
    /// IDs that the coordinator no longer knows, or that left.
    dead: SortedMap<String, Instant>,
    /// IDs that only a heartbeat showed to be unknown: a member that joins meanwhile ignores that.
    doubtful: SortedSet<String>,
    /// The member ID and the generation of the last JoinGroup response, and when it came.
    joined: Option<(String, i32, Instant)>,
    /// The generation before that one, under the same ID: generations start again when a group is converted.
    joined_before: Option<i32>,
    /// The highest generation that was sent on each link.
    sent: SortedMap<u64, i32>,
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

pub(super) type Partitions = SortedSet<(String, i32)>;
type PartitionsById = SortedSet<(Uuid, i32)>;

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
/// The time within which a member reports that it gave partitions up.
const REPORTS: Duration = Duration::from_secs(2);
/// The maximum number of OffsetFetch requests in flight on a connection: partitions that are assigned meanwhile do not
/// wait for the response to an earlier request.
const FETCHES: usize = 5;

impl Membership {
    /// Checks this client from now on.
    pub fn expect(&mut self, client: usize, terms: Terms) {
        let member = Member {
            terms,
            open: SortedMap::new(),
            openings: Openings::default(),
            round: 0,
            dead: SortedMap::new(),
            doubtful: SortedSet::new(),
            joined: None,
            joined_before: None,
            sent: SortedMap::new(),
            epoch: None,
            joined_on: None,
            outside: None,
            has_looked_up: false,
            ended: None,
            is_member: false,
            acknowledged: None,
            undisturbed: None,
            target: SortedSet::new(),
            reported: (SortedSet::new(), Instant::ZERO),
            offered: SortedSet::new(),
            gives_up: None,
            spoke: None,
            failed: None,
            assigned: Default::default(),
            rates: MemberRates::default(),
            is_stable: false,
            is_between: false,
            is_eager: false,
            led: SortedMap::new(),
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

    /// Checks that a member whose application has answered reports what it keeps after partitions were withdrawn.
    pub fn check_withdrawn(&self, now: Instant, client: usize) -> Result<(), Broken> {
        let Some(member) = self.members.get(&client) else { return Ok(()) };
        match member.gives_up {
            Some(since) if member.is_member && !member.terms.has_faults && since + REPORTS < now => {
                let what = format!("client {client} has not reported what it keeps since {since:?}");
                Err(Broken::new("withdrawn", what))
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
