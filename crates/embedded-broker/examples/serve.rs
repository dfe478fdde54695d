//! Serves a cluster until its standard input ends: `serve [brokers [first port [discard | prompt] [tls | mtls]]]`. Prints the
//! bootstrap servers. With `prompt` the markers of a transaction are written at once. With `tls` clients encrypt, and the second line names a file with the certificate of the CA, which is
//! made at the start and deleted at the end. With `mtls` clients need a certificate, too; the third and the fourth line name
//! files with one and with its key.
//!
//! A line `rotate MILLISECONDS` on standard input moves the leadership of every partition to its next replica. Metadata
//! responses name the old leaders for this duration, as in a cluster where metadata spreads slowly. A line `slow BROKER
//! MILLISECONDS` delays every response of one broker. A line `close` closes all connections.

use std::{env, fs, io, path::PathBuf, process, thread, time::Duration};

use ottla_embedded_broker::{BrokerId, ClusterOptions, EmbeddedCluster, TestAuthority};

/// Files for clients, as long as the cluster runs.
#[derive(Default)]
struct Files(Vec<PathBuf>);

impl Files {
    fn add(&mut self, name: &str, text: &str) -> io::Result<()> {
        let path = env::temp_dir().join(format!("serve-{}-{name}", process::id()));
        fs::write(&path, text)?;
        self.0.push(path);
        Ok(())
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let mut options = ClusterOptions::default();
    if let Some(brokers) = arguments.next() {
        options.brokers = brokers.parse()?;
    }
    if let Some(port) = arguments.next() {
        options.port = port.parse()?;
    }
    let mut files = Files::default();
    for argument in arguments {
        match argument.as_str() {
            "discard" => options.discard = true,
            "prompt" => options.transaction_marker_delay = Duration::ZERO,
            "tls" | "mtls" => {
                let authority = TestAuthority::new("CA of serve")?;
                files.add("ca.pem", authority.pem())?;
                let needs_certificate = argument == "mtls";
                options.tls = Some(authority.listener(&["localhost", "127.0.0.1"], needs_certificate)?);
                if needs_certificate {
                    let client = authority.issue("client", &[])?;
                    files.add("client.pem", &client.pem)?;
                    files.add("client.key", &client.key_pem)?;
                }
            }
            other => return Err(format!("`{other}`? There is: discard, prompt, tls, mtls").into()),
        }
    }
    let cluster = EmbeddedCluster::start(options)?;
    println!("{}", cluster.bootstrap_servers());
    files.0.iter().for_each(|path| println!("{}", path.display()));
    for line in io::stdin().lines() {
        let line = line?;
        let lag = match line.split(' ').collect::<Vec<_>>()[..] {
            ["rotate", lag] => Duration::from_millis(lag.parse()?),
            ["slow", broker, millis] => {
                let (broker, latency) = (BrokerId(broker.parse()?), Duration::from_millis(millis.parse()?));
                cluster.control(|control| control.set_latency(broker, latency));
                continue;
            }
            ["close"] => {
                cluster.control(|control| control.close_connections(None));
                continue;
            }
            _ => {
                let known = "rotate MILLISECONDS, slow BROKER MILLISECONDS, close";
                return Err(format!("`{line}`? There is: {known}").into());
            }
        };
        cluster.control(|control| {
            control.freeze_metadata();
            control.rotate_leaders();
        });
        thread::sleep(lag);
        cluster.control(|control| control.thaw_metadata());
    }
    Ok(())
}
