//! The identity under which a consumer commits offsets: none, or a member of its group.

use std::{collections::BTreeMap, sync::Arc};

use ottla_protocol::vocabulary::{Generation, TopicPartition};

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
    /// The partitions of a member of the consumer protocol, each with the member epoch since when; `None` for a classic
    /// member. The generation is the member epoch then.
    pub held: Option<Arc<BTreeMap<TopicPartition, Generation>>>,
}

impl Committer {
    /// Returns true if a commit for this partition that was made under this identity may be sent under `current`: a member of
    /// the consumer protocol may raise the epoch of a commit while it holds the partition (KIP-1251), and every other commit
    /// belongs to its generation.
    pub(super) fn may_commit_as(&self, current: &Self, key: &TopicPartition) -> bool {
        match (self, current) {
            (Self::Member(made), Self::Member(member)) if made.member_id == member.member_id => {
                let Some(held) = &member.held else { return self == current };
                let holds_since = held.get(key).is_some_and(|since| *since <= made.generation);
                made.generation == member.generation || holds_since
            }
            _ => self == current,
        }
    }

    /// Returns the member epoch of a member of the consumer protocol.
    pub(super) fn member_epoch(&self) -> Option<Generation> {
        match self {
            Self::Member(member) if member.held.is_some() => Some(member.generation),
            _ => None,
        }
    }
}
