//! Members of other clients, with the encodings and the versions that these use.
//!
//! A foreign member takes part in rebalances, also as the leader, and consumes nothing. It talks to the coordinator over a
//! connection without delays, and sends no heartbeats while it joins.
//!
//! | client | JoinGroup | subscription | user data of `cooperative-sticky` |
//! |---|---|---|---|
//! | [`Client::Java`] (3.5 and later) | 9 | 3, without user data | the generation |
//! | [`Client::Java33`] | 9 | 2, without user data | the generation |
//! | [`Client::Java26`] | 7 | 1, without user data | the generation |
//! | [`Client::Librdkafka`] | 5 | 3, with empty user data | the owned partitions and the generation |
//! | [`Client::Franz`] | 9 | 3, without user data | the owned partitions and the generation |
//! | [`Client::Oldest`] (0.10) | 1 | 0, with empty user data | does not know it |

use std::sync::Arc;

use ottla_core::machine::Instant;
use ottla_embedded_broker::{BrokerId, ConnectionId};
use ottla_protocol::{
    consumer_protocol::{ConsumerProtocolAssignment, ConsumerProtocolSubscription},
    error_code::ErrorCode,
    generated::{
        heartbeat::{HeartbeatRequest, HeartbeatResponse},
        join_group::{JoinGroupRequest, JoinGroupResponse, request::Protocol as Offer},
        leave_group::{LeaveGroupRequest, request::Member as LeavingMember},
        sync_group::{SyncGroupRequest, SyncGroupResponse, request::Assignment},
    },
    header::{RequestHeader, ResponseHeader},
    message::{Message, Request},
    primitive::Reader,
    vocabulary::TopicPartition,
};
use ottla_sorted::{SortedMap, SortedSet};

use super::{GROUP, HEARTBEAT, REBALANCE, SESSION};
use crate::{Broken, world::World};

/// The clients from which members are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Client {
    Java,
    Java33,
    Java26,
    Librdkafka,
    Franz,
    Oldest,
}

/// A member of another client.
#[derive(Debug)]
pub(super) struct Foreign {
    client: Client,
    is_cooperative: bool,
    /// The topics, with their numbers of partitions.
    topics: Vec<(String, i32)>,
    connection: ConnectionId,
    state: State,
    member_id: String,
    generation: i32,
    assigned: SortedSet<TopicPartition>,
    next_heartbeat: Instant,
    requests: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Joining,
    Syncing,
    Stable,
    Beating,
    Leaving,
    Gone,
}

impl Client {
    pub(super) const ALL: [Self; 6] =
        [Self::Java, Self::Librdkafka, Self::Franz, Self::Java33, Self::Java26, Self::Oldest];

    /// Returns true if the client has a cooperative assignor.
    pub(super) fn is_cooperative(self) -> bool {
        self != Self::Oldest
    }

    /// Returns the versions of JoinGroup, SyncGroup, Heartbeat and LeaveGroup.
    const fn versions(self) -> [i16; 4] {
        match self {
            Self::Java | Self::Java33 | Self::Franz => [9, 5, 4, 5],
            Self::Java26 => [7, 5, 4, 4],
            Self::Librdkafka => [5, 3, 3, 1],
            Self::Oldest => [1, 0, 0, 0],
        }
    }

    const fn subscription_version(self) -> i16 {
        match self {
            Self::Java | Self::Librdkafka | Self::Franz => 3,
            Self::Java33 => 2,
            Self::Java26 => 1,
            Self::Oldest => 0,
        }
    }

    /// Returns the version of assignments. It differs, while their fields are the same.
    const fn assignment_version(self) -> i16 {
        match self {
            Self::Librdkafka | Self::Oldest => 0,
            _ => self.subscription_version(),
        }
    }

    /// Returns the user data that the client sends without need.
    fn no_user_data(self) -> Option<Vec<u8>> {
        matches!(self, Self::Librdkafka | Self::Oldest).then(Vec::new)
    }
}

