//! Serves a cluster until its standard input ends: `serve [brokers [first port [discard]]]`. Prints the bootstrap servers.
//!
//! A line `rotate MILLISECONDS` on standard input moves the leadership of every partition to its next replica. Metadata
//! responses name the old leaders for this duration, as in a cluster where metadata spreads slowly. A line `slow BROKER
//! MILLISECONDS` delays every response of one broker.

use std::{io, thread, time::Duration};

use ottla_embedded_broker::{BrokerId, ClusterOptions, EmbeddedCluster};

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
