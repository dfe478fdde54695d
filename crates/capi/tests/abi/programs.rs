//! The programs in `tests/c`, each a test with brokers of its own: most of their time they wait, so that many can run side
//! by side.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::Duration,
};

use ottla_embedded_broker::{Authorizer, ClusterOptions, EmbeddedCluster, Fault, FaultAction};
use ottla_protocol::api::ApiKey;

use super::{compiler, folder, here, program, run, with_library};

/// Defines a test for each program, and a list of them.
macro_rules! programs {
    ($($name:ident)*) => {
        const PROGRAMS: &[&str] = &[$(stringify!($name)),*];

        $(
            #[test]
            fn $name() {
                passes(stringify!($name));
            }
        )*
    };
}

programs! {
    acknowledged admin answers autocommit batches brokers callouts cancelled certificates closing conf consume damaged describe destroying details
    errors events fork group_admin group_member groups headers interceptors life logs memory misuse mock mock_share_groups
    odd_elements offset_file offsets older order ottla outage produce properties recreated refusals refused reported robust sasl
    security_admin seeking share sigpipe small_print sockets statistics stuck table telemetry tls topics
    transactional_producer
}

#[test]
fn every_program_of_the_folder_is_run() {
    let files = fs::read_dir(here("tests/c")).unwrap().map(|entry| entry.unwrap().path());
    let sources = files.filter(|path| path.extension().is_some_and(|extension| extension == "c"));
    let sources: BTreeSet<String> =
        sources.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(sources, PROGRAMS.iter().map(|name| (*name).to_owned()).collect());
}

/// The folder of the programs, with the plugin that `interceptors.c` loads from there.
fn programs_folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = folder("programs");
        run(Command::new(compiler())
            .args(["-std=gnu90", "-Wall", "-Wextra", "-pedantic", "-Werror", "-shared", "-fPIC", "-o"])
            .arg(folder.join("plugin.so"))
            .arg(here("tests/plugin.c"))
            .arg("-I")
            .arg(here("include"))
            .arg("-L")
            .arg(&folder)
            .arg("-lrdkafka"));
        folder
    })
}

fn passes(name: &str) {
    let authorizer = Some(Authorizer::default().super_user("User:ANONYMOUS"));
    let options = ClusterOptions { brokers: 1, partitions: 4, authorizer, ..ClusterOptions::default() };
    let cluster = EmbeddedCluster::start(options).unwrap();
    let folder = programs_folder();
    let program = program(folder, &here("tests/c").join(name).with_extension("c"));
    let mut command = with_library(folder, program);
    command.arg(cluster.bootstrap_servers());
    if name == "events" {
        let throttle = FaultAction::Throttle(Duration::from_millis(120));
        cluster.control(|control| control.inject(Fault::new(throttle).api(ApiKey::Produce).times(2)));
        command.arg("throttles");
    }
    run(&mut command);
}