impl Foreign {
    /// Connects a member to the coordinator and joins.
    pub(super) fn join(
        world: &mut World,
        client: Client,
        topics: &[(String, i32)],
        is_cooperative: bool,
    ) -> Option<Self> {
        let connection = world.open_foreign(BrokerId(1))?;
        let mut member = Self {
            client,
            is_cooperative,
            topics: topics.to_vec(),
            connection,
            state: State::Joining,
            member_id: String::new(),
            generation: -1,
            assigned: SortedSet::new(),
            next_heartbeat: world.now,
            requests: 0,
        };
        member.send_join(world)?;
        Some(member)
    }

    /// Returns the partitions that the member has.
    pub(super) const fn assigned(&self) -> &SortedSet<TopicPartition> {
        &self.assigned
    }

    /// Returns true if no rebalance is in progress for the member, or if it has left.
    pub(super) const fn is_idle(&self) -> bool {
        matches!(self.state, State::Stable | State::Beating | State::Gone)
    }

    /// Returns the client.
    pub(super) const fn client(&self) -> Client {
        self.client
    }

    /// Leaves the group.
    pub(super) fn leave(&mut self, world: &mut World) -> Result<(), Broken> {
        let version = self.client.versions()[3];
        let mut request = LeaveGroupRequest { group_id: GROUP.to_owned(), ..Default::default() };
        if version >= 3 {
            let member_id = self.member_id.clone();
            request.members = vec![LeavingMember { member_id, ..Default::default() }];
        } else {
            request.member_id.clone_from(&self.member_id);
        }
        self.assigned.clear();
        self.state = State::Leaving;
        self.send(world, version, &request).ok_or_else(unencodable)
    }

    /// Handles responses, and sends the heartbeat that is due.
    pub(super) fn step(&mut self, world: &mut World) -> Result<(), Broken> {
        while let Some(frame) = world.receive_foreign(self.connection) {
            self.handle(world, &frame)?;
        }
        if self.state == State::Stable && self.next_heartbeat <= world.now {
            self.state = State::Beating;
            self.next_heartbeat = world.now + HEARTBEAT;
            let request = HeartbeatRequest {
                group_id: GROUP.to_owned(),
                generation_id: self.generation,
                member_id: self.member_id.clone(),
                ..Default::default()
            };
            self.send(world, self.client.versions()[2], &request).ok_or_else(unencodable)?;
        }
        Ok(())
    }

    fn handle(&mut self, world: &mut World, frame: &[u8]) -> Result<(), Broken> {
        let [join, sync, heartbeat, _] = self.client.versions();
        let done = match self.state {
            State::Joining => {
                let response = decode::<JoinGroupRequest>(frame, join)?;
                self.handle_join(world, response)
            }
            State::Syncing => {
                let response = decode::<SyncGroupRequest>(frame, sync)?;
                self.handle_sync(world, &response)
            }
            State::Beating => {
                let response = decode::<HeartbeatRequest>(frame, heartbeat)?;
                self.handle_heartbeat(world, &response)
            }
            State::Leaving => {
                self.state = State::Gone;
                Some(())
            }
            State::Stable | State::Gone => None,
        };
        let what = || Broken::new("convergence", format!("a response that {:?} can't use", self.client));
        done.ok_or_else(what)
    }

    fn handle_join(&mut self, world: &mut World, response: JoinGroupResponse) -> Option<()> {
        match response.error_code {
            ErrorCode::NONE => {}
            ErrorCode::MEMBER_ID_REQUIRED => {
                self.member_id = response.member_id;
                return self.send_join(world);
            }
            _ => return self.rejoin(world),
        }
        self.generation = response.generation_id;
        self.member_id.clone_from(&response.member_id);
        let assignments = match response.leader == response.member_id {
            true => self.assign(&response),
            false => Vec::new(),
        };
        let version = self.client.versions()[1];
        let request = SyncGroupRequest {
            group_id: GROUP.to_owned(),
            generation_id: self.generation,
            member_id: self.member_id.clone(),
            protocol_type: (version >= 5).then(|| "consumer".to_owned()),
            protocol_name: response.protocol_name.filter(|_| version >= 5),
            assignments,
            ..Default::default()
        };
        self.state = State::Syncing;
        self.send(world, version, &request)
    }

