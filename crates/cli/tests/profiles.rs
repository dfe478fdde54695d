//! `ottla profile`, and the profiles in other commands.

mod support;

use support::{Folder, Output, cluster, ottla_with};

/// Runs the binary with the profiles of a folder.
fn run(folder: &Folder, arguments: &[&str]) -> Output {
    run_with(folder, &[], arguments)
}

fn run_with(folder: &Folder, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    let file = folder.0.join("ottla").join("config.toml").display().to_string();
    ottla_with(&[&[("OTTLA_CONFIG", file.as_str())], variables].concat(), arguments)
}

fn succeeds(folder: &Folder, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert_eq!(output.code, 0, "{arguments:?}: {}", output.err);
    output.out
}

fn fails(folder: &Folder, arguments: &[&str], error: &str) {
    let output = run(folder, arguments);
    assert_eq!(output.code, 2, "{arguments:?}: {}{}", output.out, output.err);
    assert!(output.err.contains(error), "{arguments:?}: {}", output.err);
}

#[test]
fn profile_names_the_cluster_of_a_command() {
    let (folder, cluster) = (Folder::new("profiles"), cluster());
    let servers = cluster.bootstrap_servers();
    fails(&folder, &["topics", "list"], "no broker is named");
    succeeds(&folder, &["profile", "add", "dev", "-b", &servers]);
    succeeds(&folder, &["profile", "add", "other", "-b", "127.0.0.1:1", "-X", "acks=1"]);
    succeeds(&folder, &["topics", "create", "demo"]);
    assert_eq!(succeeds(&folder, &["topics", "list"]), "demo\n");
    succeeds(&folder, &["profile", "use", "other"]);
    assert_eq!(succeeds(&folder, &["topics", "list", "--profile", "dev"]), "demo\n");
    assert_eq!(succeeds(&folder, &["--profile", "dev", "topics", "list"]), "demo\n");
    for variable in [("OTTLA_PROFILE", "dev"), ("OTTLA_BOOTSTRAP", &servers)] {
        let output = run_with(&folder, &[variable], &["topics", "list"]);
        assert_eq!((output.code, output.out.as_str()), (0, "demo\n"), "{variable:?}: {}", output.err);
    }
    // -b names another cluster: the password of a profile must not go there.
    assert_eq!(succeeds(&folder, &["topics", "list", "-b", &servers]), "demo\n");
    let named = format!("bootstrap.servers={servers}");
    succeeds(
        &folder,
        &["profile", "add", "secret", "-b", "127.0.0.1:1", "--password-command", "exit 1", "--read-only"],
    );
    succeeds(&folder, &["profile", "use", "secret"]);
    assert_eq!(succeeds(&folder, &["topics", "list", "-X", &named]), "demo\n");
    assert_eq!(succeeds(&folder, &["topics", "delete", "demo", "-X", &named]), "deleted topic demo\n");
    succeeds(&folder, &["profile", "remove", "secret"]);
    succeeds(&folder, &["profile", "use", "other"]);
    let list = succeeds(&folder, &["profile", "list"]);
    assert!(list.contains("*       other 127.0.0.1:1") && list.contains("dev"), "{list}");
    succeeds(&folder, &["profile", "remove", "other"]);
    fails(&folder, &["topics", "list"], "no broker is named");
    fails(
        &folder,
        &["topics", "list", "--profile", "other"],
        "profile \"other\" does not exist; there are dev",
    );
    fails(&folder, &["profile", "add", "dev", "-b", "a:1"], "exists; --force replaces it");
    fails(&folder, &["profile", "add", "a b", "-b", "a:1"], "can't be the name");
    fails(&folder, &["profile", "add", "x"], "no broker is named");
}

