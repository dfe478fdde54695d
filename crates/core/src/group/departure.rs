//! What happens to the membership when a consumer closes (KIP-1092).

/// What happens to a consumer's membership in its group when it closes (KIP-1092).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GroupMembershipOperation {
    /// A dynamic member leaves its group. A static member stays until its session ends: it may be restarting (KIP-345).
    #[default]
    Default,
    /// The member leaves, static or not, and its partitions go to others at once.
    LeaveGroup,
    /// The member stays until its session ends, static or not: no rebalance begins if it is back before.
    RemainInGroup,
}

impl GroupMembershipOperation {
    /// Returns true if the coordinator learns that the member leaves for good.
    pub(crate) const fn leaves(self, is_static: bool) -> bool {
        match self {
            Self::Default => !is_static,
            Self::LeaveGroup => true,
            Self::RemainInGroup => false,
        }
    }
}
