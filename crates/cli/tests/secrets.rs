//! Passwords, keys and tokens are in no output of the command line, at the highest debug level.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ottla_embedded_broker::{
    ClusterOptions, EmbeddedCluster, SaslListener, SaslMechanism, ScramHash, TestAuthority,
};
use support::{Folder, Running, call, cluster, not_checked, ottla, ottla_with_input};

mod support;

const PASSWORD: &str = "correct-horse-battery";
const WRONG_PASSWORD: &str = "incorrect-horse-battery";
const TOKEN_NAME: &str = "principal-of-a-token";

/// Runs commands with a file of properties, and returns all that they print. The exit codes must be as expected.
fn printed(file: &str, succeeds: bool) -> String {
    let commands: [&[&str]; 5] = [
        &["produce", "-t", "orders"],
        &["metadata"],
        &["consume", "-t", "orders", "-o", "beginning", "-e"],
        &["doctor"],
        &["doctor", "--json"],
    ];
    let mut all = String::new();
    for command in commands {
        let mut arguments = command.to_vec();
        arguments.extend(["-F", file, "-X", "debug=all", "-X", "message.timeout.ms=3000"]);
        if command[0] != "produce" && command[0] != "consume" {
            // The doctor ends as soon as it knows, and has this time for everything.
            arguments.extend(["--timeout", if command[0] == "doctor" { "20" } else { "4" }]);
        }
        if !succeeds && command[0] == "consume" {
            // It would wait until the password is right.
            continue;
        }
        let output = ottla_with_input(&arguments, b"a record\n");
        assert_eq!(output.code == 0, succeeds, "{command:?}: {}{}", output.out, output.err);
        all.push_str(&output.out);
        all.push_str(&output.err);
    }
    all
}

#[test]
fn no_output_of_the_command_line_contains_a_secret() {
    let authority = TestAuthority::new("CA").unwrap();
    let client = authority.issue("client", &[]).unwrap();
    let mechanisms =
        [SaslMechanism::Plain, SaslMechanism::Scram(ScramHash::Sha512), SaslMechanism::OauthBearerUnsecured];
    let cluster = EmbeddedCluster::start(ClusterOptions {
        brokers: 1,
        tls: Some(authority.listener(&["127.0.0.1"], true).unwrap()),
        sasl: Some(SaslListener::new(&mechanisms).user("alice", PASSWORD)),
        ..ClusterOptions::default()
    })
    .unwrap();
    let folder = Folder::new("secrets");
    let ca = folder.file("ca.pem", authority.pem());
    let certificate = folder.file("client.pem", &client.pem);
    let one_line = client.key_pem.replace('\n', "\\n");
    let base = format!(
        "bootstrap.servers={}\nsecurity.protocol=sasl_ssl\nssl.ca.location={ca}\nssl.certificate.location={certificate}\n\
         ssl.key.password={PASSWORD}\nssl.key.pem={one_line}\n",
        cluster.bootstrap_servers()
    );
    let properties = |name: &str, more: &str| folder.file(name, &format!("{base}{more}"));
    let jaas = format!(
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username=\"alice\" \
         password=\"{PASSWORD}\";"
    );
    let user = |mechanism: &str, password: &str| {
        format!("sasl.mechanisms={mechanism}\nsasl.username=alice\nsasl.password={password}\n")
    };
    let unsecured = format!(
        "sasl.mechanisms=OAUTHBEARER\nenable.sasl.oauthbearer.unsecure.jwt=true\nsasl.oauthbearer.config=principal={TOKEN_NAME} \
         extension_secret={PASSWORD}\n"
    );
    let cases = [
        ("plain", user("PLAIN", PASSWORD), true),
        ("wrong", user("PLAIN", WRONG_PASSWORD), false),
        ("scram", user("SCRAM-SHA-512", PASSWORD), true),
        ("wrong-scram", user("SCRAM-SHA-512", WRONG_PASSWORD), false),
        ("jaas", format!("sasl.mechanisms=PLAIN\n{jaas}\n"), true),
        ("token", unsecured, true),
    ];
    let mut all = thread::scope(|scope| {
        let print = |(name, more, succeeds): (&str, String, bool)| {
            let file = properties(name, &more);
            scope.spawn(move || printed(&file, succeeds))
        };
        cases.map(print).map(|printing| printing.join().unwrap()).concat()
    });
    // Values that are refused, and a file that is not a file of properties.
    for more in [
        format!("sasl.mechanisms=PLAIN\nsasl.jaas.config=what is {PASSWORD}?\n"),
        format!("sasl.password {PASSWORD}\n"),
        format!("sasl.mechanisms=PLAIN\nsasl.password={PASSWORD}\n"),
    ] {
        let refused = ottla(&["metadata", "-F", &properties("refused", &more)]);
        assert_ne!(refused.code, 0, "{}", refused.out);
        all.push_str(&refused.out);
        all.push_str(&refused.err);
    }
    let dumped = ottla(&["metadata", "-F", &properties("dumped", &user("PLAIN", PASSWORD)), "-X", "dump"]);
    all.push_str(&dumped.out);
    all.push_str(&dumped.err);
    for part in ["SaslAuthenticate", "sasl.password", "Authentication failed"] {
        assert!(all.contains(part), "the output has no {part:?}, so that the test shows nothing");
    }
    let key = client.key_pem.lines().nth(1).unwrap();
    for secret in [PASSWORD, WRONG_PASSWORD, "correct-horse", key] {
        if let Some(line) = all.lines().find(|line| line.contains(secret)) {
            panic!("{secret} is in: {}", line.chars().take(2000).collect::<String>());
        }
    }
}

