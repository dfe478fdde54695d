//! The identity under which a consumer commits offsets: none, or a member of its group.
//!
//! A commit belongs to the generation or member epoch in which it was made. It may be sent in a later one only for a
//! partition that the member has held all the time ([`Held`]): the offset of another consumer must not be overwritten.
//!
//! # Pitfalls
//!
//! - A cooperative member that joins again keeps its partitions, and the application commits them meanwhile. The
//!   coordinator refuses these commits as soon as the next generation begins, until the member has its assignment
//!   (`cooperative_commit_is_repeated_in_the_generation_that_follows`).
//! - A member may miss a generation in which its partition became free, and own it until it learns the assignment of the
//!   next one. Until then nothing is repeated (`cooperative_commit_waits_for_the_assignment`).

use std::sync::Arc;

use ottla_protocol::{
    error_code::ErrorCode,
    vocabulary::{Generation, TopicPartition},
};
use ottla_sorted::SortedMap;

/// The identity under which offsets are committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Committer {
    /// No member: the broker accepts the commit only if the group has no members.
    #[default]
    Nobody,
    /// A member of the group.
    Member(MemberIdentity),
    /// No commits are possible: the consumer subscribes to topics, but is not a member of its group at the moment.
    Outside,
}

/// A group member in one generation or member epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberIdentity {
    /// The member ID.
    pub member_id: String,
    /// The generation or member epoch.
    pub generation: Generation,
    /// `group.instance.id`.
    pub instance_id: Option<String>,
    /// The partitions whose commits may be sent in a later generation.
    pub held: Held,
}

/// Partitions, each with the generation or member epoch since when the member has held it.
pub type HeldSince = Arc<SortedMap<TopicPartition, Generation>>;

/// The partitions that a member keeps from one generation to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// None: an eager member gives all partitions up before it joins.
    Nothing,
    /// Commits of a cooperative member of the classic protocol.
    Cooperative {
        /// The partitions.
        since: HeldSince,
        /// False from the JoinGroup request until the member has the assignment of the next generation.
        is_settled: bool,
    },
    /// Commits of a member of the consumer protocol, whose generation is the member epoch (KIP-1251).
    Consumer(HeldSince),
}

impl MemberIdentity {
    /// Returns true if the member has held the partition since this generation or an earlier one.
    fn has_held(&self, key: &TopicPartition, generation: Generation) -> bool {
        match &self.held {
            Held::Nothing => false,
            Held::Cooperative { since, .. } | Held::Consumer(since) => {
                since.get(key).is_some_and(|since| *since <= generation)
            }
        }
    }

    /// Returns true if the coordinator knows that the member gave the partition up since this identity, although the epoch
    /// is the same.
    fn has_reported(&self, current: &Self, key: &TopicPartition) -> bool {
        match (&self.held, &current.held) {
            (Held::Consumer(before), Held::Consumer(now)) => {
                before.contains_key(key) && !now.contains_key(key)
            }
            _ => false,
        }
    }

    const fn is_settled(&self) -> bool {
        !matches!(self.held, Held::Cooperative { is_settled: false, .. })
    }
}

impl Committer {
    /// Returns true if a commit for this partition that was made under this identity may be sent under `current`.
    pub(crate) fn may_commit_as(&self, current: &Self, key: &TopicPartition) -> bool {
        match (self, current) {
            (Self::Member(made), Self::Member(member)) if made.member_id == member.member_id => {
                let is_same = made.generation == member.generation
                    && (made.is_settled() || !member.is_settled() || member.held == Held::Nothing)
                    && !made.has_reported(member, key);
                is_same || member.has_held(key, made.generation)
            }
            _ => self == current,
        }
    }

    /// Returns true if a commit of this partition that the coordinator refused is to be sent again in a later generation
    /// or epoch. `self` is the identity under which it was sent, `current` the one when the refusal arrived.
    pub(crate) fn is_repeatable(&self, current: &Self, key: &TopicPartition, code: ErrorCode) -> bool {
        let Self::Member(sent) = self else { return false };
        match (&sent.held, current) {
            (Held::Consumer(_), _) => code == ErrorCode::STALE_MEMBER_EPOCH,
            (Held::Cooperative { .. }, Self::Member(member)) => {
                let is_rebalance =
                    matches!(code, ErrorCode::ILLEGAL_GENERATION | ErrorCode::REBALANCE_IN_PROGRESS);
                let has_rebalanced =
                    !sent.is_settled() || !member.is_settled() || sent.generation != member.generation;
                is_rebalance
                    && has_rebalanced
                    && sent.member_id == member.member_id
                    && member.has_held(key, sent.generation)
            }
            _ => false,
        }
    }

    /// Returns true if a commit that was refused under this identity must wait for a later generation or epoch than the
    /// `current` one. Outside the group there is none to wait for.
    pub(crate) fn must_wait(&self, current: &Self) -> bool {
        let (Self::Member(sent), Self::Member(member)) = (self, current) else { return false };
        match member.held {
            Held::Nothing => false,
            Held::Consumer(_) => sent.generation == member.generation,
            Held::Cooperative { is_settled, .. } => !is_settled,
        }
    }

    /// Returns true if the partition is given up already, so that a commit that waits for a later generation can't be
    /// sent in it.
    pub(crate) fn has_given_up(&self, key: &TopicPartition) -> bool {
        match self {
            Self::Member(MemberIdentity { held: Held::Cooperative { since, .. }, .. }) => {
                !since.contains_key(key)
            }
            _ => false,
        }
    }

    /// Returns true for a member of the consumer protocol.
    pub(crate) const fn has_epoch(&self) -> bool {
        matches!(self, Self::Member(MemberIdentity { held: Held::Consumer(_), .. }))
    }
}