    fn handle_sync(&mut self, world: &mut World, response: &SyncGroupResponse) -> Option<()> {
        match response.error_code {
            ErrorCode::NONE => {}
            ErrorCode::REBALANCE_IN_PROGRESS => return self.send_join(world),
            _ => return self.rejoin(world),
        }
        let mut assigned = SortedSet::new();
        if !response.assignment.is_empty() {
            let (_, decoded) = ConsumerProtocolAssignment::from_bytes(&response.assignment).ok()?;
            for topic in decoded.assigned_partitions {
                let name: Arc<str> = topic.topic.into();
                assigned.extend(
                    topic.partitions.into_iter().map(|number| TopicPartition::new(Arc::clone(&name), number)),
                );
            }
        }
        let gives_up = self.is_cooperative && !self.assigned.is_subset(&assigned);
        self.assigned = assigned;
        if gives_up {
            return self.send_join(world);
        }
        self.state = State::Stable;
        self.next_heartbeat = world.now + HEARTBEAT;
        Some(())
    }

    fn handle_heartbeat(&mut self, world: &mut World, response: &HeartbeatResponse) -> Option<()> {
        match response.error_code {
            ErrorCode::NONE => {
                self.state = State::Stable;
                Some(())
            }
            ErrorCode::REBALANCE_IN_PROGRESS => {
                if !self.is_cooperative {
                    self.assigned.clear();
                }
                self.send_join(world)
            }
            _ => self.rejoin(world),
        }
    }

    /// Joins as a member that the coordinator does not know.
    fn rejoin(&mut self, world: &mut World) -> Option<()> {
        self.member_id.clear();
        self.generation = -1;
        self.assigned.clear();
        self.send_join(world)
    }

    fn send_join(&mut self, world: &mut World) -> Option<()> {
        let version = self.client.versions()[0];
        let name = if self.is_cooperative { "cooperative-sticky" } else { "range" };
        let request = JoinGroupRequest {
            group_id: GROUP.to_owned(),
            session_timeout_ms: SESSION.as_millis() as i32,
            rebalance_timeout_ms: REBALANCE.as_millis() as i32,
            member_id: self.member_id.clone(),
            protocol_type: "consumer".to_owned(),
            protocols: vec![Offer { name: name.to_owned(), metadata: self.subscription() }],
            ..Default::default()
        };
        self.state = State::Joining;
        self.send(world, version, &request)
    }

    /// Returns the subscription as the client encodes it.
    fn subscription(&self) -> Vec<u8> {
        let version = self.client.subscription_version();
        let mut out = version.to_be_bytes().to_vec();
        put_count(&mut out, self.topics.len());
        self.topics.iter().for_each(|(name, _)| put_string(&mut out, name));
        put_bytes(&mut out, self.user_data().as_deref());
        let owned: &SortedSet<TopicPartition> =
            if self.is_cooperative { &self.assigned } else { &SortedSet::new() };
        let generation = if self.is_cooperative { self.generation } else { -1 };
        if version >= 1 {
            put_partitions(&mut out, owned);
        }
        if version >= 2 {
            out.extend(generation.to_be_bytes());
        }
        if version >= 3 {
            out.extend((-1_i16).to_be_bytes());
        }
        out
    }

    fn user_data(&self) -> Option<Vec<u8>> {
        if !self.is_cooperative {
            return self.client.no_user_data();
        }
        match self.client {
            Client::Java | Client::Java33 | Client::Java26 => Some(self.generation.to_be_bytes().to_vec()),
            Client::Librdkafka | Client::Franz | Client::Oldest => {
                let mut out = Vec::new();
                if !self.assigned.is_empty() {
                    put_partitions(&mut out, &self.assigned);
                    out.extend(self.generation.to_be_bytes());
                }
                Some(out)
            }
        }
    }

