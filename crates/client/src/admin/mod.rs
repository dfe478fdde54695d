//! The admin client, and the types of its calls.
//!
//! [`Admin`] has the calls: each is a method that blocks, and one with `_async` behind its name that returns an
//! [`AdminFuture`].
//!
//! A call about several elements has a result for each. One that is invalid, or listed a second time, is refused alone with
//! [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument), and no broker is asked about it.
//!
//! | subject | calls |
//! |---|---|
//! | topics | [`create_topics`](Admin::create_topics), [`delete_topics`](Admin::delete_topics), [`create_partitions`](Admin::create_partitions), [`list_topics`](Admin::list_topics), [`describe_topics`](Admin::describe_topics), [`describe_topics_by_id`](Admin::describe_topics_by_id), [`delete_topics_by_id`](Admin::delete_topics_by_id), [`list_offsets`](Admin::list_offsets), [`list_epoch_ends`](Admin::list_epoch_ends), [`delete_records`](Admin::delete_records) |
//! | configurations | [`describe_configs`](Admin::describe_configs), [`incremental_alter_configs`](Admin::incremental_alter_configs), [`alter_configs`](Admin::alter_configs) |
//! | groups | [`list_groups`](Admin::list_groups), [`describe_groups`](Admin::describe_groups), [`describe_share_groups`](Admin::describe_share_groups), [`describe_streams_groups`](Admin::describe_streams_groups), [`delete_groups`](Admin::delete_groups), [`remove_members`](Admin::remove_members), [`remove_all_members`](Admin::remove_all_members), [`list_group_offsets`](Admin::list_group_offsets), [`alter_group_offsets`](Admin::alter_group_offsets), [`delete_group_offsets`](Admin::delete_group_offsets) |
//! | transactions | [`list_transactions`](Admin::list_transactions), [`describe_transactions`](Admin::describe_transactions), [`describe_producers`](Admin::describe_producers), [`fence_producers`](Admin::fence_producers), [`abort_transaction`](Admin::abort_transaction) |
//! | access | [`create_acls`](Admin::create_acls), [`describe_acls`](Admin::describe_acls), [`delete_acls`](Admin::delete_acls), [`describe_scram_users`](Admin::describe_scram_users), [`alter_scram_users`](Admin::alter_scram_users), [`create_delegation_token`](Admin::create_delegation_token), [`renew_delegation_token`](Admin::renew_delegation_token), [`expire_delegation_token`](Admin::expire_delegation_token), [`describe_delegation_tokens`](Admin::describe_delegation_tokens) |
//! | limits | [`describe_client_quotas`](Admin::describe_client_quotas), [`alter_client_quotas`](Admin::alter_client_quotas) |
//! | replicas | [`elect_leaders`](Admin::elect_leaders), [`alter_reassignments`](Admin::alter_reassignments), [`list_reassignments`](Admin::list_reassignments), [`describe_log_dirs`](Admin::describe_log_dirs), [`alter_replica_log_dirs`](Admin::alter_replica_log_dirs) |
//! | the cluster | [`describe_cluster`](Admin::describe_cluster), [`describe_features`](Admin::describe_features), [`update_features`](Admin::update_features), [`describe_quorum`](Admin::describe_quorum), [`add_raft_voter`](Admin::add_raft_voter), [`remove_raft_voter`](Admin::remove_raft_voter), [`unregister_broker`](Admin::unregister_broker), [`unregister_controller`](Admin::unregister_controller) |

mod acls;
mod calls;
mod cluster;
mod configs;
mod delegation_tokens;
mod elements;
#[cfg(feature = "capi")]
#[doc(hidden)]
mod for_capi;
mod future;
mod groups;
mod offsets;
mod options;
mod partitions;
mod quotas;
mod share_groups;
mod streams_groups;
mod topics;
mod transactions;
mod users;

use std::{sync::Arc, time::Duration};

use ottla_core::{
    admin::AdminCall,
    cluster::command::Command,
    completion::{Completion, completion},
    config::EffectiveConfig,
    error::Result,
    event::{Event, EventQueue},
    secret::Secret,
};

pub(crate) use self::offsets::offset_query;
pub use self::{
    configs::AlterConfigsResults,
    future::AdminFuture,
    groups::GroupResults,
    offsets::RecordsToDelete,
    options::AdminOptions,
    transactions::TransactionResults,
    users::{scram_password, scram_password_with_salt},
};
use crate::{config::Config, logging::Logger, producer::config_error, sasl::OauthToken, start};
pub use ottla_core::admin::{
    acls::{AclBinding, AclFilter, AclOperation, AclPermission, AclResourceType, DeletedAcls, PatternType},
    broker_apis::{BrokerApi, BrokerApis},
    delegation_tokens::{DelegationToken, NewDelegationToken, Principal, decode_hmac},
    elections::{Election, ElectionResults, ElectionType},
    features::{FeatureUpdate, FeatureUpgrade, Features},
    groups::streams_groups::{
        StreamsGroupDescription, StreamsInternalTopic, StreamsMemberDescription, StreamsSubtopology,
        StreamsTask, StreamsTasks, StreamsTopology,
    },
    item_results::ItemResults,
    leader_epochs::EpochEnd,
    log_dirs::{LogDir, LogDirs, ReplicaInLogDir},
    quorum::{QuorumDescription, QuorumNode, QuorumReplica, Voter, VoterListener},
    quotas::{QuotaChanges, QuotaEntity, QuotaFilter, QuotaMatch, Quotas},
    reassignments::{OngoingReassignment, Reassignments},
    transactions::fence::FencedProducer,
    users::{ScramAlteration, ScramCredential, ScramMechanism, ScramUsers},
};
pub use ottla_protocol::uuid::Uuid;

