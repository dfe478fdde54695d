//! The certificates of `ottla broker --tls-self-signed`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ottla_embedded_broker::{PrincipalMapping, TestAuthority, TlsListener};

use super::broker::BrokerOptions;
use crate::failure::{Failure, Outcome};
use crate::platform;

/// Certificates that exist as long as the brokers run. The files are removed at the end.
pub struct SelfSigned {
    /// The TLS of the brokers.
    pub listener: TlsListener,
    /// The properties for clients, besides the protocol.
    pub properties: String,
    folder: PathBuf,
}

impl SelfSigned {
    /// Makes the certificates and writes those of clients into a new folder.
    pub fn new(options: &BrokerOptions) -> Outcome<Self> {
        let failed = |why: String| Failure::Failed(format!("--tls-self-signed: {why}"));
        let mut hosts = vec!["localhost", "127.0.0.1", "::1"];
        let named = [Some(&options.host), options.advertised_host.as_ref()];
        hosts.extend(named.into_iter().flatten().map(String::as_str));
        hosts.sort_unstable();
        hosts.dedup();
        let authority = TestAuthority::new("ottla broker").map_err(failed)?;
        let mut listener = authority.listener(&hosts, options.tls_client_auth).map_err(failed)?;
        if let Some(rules) = &options.tls_principal_mapping {
            let mapping = PrincipalMapping::parse(rules)
                .map_err(|why| Failure::Usage(format!("--tls-principal-mapping: {why}")))?;
            listener = listener.principal_mapping(mapping);
        }
        let folder = std::env::temp_dir().join(format!("ottla-broker-{}", std::process::id()));
        create_private(&folder)
            .map_err(|error| failed(format!("can't create {}: {error}", folder.display())))?;
        let mut made = Self { listener, properties: String::new(), folder };
        made.write("ssl.ca.location", "ca.pem", authority.pem())?;
        if options.tls_client_auth {
            let client = authority.issue("client", &[]).map_err(failed)?;
            made.write("ssl.certificate.location", "client.pem", &client.pem)?;
            made.write("ssl.key.location", "client.key", &client.key_pem)?;
        }
        Ok(made)
    }

    fn write(&mut self, property: &str, name: &str, text: &str) -> Outcome {
        let path = self.folder.join(name);
        fs::write(&path, text)
            .map_err(|error| Failure::Failed(format!("can't write {}: {error}", path.display())))?;
        self.properties.push_str(&format!("{property}={}\n", path.display()));
        Ok(())
    }
}

/// Creates a folder that only this user can read: it may hold a key.
fn create_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    platform::make_private(&mut builder);
    builder.create(folder)
}

impl Drop for SelfSigned {
    fn drop(&mut self) {
        // The system removes temporary files some day.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
