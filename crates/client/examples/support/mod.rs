//! The brokers that the examples connect to.

use std::env;

use ottla::Config;
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

/// The result of an example.
pub type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The brokers of an example.
pub struct Brokers {
    /// The value of `bootstrap.servers`.
    servers: String,
    /// The brokers of this process, which live as long as this.
    _embedded: Option<EmbeddedCluster>,
}

impl Brokers {
    /// Takes the brokers of the environment variable `BOOTSTRAP_SERVERS`. Without it, starts three brokers in this process.
    pub fn find() -> Result<Self> {
        if let Ok(servers) = env::var("BOOTSTRAP_SERVERS") {
            return Ok(Self { servers, _embedded: None });
        }
        let embedded = EmbeddedCluster::start(ClusterOptions::default())?;
        Ok(Self { servers: embedded.bootstrap_servers(), _embedded: Some(embedded) })
    }

    /// Returns a configuration that names these brokers.
    pub fn config(&self) -> Result<Config> {
        Ok(Config::from_properties([("bootstrap.servers", &self.servers)])?)
    }
}
