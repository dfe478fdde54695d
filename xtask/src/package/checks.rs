//! What was packaged, installed where users install it: fresh systems under `target/packages/roots`, made once by debootstrap.

use std::{
    collections::BTreeSet,
    fs,
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use super::{
    Artefact, Workshop,
    builds::{self, AARCH64, Platform, X86_64},
    native, trees,
};
use crate::{
    Result, archive as static_library,
    embedded::Embedded,
    install, kafka,
    shell::{self, Reaper, installed, read, root},
};

/// The releases of Debian that packages are installed into.
const DEBIANS: [(&str, &str); 3] = [("11", "bullseye"), ("12", "bookworm"), ("13", "trixie")];
/// The newest glibc that a file may need.
const GLIBC: (u32, u32) = (2, 28);
/// The time in which the image's broker answers.
const ANSWER: Duration = Duration::from_millis(100);
/// The greatest size of the image, in bytes.
const IMAGE: u64 = 15_000_000;

/// The result of a check that did not fail.
pub enum Outcome {
    /// What holds.
    Checked(Vec<String>),
    /// Why it could not be tried here.
    NotChecked(String),
}

/// Checks artefacts and prints a line for each thing that holds, fails, or can't be tried here; then how many artefacts passed,
/// failed, and were not checked. Returns true if all passed.
pub fn all(workshop: &Workshop, artefacts: &[&Artefact]) -> bool {
    let (mut passed, mut failed, mut not_checked) = (0, 0, 0);
    for Artefact { name, check, .. } in artefacts {
        match check(workshop) {
            Ok(Outcome::Checked(lines)) => {
                passed += 1;
                lines.iter().for_each(|it| println!("{name}: {it}"));
            }
            Ok(Outcome::NotChecked(reason)) => {
                not_checked += 1;
                println!("NOT CHECKED: {name}: {reason}");
            }
            Err(error) => {
                failed += 1;
                println!("FAILED: {name}: {error}");
            }
        }
    }
    println!("{passed} passed, {failed} failed, {not_checked} not checked");
    failed + not_checked == 0
}

fn require(holds: bool, otherwise: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(otherwise().into()) }
}

/// Unpacks an artefact into an empty folder.
pub fn unpacked(workshop: &Workshop, file: &str) -> Result<PathBuf> {
    let folder = workshop.empty(&format!("check-{file}"))?;
    read(Command::new("tar").arg("-xf").arg(workshop.folder.join(file)).arg("-C").arg(&folder))?;
    Ok(folder)
}

/// Checks the libraries of a tarball: the glibc that they need, and the names that they export.
fn libraries(workshop: &Workshop, platform: &Platform) -> Result<(PathBuf, Vec<String>)> {
    let name = format!("ottla-{}-{}", workshop.version, platform.name);
    let folder = unpacked(workshop, &format!("{name}.tar.gz"))?.join(&name);
    for file in ["lib/librdkafka.so.1", "lib/librdkafka++.so.1", "bin/ottla"] {
        let symbols = read(platform.tool("objdump").arg("-T").arg(folder.join(file)))?;
        let needed = builds::needed_glibc(&symbols);
        require(needed <= Some(GLIBC), || format!("{file} needs glibc {needed:?}"))?;
    }
    let exported = static_library::interface(&folder.join("lib/librdkafka.so.1"))?;
    let expected = functions(&fs::read_to_string(root().join("crates/capi/abi/functions.txt"))?);
    require(exported.iter().cloned().collect::<BTreeSet<_>>() == expected, || {
        format!("librdkafka.so.1 exports {} names, functions.txt has {}", exported.len(), expected.len())
    })?;
    let size = fs::metadata(folder.join("lib/librdkafka.a"))?.len();
    require(size < 25_000_000, || format!("librdkafka.a has {size} bytes"))?;
    let held = vec![
        format!("no file needs a newer glibc than {}.{}", GLIBC.0, GLIBC.1),
        format!("{} functions are exported, and no other name", exported.len()),
    ];
    Ok((folder, held))
}

/// Returns the names of the functions of the C library, from the prototypes of its table.
pub fn functions(table: &str) -> BTreeSet<String> {
    let prototypes = table.lines().filter(|line| line.starts_with("  ") && line.ends_with(';'));
    let names = prototypes.filter_map(|prototype| prototype.split('(').next()?.rsplit([' ', '*']).next());
    names.filter(|name| name.starts_with("rd_kafka")).map(str::to_owned).collect()
}

pub fn tarball(workshop: &Workshop) -> Result<Outcome> {
    let (folder, mut held) = libraries(workshop, &X86_64)?;
    let version = read(Command::new(folder.join("bin/ottla")).arg("--version"))?;
    held.push(format!("`ottla --version` prints {}", version.trim()));
    Ok(Outcome::Checked(held))
}

