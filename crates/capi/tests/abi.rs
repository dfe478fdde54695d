//! The library as C programs see it: symbols, layout, headers, and programs in C and kcat on the embedded broker.
//!
//! `cargo xtask docs` writes what is generated. A C compiler, `nm` and kcat come from the system (`apt-get install gcc
//! binutils kcat`).

#[path = "abi/programs.rs"]
mod programs;
#[path = "../abi/table.rs"]
#[allow(dead_code, reason = "the build script uses one half, the tests the other")]
mod table;

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster, SaslListener, SaslMechanism, TestAuthority};
use ottla_protocol::api::ApiKey;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

fn here(path: &str) -> PathBuf {
    Path::new(HERE).join(path)
}

/// The shared library that was built along with this test.
fn library() -> PathBuf {
    let deps = env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let found = [deps.join("librdkafka.so"), deps.parent().unwrap().join("librdkafka.so")];
    found.into_iter().find(|path| path.exists()).expect("cargo builds the library along with its tests")
}

/// A folder with the library under the name that programs ask for, and with room for programs.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    for soname in ["librdkafka.so.1", "librdkafka.so"] {
        let link = folder.join(soname);
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(library(), link).unwrap();
    }
    folder
}

fn run(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{err}", output.status);
    output
}

fn text(command: &mut Command) -> String {
    String::from_utf8(run(command).stdout).unwrap()
}

fn compiler() -> String {
    env::var("CC").unwrap_or_else(|_| "cc".into())
}

/// Compiles a program and links it to the library.
fn program(folder: &Path, source: &Path) -> PathBuf {
    program_with(folder, source, &[])
}

fn program_with(folder: &Path, source: &Path, flags: &[&str]) -> PathBuf {
    let program = folder.join(source.file_stem().unwrap());
    run(Command::new(compiler())
        .args(["-std=gnu90", "-Wall", "-Wextra", "-pedantic", "-Werror", "-g"])
        .args(flags)
        .arg("-o")
        .arg(&program)
        .arg(source)
        .arg("-I")
        .arg(here("include"))
        .arg("-L")
        .arg(folder)
        .args(["-lrdkafka", "-lpthread"]));
    program
}

fn with_library(folder: &Path, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", folder);
    command
}

/// Compares a generated file with the committed one.
fn generated(path: &str, content: &str) {
    let path = here(path);
    if env::var_os("OTTLA_WRITE_DOCS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == content, "{} is stale; `cargo xtask docs` writes it", path.display());
}

#[test]
fn headers_and_status_page_match_the_table() {
    for name in table::HEADERS {
        generated(&format!("include/librdkafka/{name}"), &table::header(name));
    }
    generated("STATUS.md", &table::status_page());
}

#[test]
fn every_function_of_the_table_is_complete() {
    let functions = table::functions();
    let partial = functions.iter().filter(|function| function.status != table::Status::Complete);
    let partial: Vec<_> = partial.map(|function| (function.name(), &function.missing)).collect();
    assert!(partial.is_empty(), "STATUS.md promises a complete library: {partial:?}");
    let promise = format!("{} complete, 0 partial", table::functions_of_librdkafka().len());
    assert!(table::status_page().contains(&promise), "STATUS.md does not say: {promise}");
}

/// `cargo xtask abi --side-by-side` compares these programs with librdkafka.
#[test]
fn every_complete_function_is_called_side_by_side() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/abi/side_by_side");
    let mut programs = String::new();
    for folder in [folder.clone(), folder.join("plugin")] {
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.is_file()).for_each(|path| programs += &fs::read_to_string(path).unwrap());
    }
    let called: BTreeSet<&str> = programs.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let functions = table::functions_of_librdkafka();
    let complete = functions.iter().filter(|function| function.status == table::Status::Complete);
    let missing: Vec<_> = complete.map(table::Function::name).filter(|name| !called.contains(name)).collect();
    // It runs the tests that are inside of a library.
    assert_eq!(missing, ["rd_kafka_unittest"]);
}

