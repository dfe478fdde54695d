//! Serves a cluster whose leaders move continuously and whose brokers are killed and restarted in turn, until its
//! standard input ends: `restless [first port]`. A correct client loses no records on it. Prints the bootstrap servers.

use std::{
    io::Read,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use ottla_embedded_broker::{BrokerId, ClusterOptions, EmbeddedCluster, Tail};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::args().nth(1).map_or(Ok(0), |port| port.parse())?;
    let replication_lag = Duration::from_millis(5);
    let cluster = EmbeddedCluster::start(ClusterOptions { port, replication_lag, ..Default::default() })?;
    println!("{}", cluster.bootstrap_servers());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for step in 0.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(200));
                let broker = BrokerId(step / 10 % 3 + 1);
                cluster.control(|control| match step % 10 {
                    3 => control.kill_broker(broker, Tail::Lost),
                    7 => control.restart_broker(broker),
                    _ => control.rotate_leaders(),
                });
            }
        });
        let read = std::io::stdin().read_to_end(&mut Vec::new());
        stop.store(true, Ordering::Relaxed);
        read
    })?;
    Ok(())
}