#[test]
fn refused_options_are_printed_without_their_values() {
    for command in [
        &["users", "set-password", "alice", "--password", PASSWORD][..],
        &["users", "set-password", "alice", &format!("--password={PASSWORD}")],
        &["users", "-b", "127.0.0.1:1", "-X", &format!("sasl.password:{PASSWORD}"), "list"],
        &["broker", "--sasl", "plain", "--sasl-user", PASSWORD],
    ] {
        let output = ottla(command);
        assert_eq!(output.code, 2, "{command:?}: {}", output.err);
        assert!(!output.err.contains(PASSWORD) && output.out.is_empty(), "{command:?}: {}", output.err);
    }
}

#[test]
fn options_are_not_abbreviated() {
    for command in [&["metadata", "--bootstrap", "127.0.0.1:1"][..], &["consume", "--topi", "t"]] {
        let output = ottla(command);
        assert_eq!(output.code, 2, "{command:?}: {}", output.err);
        assert!(output.err.contains("unexpected argument"), "{command:?}: {}", output.err);
    }
}

/// Runs `ottla users set-password` at a terminal, types at its prompt, and returns the exit code and what the terminal shows,
/// followed by the terminal's settings. `None` without a terminal.
fn set_password_at_a_terminal(servers: &str, typed: &str) -> Option<(Option<i32>, String)> {
    let line = format!(
        "tty; {} users -b {servers} set-password alice --iterations 4096; code=$?; stty -a; exit $code",
        env!("CARGO_BIN_EXE_ottla")
    );
    let terminal = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut running = Running(terminal.ok()?);
    let (mut input, mut output) = (running.0.stdin.take().unwrap(), running.0.stdout.take().unwrap());
    let (mut shown, mut byte) = (Vec::new(), [0]);
    while !shown.ends_with(b"(not shown): ") {
        assert_eq!(output.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&shown));
        shown.extend(byte);
    }
    // The prompt comes before the terminal's echo is off, and this test types faster than a user.
    let device = String::from_utf8_lossy(&shown).lines().next().unwrap().trim().to_owned();
    let start = Instant::now();
    while !call("stty", &["-a", "-F", &device], b"").out.contains("-echo ") {
        assert!(start.elapsed() < Duration::from_secs(60), "the echo of {device} stays on");
        thread::sleep(Duration::from_millis(20));
    }
    input.write_all(typed.as_bytes()).unwrap();
    output.read_to_end(&mut shown).unwrap();
    let code = running.0.wait().unwrap().code();
    Some((code, String::from_utf8_lossy(&shown).into_owned()))
}

#[test]
fn password_that_is_typed_is_not_shown() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    for (typed, expected) in [(format!("{PASSWORD}\n"), 0), (format!("{PASSWORD}\x03"), 130)] {
        let Some((code, shown)) = set_password_at_a_terminal(&servers, &typed) else {
            return not_checked("the prompt for a password", "there is no `script`");
        };
        assert_eq!(code, Some(expected), "{shown}");
        assert_eq!(shown.contains("changed"), expected == 0, "{shown}");
        assert!(!shown.contains(PASSWORD), "{shown}");
        assert!(shown.contains(" echo ") && shown.contains(" icanon "), "the terminal is as before: {shown}");
    }
}
