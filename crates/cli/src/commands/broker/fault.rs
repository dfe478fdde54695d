//! `ottla broker fault`: what goes wrong in a running cluster, through the port of `ottla broker --control-port`.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use clap::Args;
use ottla_embedded_broker::{
    ApiKey, BrokerId, Control, EmbeddedCluster, ErrorCode, Fault, FaultAction, Tail,
};
use serde_json::{Value, json};

use crate::failure::{EXIT_CODES, Failure, Outcome};
use crate::times::parse_duration;

/// The time for a request and its answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The longest request or answer, in bytes.
const MAX_BYTES: u64 = 64 << 10;
/// What can be done.
const ACTIONS: [&str; 10] = [
    "error",
    "delay",
    "throttle",
    "close",
    "lose-response",
    "never-respond",
    "move-leader",
    "kill-broker",
    "restart-broker",
    "clear",
];

/// Let something go wrong in a running cluster: errors, latency, lost responses, moved leaders, dead brokers
///
/// The cluster is one that was started with --control-port, which prints the address.
#[derive(Args, Debug)]
#[command(after_help = format!("Actions:\n  \
    error CODE        requests are refused with Kafka's error, such as NOT_LEADER_OR_FOLLOWER\n  \
    delay TIME        responses come this much later, such as 200ms\n  \
    throttle TIME     clients are asked to pause (throttle_time_ms)\n  \
    close             connections close without handling the request\n  \
    lose-response     requests are handled, and connections close instead of a response\n  \
    never-respond     requests are handled, and connections stay open without a response\n  \
    move-leader       the partition of --topic and --partition gets another leader, or --broker\n  \
    kill-broker ID, restart-broker ID\n  \
    clear             ends all faults\n\n\
    Examples:\n  \
    ottla broker --port 9092 --control-port 9999\n  \
    ottla broker fault --control 127.0.0.1:9999 error NOT_LEADER_OR_FOLLOWER --api Produce --times 3\n  \
    ottla broker fault --control 127.0.0.1:9999 delay 200ms --api Fetch --topic orders\n  \
    ottla broker fault --control 127.0.0.1:9999 move-leader --topic orders --partition 0\n  \
    ottla broker fault --control 127.0.0.1:9999 clear\n\n{EXIT_CODES}"))]
pub struct FaultOptions {
    /// The address that the cluster has printed
    #[arg(long, value_name = "HOST:PORT", env = "OTTLA_CONTROL")]
    control: String,

    /// What happens; see below
    #[arg(value_name = "ACTION", value_parser = ACTIONS)]
    action: String,

    /// The error, time or broker of the action
    #[arg(value_name = "VALUE")]
    value: Option<String>,

    /// Only requests of this API, such as Produce or Fetch
    #[arg(long, value_name = "NAME")]
    api: Option<String>,

    /// Only requests to this broker
    #[arg(long, value_name = "ID")]
    broker: Option<i32>,

    /// Only requests that concern this topic
    #[arg(short = 't', long)]
    topic: Option<String>,

    /// Only requests that concern this partition of the topic
    #[arg(short = 'p', long, requires = "topic")]
    partition: Option<i32>,

    /// Only this many requests [default: all from now on]
    #[arg(long, value_name = "COUNT")]
    times: Option<u32>,

    /// Let this many requests pass first
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    skip: u32,
}

/// Runs the command.
pub fn run(options: &FaultOptions) -> Outcome {
    let request = json!({
        "action": options.action, "value": options.value, "api": options.api, "broker": options.broker,
        "topic": options.topic, "partition": options.partition, "times": options.times, "skip": options.skip,
    });
    let unreached = |error: io::Error| {
        Failure::Failed(format!(
            "the cluster at {} can't be reached: {error}; `ottla broker --control-port PORT` starts one that can",
            options.control
        ))
    };
    let answer = ask(&options.control, &request).map_err(unreached)?;
    match answer.get("error").and_then(Value::as_str) {
        Some(error) => Err(Failure::Usage(error.to_owned())),
        None => Ok(writeln!(io::stdout(), "done")?),
    }
}

fn ask(address: &str, request: &Value) -> io::Result<Value> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(format!("{request}\n").as_bytes())?;
    let mut line = String::new();
    BufReader::new(stream.take(MAX_BYTES)).read_line(&mut line)?;
    serde_json::from_str(&line).map_err(|error| io::Error::other(format!("no answer of a cluster: {error}")))
}