#[test]
fn read_only_and_protected_profiles_refuse_changes() {
    let (folder, cluster) = (Folder::new("protected"), cluster());
    let servers = cluster.bootstrap_servers();
    succeeds(&folder, &["profile", "add", "ro", "-b", &servers, "--read-only"]);
    succeeds(&folder, &["profile", "add", "prod", "-b", &servers, "--confirm-word", "prod"]);
    fails(&folder, &["topics", "create", "demo"], "profile \"ro\" is read-only");
    fails(&folder, &["produce", "-t", "demo"], "profile \"ro\" is read-only");
    succeeds(&folder, &["topics", "create", "demo", "--dry-run"]);
    succeeds(&folder, &["topics", "list"]);
    fails(&folder, &["topics", "create", "demo", "--profile", "prod"], "is protected: add --confirm prod");
    fails(&folder, &["topics", "create", "demo", "--profile", "prod", "--confirm", "dev"], "not confirmed");
    succeeds(&folder, &["topics", "create", "demo", "--profile", "prod", "--confirm", "prod"]);
    fails(&folder, &["groups", "--profile", "prod", "delete", "g"], "is protected");
    fails(&folder, &["consume", "--profile", "ro", "-t", "demo", "-G", "g"], "is read-only");
    succeeds(&folder, &["consume", "--profile", "ro", "-t", "demo", "-e"]);
}

#[test]
fn files_of_other_clients_become_profiles() {
    let folder = Folder::new("imports");
    let java = folder.file("client.properties", "bootstrap.servers=a:1\nsecurity.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username=\"u\" password=\"hunter2\";\n");
    let kcat = folder.file("kcat.conf", "# kcat\nbootstrap.servers=b:2\nsasl.password=hunter2\n");
    let rpk = folder.file("rpk.yaml", "profiles:\n  - name: one\n    kafka_api:\n      brokers: [c:3]\n");
    let broken = folder.file("broken.properties", "bootstrap.servers=a:1\nno.such=1\n");
    let output = run(&folder, &["profile", "import", "java", &java]);
    assert_eq!(output.code, 0, "{}", output.err);
    assert!(output.err.contains("the file has a secret"), "{}", output.err);
    succeeds(
        &folder,
        &["profile", "import", "kcat", &kcat, "--format", "kcat", "--password-command", "echo x"],
    );
    succeeds(&folder, &["profile", "import", &rpk]);
    fails(&folder, &["profile", "import", "broken", &broken], "no.such");
    fails(&folder, &["profile", "import", "none", "/no/such/file"], "/no/such/file can't be read");
    fails(&folder, &["profile", "import", &java], "write `ottla profile import NAME FILE`");
    for (name, part) in [
        ("java", "security.protocol"),
        ("kcat", "password_command = \"echo x\""),
        ("one", "bootstrap = \"c:3\""),
    ] {
        let shown = succeeds(&folder, &["profile", "show", name]);
        assert!(shown.contains(part) && !shown.contains("hunter2"), "{name}: {shown}");
    }
}

#[test]
fn password_comes_from_a_command_that_may_fail() {
    let folder = Folder::new("secrets");
    succeeds(
        &folder,
        &["profile", "add", "p", "-b", "127.0.0.1:1", "--password-command", "echo secret; exit 7"],
    );
    let output = run(&folder, &["topics", "list"]);
    assert_eq!(output.code, 1);
    assert!(output.err.contains("profile \"p\": the command of sasl.password failed"), "{}", output.err);
    assert!(!output.err.contains("secret\n"), "{}", output.err);
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_the_file_of_profiles() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("mode");
    succeeds(&folder, &["profile", "add", "p", "-b", "a:1"]);
    let file = folder.0.join("ottla").join("config.toml");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::write(&file, "default = 'p'\n[profiles.p\npassword hunter2").unwrap();
    let output = run(&folder, &["topics", "list"]);
    assert!(
        output.code == 2 && output.err.contains("line 2") && !output.err.contains("hunter2"),
        "{}",
        output.err
    );
    // A broken file must not stop a command that needs no profile.
    assert!(
        !run(&folder, &["topics", "list", "-b", "127.0.0.1:1", "--timeout", "0.1"]).err.contains("line 2")
    );
}
