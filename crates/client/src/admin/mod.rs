//! The admin client: thin over `ottla_core::admin`, which has the behaviour.
//!
//! [`Admin`] itself is here; its calls are in a file per subject: [`topics`], [`configs`], [`groups`], [`offsets`],
//! [`transactions`]. Each call is a
//! method that blocks, and one with `_async` behind its name that returns an [`AdminFuture`].

mod configs;
#[cfg(feature = "capi")]
#[doc(hidden)]
mod for_capi;
mod future;
mod groups;
mod offsets;
mod options;
mod topics;
mod transactions;

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
    configs::AlterConfigsResults, future::AdminFuture, groups::GroupResults, offsets::RecordsToDelete,
    options::AdminOptions, transactions::TransactionResults,
};
use crate::{config::Config, logging::Logger, producer::config_error, sasl::OauthToken, start};

/// Describes and changes a cluster: its topics, configurations, records, groups and transactions. Cheap to clone; all clones share the
/// connections.
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

    /// Closes the client. Calls in flight end with [`ErrorKind::Closed`](crate::ErrorKind::Closed). An admin client that
    /// shares the connections of a producer or consumer closes that, too.
    pub fn close(&self, timeout: Duration) -> Result<()> {
        self.inner.client.end(timeout, start::last_push(timeout))
    }

    /// Sends a call to the cluster actor, unless its arguments are invalid. `name` is the method's.
    fn start<T: Send + 'static>(
        &self,
        name: &'static str,
        timeout: Duration,
        call: Result<impl FnOnce(Completion<T>) -> AdminCall>,
    ) -> AdminFuture<T> {
        let waiting = call.map(|call| {
            let (done, waiting) = completion();
            self.inner.client.command(Command::Admin(call(done)));
            waiting
        });
        AdminFuture::new(name, timeout, waiting)
    }
}
