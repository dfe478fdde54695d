//! Certificates are replaced while records flow, in the way of Kubernetes: a symbolic link is swapped for another one; files are
//! read again by a call; and a certificate expires soon.

#![cfg(unix)]

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime},
};

use ottla::{Config, CredentialsEvent, Event, Producer, Record};
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster, TestAuthority, TestCertificate};

const SOON: Duration = Duration::from_secs(60);

/// A mounted secret: files are links into `..data`, which is a link to the folder of a version.
struct Mount(PathBuf);

const FILES: [&str; 2] = ["tls.crt", "tls.key"];

impl Mount {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ottla-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Replaces the files at once, as Kubernetes does.
    fn swap(&self, version: &str, certificate: &str, key: &str) {
        let folder = self.0.join(format!("..{version}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("tls.crt"), certificate).unwrap();
        fs::write(folder.join("tls.key"), key).unwrap();
        symlink(&folder, self.0.join("..data_tmp")).unwrap();
        fs::rename(self.0.join("..data_tmp"), self.0.join("..data")).unwrap();
        for file in FILES {
            let _ = symlink(Path::new("..data").join(file), self.0.join(file));
        }
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Ends the traffic, also if the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Waits for an event about credentials.
fn wait_for(producer: &Producer, what: &str, is_it: impl Fn(&CredentialsEvent) -> bool) {
    let until = Instant::now() + SOON;
    loop {
        match producer.poll_event() {
            Some(Event::Credentials(news)) if is_it(&news) => return,
            Some(_) => {}
            None => thread::sleep(Duration::from_millis(20)),
        }
        assert!(Instant::now() < until, "no event: {what}");
    }
}

/// Returns the principals of all open connections, each once.
fn principals(cluster: &EmbeddedCluster) -> Vec<String> {
    let mut names = cluster.control(|control| {
        let connections = control.connections(None);
        let names = connections.into_iter().filter_map(|connection| control.principal(connection));
        names.map(str::to_owned).collect::<Vec<_>>()
    });
    names.sort();
    names.dedup();
    names
}

#[test]
fn swapped_certificates_are_used_while_records_flow() {
    let authority = TestAuthority::new("CA").unwrap();
    let issue = |name: &str| -> TestCertificate { authority.issue(name, &[]).unwrap() };
    let cluster = EmbeddedCluster::start(ClusterOptions {
        tls: Some(authority.listener(&["127.0.0.1"], true).unwrap()),
        ..ClusterOptions::default()
    })
    .unwrap();
    let mount = Mount::new("rotation");
    let (first, second) = (issue("first"), issue("second"));
    mount.swap("1", &first.pem, &first.key_pem);
    let config = Config::from_properties([
        ("bootstrap.servers", &*cluster.bootstrap_servers()),
        ("security.protocol", "ssl"),
        ("ssl.ca.pem", authority.pem()),
        ("ssl.certificate.location", &mount.file("tls.crt")),
        ("ssl.key.location", &mount.file("tls.key")),
        ("ssl.reload.interval.ms", "1000"),
        ("reconnect.backoff.ms", "10"),
    ])
    .unwrap();
    let (delivered, failed) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let counters = (Arc::clone(&delivered), Arc::clone(&failed));
    let producer = Producer::builder(&config)
        .on_delivery(move |batch| {
            let counter = if batch.error().is_none() { &counters.0 } else { &counters.1 };
            counter.fetch_add(batch.len(), Ordering::SeqCst);
        })
        .build()
        .unwrap();
    let stop = AtomicBool::new(false);
    let sent = thread::scope(|threads| {
        let stopper = Stop(&stop);
        let traffic = threads.spawn(|| {
            let topic = producer.topic("orders");
            let mut sent = 0;
            while !stop.load(Ordering::SeqCst) {
                topic.send(Record::new().value(&format!("{sent}"))).unwrap();
                sent += 1;
                thread::sleep(Duration::from_millis(1));
            }
            sent
        });
        // A key that does not belong to the certificate: the first pair stays in use.
        mount.swap("2", &second.pem, &first.key_pem);
        wait_for(&producer, "refused", |news| matches!(news, CredentialsEvent::Refused(_)));
        cluster.control(|control| control.close_connections(None));
        let flows = delivered.load(Ordering::SeqCst);
        let until = Instant::now() + SOON;
        // Records that were acknowledged before may be reported later: the connection is looked at, too.
        while delivered.load(Ordering::SeqCst) < flows + 10 || principals(&cluster) != ["CN=first"] {
            assert!(Instant::now() < until, "records flow with the first certificate");
            thread::sleep(Duration::from_millis(10));
        }
        mount.swap("3", &second.pem, &second.key_pem);
        wait_for(&producer, "reloaded", |news| matches!(news, CredentialsEvent::Reloaded));
        assert_eq!(principals(&cluster), ["CN=first"], "open connections stay");
        cluster.control(|control| control.close_connections(None));
        let until = Instant::now() + SOON;
        while principals(&cluster) != ["CN=second"] {
            assert!(Instant::now() < until, "{:?}", principals(&cluster));
            thread::sleep(Duration::from_millis(10));
        }
        drop(stopper);
        traffic.join().unwrap()
    });
    producer.close(SOON).unwrap();
    assert_eq!((delivered.load(Ordering::SeqCst), failed.load(Ordering::SeqCst)), (sent, 0));
}

#[test]
fn call_reads_files_again_and_a_bad_set_changes_nothing() {
    let authority = TestAuthority::new("CA").unwrap();
    let (first, second) = (authority.issue("first", &[]).unwrap(), authority.issue("second", &[]).unwrap());
    let cluster = EmbeddedCluster::start(ClusterOptions {
        tls: Some(authority.listener(&["127.0.0.1"], true).unwrap()),
        ..ClusterOptions::default()
    })
    .unwrap();
    let mount = Mount::new("reload");
    mount.swap("1", &first.pem, &first.key_pem);
    let config = Config::from_properties([
        ("bootstrap.servers", &*cluster.bootstrap_servers()),
        ("security.protocol", "ssl"),
        ("ssl.ca.pem", authority.pem()),
        ("ssl.certificate.location", &mount.file("tls.crt")),
        ("ssl.key.location", &mount.file("tls.key")),
        ("ssl.reload.interval.ms", "0"),
        ("reconnect.backoff.ms", "10"),
    ])
    .unwrap();
    let producer = Producer::new(&config).unwrap();
    let reconnected_as = |name: &str| {
        cluster.control(|control| control.close_connections(None));
        let until = Instant::now() + SOON;
        while principals(&cluster) != [name] {
            assert!(Instant::now() < until, "{:?}", principals(&cluster));
            let _ = producer.deliver("orders", Record::new().value("x"), SOON);
        }
    };
    producer.deliver("orders", Record::new().value("x"), SOON).unwrap();
    mount.swap("2", &second.pem, &first.key_pem);
    let error = producer.reload_credentials().unwrap_err().to_string();
    assert!(error.contains("ssl.key.location"), "{error}");
    reconnected_as("CN=first");
    mount.swap("3", &second.pem, &second.key_pem);
    reconnected_as("CN=first");
    producer.reload_credentials().unwrap();
    assert_eq!(principals(&cluster), ["CN=first"], "open connections stay");
    reconnected_as("CN=second");
    producer.close(SOON).unwrap();
}

#[test]
fn certificate_that_expires_soon_is_an_event() {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec![]).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, "short-lived");
    params.not_after = (SystemTime::now() + Duration::from_secs(5 * 86_400)).into();
    let certificate = params.self_signed(&key).unwrap();
    let config = Config::from_properties([
        ("bootstrap.servers", "127.0.0.1:1"),
        ("security.protocol", "ssl"),
        ("ssl.certificate.pem", &*certificate.pem()),
        ("ssl.key.pem", &*key.serialize_pem()),
    ])
    .unwrap();
    let producer = Producer::new(&config).unwrap();
    wait_for(&producer, "expiring", |news| match news {
        CredentialsEvent::Expiring { certificate, days, .. } => {
            certificate.contains("short-lived") && *days == 7
        }
        _ => false,
    });
}
