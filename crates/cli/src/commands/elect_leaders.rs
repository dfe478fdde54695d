//! `ottla elect-leaders`: elects leaders of partitions, with the meaning of Kafka's kafka-leader-election.

use clap::Args;
use ottla::admin::{Election, ElectionType};

use super::admin_command::{Common, Partitions, connected, finish, named, partitions, resolve};
use super::table::Table;
use crate::client_options::{ClientOptions, call_timeout};
use crate::failure::{EXIT_CODES, Outcome};

/// Elect leaders of partitions: the preferred ones, or with --unclean any replica
#[derive(Args, Debug)]
#[command(after_help = format!("Examples:\n  \
    ottla elect-leaders -b localhost:9092 --all\n  \
    ottla elect-leaders -b localhost:9092 orders:0,1 invoices\n  \
    ottla elect-leaders -b localhost:9092 orders:3 --unclean --dry-run\n\n{EXIT_CODES}"))]
pub struct ElectLeadersOptions {
    #[command(flatten)]
    common: Common,

    /// Partitions, as TOPIC or TOPIC:PARTITION,...
    #[arg(value_name = "PARTITIONS", value_parser = partitions, required_unless_present = "all")]
    partitions: Vec<Partitions>,

    /// All partitions of the cluster
    #[arg(long, conflicts_with = "partitions")]
    all: bool,

    /// If no replica is in sync, make another one the leader. Records that it lacks are lost
    #[arg(long)]
    unclean: bool,

    /// Only print the partitions whose leader would change
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command; `outer` are the options before its name.
pub fn run(options: &ElectLeadersOptions, outer: &ClientOptions) -> Outcome {
    connected(&options.common, outer, |admin| {
        if options.dry_run {
            return options.preview(admin);
        }
        let election = if options.unclean { ElectionType::Unclean } else { ElectionType::Preferred };
        let partitions = resolve(admin, &options.partitions)?;
        let partitions = named(&partitions);
        let chosen = (!options.all).then_some(&partitions[..]);
        let mut table =
            Table::new(&[("TOPIC", "topic", 0), ("PARTITION", "partition", 0), ("STATUS", "status", 0)]);
        let mut failures = Vec::new();
        for (key, result) in admin.elect_leaders(election, chosen, call_timeout())? {
            let status = match result {
                Ok(Election::Elected) => "elected".to_owned(),
                Ok(Election::NotNeeded) => "not needed".to_owned(),
                Err(error) => {
                    failures.push(error.to_string());
                    error.to_string()
                }
            };
            table.add([(*key.topic).into(), key.partition.into(), status.into()]);
        }
        table.print(options.common.json)?;
        finish(failures)
    })
}

impl ElectLeadersOptions {
    /// Prints the partitions that have another leader than the preferred one, or with `--unclean` none.
    fn preview(&self, admin: &ottla::Admin) -> Outcome {
        let chosen = resolve(admin, &self.partitions)?;
        let mut topics: Vec<&str> = chosen.iter().map(|(topic, _)| topic.as_str()).collect();
        topics.dedup();
        let described = admin.metadata((!self.all).then_some(&topics[..]), call_timeout())?.topics;
        let mut items = Vec::new();
        for topic in described {
            for partition in &topic.partitions {
                let is_chosen = self.all || chosen.contains(&(topic.name.clone(), partition.id));
                let changes = match self.unclean {
                    true => partition.leader.is_none(),
                    false => partition.leader != partition.replicas.first().copied(),
                };
                if is_chosen && changes {
                    items.push(format!("{} [{}]", topic.name, partition.id));
                }
            }
        }
        self.common.preview("leader of", items, "elected")
    }
}