/// Describes and changes a cluster. Cheap to clone; all clones share the connections. [The module](self) lists the calls.
///
/// Every call has two forms with the same arguments: one that blocks for at most the timeout, and one with `_async` behind
/// its name. That one sends the request at once and returns a future, which needs no particular runtime:
///
/// ```
/// # async fn example(config: ottla::Config) -> ottla::Result<()> {
/// use std::time::Duration;
///
/// use ottla::{Admin, NewTopic};
///
/// let admin = Admin::new(&config)?;
/// let results = admin.create_topics_async(&[NewTopic::new("orders", 12, 3)], Duration::from_secs(10)).await?;
/// for (topic, result) in results {
///     match result {
///         Ok(()) => println!("created {topic}"),
///         Err(error) => println!("{error}"),
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// A call fails as a whole if its arguments are invalid ([`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument)),
/// if the client is closed, or if no broker responds in time. Otherwise each topic, resource or partition has a result of
/// its own, in the order of the arguments.
///
/// The client retries temporary errors until the timeout, and follows the controller and the leaders when these move.
#[derive(Clone, Debug)]
pub struct Admin {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    client: Arc<start::Client>,
    events: Arc<EventQueue>,
}

impl Admin {
    /// Creates an admin client. [`Producer::admin`](crate::Producer::admin) and
    /// [`Consumer::admin`](crate::Consumer::admin) return one that shares their connections.
    pub fn new(config: &Config) -> Result<Self> {
        let raw = &config.raw;
        let config = EffectiveConfig::admin(raw).map_err(config_error)?;
        config.require_servers().map_err(config_error)?;
        let events = Arc::new(EventQueue::default());
        let seed = start::seeded_rng().next_u64();
        let logger = Logger::new(start::new_name(&config, "admin"), raw);
        let hooks = start::Hooks::default();
        let client = start::client(&config, logger, start::Role::Admin, Arc::clone(&events), hooks, seed)?;
        Ok(Self::of(Arc::new(client), events))
    }

    /// Creates an admin client that shares another client's connections.
    pub(crate) fn of(client: Arc<start::Client>, events: Arc<EventQueue>) -> Self {
        Self { inner: Arc::new(Inner { client, events }) }
    }

    /// Returns warnings about the configuration, a sentence each.
    pub fn warnings(&self) -> &[String] {
        self.inner.client.warnings()
    }

    /// Returns the oldest [`Event`]: errors that belong to no call, such as a failed connection.
    pub fn poll_event(&self) -> Option<Event> {
        self.inner.events.pop()
    }

    /// Reads the files of certificates and keys again. See
    /// [`Producer::reload_credentials`](crate::Producer::reload_credentials).
    pub fn reload_credentials(&self) -> Result<()> {
        self.inner.client.reload_credentials()
    }

    /// Replaces user name and password of SASL, for PLAIN and SCRAM. New connections use them, and existing ones when they
    /// authenticate again; connections that wait after a failure try at once. Error: `security.protocol` has no SASL.
    pub fn set_sasl_credentials(&self, username: &str, password: Secret) -> Result<()> {
        self.inner.client.set_sasl_credentials(username, password)
    }

    /// Sets the token of OAUTHBEARER; connections begin when there is one. Error: OAUTHBEARER is not in use, or what is wrong
    /// with the token, without its text.
    pub fn set_oauth_token(&self, token: OauthToken) -> Result<()> {
        self.inner.client.set_oauth_token(token)
    }

    /// Returns the ID under which brokers receive the metrics of this client. See
    /// [`Producer::client_instance_id`](crate::Producer::client_instance_id).
    pub fn client_instance_id(&self, timeout: Duration) -> Result<Uuid> {
        self.inner.client.client_instance_id(timeout)
    }

    /// Closes the client. Calls in flight end with [`ErrorKind::Closed`](crate::ErrorKind::Closed). An admin client that
    /// shares the connections of a producer or consumer closes that, too.
    pub fn close(&self, timeout: Duration) -> Result<()> {
        self.inner.client.end(timeout, start::last_push(timeout))
    }

    /// Closes the client as [`Admin::close`] does, without blocking.
    pub async fn close_async(&self) -> Result<()> {
        self.inner.client.end_async(start::last_push(Duration::ZERO)).await;
        Ok(())
    }

    /// Sends a call to the cluster actor, unless its arguments are invalid. `name` is the method's.
    fn start<T: Send + 'static>(
        &self,
        name: &'static str,
        timeout: Duration,
        call: Result<impl FnOnce(Completion<T>) -> AdminCall>,
    ) -> AdminFuture<T> {
        let waiting = call.and_then(|call| {
            let (done, waiting) = completion();
            let _in_caller = self.inner.client.in_caller(false);
            self.inner.client.command(Command::Admin(call(done)))?;
            Ok(waiting)
        });
        AdminFuture::new(name, timeout, waiting).in_lead(self.inner.client.leading_later())
    }
}
