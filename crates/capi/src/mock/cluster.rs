//! `rd_kafka_mock_cluster_t`: a cluster and its life.

use std::{
    ffi::{CString, c_char, c_int},
    ptr,
    sync::Arc,
    time::Duration,
};

use ottla_core::config::RawConfig;
use ottla_embedded_broker::{
    Assignor, BrokerId, ClientTelemetry, ClusterOptions, Control, EmbeddedCluster, Traffic,
};

use crate::{
    client::{contexts::Contexts, log::Log},
    ffi::{
        argument::Ref,
        boundary::{Blamed, Handle, Tag, c_text, handle, is_inherited},
        codes::{RespErr, code},
        export, quarantine,
        types::rd_kafka_t,
    },
    platform,
};

/// A cluster.
#[repr(C)]
#[derive(Debug)]
pub struct MockCluster {
    tag: Tag,
    pub(super) embedded: EmbeddedCluster,
    bootstraps: CString,
    /// The client that the cluster was created with, which `rd_kafka_mock_cluster_handle` returns.
    client: *const rd_kafka_t,
    /// The client's log, which logs the requests.
    log: Option<Arc<Log>>,
    /// True if the client owns the cluster and destroys it.
    is_clients_own: bool,
    /// The monotonic time of this machine at which the cluster's clock was at zero.
    pub(super) origin_nanos: i64,
}

// SAFETY: the client's pointer is never dereferenced here; everything else is `Sync`.
unsafe impl Send for MockCluster {}
// SAFETY: as above.
unsafe impl Sync for MockCluster {}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for MockCluster {
    const KIND: u32 = 0x6f74_6d01;
}

impl Blamed for *const MockCluster {
    fn is_inherited(self) -> bool {
        // SAFETY: NULL or a cluster, as the header demands.
        unsafe { is_inherited(self) }
    }

    /// A cluster is not a client, so a panic ends no client.
    fn blame(self, _: &str) {}
}

/// The limits of the property `test.mock.num.brokers`.
const MOST_BROKERS: c_int = 10_000;

impl MockCluster {
    /// Starts a cluster that logs to a client's log.
    pub(super) fn start(client: *const rd_kafka_t, log: Option<Arc<Log>>, brokers: c_int) -> Option<Self> {
        if !(1..=MOST_BROKERS).contains(&brokers) {
            return None;
        }
        let options = ClusterOptions {
            brokers,
            group_consumer_assignor: Assignor::Range,
            client_telemetry: ClientTelemetry::Mock,
            transaction_version: 0,
            transaction_verification: false,
            ..ClusterOptions::default()
        };
        let embedded = EmbeddedCluster::start(options).ok()?;
        let bootstraps = c_text(&embedded.bootstrap_servers());
        let origin_nanos = origin_nanos(platform::monotonic_nanos, || embedded.uptime());
        let tag = Tag::of::<Self>();
        let cluster = Self { tag, embedded, bootstraps, client, log, is_clients_own: false, origin_nanos };
        cluster.watch();
        Some(cluster)
    }

    /// Logs requests and responses in the client's log, if its `debug` enables them.
    fn watch(&self) {
        let Some(log) = self.log.clone().filter(|log| log.wants(Contexts::MOCK)) else { return };
        let _ = self.embedded.watch(Box::new(move |traffic, peer| {
            log.debug_of(Contexts::MOCK, c"MOCK", "mock", || {
                let Traffic { broker, api, version, is_response, .. } = traffic;
                let peer = peer.map_or_else(|| "a closed connection".to_owned(), |peer| peer.to_string());
                let api = api.name();
                match is_response {
                    false => format!("Broker {broker}: Received {api}RequestV{version} from {peer}"),
                    true => format!("Broker {broker}: Sending {api}ResponseV{version} to {peer}"),
                }
            });
        }));
    }

    /// Logs a change of the cluster by the application.
    pub(super) fn note(&self, line: impl FnOnce() -> String) {
        if let Some(log) = &self.log {
            log.debug(Contexts::MOCK, c"MOCK", line);
        }
    }

    /// Returns the cluster that a client's configuration creates with `test.mock.num.brokers`; the client then
    /// bootstraps from its brokers instead of the configured ones.
    pub(crate) fn of_conf(raw: &mut RawConfig) -> Result<Option<Box<Self>>, String> {
        let brokers = raw.get("test.mock.num.brokers").ok().and_then(|count| count.parse().ok()).unwrap_or(0);
        if brokers == 0 {
            return Ok(None);
        }
        let cluster = Self::start(ptr::null(), None, brokers).ok_or_else(|| {
            format!("test.mock.num.brokers: {brokers} brokers can't listen on this machine")
        })?;
        for (name, value) in [
            ("bootstrap.servers", cluster.embedded.bootstrap_servers().as_str()),
            ("test.mock.num.brokers", "0"),
        ] {
            raw.set(name, value).map_err(|error| error.to_string())?;
        }
        Ok(Some(Box::new(cluster)))
    }

