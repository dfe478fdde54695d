//! Serves a cluster until its standard input ends: `serve [brokers [first port [discard] [tls]]]`. Prints the bootstrap
//! servers. With `tls` clients encrypt, and the second line names a file with the certificate of the CA, which is made
//! anew and deleted at the end.
//!
//! A line `rotate MILLISECONDS` on standard input moves the leadership of every partition to its next replica. Metadata
//! responses name the old leaders for this duration, as in a cluster where metadata spreads slowly. A line `slow BROKER
//! MILLISECONDS` delays every response of one broker.

use std::{env, fs, io, path::PathBuf, process, thread, time::Duration};

use ottla_embedded_broker::{
    BrokerId, ClientAuthentication, ClusterOptions, EmbeddedCluster, TestAuthority, TlsListener,
};

/// The certificate of the CA, as long as the cluster runs.
struct AuthorityFile(PathBuf);

impl AuthorityFile {
    fn write(authority: &TestAuthority) -> io::Result<Self> {
        let path = env::temp_dir().join(format!("serve-{}-ca.pem", process::id()));
        fs::write(&path, authority.pem())?;
        Ok(Self(path))
    }
}

impl Drop for AuthorityFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
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
    let mut authority = None;
    for argument in arguments {
        match argument.as_str() {
            "discard" => options.discard = true,
            "tls" => {
                let made = TestAuthority::new("CA of serve")?;
                let certificate = made.issue("broker", &["localhost", "127.0.0.1"])?;
                options.tls = Some(TlsListener::new(
                    &[certificate.der],
                    &certificate.key_der,
                    &ClientAuthentication::None,
                )?);
                authority = Some(made);
            }
            other => return Err(format!("`{other}`? There is: discard, tls").into()),
        }
    }
    let cluster = EmbeddedCluster::start(options)?;
    println!("{}", cluster.bootstrap_servers());
    let file = authority.map(|authority| AuthorityFile::write(&authority)).transpose()?;
    if let Some(AuthorityFile(path)) = &file {
        println!("{}", path.display());
    }
    for line in io::stdin().lines() {
        let line = line?;
        let lag = match line.split(' ').collect::<Vec<_>>()[..] {
            ["rotate", lag] => Duration::from_millis(lag.parse()?),
            ["slow", broker, millis] => {
                let (broker, latency) = (BrokerId(broker.parse()?), Duration::from_millis(millis.parse()?));
                cluster.control(|control| control.set_latency(broker, latency));
                continue;
            }
            _ => {
                return Err(
                    format!("`{line}`? There is: rotate MILLISECONDS, slow BROKER MILLISECONDS").into()
                );
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