#[test]
fn exactly_the_functions_of_the_table_are_exported() {
    let symbols = text(Command::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(library()));
    let exported: BTreeSet<&str> = symbols.lines().filter_map(|line| line.split(' ').next()).collect();
    let functions = table::functions();
    let expected: BTreeSet<&str> = functions.iter().map(table::Function::name).collect();
    let additional = expected.iter().filter(|name| name.starts_with("rd_kafka_ottla_")).count();
    assert_eq!(table::functions_of_librdkafka().len(), 553);
    assert_eq!(expected.len() - additional, 553, "the additional functions have names of their own");
    let missing: Vec<_> = expected.difference(&exported).collect();
    let surplus: Vec<_> = exported.difference(&expected).collect();
    assert!(missing.is_empty() && surplus.is_empty(), "missing: {missing:?}, surplus: {surplus:?}");
}

#[test]
fn the_library_is_asked_for_by_the_original_name() {
    let dynamic = text(Command::new("readelf").arg("-d").arg(library()));
    assert!(dynamic.contains("Library soname: [librdkafka.so.1]"), "{dynamic}");
}

#[test]
fn the_headers_compile_as_c89_c99_and_cxx() {
    let folder = folder("headers");
    let source = "#include <librdkafka/rdkafka.h>\n#include <librdkafka/rdkafka_mock.h>\n#include <librdkafka/rdkafka_ottla.h>\nint main(void) { return 0; }\n";
    // Some programs name the folder of the headers, as `pkg-config` users with `-I/usr/include/librdkafka` do.
    let bare = source.replace("librdkafka/", "");
    for (language, standard, file) in [
        ("c", "gnu90", "c89.c"),
        ("c", "c99", "c99.c"),
        ("c++", "c++98", "cxx.cpp"),
        ("c++", "c++17", "cxx17.cpp"),
    ] {
        let path = folder.join(file);
        for (source, include) in [(source, "include"), (&bare, "include/librdkafka")] {
            fs::write(&path, source).unwrap();
            // Strict C99 has no ssize_t of its own.
            run(Command::new(if language == "c" { "cc" } else { "c++" })
                .arg(format!("-std={standard}"))
                .args(["-Wall", "-Wextra", "-pedantic", "-Werror", "-Wno-long-long", "-fsyntax-only", "-I"])
                .arg(here(include))
                .arg(&path));
        }
    }
}

#[test]
fn sizes_offsets_and_values_are_those_of_the_reference() {
    let folder = folder("layout");
    let mut program_text = String::from(
        "#include <librdkafka/rdkafka.h>\n#include <stddef.h>\n#include <stdio.h>\n#include <string.h>\nint main(void) {\nint bad = 0;\n",
    );
    let layout = fs::read_to_string(here("abi/layout.txt")).unwrap();
    let mut checks = 0;
    for line in layout.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let (what, expected) = match *words.first().unwrap() {
            "sizeof" => {
                let at = words.iter().position(|word| *word == "align").unwrap_or(words.len());
                (format!("sizeof({})", words[1..at - 1].join(" ")), words[at - 1].to_owned())
            }
            "offsetof" => {
                let at = words.iter().position(|word| *word == "size").unwrap();
                let place = words[1..at - 1].join(" ");
                let (kind, field) = place.split_once('.').unwrap();
                (format!("offsetof({kind}, {field})"), words[at - 1].to_owned())
            }
            "enum" => (words[1].to_owned(), words[2].to_owned()),
            "macro" if !words[2].starts_with('"') => (words[1].to_owned(), words[2].to_owned()),
            "macro" => {
                let text = words[2..].join(" ");
                program_text
                    .push_str(&format!("if (strcmp({}, {text})) bad++, puts(\"{}\");\n", words[1], words[1]));
                continue;
            }
            _ => continue,
        };
        checks += 1;
        program_text.push_str(&format!(
            "if ((long)({what}) != {expected}L) bad++, printf(\"%s is %ld\\n\", \"{what}\", (long)({what}));\n"
        ));
    }
    assert!(checks > 400, "{checks}");
    program_text.push_str("return bad != 0;\n}\n");
    let source = folder.join("layout.c");
    fs::write(&source, program_text).unwrap();
    run(&mut with_library(&folder, program(&folder, &source)));
}

