//! `rdkafka_mock.h`: a cluster inside the process, which is the embedded broker.
//!
//! ```text
//!  here ──── the cluster's life; test.mock.num.brokers; what passes, as lines of `debug=mock`
//!  errors ── what the next requests are answered with;  requests ── which ones came
//!  topics ── topics, partitions, leaders;  brokers ── down and up, round trips, racks, coordinators, versions
//!  groups, share_groups ── who gets which partitions;  telemetry ── which metrics clients are asked for
//! ```

mod brokers;
mod errors;
mod groups;
mod requests;
mod share_groups;
mod telemetry;
mod topics;

use std::{
    ffi::{CString, c_char, c_int},
    ptr,
    sync::Weak,
    time::Duration,
};

use ottla::RawConfig;
use ottla_embedded_broker::{BrokerId, ClientTelemetry, ClusterOptions, Control, EmbeddedCluster, Traffic};

pub(crate) use errors::ottla_mock_push_errors;

use crate::{
    boundary::{Handle, Tag, c_text, guarded, guarded_local, handle},
    client::Client,
    codes::code,
    debug::Contexts,
};

/// A cluster.
#[repr(C)]
#[derive(Debug)]
pub struct MockCluster {
    tag: Tag,
    embedded: EmbeddedCluster,
    bootstraps: CString,
    /// The client that it was made with: handed back, and its log has what passes.
    client: *const Client,
    log: Weak<Client>,
    /// It goes with its client.
    is_clients_own: bool,
    /// Of the machine's monotonic clock, when the cluster's clock was at zero.
    origin_nanos: i64,
}

// SAFETY: the pointer is never looked behind here; everything else may be shared.
unsafe impl Send for MockCluster {}
// SAFETY: as above.
unsafe impl Sync for MockCluster {}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for MockCluster {
    const KIND: u32 = 0x6f74_6d01;
}

/// What the property `test.mock.num.brokers` allows.
const MOST_BROKERS: c_int = 10_000;

impl MockCluster {
    fn start(client: Option<&Client>, brokers: c_int) -> Option<Self> {
        if !(1..=MOST_BROKERS).contains(&brokers) {
            return None;
        }
        let options =
            ClusterOptions { brokers, client_telemetry: ClientTelemetry::Mock, ..ClusterOptions::default() };
        let embedded = EmbeddedCluster::start(options).ok()?;
        let bootstraps = c_text(&embedded.bootstrap_servers());
        let origin_nanos = origin_nanos(monotonic_nanos, || embedded.uptime());
        let tag = Tag::of::<Self>();
        let log = client.map(Client::weak).unwrap_or_default();
        let client = client.map_or(ptr::null(), ptr::from_ref);
        let cluster = Self { tag, embedded, bootstraps, client, log, is_clients_own: false, origin_nanos };
        cluster.watch();
        Some(cluster)
    }

    /// What passes is lines in the client's log, if it asks for them.
    fn watch(&self) {
        if !self.log.upgrade().is_some_and(|client| client.logging().wants(Contexts::MOCK)) {
            return;
        }
        let log = Weak::clone(&self.log);
        let _ = self.embedded.watch(Box::new(move |traffic, peer| {
            let Some(client) = log.upgrade() else { return };
            client.debug_of(Contexts::MOCK, c"MOCK", "mock", || {
                let Traffic { broker, api, version, is_answer, .. } = traffic;
                let peer = peer.map_or_else(|| "a client that is gone".to_owned(), |peer| peer.to_string());
                let api = api.name();
                match is_answer {
                    false => format!("Broker {broker}: Received {api}RequestV{version} from {peer}"),
                    true => format!("Broker {broker}: Sending {api}ResponseV{version} to {peer}"),
                }
            });
        }));
    }

    /// Writes down what the application did to the cluster.
    fn note(&self, line: impl FnOnce() -> String) {
        if let Some(client) = self.log.upgrade() {
            client.debug(Contexts::MOCK, c"MOCK", line);
        }
    }

