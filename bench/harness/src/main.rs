//! `cargo xtask bench`: measures Ottla and other clients (peers) with the same work in one run.
//!
//! [`case`] lists the work, [`peer`] the clients and their commands, [`server`] the brokers. [`measure`] runs a process and
//! reads its CPU time and memory from the kernel, [`record`] stores every run under `bench/runs/`, and [`report`] generates
//! `bench/RESULTS.md` and its chart from these files.
//!
//! Other measurements: [`kip_951`], latency while leaders move; [`linger`], requests, latency and CPU with different kinds
//! of linger; [`connections`], TLS connections to many brokers; [`rdkafka_performance`], librdkafka's benchmark program and ours; [`compare`], this tree and an earlier
//! commit.

mod case;
mod certificates;
mod compare;
mod connections;
mod kip_951;
mod linger;
mod machine;
mod measure;
mod peer;
mod ping;
mod rdkafka_performance;
mod record;
mod report;
mod server;
mod tree;
mod wheel;

use std::{env, path::PathBuf, process::ExitCode};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const HELP: &str = "\
cargo xtask bench [OPTIONS]

  --only TEXT,...     cases whose name contains one of these (see --list)
  --peers NAME,...    only these peers (see --list)
  --runs N            runs of every peer in every case, interleaved (default 5)
  --scale FACTOR      multiply the number of messages by this factor (default 1)
  --no-build          do not build the peers again
  --no-keep           print, but write neither bench/runs/ nor bench/RESULTS.md
  --list              print the cases and the peers
  --report            only write bench/RESULTS.md again, from bench/measured.json and bench/runs/

cargo xtask bench kip-951 measures the latency of records while leaders move, cargo xtask bench linger the effect of
linger per broker, cargo xtask bench connections TLS connections to many brokers, cargo xtask bench rdkafka-performance
librdkafka's benchmark program and ours, and cargo xtask bench compare this tree and an earlier commit; each has its own
--help.

Every run of a peer is a separate process. CPU is the user and system time of the whole process, divided by the number
of messages; messages per second is measured from the first message to the last acknowledgement or record, by the peer's
own clock; memory is the largest resident size. Building takes some minutes the first time, and
needs Go and a JDK for two of the peers; a peer that can't be built is skipped with a message.
";

/// The options of the command line.
struct Options {
    only: Vec<String>,
    peers: Vec<String>,
    runs: usize,
    scale: f64,
    keep: bool,
    build: bool,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut options =
        Options { only: Vec::new(), peers: Vec::new(), runs: 5, scale: 1.0, keep: true, build: true };
    let mut args = env::args().skip(1).peekable();
    if args.next_if(|arg| arg == "compare").is_some() {
        return compare::main(args);
    }
    if args.next_if(|arg| arg == "connections").is_some() {
        return connections::main(args);
    }
    if args.next_if(|arg| arg == "kip-951").is_some() {
        return kip_951::main(args);
    }
    if args.next_if(|arg| arg == "linger").is_some() {
        return linger::main(args);
    }
    if args.next_if(|arg| arg == "rdkafka-performance").is_some() {
        return rdkafka_performance::main(args);
    }
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--only" => options.only = value()?.split(',').map(str::to_owned).collect(),
            "--peers" => options.peers = value()?.split(',').map(str::to_owned).collect(),
            "--runs" => options.runs = value()?.parse()?,
            "--scale" => options.scale = value()?.parse()?,
            "--no-keep" => options.keep = false,
            "--no-build" => options.build = false,
            "--list" => return list(),
            "--report" => return report::write(),
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(());
            }
            ping::SERVER => return ping::serve(),
            ping::CLIENT => {
                return ping::measure(
                    &value()?,
                    args.next().ok_or("the number of messages is missing")?.parse()?,
                );
            }
            other => return Err(format!("`{other}`?\n\n{HELP}").into()),
        }
    }
    bench(&options)
}

fn list() -> Result<()> {
    case::all().iter().for_each(|case| println!("{:36} {}", case.name, case.what()));
    println!();
    peer::PEERS.iter().for_each(|peer| println!("{:36} {}", peer.name, peer.what));
    Ok(())
}

fn bench(options: &Options) -> Result<()> {
    let mut cases = case::all();
    if !options.only.is_empty() {
        cases.retain(|case| options.only.iter().any(|text| case.name.contains(text)));
    }
    if let Some(name) = options.peers.iter().find(|name| !peer::PEERS.iter().any(|peer| peer.name == **name))
    {
        return Err(format!("unknown peer {name}; --list prints all peers").into());
    }
    if cases.is_empty() || options.runs == 0 {
        return Err("no case matches; --list prints all cases".into());
    }
    for case in &mut cases {
        case.messages = ((case.messages as f64 * options.scale) as u64).max(1);
    }
    let wanted: Vec<_> = peer::PEERS
        .iter()
        .filter(|peer| options.peers.is_empty() || options.peers.iter().any(|name| name == peer.name))
        .filter(|peer| cases.iter().any(|case| peer.does(case)))
        .collect();
    let peers = if options.build {
        server::build()?;
        peer::build(&wanted)?
    } else {
        peer::built(&wanted)
    };
    let mut record = record::Record::new(options.keep)?;
    let mut server = None;
    for case in &cases {
        println!("\n{}: {}", case.name, case.what());
        let mut doing: Vec<_> = peers.iter().filter(|peer| peer.does(case)).collect();
        server::Server::prepare(&mut server, case)?;
        let server = server.as_ref().ok_or("no server")?;
        server.fill(case)?;
        for run in 1..=options.runs {
            fastrand::shuffle(&mut doing);
            for peer in &doing {
                let outcome = server.topic(case).and_then(|topic| peer.run(case, server, &topic));
                record.add(case, peer.name, run, outcome)?;
            }
        }
        record.summary(case);
        server.empty(case)?;
    }
    drop(server);
    if options.keep {
        report::write()?;
    }
    Ok(())
}

/// The folder `bench/` of the repository.
fn folder() -> PathBuf {
    let harness =
        env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    harness.parent().map_or_else(|| PathBuf::from("."), |folder| folder.to_path_buf())
}
