//! Deliberate mistakes, one at a time, to see whether the simulator's checkers notice them. Only a build with the
//! feature `mutants` can make one; elsewhere [`Mutation`] is empty and [`Mutation::is`] is false for the compiler.

/// Which mistake a client makes, if any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mutation {
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
}

impl Mutation {
    /// No mistake.
    pub const NONE: Self = Self {
        #[cfg(feature = "mutants")]
        mutant: None,
    };

    /// This mistake.
    #[cfg(feature = "mutants")]
    pub const fn of(mutant: Mutant) -> Self {
        Self { mutant: Some(mutant) }
    }

    /// True if this is the mistake to make.
    #[inline]
    #[allow(clippy::unused_self, reason = "without the feature there is nothing to look at")]
    pub const fn is(self, mutant: Mutant) -> bool {
        #[cfg(feature = "mutants")]
        {
            matches!(self.mutant, Some(own) if own as u8 == mutant as u8)
        }
        #[cfg(not(feature = "mutants"))]
        {
            let _ = mutant;
            false
        }
    }

    /// A number that nobody can foresee, for the mistakes that need one; 0 without the feature.
    pub fn unforeseen(self) -> u64 {
        #[cfg(feature = "mutants")]
        {
            std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0)
        }
        #[cfg(not(feature = "mutants"))]
        {
            0
        }
    }
}

macro_rules! mutants {
    ($($(#[doc = $what:literal])* $mutant:ident,)*) => {
        /// A mistake.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Mutant {
            $($(#[doc = $what])* $mutant,)*
        }

        impl Mutant {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$mutant),*];

            /// What it does, in words.
            pub const fn what(self) -> &'static str {
                match self {
                    $(Self::$mutant => concat!($($what),*),)*
                }
            }
        }
    };
}

mutants! {
    /// a batch that is to be sent again is dropped
    DropRetry,
    /// a batch that is refused for a while counts as delivered
    AcknowledgeRefused,
    /// every eighth batch uses the sequence number of the one before
    ReuseSequence,
    /// a batch that may have been written gets a new sequence number
    RenumberDoubtful,
    /// NOT_LEADER_OR_FOLLOWER is taken for "not written"
    TrustNotLeader,
    /// more than one batch is in flight before the first is acknowledged
    SecondBeforeFirst,
    /// a lost request is taken for one that was never sent
    CallSentUnsent,
    /// a batch in flight that timed out is reported again when its answer comes
    ReportTwice,
    /// records that were never sent are reported newest first
    FailNewestFirst,
    /// reports name the offset behind the record's
    WrongOffset,
    /// batches that are sent again go behind each other as they come back
    RetryOutOfOrder,
    /// the queue gets back half of the bytes that a report frees
    ForgetBytes,
    /// the queue does not get back the last message of a batch
    ForgetMessage,
    /// records that are out of date vanish from the queue and stay charged
    ForgetFetched,
    /// batches are sent again at once
    RetryWithoutBackoff,
    /// connections are made again at once
    ReconnectWithoutBackoff,
    /// metadata is asked for again at once
    RefreshWithoutBackoff,
    /// the producer's identity is asked for again at once
    IdentityWithoutBackoff,
    /// a request waits for its answer for ever
    NeverTimeOut,
    /// consumers stay with the leader they know
    KeepStaleLeader,
    /// who sleeps is not woken by records
    LoseWakeup,
    /// a fetcher that waits for room is not woken
    ForgetStarved,
    /// a session that the broker forgot goes on
    KeepSession,
    /// a partition that a broker gives back is forgotten
    LoseReleased,
    /// records of paused partitions are handed out
    ForgetPause,
    /// records from before a seek are handed out
    DeliverAfterSeek,
    /// the record behind each fetch is left out
    SkipOffset,
    /// the last record of each fetch is fetched again
    RepeatOffset,
    /// an answer counts whatever was asked
    IgnoreAsked,
    /// records before the offset that was asked for are handed out
    KeepEarlier,
    /// the position stands one too far
    PositionAhead,
    /// the end of a partition is told one too far
    EndTooFar,
    /// what was fetched last is handed out first
    LastFirst,
    /// all versions are used, whatever the broker told
    UnsupportedVersion,
    /// one request more is in flight than is allowed
    TooManyInFlight,
    /// every tenth correlation id is used twice
    RepeatCorrelationId,
    /// two partitions of a request get each other's batches
    SwapBatches,
    /// an answer that makes no sense is passed over
    IgnoreNonsense,
    /// a partition may be in a request twice
    TwiceInRequest,
    /// requests are twice as large as allowed and more
    OversizedRequest,
    /// a broker that asks to be left alone is asked on
    IgnoreThrottle,
    /// fetches don't wait for records
    FetchWithoutWait,
    /// lookups of offsets are repeated at once
    LookupWithoutBackoff,
    /// a purge misses partitions that are on their way to another leader
    PurgeNotMoving,
    /// records that are purged in flight have no report
    PurgeUnreported,
    /// what is purged counts as not written, though it was sent
    PurgeTrusted,
    /// the sequence numbers of batches that are purged in flight are used again
    PurgeReusesSequence,
    /// a purge gives the queue back its messages and not their bytes
    PurgeForgetsBytes,
    /// who flushes is not woken by the last report
    LoseFlush,
    /// a close hands nothing back of what no broker has
    CloseUnreported,
    /// a back-off has randomness of its own
    OwnRandomness,
    /// bootstrap servers are tried in an order of its own
    OwnOrder,
}