    /// The cluster that a client's configuration asks for with `test.mock.num.brokers`; the client then starts from its
    /// brokers instead of those that were configured.
    pub(crate) fn of_conf(raw: &mut RawConfig) -> Result<Option<Box<Self>>, String> {
        let brokers = raw.get("test.mock.num.brokers").ok().and_then(|count| count.parse().ok()).unwrap_or(0);
        if brokers == 0 {
            return Ok(None);
        }
        let cluster = Self::start(None, brokers).ok_or_else(|| {
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

    /// Makes the cluster the client's own.
    pub(crate) fn set_owner(&mut self, client: &Weak<Client>) {
        (self.client, self.is_clients_own) = (client.as_ptr(), true);
        self.log = Weak::clone(client);
    }

    /// Its client has begun to log; answers where it listens.
    pub(crate) fn owner_is_there(&self) -> String {
        self.watch();
        self.embedded.bootstrap_servers()
    }

    /// The cluster behind a handle.
    ///
    /// # Safety
    ///
    /// NULL or a cluster of this library.
    unsafe fn of<'a>(cluster: *const Self) -> Option<&'a Self> {
        // SAFETY: as the caller says.
        unsafe { handle(cluster) }
    }

    fn control<R>(&self, act: impl FnOnce(&mut Control<'_>) -> R) -> R {
        self.embedded.control(act)
    }

    /// Does something to one broker, or with -1 to all; an unknown one is an error.
    fn each_broker(&self, id: i32, mut act: impl FnMut(&mut Control<'_>, BrokerId)) -> c_int {
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

/// When a clock that says `uptime` was at zero. Between the two readings the thread may lose its processor for any time:
/// therefore the uptime is read last, and the latest of some tries taken, so that nothing is ever told to be in the future.
fn origin_nanos(mut monotonic: impl FnMut() -> i64, mut uptime: impl FnMut() -> Duration) -> i64 {
    let mut once = || {
        let now = monotonic();
        now.saturating_sub(i64::try_from(uptime().as_nanos()).unwrap_or(i64::MAX))
    };
    once().max(once()).max(once())
}

fn monotonic_nanos() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the struct is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Runs a call on a cluster; a handle that is none is an invalid argument.
unsafe fn with(cluster: *const MockCluster, call: impl FnOnce(&MockCluster) -> c_int) -> c_int {
    // SAFETY: NULL or a cluster, says the caller.
    guarded(code::_FATAL, || unsafe { MockCluster::of(cluster) }.map_or(code::_INVALID_ARG, call))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_cluster_new(
    rk: *const Client,
    broker_cnt: c_int,
) -> *const MockCluster {
    guarded(ptr::null(), || {
        // SAFETY: NULL or a client, says the caller.
        let Some(client) = (unsafe { Client::of(rk) }) else { return ptr::null() };
        MockCluster::start(Some(client), broker_cnt)
            .map_or(ptr::null(), |cluster| Box::into_raw(Box::new(cluster)))
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_cluster_destroy(mcluster: *mut MockCluster) {
    guarded((), || {
        // SAFETY: NULL or a cluster, says the caller, who gives it up. A client's own cluster goes with the client.
        unsafe {
            let Some(cluster) = MockCluster::of(mcluster) else { return };
            if !cluster.is_clients_own {
                crate::graves::bury(mcluster);
            }
        }
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_cluster_handle(mcluster: *const MockCluster) -> *const Client {
    // SAFETY: NULL or a cluster, says the caller.
    guarded_local(ptr::null(), || unsafe { MockCluster::of(mcluster) }.map_or(ptr::null(), |c| c.client))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_handle_mock_cluster(rk: *const Client) -> *const MockCluster {
    // SAFETY: NULL or a client, says the caller.
    guarded_local(ptr::null(), || unsafe { Client::of(rk) }.map_or(ptr::null(), Client::mock))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_cluster_bootstraps(mcluster: *const MockCluster) -> *const c_char {
    guarded_local(ptr::null(), || {
        // SAFETY: NULL or a cluster, says the caller.
        unsafe { MockCluster::of(mcluster) }.map_or(ptr::null(), |cluster| cluster.bootstraps.as_ptr())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_group_initial_rebalance_delay_ms(
    mcluster: *const MockCluster,
    delay_ms: i32,
) {
    guarded((), || {
        // SAFETY: NULL or a cluster, says the caller.
        if let (Some(cluster), Ok(delay)) = (unsafe { MockCluster::of(mcluster) }, u64::try_from(delay_ms)) {
            let delay = Duration::from_millis(delay);
            cluster.control(|control| control.options().group_initial_rebalance_delay = delay);
        }
    });
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_request_is_never_in_the_future_when_the_thread_waits_between_two_clocks() {
        for waits in [0, 1, 5] {
            // Nanoseconds since the machine started; the cluster started at 1000.
            let (now, reading) = (Cell::new(4000), Cell::new(0));
            let read = || {
                // It waits for a second before some of its readings.
                now.set(now.get() + 100 + if reading.get() < waits { 1_000_000_000 } else { 0 });
                reading.set(reading.get() + 1);
                now.get()
            };
            let origin = origin_nanos(read, || Duration::from_nanos(read() as u64 - 1000));
            assert_eq!(origin, 900, "{waits} waits");
        }
    }
}
