//! `ottla quorum`: the controllers' quorum, with the meaning of Kafka's kafka-metadata-quorum, and unregistering brokers.

use clap::Args;
use ottla::admin::{QuorumReplica, Uuid, Voter, VoterListener};
use ottla::{Admin, AdminOptions, ClusterDescription, ErrorKind};

use super::admin_command::{Common, pair, subcommands};
use super::table::Table;
use crate::client_options::call_timeout;
use crate::failure::{EXIT_CODES, Failure, Outcome};

subcommands! {
    /// Describe the controllers' quorum, change its voters, and unregister brokers
    #[command(after_help = format!("Examples:\n  \
        ottla quorum -b localhost:9092 status\n  \
        ottla quorum -b localhost:9092 replication\n  \
        ottla quorum -b localhost:9092 brokers\n  \
        ottla quorum -b localhost:9092 remove-controller 3 --directory-id 8vKJ3sBpT1yMnOeVgZbE0w --dry-run\n  \
        ottla quorum -b localhost:9092 unregister-broker 4\n\n{EXIT_CODES}"))]
    QuorumOptions {
        Status(StatusOptions),
        Replication(ReplicationOptions),
        Brokers(BrokersOptions),
        AddController(AddControllerOptions),
        RemoveController(RemoveControllerOptions),
        UnregisterBroker(UnregisterBrokerOptions),
        UnregisterController(UnregisterControllerOptions),
    }
}

/// Print the leader, the voters and the observers
#[derive(Args, Debug)]
struct StatusOptions {
    #[command(flatten)]
    common: Common,
}

/// Joins the node IDs of replicas with commas.
fn ids(replicas: &[QuorumReplica]) -> String {
    replicas.iter().map(|one| one.id.to_string()).collect::<Vec<_>>().join(",")
}

impl StatusOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let cluster = admin.describe_cluster(call_timeout())?;
        let quorum = admin.describe_quorum(call_timeout())?;
        let followers = quorum.voters.iter().filter(|one| Some(one.id) != quorum.leader);
        let lag = followers.map(|one| quorum.high_watermark - one.log_end_offset).max().unwrap_or(0).max(0);
        let mut table = Table::new(&[
            ("CLUSTER", "cluster_id", 0),
            ("LEADER", "leader", 0),
            ("EPOCH", "leader_epoch", 0),
            ("HIGH-WATERMARK", "high_watermark", 0),
            ("MAX-FOLLOWER-LAG", "max_follower_lag", 0),
            ("VOTERS", "voters", 0),
            ("OBSERVERS", "observers", 0),
        ]);
        table.add([
            cluster.cluster_id.into(),
            quorum.leader.into(),
            quorum.leader_epoch.into(),
            quorum.high_watermark.into(),
            lag.into(),
            ids(&quorum.voters).into(),
            ids(&quorum.observers).into(),
        ]);
        table.print(self.common.json)
    }
}

/// Print the progress of each voter and observer
#[derive(Args, Debug)]
struct ReplicationOptions {
    #[command(flatten)]
    common: Common,
}

impl ReplicationOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let quorum = admin.describe_quorum(call_timeout())?;
        let mut table = Table::new(&[
            ("NODE", "node", 0),
            ("DIRECTORY", "directory_id", 0),
            ("END-OFFSET", "log_end_offset", 0),
            ("LAG", "lag", 0),
            ("LAST-FETCH", "last_fetch_timestamp", 0),
            ("LAST-CAUGHT-UP", "last_caught_up_timestamp", 0),
            ("STATUS", "status", 0),
        ]);
        let end =
            quorum.voters.iter().find(|one| Some(one.id) == quorum.leader).map(|one| one.log_end_offset);
        let mut add = |one: &QuorumReplica, status: &str| {
            table.add([
                one.id.into(),
                one.directory_id.map(|id| id.to_string()).into(),
                one.log_end_offset.into(),
                end.map(|end| (end - one.log_end_offset).max(0)).into(),
                one.last_fetch.into(),
                one.last_caught_up.into(),
                status.into(),
            ]);
        };
        for voter in &quorum.voters {
            add(voter, if Some(voter.id) == quorum.leader { "Leader" } else { "Follower" });
        }
        quorum.observers.iter().for_each(|one| add(one, "Observer"));
        table.print(self.common.json)
    }
}

/// Print the brokers; those that the controller has fenced are listed by brokers of Kafka 4.0 or later
#[derive(Args, Debug)]
struct BrokersOptions {
    #[command(flatten)]
    common: Common,
}

/// Describes the cluster, with its fenced brokers if the brokers can list them.
fn with_fenced(admin: &Admin) -> Outcome<ClusterDescription> {
    match admin.describe_cluster(AdminOptions::new(call_timeout()).include_fenced_brokers(true)) {
        Err(error) if error.kind() == ErrorKind::UnsupportedVersion => {
            Ok(admin.describe_cluster(call_timeout())?)
        }
        described => Ok(described?),
    }
}

const fn state(is_fenced: bool) -> &'static str {
    if is_fenced { "fenced" } else { "up" }
}