    /// Makes the client the owner of the cluster.
    pub(crate) fn set_owner(&mut self, client: *const rd_kafka_t, log: Arc<Log>) {
        (self.client, self.is_clients_own) = (client, true);
        self.log = Some(log);
    }

    /// Attaches the log of the client, and returns the cluster's bootstrap servers.
    pub(crate) fn owner_is_there(&self) -> String {
        self.watch();
        self.embedded.bootstrap_servers()
    }

    /// Returns the cluster behind a handle.
    ///
    /// # Safety
    ///
    /// NULL or a cluster of this library.
    pub(super) unsafe fn of<'a>(cluster: *const Self) -> Option<&'a Self> {
        // SAFETY: by the contract of this function.
        unsafe { handle(cluster) }
    }

    pub(super) fn control<R>(&self, act: impl FnOnce(&mut Control<'_>) -> R) -> R {
        self.embedded.control(act)
    }

    /// Calls a function for one broker, or for all if the id is -1; an unknown id is an error.
    pub(super) fn each_broker(&self, id: i32, mut act: impl FnMut(&mut Control<'_>, BrokerId)) -> RespErr {
        self.control(|control| {
            let all = control.brokers();
            if id != -1 && !all.contains(&BrokerId(id)) {
                return code::BROKER_NOT_AVAILABLE;
            }
            for broker in all.into_iter().filter(|broker| id == -1 || broker.0 == id) {
                act(control, broker);
            }
            code::NO_ERROR
        })
    }
}

impl Drop for MockCluster {
    fn drop(&mut self) {
        self.tag.clear();
    }
}

/// Returns the time at which a clock that shows `uptime` was at zero. Between the two readings the thread may lose its
/// processor for any time. Therefore the uptime is read last, and the latest of several attempts is used, so that no
/// request time lies in the future.
fn origin_nanos(mut monotonic: impl FnMut() -> i64, mut uptime: impl FnMut() -> Duration) -> i64 {
    let mut once = || {
        let now = monotonic();
        now.saturating_sub(i64::try_from(uptime().as_nanos()).unwrap_or(i64::MAX))
    };
    once().max(once()).max(once())
}

/// Runs a call on a cluster. A handle that is not a cluster is an invalid argument.
pub(super) fn with(cluster: Ref<MockCluster>, call: impl FnOnce(&MockCluster) -> RespErr) -> RespErr {
    cluster.get().map_or(code::_INVALID_ARG, call)
}

export!(
    #[on(mcluster.cast_const(), ())]
    fn rd_kafka_mock_cluster_destroy(mcluster: *mut MockCluster) {
        // SAFETY: the header demands NULL or a cluster, whose ownership passes to this call. The client destroys a
        // cluster of its own.
        unsafe {
            let Some(cluster) = MockCluster::of(mcluster) else { return };
            if !cluster.is_clients_own {
                quarantine::retire(mcluster);
            }
        }
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_mock_cluster_handle(mcluster: Ref<MockCluster>) -> *const rd_kafka_t {
        mcluster.get().map_or(ptr::null(), |c| c.client)
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_mock_cluster_bootstraps(mcluster: Ref<MockCluster>) -> *const c_char {
        mcluster.get().map_or(ptr::null(), |cluster| cluster.bootstraps.as_ptr())
    }
);

export!(
    #[on(mcluster, ())]
    fn rd_kafka_mock_group_initial_rebalance_delay_ms(mcluster: Ref<MockCluster>, delay_ms: i32) {
        if let (Some(cluster), Ok(delay)) = (mcluster.get(), u64::try_from(delay_ms)) {
            let delay = Duration::from_millis(delay);
            cluster.control(|control| control.options().group_initial_rebalance_delay = delay);
        }
    }
);

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn request_time_is_past_when_the_thread_waits_between_clocks() {
        for waits in [0, 1, 5] {
            // Nanoseconds since the machine started; the cluster started at 1000.
            let (now, reading) = (Cell::new(4000), Cell::new(0));
            let read = || {
                // The thread waits for a second before some of its readings.
                now.set(now.get() + 100 + if reading.get() < waits { 1_000_000_000 } else { 0 });
                reading.set(reading.get() + 1);
                now.get()
            };
            let origin = origin_nanos(read, || Duration::from_nanos(read() as u64 - 1000));
            assert_eq!(origin, 900, "{waits} waits");
        }
    }
}