pub fn tarball_aarch64(workshop: &Workshop) -> Result<Outcome> {
    let (folder, mut held) = libraries(workshop, &AARCH64)?;
    install::debian("qemu-aarch64", "qemu-user")?;
    let mut program = Command::new("qemu-aarch64");
    program.args(["-L", "/usr/aarch64-linux-gnu"]).arg(folder.join("bin/ottla")).arg("--version");
    let version = read(&mut program)?;
    held.push(format!("`ottla --version` prints {} under qemu", version.trim()));
    Ok(Outcome::Checked(held))
}

/// Runs the program in a folder where nothing else is.
pub fn alone(workshop: &Workshop) -> Result<Outcome> {
    if !shell::is_root() {
        return Ok(Outcome::NotChecked("chroot is for root".into()));
    }
    let name = format!("ottla-{}-{}", workshop.version, builds::ALONE.name);
    let folder = unpacked(workshop, &format!("{name}.tar.gz"))?.join(&name);
    let version = read(Command::new("chroot").arg(&folder).args(["/bin/ottla", "--version"]))?;
    Ok(Outcome::Checked(vec![format!("{} starts in an empty folder", version.trim())]))
}

/// Installs the packages beside programs of the distribution, which then use the library.
pub fn deb(workshop: &Workshop) -> Result<Outcome> {
    if !shell::is_root() {
        return Ok(Outcome::NotChecked("debootstrap and chroot are for root".into()));
    }
    install::debian("debootstrap", "debootstrap")?;
    let broker = broker(workshop, "deb-program/usr/bin/ottla")?;
    let mut held = Vec::new();
    for (version, suite) in DEBIANS {
        held.push(format!("Debian {version}: {}", in_debian(workshop, suite, &broker.bootstrap)?));
    }
    Ok(Outcome::Checked(held))
}

/// Starts the program of a tree that a package was made of.
fn broker(workshop: &Workshop, program: &str) -> Result<Embedded> {
    Embedded::start(&workshop.folder.join("trees").join(program), &workshop.empty("brokers")?, &[])
}

/// Installs kcat with the original, replaces the library, produces and consumes, and goes back.
fn in_debian(workshop: &Workshop, suite: &str, servers: &str) -> Result<String> {
    let system = system(workshop, suite)?;
    for name in ["librdkafka1-ottla", "librdkafka-dev-ottla", "ottla"] {
        let file = native::file_name("deb", name, &workshop.version);
        fs::copy(workshop.folder.join(&file), system.join(&file))?;
    }
    let chroot = |script: &str| {
        let mut command = Command::new("chroot");
        command.arg(&system).args(["/bin/sh", "-ec", script]).env("DEBIAN_FRONTEND", "noninteractive");
        read(&mut command)
    };
    let install = "apt-get install -qy --no-install-recommends --allow-downgrades";
    chroot(&format!("{install} kcat librdkafka1 2>/dev/null || {install} kafkacat librdkafka1"))?;
    chroot(&format!("{install} rsyslog rsyslog-kafka python3-confluent-kafka"))?;
    let file = |name: &str| native::file_name("deb", name, &workshop.version);
    chroot(&format!("{install} ./{} ./{}", file("librdkafka1-ottla"), file("ottla")))?;
    let kcat = chroot("command -v kcat || command -v kafkacat")?.trim().to_owned();
    let topic = format!("by-{suite}");
    chroot(&format!("echo hello | {kcat} -P -b {servers} -t {topic}"))?;
    let read = chroot(&format!("{kcat} -C -b {servers} -t {topic} -e -q"))?;
    require(read.trim() == "hello", || format!("{kcat} read `{read}`"))?;
    let whose = chroot("dpkg -S \"$(readlink -f /usr/lib/x86_64-linux-gnu/librdkafka.so.1)\"")?;
    require(whose.starts_with("librdkafka1-ottla:"), || format!("librdkafka.so.1 belongs to {whose}"))?;
    let topic = format!("by-python-in-{suite}");
    trees::write(&system.join("try.py"), PYTHON)?;
    let version = chroot(&format!("python3 /try.py {servers} {topic}"))?;
    require(version.contains("ottla"), || format!("python3-confluent-kafka runs on {version}"))?;
    trees::write(
        &system.join("rsyslog.conf"),
        &RSYSLOG.replace("SERVERS", servers).replace("TOPIC", &topic),
    )?;
    chroot(SYSTEM_LOG)?;
    chroot("ottla --version && test -s /usr/share/man/man1/ottla.1.gz -o -s /usr/share/man/man1/ottla.1")?;
    // The way back.
    chroot(&format!("{install} librdkafka1"))?;
    let version = chroot(&format!("{kcat} -V 2>&1 | grep -o 'librdkafka [0-9.]*'"))?;
    chroot("dpkg -s librdkafka1-ottla > /dev/null 2>&1 && exit 1 || exit 0")?;
    Ok(format!(
        "kcat, rsyslog and python3-confluent-kafka run on the package, kcat again on {}",
        version.trim()
    ))
}