fn cluster(partitions: i32) -> EmbeddedCluster {
    EmbeddedCluster::start(ClusterOptions { brokers: 1, partitions, ..ClusterOptions::default() }).unwrap()
}

#[test]
fn the_examples_produce_and_consume() {
    let (folder, cluster) = (folder("examples"), cluster(1));
    let servers = cluster.bootstrap_servers();
    let examples = Path::new(HERE).join("../../examples/c");
    let producer = program(&folder, &examples.join("producer.c"));
    let consumer = program(&folder, &examples.join("consumer.c"));
    let said = text(with_library(&folder, producer).args([&servers, "greetings", "1000"]));
    assert_eq!(said, "1000 delivered, 0 failed, 0 left\n");
    let said = text(with_library(&folder, consumer).args([&servers, "greetings"]));
    let expected: String = (0..1000).map(|number| format!("{number}: message {number}\n")).collect();
    assert_eq!(said, expected);
}

#[test]
fn the_mock_example_delivers_after_an_error() {
    let folder = folder("mock");
    let program = program(&folder, &Path::new(HERE).join("../../examples/c/mock.c"));
    assert_eq!(text(&mut with_library(&folder, program)), "1 delivered\n");
}

#[test]
fn the_admin_example_creates_describes_and_deletes() {
    let (folder, cluster) = (folder("admin"), cluster(1));
    let servers = cluster.bootstrap_servers();
    let program = program(&folder, &Path::new(HERE).join("../../examples/c/admin.c"));
    let admin = |arguments: &[&str]| {
        let mut command = with_library(&folder, &program);
        let output = command.arg(&servers).args(arguments).stdin(Stdio::null()).output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), output.status.success())
    };
    assert_eq!(admin(&["create", "news", "2", "1"]), ("news: created\n".into(), true));
    assert_eq!(admin(&["create", "news", "2", "1"]), ("news: TOPIC_ALREADY_EXISTS\n".into(), false));
    assert_eq!(admin(&["describe", "news"]), ("news [0]: 1 replicas\nnews [1]: 1 replicas\n".into(), true));
    assert_eq!(admin(&["delete", "news"]), ("news: deleted\n".into(), true));
    assert_eq!(admin(&["describe", "news"]), ("news: UNKNOWN_TOPIC_OR_PART\n".into(), false));
}

#[test]
fn programs_in_c_authenticate() {
    let folder = folder("sasl");
    let listener = SaslListener::new(&SaslMechanism::ALL).user("alice", "alice-secret");
    let options = ClusterOptions { brokers: 1, sasl: Some(listener), ..ClusterOptions::default() };
    let cluster = EmbeddedCluster::start(options).unwrap();
    let program = program(&folder, &here("tests/c/sasl.c"));
    let said = run(with_library(&folder, &program).args([&cluster.bootstrap_servers(), "authenticates"]));
    let said = [said.stdout, said.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("SaslAuthenticate"), "the program logs, so that the search shows something");
    // Wrong passwords and tokens, the right password, and the claims of the right token.
    for secret in ["hunter2", "alice-secret", "eyJzdWIiOiJhbGljZSIsImV4cCI6NDEwMjQ0NDgwMH0"] {
        assert!(!said.contains(secret), "a secret is in a log");
    }
}

#[test]
fn programs_in_c_administer_delegation_tokens() {
    let folder = folder("tokens");
    let sasl = Some(SaslListener::new(&SaslMechanism::ALL).user("alice", "alice-secret"));
    let cluster =
        EmbeddedCluster::start(ClusterOptions { brokers: 1, sasl, ..ClusterOptions::default() }).unwrap();
    let program = program(&folder, &here("tests/c/ottla.c"));
    run(with_library(&folder, &program).args([&cluster.bootstrap_servers(), "tokens"]));
}

