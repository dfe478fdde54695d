//! The certificates of Apache Kafka's TLS listener, which OpenSSL makes for a day.

use std::{fs, path::Path, process::Command};

use crate::{Result, measure};

/// The names of the files in the folder.
pub const AUTHORITY: &str = "ca.pem";
/// The broker's key and its chain, as Kafka reads them.
pub const BROKER: &str = "broker.all.pem";

/// Makes a CA and the certificate of brokers on this machine, with EC keys as those of the embedded broker.
pub fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("extensions"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n")?;
    let key = "ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    openssl(
        folder,
        &format!("req -x509 -newkey {key} -keyout ca.key -out {AUTHORITY} -days 1 -subj /CN=bench"),
    )?;
    openssl(folder, &format!("req -newkey {key} -keyout broker.key -out broker.csr -subj /CN=broker"))?;
    openssl(
        folder,
        &format!(
            "x509 -req -in broker.csr -CA {AUTHORITY} -CAkey ca.key -CAcreateserial -out broker.pem -days 1 -extfile extensions"
        ),
    )?;
    openssl(folder, "pkcs8 -topk8 -nocrypt -in broker.key -out broker.pk8")?;
    let mut all = String::new();
    for name in ["broker.pk8", "broker.pem", AUTHORITY] {
        all += &fs::read_to_string(folder.join(name))?;
    }
    Ok(fs::write(folder.join(BROKER), all)?)
}

fn openssl(folder: &Path, arguments: &str) -> Result<()> {
    let used = measure::run(Command::new("openssl").args(arguments.split(' ')).current_dir(folder))?;
    if used.success { Ok(()) } else { Err(format!("openssl {arguments}: {}", used.stderr).into()) }
}