/// Produces and consumes as a member of a group, and prints the library's version.
const PYTHON: &str = r#"
import sys
from confluent_kafka import Consumer, Producer, libversion
servers, topic = sys.argv[1:]
producer = Producer({"bootstrap.servers": servers})
for number in range(100):
    producer.produce(topic, b"%d" % number)
assert producer.flush(30) == 0
consumer = Consumer({"bootstrap.servers": servers, "group.id": topic, "default.topic.config": {"auto.offset.reset": "earliest"}})
consumer.subscribe([topic])
found = set()
while len(found) < 100:
    message = consumer.poll(30)
    assert message is not None and message.error() is None, message
    found.add(message.value())
consumer.close()
print(libversion()[0])
"#;

/// Reads the topic that Python wrote as a member of a group, and writes a file.
const RSYSLOG: &str = r#"
module(load="imkafka")
global(workDirectory="/tmp")
template(name="raw" type="string" string="%rawmsg%\n")
input(type="imkafka" topic="TOPIC" broker="SERVERS" consumergroup="rsyslog-TOPIC" confParam=["auto.offset.reset=earliest"] ruleset="in")
ruleset(name="in") { action(type="omfile" file="/tmp/lines" template="raw") }
"#;

/// Runs rsyslog until it has written what is in the topic.
const SYSTEM_LOG: &str = "
rm -f /tmp/lines /tmp/rsyslog.pid
/usr/sbin/rsyslogd -n -f /rsyslog.conf -i /tmp/rsyslog.pid > /tmp/errors 2>&1 &
for _ in $(seq 300); do [ \"$(grep -c . /tmp/lines 2>/dev/null)\" != 100 ] || break; sleep 0.1; done
kill $!
test \"$(sort -u /tmp/lines | wc -l)\" = 100 || { cat /tmp/errors >&2; exit 1; }
";

/// Returns the root of a fresh system, made once.
fn system(workshop: &Workshop, suite: &str) -> Result<PathBuf> {
    let folder = workshop.folder.join("roots").join(suite);
    if folder.join("made").exists() {
        return Ok(folder);
    }
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    println!("debootstrap {suite}");
    read(Command::new("debootstrap").args(["--variant=minbase", suite]).arg(&folder))?;
    trees::write(&folder.join("made"), "")?;
    Ok(folder)
}

/// Installs the packages under a root of rpm's.
pub fn rpm(workshop: &Workshop) -> Result<Outcome> {
    install::debian("rpm", "rpm")?;
    let folder = workshop.empty("check-rpm")?;
    let files = ["librdkafka1-ottla", "librdkafka-devel-ottla", "ottla"]
        .map(|name| workshop.folder.join(native::file_name("rpm", name, &workshop.version)));
    let rpm = |arguments: &[&str]| {
        let mut command = Command::new("rpm");
        command.arg("--root").arg(&folder).args(arguments);
        command
    };
    read(&mut rpm(&["--initdb"]))?;
    // This root has neither glibc nor a shell for the script.
    read(rpm(&["--install", "--nodeps", "--noscripts"]).args(&files))?;
    let provided = read(&mut rpm(&["--query", "--provides", "librdkafka1-ottla"]))?;
    for wanted in ["librdkafka.so.1()(64bit)", "librdkafka = 2.16.0"] {
        require(provided.lines().any(|line| line == wanted), || {
            format!("{wanted} is not provided:\n{provided}")
        })?;
    }
    let version = read(Command::new(folder.join("usr/bin/ottla")).arg("--version"))?;
    read(&mut rpm(&["--verify", "--nodeps", "--noscripts", "librdkafka1-ottla"]))?;
    Ok(Outcome::Checked(vec![format!("installs; librdkafka.so.1 is provided; {} runs", version.trim())]))
}

pub fn apk(workshop: &Workshop) -> Result<Outcome> {
    let folder = unpacked(workshop, &native::file_name("apk", "ottla", &workshop.version))?;
    let version = read(Command::new(folder.join("usr/bin/ottla")).arg("--version"))?;
    let text = fs::read_to_string(folder.join(".PKGINFO"))?;
    require(text.contains("pkgname = ottla"), || format!(".PKGINFO has no name:\n{text}"))?;
    Ok(Outcome::Checked(vec![format!("{} runs; not installed by apk, which Debian lacks", version.trim())]))
}

/// Installs the wheel beside confluent-kafka, exchanges the library, and puts the original back.
pub fn wheel(workshop: &Workshop) -> Result<Outcome> {
    let folder = workshop.empty("check-wheel")?;
    let python = folder.join("bin/python");
    read(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let file = workshop.files()?.into_iter().find(|path| path.extension().is_some_and(|it| it == "whl"));
    let file = file.ok_or("the wheel is missing: build it first")?;
    let mut pip = Command::new(&python);
    read(pip.args(["-m", "pip", "install", "--quiet", "confluent-kafka"]).arg(file))?;
    let broker = broker(workshop, "wheel-library/bin/ottla")?;
    let mut trial = Command::new(&python);
    trial.arg(root().join("packaging/python/check.py")).arg(&broker.bootstrap);
    let lines = read(trial.current_dir(&folder))?;
    Ok(Outcome::Checked(lines.lines().map(str::to_owned).collect()))
}

/// Unpacks the image and runs its program where nothing else is.
pub fn image(workshop: &Workshop) -> Result<Outcome> {
    let file = workshop.folder.join(format!("ottla-{}-image.tar", workshop.version));
    let packed = fs::metadata(&file)?.len();
    require(packed < IMAGE, || format!("the image has {packed} bytes, more than {IMAGE}"))?;
    let layout = unpacked(workshop, &format!("ottla-{}-image.tar", workshop.version))?;
    let bundle = workshop.empty("check-image")?;
    fs::remove_dir(&bundle)?;
    let image = format!("{}:latest", layout.display());
    read(Command::new("umoci").args(["unpack", "--rootless", "--image", &image]).arg(&bundle))?;
    let settings = fs::read_to_string(bundle.join("config.json"))?;
    require(settings.contains("/usr/bin/ottla"), || "the image has no entry point".to_owned())?;
    if installed("skopeo") {
        read(Command::new("skopeo").args(["inspect", &format!("oci:{image}")]))?;
    }
    if !shell::is_root() {
        return Ok(Outcome::NotChecked("chroot is for root".into()));
    }
    let root = bundle.join("rootfs");
    let version = read(Command::new("chroot").arg(&root).args(["/usr/bin/ottla", "--version"]))?;
    let took = answers(&root)?;
    Ok(Outcome::Checked(vec![
        format!("{:.1} MB", packed as f64 / 1e6),
        format!("{} starts from the unpacked image", version.trim()),
        format!(
            "its broker answers after {} ms, `ottla doctor` finds it healthy, and SIGTERM ends it",
            took.as_millis()
        ),
    ]))
}

/// Starts the broker of an unpacked image as its configuration does, waits until it is reached, examines it with the image's own program,
/// and ends it. Returns the shortest time of some starts: the machine may be busy.
fn answers(image: &Path) -> Result<Duration> {
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let port = kafka::free_port()?;
        let program = |arguments: &[&str]| {
            let mut command = Command::new("chroot");
            command
                .arg(image)
                .arg("/usr/bin/ottla")
                .args(arguments)
                .env("OTTLA_ADVERTISED_HOST", "localhost");
            command
        };
        let began = Instant::now();
        let number = port.to_string();
        let arguments = [&super::image::COMMAND[..], &["--port", &number]].concat();
        let mut running = program(&arguments).stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        let reaper = Reaper::of_processes(&[running.id()])?;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            require(began.elapsed() < Duration::from_secs(30), || "the broker does not answer".to_owned())?;
            std::thread::sleep(Duration::from_millis(1));
        }
        best = best.min(began.elapsed());
        let said = read(&mut program(&["doctor", "-b", &format!("127.0.0.1:{port}")]))?;
        require(said.contains(&format!("localhost:{port}")), || {
            format!("OTTLA_ADVERTISED_HOST is not used: {said}")
        })?;
        read(Command::new("kill").args(["-TERM", &running.id().to_string()]))?;
        let ended = running.wait()?;
        require(ended.success(), || format!("SIGTERM: {ended}"))?;
        reaper.dismiss();
    }
    require(best < ANSWER, || format!("the broker answers after {} ms", best.as_millis()))?;
    Ok(best)
}

pub fn checksums(workshop: &Workshop) -> Result<Outcome> {
    let place: &Path = &workshop.folder;
    read(Command::new("sha256sum").args(["--check", "--quiet", "SHA256SUMS"]).current_dir(place))?;
    Ok(Outcome::Checked(vec!["all files have them".into()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_named_by_their_prototypes() {
        let table = "complete rdkafka.h\n  const char *rd_kafka_name(const rd_kafka_t *rk);\n  Returns (a name); of rk.\n";
        assert_eq!(functions(table).into_iter().collect::<Vec<_>>(), ["rd_kafka_name"]);
    }
}