#[test]
fn programs_in_c_pass_certificates_and_check_them() {
    let folder = folder("tls");
    let (authority, other) = (TestAuthority::new("CA").unwrap(), TestAuthority::new("Other CA").unwrap());
    let client = authority.issue("client", &[]).unwrap();
    for (name, bytes) in [
        ("ca.pem", authority.pem().as_bytes()),
        ("ca.der", authority.der()),
        ("other.pem", other.pem().as_bytes()),
        ("client.pem", client.pem.as_bytes()),
        ("client.der", &client.der),
        ("client.key", client.key_pem.as_bytes()),
        ("client.key.der", &client.key_der),
    ] {
        fs::write(folder.join(name), bytes).unwrap();
    }
    let tls = Some(authority.listener(&["127.0.0.1"], true).unwrap());
    let cluster =
        EmbeddedCluster::start(ClusterOptions { brokers: 1, tls, ..ClusterOptions::default() }).unwrap();
    let program = program(&folder, &here("tests/c/tls.c"));
    let said = run(with_library(&folder, &program).arg(cluster.bootstrap_servers()).arg(&folder));
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.contains("Produce"), "the program logs");
    let key = client.key_pem.lines().nth(1).unwrap();
    assert!(!said.contains(key), "the key is in a log");
}

#[test]
fn topics_with_own_configuration_share_their_clients_connections() {
    let folder = folder("topics");
    let options = ClusterOptions { brokers: 2, partitions: 4, ..ClusterOptions::default() };
    let cluster = EmbeddedCluster::start(options).unwrap();
    cluster.control(|control| control.record_requests());
    let program = program(&folder, &here("tests/c/topics.c"));
    let servers = cluster.bootstrap_servers();
    run(with_library(&folder, &program).args([&servers, "one client"]));
    let requests = cluster.control(|control| control.take_requests());
    for broker in cluster.control(|control| control.brokers()) {
        let of_broker = requests.iter().filter(|request| request.broker == broker);
        let produce: Vec<_> = of_broker.filter(|request| request.api == ApiKey::Produce).collect();
        let connections: BTreeSet<_> = produce.iter().map(|request| request.connection).collect();
        assert_eq!(connections.len(), 1, "{broker:?}");
        assert!(produce.len() >= 2, "a request with acks, and one without");
    }
    let codecs = |topic: &str| -> BTreeSet<u8> {
        let batches =
            (0..4).flat_map(|partition| cluster.control(|control| control.batches(topic, partition)));
        batches.map(|batch| batch[22] & 7).collect()
    };
    const GZIP: u8 = 1;
    assert_eq!((codecs("all"), codecs("none")), (BTreeSet::from([0]), BTreeSet::from([GZIP])));
}

/// Handles that a function may get: how C makes one, and how it gives it up.
const HANDLES: [(&str, &str, &str); 12] = [
    ("rd_kafka_t", "rd_kafka_new(RD_KAFKA_PRODUCER, NULL, NULL, 0)", "rd_kafka_destroy"),
    ("rd_kafka_topic_t", "rd_kafka_topic_new(client, \"topic\", NULL)", "rd_kafka_topic_destroy"),
    ("rd_kafka_queue_t", "rd_kafka_queue_new(client)", "rd_kafka_queue_destroy"),
    ("rd_kafka_conf_t", "rd_kafka_conf_new()", "rd_kafka_conf_destroy"),
    ("rd_kafka_topic_conf_t", "rd_kafka_topic_conf_new()", "rd_kafka_topic_conf_destroy"),
    ("rd_kafka_headers_t", "rd_kafka_headers_new(1)", "rd_kafka_headers_destroy"),
    ("rd_kafka_error_t", "rd_kafka_error_new(1, \"text\")", "rd_kafka_error_destroy"),
    ("rd_kafka_AdminOptions_t", "rd_kafka_AdminOptions_new(client, 0)", "rd_kafka_AdminOptions_destroy"),
    ("rd_kafka_Uuid_t", "rd_kafka_Uuid_new(1, 2)", "rd_kafka_Uuid_destroy"),
    ("rd_kafka_NewTopic_t", "rd_kafka_NewTopic_new(\"topic\", 1, 1, NULL, 0)", "rd_kafka_NewTopic_destroy"),
    ("rd_kafka_share_t", "new_share()", "destroy_share"),
    ("rd_kafka_ottla_request_t", "rd_kafka_ottla_request_new()", "rd_kafka_ottla_request_destroy"),
];