    /// Assigns each topic's partitions in ranges, as all clients do; only eager groups are led by a foreign member.
    fn assign(&self, response: &JoinGroupResponse) -> Vec<Assignment> {
        let mut assigned: SortedMap<&str, SortedSet<TopicPartition>> = SortedMap::new();
        for (name, count) in &self.topics {
            let topic: Arc<str> = Arc::from(&**name);
            let subscribes = |metadata: &[u8]| {
                let decoded = ConsumerProtocolSubscription::from_bytes(metadata);
                decoded.is_ok_and(|(_, subscription)| subscription.topics.contains(name))
            };
            let members = response.members.iter().filter(|member| subscribes(&member.metadata));
            let ids: SortedSet<&str> = members.map(|member| &*member.member_id).collect();
            let (each, rest) = (*count as usize / ids.len().max(1), *count as usize % ids.len().max(1));
            let mut first = 0;
            for (index, id) in ids.into_iter().enumerate() {
                let size = (each + usize::from(index < rest)) as i32;
                let own = (first..first + size).map(|number| TopicPartition::new(Arc::clone(&topic), number));
                assigned.entry(id).or_default().extend(own);
                first += size;
            }
        }
        let encode = |(id, partitions): (&str, SortedSet<TopicPartition>)| {
            let mut out = self.client.assignment_version().to_be_bytes().to_vec();
            put_partitions(&mut out, &partitions);
            put_bytes(&mut out, self.client.no_user_data().as_deref());
            Assignment { member_id: id.to_owned(), assignment: out }
        };
        assigned.into_iter().map(encode).collect()
    }

    fn send<R: Request>(&mut self, world: &mut World, version: i16, request: &R) -> Option<()> {
        self.requests += 1;
        let mut out = vec![0; 4];
        let header = RequestHeader {
            api_key: R::API_KEY.as_i16(),
            api_version: version,
            correlation_id: self.requests,
            client_id: Some(format!("{:?}", self.client)),
        };
        header.encode(&mut out).ok()?;
        request.encode(version, &mut out).ok()?;
        let length = i32::try_from(out.len() - 4).ok()?;
        out[..4].copy_from_slice(&length.to_be_bytes());
        world.send_foreign(self.connection, &out);
        Some(())
    }
}

/// Decodes the body of a response to `R`.
fn decode<R: Request>(frame: &[u8], version: i16) -> Result<R::Response, Broken> {
    // The first four bytes are the frame's length.
    let mut reader = Reader::new(frame.get(4..).unwrap_or_default());
    let header = ResponseHeader::decode(&mut reader, R::API_KEY, version);
    let decoded = header.and_then(|_| R::Response::decode(&mut reader, version));
    decoded.map_err(|error| Broken::new("convergence", format!("a foreign member can't read: {error}")))
}

fn unencodable() -> Broken {
    Broken::new("convergence", "a request of a foreign member can't be encoded")
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend((count as i32).to_be_bytes());
}

fn put_string(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as i16).to_be_bytes());
    out.extend(text.as_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            put_count(out, bytes.len());
            out.extend(bytes);
        }
        None => out.extend((-1_i32).to_be_bytes()),
    }
}

fn put_partitions(out: &mut Vec<u8>, partitions: &SortedSet<TopicPartition>) {
    let mut topics: SortedMap<&str, Vec<i32>> = SortedMap::new();
    for TopicPartition { topic, partition } in partitions {
        topics.entry(topic).or_default().push(*partition);
    }
    put_count(out, topics.len());
    for (topic, numbers) in topics {
        put_string(out, topic);
        put_count(out, numbers.len());
        numbers.iter().for_each(|number| out.extend(number.to_be_bytes()));
    }
}
