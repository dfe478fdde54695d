//! Serves a cluster until its standard input ends: `serve [brokers [first port [discard]]]`. Prints the bootstrap servers.

use std::io::Read;

use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut options = ClusterOptions::default();
    if let Some(brokers) = arguments.next() {
        options.brokers = brokers.parse()?;
    }
    if let Some(port) = arguments.next() {
        options.port = port.parse()?;
    }
    options.discard = arguments.next().is_some_and(|argument| argument == "discard");
    let cluster = EmbeddedCluster::start(options)?;
    println!("{}", cluster.bootstrap_servers());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