/// The handle that a parameter is, if it is a pointer to one.
fn handle_of(parameter: &str) -> Option<usize> {
    let words: Vec<&str> = parameter
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .collect();
    let is_single = parameter.matches('*').count() == 1 && !parameter.contains('(');
    HANDLES.iter().position(|(name, ..)| is_single && words.contains(name))
}

/// Functions that return a code but accept NULL: no error is set, or NULL stands for a default.
const NO_CODE: [&str; 4] =
    ["rd_kafka_fatal_error", "rd_kafka_error_code", "rd_kafka_event_error", "rd_kafka_test_fatal_error"];

#[test]
fn every_function_accepts_null_stale_and_foreign_handles() {
    let folder = folder("sweep");
    let mut calls = String::new();
    let mut count = 0;
    for how in ["NULL", "GONE", "OTHER", "LIVE"] {
        for function in table::functions() {
            let (name, parameters) = (function.name(), function.parameters());
            let handles: Vec<usize> =
                parameters.iter().filter_map(|parameter| handle_of(parameter)).collect();
            if how != "NULL" && handles.is_empty()
                || parameters.iter().any(|parameter| parameter.contains("va_list"))
            {
                continue;
            }
            let arguments: Vec<String> = parameters
                .iter()
                .filter(|parameter| **parameter != "..." || name == "rd_kafka_producev")
                .map(|parameter| match handle_of(parameter) {
                    _ if *parameter == "..." && name == "rd_kafka_producev" => {
                        "RD_KAFKA_VTYPE_END".to_owned()
                    }
                    Some(kind) => format!("(void *)handle({how}, {kind})"),
                    // A pointer to a function is not a pointer to data in strict C, and zero is both.
                    None => "0".to_owned(),
                })
                .collect();
            let call = format!("{name}({})", arguments.join(", "));
            let is_its_first = parameters.first().is_some_and(|first| handle_of(first).is_some());
            let must_fail = how != "LIVE" && is_its_first && !NO_CODE.contains(&name);
            let checked = match function.return_type() {
                "rd_kafka_resp_err_t" if must_fail => format!("if (!{call}) fail();"),
                "rd_kafka_error_t *" if must_fail => format!("destroy_error({call});"),
                "rd_kafka_error_t *" => format!("rd_kafka_error_destroy({call});"),
                "void" => format!("{call};"),
                "rd_kafka_t *" if name == "rd_kafka_new" => format!("rd_kafka_destroy({call});"),
                "rd_kafka_share_t *" if name == "rd_kafka_share_consumer_new" => {
                    format!("destroy_share({call});")
                }
                _ => format!("(void){call};"),
            };
            calls.push_str(&format!("at = \"{name} {how}\"; begin(); {checked} end({how});\n"));
            count += 1;
        }
    }
    assert!(count > 1000, "{count} calls");
    let kinds = HANDLES.len();
    let [make, give_up]: [String; 2] = [1, 2].map(|which| {
        let line = |(kind, row): (usize, &(&str, &str, &str))| match which {
            1 => format!("case {kind}: return {};\n", row.1),
            _ => format!("case {kind}: {}(object); break;\n", row.2),
        };
        HANDLES.iter().enumerate().map(line).collect()
    });
    // A client of its own for each call; a handle that the call took is given up twice.
    let program_text = format!(
        "#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <librdkafka/rdkafka_ottla.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum {{ GONE, OTHER, LIVE }};
static const char *volatile at = \"\";
static int bad, made;
static rd_kafka_t *client;
static struct {{ int kind; void *object; }} alive[16];
static void crashed(int number) {{
(void)number;
if (write(2, at, strlen(at)) < 0 || write(2, \" crashed\\n\", 9) < 0) _exit(3);
_exit(2);
}}
static void fail(void) {{ fprintf(stderr, \"%s is not a success\\n\", at); bad++; }}
static void destroy_error(rd_kafka_error_t *error) {{ if (!error) fail(); rd_kafka_error_destroy(error); }}
static void *new_share(void) {{
rd_kafka_conf_t *conf = rd_kafka_conf_new();
rd_kafka_conf_set(conf, \"group.id\", \"g\", NULL, 0);
return rd_kafka_share_consumer_new(conf, NULL, 0);
}}
static void destroy_share(void *share) {{ rd_kafka_error_destroy(rd_kafka_share_destroy(share)); }}
static void *make(int kind) {{
switch (kind) {{
{make}}}
return NULL;
}}
static void give_up(int kind, void *object) {{
switch (kind) {{
{give_up}}}
}}
static void *handle(int how, int kind) {{
void *object = make(how == OTHER ? (kind + 3) % {kinds} : kind);
if (how == GONE) {{ give_up(kind, object); return object; }}
alive[made].kind = how == OTHER ? (kind + 3) % {kinds} : kind;
alive[made++].object = object;
return object;
}}
static void begin(void) {{ client = rd_kafka_new(RD_KAFKA_PRODUCER, NULL, NULL, 0); }}
static void end(int how) {{
(void)how;
while (made > 0) {{ made--; give_up(alive[made].kind, alive[made].object); }}
rd_kafka_destroy(client);
}}
int main(void) {{
signal(SIGSEGV, crashed);
signal(SIGBUS, crashed);
signal(SIGABRT, crashed);
signal(SIGALRM, crashed);
alarm(250);
{calls}
at = \"the end\";
if (rd_kafka_wait_destroyed(5000)) fail();
return bad != 0;
}}
"
    );
    let program_text =
        program_text.replace("(void *)handle(NULL, ", "(void *)(0 * ").replace("end(NULL)", "end(0)");
    let source = folder.join("sweep.c");
    fs::write(&source, program_text).unwrap();
    run(&mut with_library(
        &folder,
        program_with(&folder, &source, &["-Wno-deprecated-declarations", "-Wno-nonnull"]),
    ));
}

#[test]
fn a_host_loads_the_library_and_lets_go_of_it_again_and_again() {
    let (folder, cluster) = (folder("loading"), cluster(1));
    let program = folder.join("loading");
    run(Command::new(compiler())
        .args(["-std=gnu90", "-Wall", "-Wextra", "-pedantic", "-Werror", "-g", "-o"])
        .arg(&program)
        .arg(here("tests/loading.c"))
        .arg("-I")
        .arg(here("include"))
        .arg("-ldl"));
    run(with_library(&folder, program).arg(cluster.bootstrap_servers()));
}

#[test]
fn kcat_produces_consumes_lists_and_queries() {
    let (folder, cluster) = (folder("kcat"), cluster(1));
    let servers = cluster.bootstrap_servers();
    let kcat = || with_library(&folder, "kcat");
    let input = folder.join("input");
    fs::write(&input, "k1:one\nk2:two\n:three\n").unwrap();
    run(kcat().args(["-b", &servers, "-P", "-t", "kcat", "-K", ":", "-H", "a=b", "-l"]).arg(&input));
    let format = "%o %k %s %h %T\n";
    let out =
        text(kcat().args(["-b", &servers, "-C", "-t", "kcat", "-o", "beginning", "-e", "-q", "-f", format]));
    let lines: Vec<Vec<&str>> = out.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!(lines.len(), 3, "{out}");
    assert_eq!(lines[0][..4], ["0", "k1", "one", "a=b"], "{out}");
    assert_eq!(lines[1][..3], ["1", "k2", "two"], "{out}");
    assert!(lines[0][4].parse::<i64>().unwrap() > 1_600_000_000_000, "{out}");
    let list = text(kcat().args(["-b", &servers, "-L"]));
    assert!(list.contains("topic \"kcat\" with 1 partitions"), "{list}");
    let offset = text(kcat().args(["-b", &servers, "-Q", "-t", "kcat:0:-1"]));
    assert!(offset.contains("offset 3"), "{offset}");
    let member = || {
        let mut member = kcat();
        member.args([
            "-b",
            &servers,
            "-G",
            "g",
            "-e",
            "-q",
            "-X",
            "auto.offset.reset=earliest",
            "-f",
            "%s\n",
            "kcat",
        ]);
        member
    };
    assert_eq!(text(&mut member()), "one\ntwo\nthree\n");
    assert_eq!(text(&mut member()), "", "the first member has committed everything");
}
