//! The kinds of faults.

/// The number of kinds of faults.
pub const KINDS: u32 = FaultKind::ALL.len() as u32;

/// The number of kinds before there were faults that change topics and logs.
pub const SECOND_KINDS: u32 = 21;

/// The number of kinds before there were consumers.
pub const FIRST_KINDS: u32 = 12;

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultKind {
    /// Breaks a connection.
    ResetLink,
    /// Stalls a connection in one direction or both.
    StallLink,
    /// Drops all packets between a client and a broker.
    PartitionNetwork,
    /// Kills a broker.
    KillBroker,
    /// Moves every leader to another replica.
    RotateLeaders,
    /// Moves the leader of a partition.
    MoveLeader,
    /// Rejects some Produce requests.
    RejectProduce,
    /// Loses the response to a Produce request.
    LoseProduceResponse,
    /// Delays, throttles, drops or corrupts the response to a request of any API.
    DisturbRequest,
    /// Resolves no name.
    StopResolver,
    /// Adds latency to a broker.
    SlowBroker,
    /// Metadata responses name old leaders.
    FreezeMetadata,
    /// Replaces a broker by one of another release.
    ReplaceBroker,
    /// Evicts the fetch sessions of a broker.
    EvictFetchSessions,
    /// Drops packets between a client and a broker in one direction.
    CutOneWay,
    /// Drops a connection at the broker without notifying the client.
    HalfOpenLink,
    /// Moves the controller.
    MoveController,
    /// Resolves names to no, several or wrong addresses.
    MisdirectResolver,
    /// Rejects some requests of any API.
    RejectRequest,
    /// Suspends the host of a client.
    SuspendHost,
    /// Moves the wall clocks of the clients.
    MoveWallClocks,
    /// Rejects every request of an API for some time.
    RejectEveryRequest,
    /// Deletes records.
    DeleteRecords,
    /// Elects a replica without the newest records.
    ElectUnclean,
    /// Deletes a topic.
    DeleteTopic,
}

impl FaultKind {
    /// All kinds. New ones come last, so that a world with only the first kinds keeps its trace.
    pub(super) const ALL: [Self; 25] = [
        Self::ResetLink,
        Self::StallLink,
        Self::PartitionNetwork,
        Self::KillBroker,
        Self::RotateLeaders,
        Self::MoveLeader,
        Self::RejectProduce,
        Self::LoseProduceResponse,
        Self::DisturbRequest,
        Self::StopResolver,
        Self::SlowBroker,
        Self::FreezeMetadata,
        Self::ReplaceBroker,
        Self::EvictFetchSessions,
        Self::CutOneWay,
        Self::HalfOpenLink,
        Self::MoveController,
        Self::MisdirectResolver,
        Self::RejectRequest,
        Self::SuspendHost,
        Self::MoveWallClocks,
        Self::RejectEveryRequest,
        Self::DeleteRecords,
        Self::ElectUnclean,
        Self::DeleteTopic,
    ];
}
