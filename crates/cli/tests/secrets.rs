//! Passwords, keys and tokens are in no output of the command line, at the highest debug level.

use std::thread;

use ottla_embedded_broker::{
    ClusterOptions, EmbeddedCluster, SaslListener, SaslMechanism, ScramHash, TestAuthority,
};
use support::{Folder, ottla, ottla_with_input};

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
            arguments.extend(["--timeout", "4"]);
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
    // Values that are refused, and a file that is no file of properties.
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
