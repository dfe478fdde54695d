//! The floor of the latency case: a request of the usual size and its response over TCP, between two processes.

use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::{Command, Stdio},
    time::Instant,
};

use crate::{Result, measure};

pub const SERVER: &str = "ping-server";
pub const CLIENT: &str = "ping-client";

/// The bytes of a ProduceRequest with one message of 100 bytes, and of its response.
const REQUEST: usize = 250;
const RESPONSE: usize = 70;

/// Starts a server process, measures a client process against it.
pub fn run(messages: u64) -> Result<measure::Used> {
    let harness = env::current_exe()?;
    let mut server = Command::new(&harness).arg(SERVER).stdout(Stdio::piped()).spawn()?;
    let mut address = String::new();
    BufReader::new(server.stdout.take().ok_or("no stdout")?).read_line(&mut address)?;
    let used = measure::run(Command::new(&harness).args([CLIENT, address.trim(), &messages.to_string()]));
    server.wait()?;
    used
}

/// Runs the server process: responds on one connection until it closes.
pub fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    let (mut connection, _) = listener.accept()?;
    connection.set_nodelay(true)?;
    let mut request = [0; REQUEST];
    while connection.read_exact(&mut request).is_ok() {
        connection.write_all(&[1; RESPONSE])?;
    }
    Ok(())
}

/// The client process.
pub fn measure(address: &str, messages: u64) -> Result<()> {
    let mut connection = TcpStream::connect(address)?;
    connection.set_nodelay(true)?;
    let mut response = [0; RESPONSE];
    let mut times = Vec::new();
    for number in 0..messages + messages / 10 {
        let began = Instant::now();
        connection.write_all(&[1; REQUEST])?;
        connection.read_exact(&mut response)?;
        if number >= messages / 10 {
            times.push(began.elapsed().as_nanos() as f64 / 1000.0);
        }
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "{{\"version\":\"std\",\"messages\":{messages},\"errors\":0,\"p50_us\":{:.1},\"p99_us\":{:.1},\"p999_us\":{:.1}}}",
        at(0.5),
        at(0.99),
        at(0.999)
    );
    Ok(())
}
