//! The options of administrative calls.

use std::time::Duration;

use ottla_core::admin::How;

/// Options of an administrative call. A [`Duration`] converts into options with that timeout and no others.
///
/// ```
/// # fn example(admin: &ottla::Admin) -> ottla::Result<()> {
/// use std::time::Duration;
///
/// use ottla::{AdminOptions, NewTopic};
///
/// let topics = [NewTopic::new("orders", 12, 3)];
/// admin.create_topics(&topics, AdminOptions::new(Duration::from_secs(10)).validate_only(true))?;
/// admin.create_topics(&topics, Duration::from_secs(10))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AdminOptions {
    /// The time for the call, with all its retries.
    pub timeout: Duration,
    /// The time that the broker may take for the operation; by default that of the request.
    pub operation_timeout: Option<Duration>,
    /// Checks whether the operation is possible, without carrying it out.
    pub validate_only: bool,
    /// The ID of the broker that gets the request; by default the one that is responsible for it.
    pub broker: Option<i32>,
    /// Takes the last stable offset as a partition's end, as a consumer with `isolation.level=read_committed` does.
    pub read_committed: bool,
    /// Includes the operations that the application may perform in descriptions: on each topic or group, or on the cluster if
    /// no topics are described.
    pub authorized_operations: bool,
    /// Lists committed offsets only when no open transaction may change them (KIP-447). Needs brokers of Kafka 2.5 or later.
    pub require_stable_offsets: bool,
    /// Refuses a reassignment of replicas to a different number of brokers. Needs brokers of Kafka 4.1 or later.
    pub same_replication_factor: bool,
    /// Includes brokers that the controller has fenced in the description of the cluster. Needs brokers of Kafka 4.0 or later.
    pub include_fenced_brokers: bool,
    /// Includes the description of the topology's nodes in that of a streams group, which a plug-in of the brokers stores
    /// (KIP-1331). Older brokers than Kafka 4.4 have none.
    pub topology_description: bool,
}

impl AdminOptions {
    /// Options with this timeout; everything else has its default.
    pub const fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            operation_timeout: None,
            validate_only: false,
            broker: None,
            read_committed: false,
            authorized_operations: false,
            require_stable_offsets: false,
            same_replication_factor: false,
            include_fenced_brokers: false,
            topology_description: false,
        }
    }

    /// Sets [`AdminOptions::operation_timeout`].
    #[must_use]
    pub const fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.operation_timeout = Some(timeout);
        self
    }

    /// Sets [`AdminOptions::validate_only`].
    #[must_use]
    pub const fn validate_only(mut self, validate_only: bool) -> Self {
        self.validate_only = validate_only;
        self
    }

    /// Sets [`AdminOptions::broker`].
    #[must_use]
    pub const fn broker(mut self, id: i32) -> Self {
        self.broker = Some(id);
        self
    }

    /// Sets [`AdminOptions::read_committed`].
    #[must_use]
    pub const fn read_committed(mut self, read_committed: bool) -> Self {
        self.read_committed = read_committed;
        self
    }

    /// Sets [`AdminOptions::authorized_operations`].
    #[must_use]
    pub const fn authorized_operations(mut self, included: bool) -> Self {
        self.authorized_operations = included;
        self
    }

    /// Sets [`AdminOptions::require_stable_offsets`].
    #[must_use]
    pub const fn require_stable_offsets(mut self, required: bool) -> Self {
        self.require_stable_offsets = required;
        self
    }

    /// Sets [`AdminOptions::same_replication_factor`].
    #[must_use]
    pub const fn same_replication_factor(mut self, required: bool) -> Self {
        self.same_replication_factor = required;
        self
    }

    /// Sets [`AdminOptions::include_fenced_brokers`].
    #[must_use]
    pub const fn include_fenced_brokers(mut self, included: bool) -> Self {
        self.include_fenced_brokers = included;
        self
    }

    /// Sets [`AdminOptions::topology_description`].
    #[must_use]
    pub const fn topology_description(mut self, included: bool) -> Self {
        self.topology_description = included;
        self
    }

    /// Returns what the core needs besides the timeout.
    pub(super) const fn how(&self) -> How {
        How { broker: self.broker, operation_timeout: self.operation_timeout }
    }
}

impl From<Duration> for AdminOptions {
    fn from(timeout: Duration) -> Self {
        Self::new(timeout)
    }
}
