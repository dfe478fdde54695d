//! `cargo xtask bench connections`: connections with TLS and client certificates to many brokers. It prints a table; figures
//! of a full run are in `docs/guide/security.md`.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::{Result, measure, peer, server};

const HELP: &str = "\
cargo xtask bench connections [OPTIONS]

  --brokers N         connect to this many embedded brokers (default 300)
  --seconds N         how long 30 brokers close all connections five times per second (default 60)
  --no-build          do not build again

Prints the CPU time until all brokers are connected, with plaintext and with TLS and a client certificate, the memory of
idle connections, and the memory while the client connects again more than 100 times per second.
";

/// The number of brokers that close their connections five times per second.
const CLOSING: usize = 30;
const TOPIC: &str = "connections";

pub fn main(mut args: impl Iterator<Item = String>) -> Result<()> {
    let (mut brokers, mut seconds, mut build) = (300, 60, true);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--brokers" => brokers = value()?.parse()?,
            "--seconds" => seconds = value()?.parse()?,
            "--no-build" => build = false,
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(());
            }
            other => return Err(format!("`{other}`?\n\n{HELP}").into()),
        }
    }
    if build {
        server::build()?;
        peer::cargo(&["peer-ottla"])?;
    }
    let plain = run(brokers, false, 0)?;
    let tls = run(brokers, true, 0)?;
    let number = |value: &Value, name: &str| value[name].as_f64().unwrap_or(f64::NAN);
    for (name, value) in [("plaintext", &plain), ("mTLS", &tls)] {
        println!(
            "{name:10} {brokers} brokers: {} connections, {:.2} s of CPU in {:.2} s, {:.0} KiB idle ({:.1} KiB per connection)",
            value["connects"],
            number(value, "cpu_ms") / 1000.0,
            number(value, "seconds"),
            number(value, "idle_kib"),
            (number(value, "idle_kib") - number(value, "start_kib")) / number(value, "connects"),
        );
    }
    let closing = run(CLOSING, true, seconds)?;
    println!(
        "mTLS       {CLOSING} brokers, closed 5 times per second for {seconds} s: {} connections, {} errors, {:.2} s of CPU to connect; resident KiB every 10 s: {}",
        closing["connects"],
        closing["errors"],
        number(&closing, "cpu_ms") / 1000.0,
        closing["samples_kib"],
    );
    Ok(())
}

/// Runs the client once, for `seconds` of which the brokers close all connections every 200 ms.
fn run(brokers: usize, tls: bool, seconds: u64) -> Result<Value> {
    let mut serve = Command::new(server::own_target().join("release/examples/serve"));
    serve.args([&brokers.to_string(), "0", "discard"]);
    if tls {
        serve.arg("mtls");
    }
    let mut serving = serve.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let outcome = with_brokers(&mut serving, brokers, tls, seconds);
    drop(serving.stdin.take());
    let _ = serving.wait();
    outcome
}

fn with_brokers(serving: &mut Child, brokers: usize, tls: bool, seconds: u64) -> Result<Value> {
    let mut lines = BufReader::new(serving.stdout.take().ok_or("no stdout")?).lines();
    let mut line = || lines.next().unwrap_or_else(|| Ok(String::new()));
    let all = line()?;
    // A client that knows all addresses connects to as many of them as it tries.
    let first = all.split(',').next().unwrap_or_default().to_owned();
    let mut common = ["--bootstrap", &first, "--topic", TOPIC].map(str::to_owned).to_vec();
    common.extend(["--partitions".to_owned(), brokers.to_string()]);
    if tls {
        common.extend(["--set", "security.protocol=ssl"].map(str::to_owned));
        for property in ["ssl.ca.location", "ssl.certificate.location", "ssl.key.location"] {
            common.extend(["--set".to_owned(), format!("{property}={}", line()?)]);
        }
    }
    let program = || Command::new(peer::target().join("release/peer-ottla"));
    let created = measure::run(program().arg("create").args(&common))?;
    if !created.success {
        return Err(created.stderr.into());
    }
    let done = Arc::new(AtomicBool::new(false));
    let closer = (seconds > 0).then(|| serving.stdin.take()).flatten().map(|mut stdin| {
        let done = Arc::clone(&done);
        thread::spawn(move || {
            thread::sleep(Duration::from_secs(4));
            while !done.load(Relaxed) && writeln!(stdin, "close").is_ok() {
                thread::sleep(Duration::from_millis(200));
            }
        })
    });
    let used =
        measure::run(program().arg("connections").args(&common).args(["--seconds", &seconds.to_string()]));
    done.store(true, Relaxed);
    if let Some(closer) = closer {
        let _ = closer.join();
    }
    let used = used?;
    let last = used.stdout.lines().last().unwrap_or_default();
    serde_json::from_str(last).map_err(|_| format!("the client failed: {}", used.stderr).into())
}