/// Serves requests on a port of this machine while the cluster exists. Returns the address.
///
/// # Errors
///
/// The port is not free.
pub fn serve(port: u16, cluster: &Arc<EmbeddedCluster>) -> Outcome<String> {
    let failed = |error: io::Error| Failure::Failed(format!("--control-port {port}: {error}"));
    let listener = TcpListener::bind(("127.0.0.1", port)).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?.to_string();
    let cluster = Arc::downgrade(cluster);
    let serving = move || {
        for stream in listener.incoming().filter_map(Result::ok) {
            // A client that sends nothing is given up.
            let _ = answer(&stream, &cluster);
        }
    };
    thread::Builder::new().name("control".into()).spawn(serving).map_err(failed)?;
    Ok(address)
}

fn answer(stream: &TcpStream, cluster: &Weak<EmbeddedCluster>) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut line = String::new();
    BufReader::new(stream.take(MAX_BYTES)).read_line(&mut line)?;
    let done = serde_json::from_str(&line)
        .map_err(|error| format!("the request is not JSON: {error}"))
        .and_then(|request| {
            let cluster = cluster.upgrade().ok_or("the cluster has ended")?;
            cluster.control(|control| act(control, &request))
        });
    let answer = match done {
        Ok(()) => json!({}),
        Err(error) => json!({"error": error}),
    };
    let mut stream = stream;
    stream.write_all(format!("{answer}\n").as_bytes())
}

/// Does what a request says.
fn act(control: &mut Control<'_>, request: &Value) -> Result<(), String> {
    let text = |name: &str| request.get(name).and_then(Value::as_str);
    let number =
        |name: &str| request.get(name).and_then(Value::as_i64).and_then(|number| i32::try_from(number).ok());
    let value =
        || text("value").ok_or("the action needs a value; see `ottla broker fault --help`".to_owned());
    let broker = || {
        let id =
            value()?.parse().map(BrokerId).map_err(|_| "the value is not the ID of a broker".to_owned())?;
        if control.brokers().contains(&id) { Ok(id) } else { Err(format!("broker {} does not exist", id.0)) }
    };
    let time = || match parse_duration(value()?) {
        Some(ms @ 0..=3_600_000) => Ok(Duration::from_millis(ms as u64)),
        _ => Err("the value is not a time up to 1h, such as 200ms".to_owned()),
    };
    let action = match text("action").unwrap_or_default() {
        "clear" => {
            control.clear_faults();
            return Ok(());
        }
        "kill-broker" => {
            let id = broker()?;
            control.kill_broker(id, Tail::Kept);
            return Ok(());
        }
        "restart-broker" => {
            let id = broker()?;
            control.restart_broker(id);
            return Ok(());
        }
        "move-leader" => {
            let topic = text("topic").ok_or("move-leader needs --topic")?;
            let partition = number("partition").ok_or("move-leader needs --partition")?;
            return match control.move_leader(topic, partition, number("broker").map(BrokerId)) {
                true => Ok(()),
                false => Err(format!("the leader of {topic} [{partition}] can't move there")),
            };
        }
        "error" => {
            let name = value()?;
            let code = ErrorCode::all().find(|code| code.name().eq_ignore_ascii_case(name));
            FaultAction::Error(code.ok_or_else(|| format!("\"{name}\" is not an error of Kafka"))?)
        }
        "delay" => FaultAction::Delay(time()?),
        "throttle" => FaultAction::Throttle(time()?),
        "close" => FaultAction::CloseConnection,
        "lose-response" => FaultAction::LoseResponse,
        "never-respond" => FaultAction::NeverRespond,
        other => return Err(format!("the action \"{other}\" is unknown")),
    };
    let mut fault = Fault::new(action);
    if let Some(name) = text("api") {
        let api = ApiKey::ALL.iter().find(|api| api.name().eq_ignore_ascii_case(name));
        fault = fault.api(*api.ok_or_else(|| format!("\"{name}\" is not an API of Kafka"))?);
    }
    fault.broker = number("broker").map(BrokerId);
    fault.topic = text("topic").map(str::to_owned);
    fault.partition = number("partition");
    fault.times = number("times").map(|times| times.max(0) as u32);
    fault.skip = number("skip").unwrap_or(0).max(0) as u32;
    control.inject(fault);
    Ok(())
}