impl BrokersOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let mut cluster = with_fenced(admin)?;
        cluster.brokers.sort_by_key(|broker| broker.id);
        let mut table = Table::new(&[
            ("BROKER", "broker", 0),
            ("HOST", "host", 0),
            ("PORT", "port", 0),
            ("RACK", "rack", 0),
            ("STATE", "state", 0),
        ]);
        for broker in cluster.brokers {
            table.add([
                broker.id.into(),
                broker.host.into(),
                broker.port.into(),
                broker.rack.into(),
                state(broker.is_fenced).into(),
            ]);
        }
        table.print(self.common.json)
    }
}

/// The controller that a subcommand is about.
#[derive(Args, Debug)]
struct Controller {
    /// Node ID of the controller
    #[arg(value_name = "ID", value_parser = clap::value_parser!(i32).range(0..))]
    id: i32,

    /// ID of its metadata directory (directory.id in meta.properties)
    #[arg(long, value_name = "ID", value_parser = directory)]
    directory_id: Uuid,

    /// Only if the cluster has this ID
    #[arg(long, value_name = "ID")]
    cluster_id: Option<String>,

    /// Only check that the cluster has a quorum, and print what would be done
    #[arg(long)]
    dry_run: bool,
}

impl Controller {
    fn voter(&self) -> Voter {
        Voter { id: self.id, directory_id: self.directory_id }
    }

    /// Prints what would be done.
    fn preview(&self, admin: &Admin, common: &Common, done: &str) -> Outcome {
        let quorum = admin.describe_quorum(call_timeout())?;
        let is_voter = quorum.voters.iter().any(|one| one.id == self.id);
        let state = if is_voter { "votes" } else { "does not vote" };
        common.preview("controller", [format!("{} (it {state} now)", self.id)], done)
    }
}

fn directory(text: &str) -> Result<Uuid, String> {
    Uuid::parse(text)
        .ok_or_else(|| "an ID of a directory has 22 characters, such as 8vKJ3sBpT1yMnOeVgZbE0w".into())
}

/// Make a controller a voter
#[derive(Args, Debug)]
struct AddControllerOptions {
    #[command(flatten)]
    common: Common,

    #[command(flatten)]
    controller: Controller,

    /// A listener of the controller, such as CONTROLLER=host:9093; can be repeated
    #[arg(long, value_name = "NAME=HOST:PORT", required = true, value_parser = listener)]
    listener: Vec<VoterListener>,
}

fn listener(text: &str) -> Result<VoterListener, String> {
    let (name, address) = pair(text)?;
    let (host, port) = address.rsplit_once(':').ok_or("the port is missing; write NAME=HOST:PORT")?;
    let port = port.parse().map_err(|_| format!("\"{port}\" is not a port"))?;
    Ok(VoterListener::new(name, host.trim_matches(['[', ']']), port))
}

impl AddControllerOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let of = &self.controller;
        if of.dry_run {
            return of.preview(admin, &self.common, "added");
        }
        admin.add_raft_voter(of.cluster_id.as_deref(), of.voter(), &self.listener, call_timeout())?;
        self.common.report("controller", "added", [(of.id.to_string(), Ok(()))])
    }
}

/// Remove a controller from the voters
#[derive(Args, Debug)]
struct RemoveControllerOptions {
    #[command(flatten)]
    common: Common,

    #[command(flatten)]
    controller: Controller,
}

impl RemoveControllerOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let of = &self.controller;
        if of.dry_run {
            return of.preview(admin, &self.common, "removed");
        }
        admin.remove_raft_voter(of.cluster_id.as_deref(), of.voter(), call_timeout())?;
        self.common.report("controller", "removed", [(of.id.to_string(), Ok(()))])
    }
}

/// Remove a broker that is shut down for good from the cluster
#[derive(Args, Debug)]
struct UnregisterBrokerOptions {
    #[command(flatten)]
    common: Common,

    /// ID of the broker
    #[arg(value_name = "ID", value_parser = clap::value_parser!(i32).range(0..))]
    id: i32,

    /// Unregister the broker although it is up
    #[arg(long)]
    force: bool,

    /// Only print whether the broker is up
    #[arg(long)]
    dry_run: bool,
}

impl UnregisterBrokerOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let brokers = with_fenced(admin)?.brokers;
        let broker = brokers.iter().find(|broker| broker.id == self.id);
        let is_up = broker.is_some_and(|broker| !broker.is_fenced);
        if self.dry_run {
            let state = broker.map_or("down or unknown", |broker| state(broker.is_fenced));
            return self.common.preview("broker", [format!("{} (it is {state})", self.id)], "unregistered");
        }
        if is_up && !self.force {
            return Err(Failure::Failed(format!(
                "broker {} is up; shut it down first, or add --force",
                self.id
            )));
        }
        admin.unregister_broker(self.id, call_timeout())?;
        self.common.report("broker", "unregistered", [(self.id.to_string(), Ok(()))])
    }
}

/// Remove the registration of a controller that is shut down for good and is not a voter (Kafka 4.4)
#[derive(Args, Debug)]
struct UnregisterControllerOptions {
    #[command(flatten)]
    common: Common,

    /// ID of the controller
    #[arg(value_name = "ID", value_parser = clap::value_parser!(i32).range(0..))]
    id: i32,

    /// Only print the ID
    #[arg(long)]
    dry_run: bool,
}

impl UnregisterControllerOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        if self.dry_run {
            return self.common.preview("controller", [self.id.to_string()], "unregistered");
        }
        admin.unregister_controller(self.id, call_timeout())?;
        self.common.report("controller", "unregistered", [(self.id.to_string(), Ok(()))])
    }
}
