//! `ottla transactions terminate`.

use std::io::{self, Write};

use clap::Args;
use ottla::Admin;

use crate::client_options::{ClientOptions, call_timeout};
use crate::commands::groups::finish;
use crate::failure::Outcome;

/// Abort the open transactions of transactional IDs, and fence their producers
#[derive(Args, Debug)]
pub struct TerminateOptions {
    #[command(flatten)]
    pub client: ClientOptions,

    /// The transactional IDs
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,

    /// Only print the producers that would be fenced
    #[arg(long)]
    dry_run: bool,
}

/// Runs `terminate`.
pub fn run(options: &TerminateOptions, admin: &Admin) -> Outcome {
    let mut ids: Vec<&str> = options.ids.iter().map(String::as_str).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut failures = Vec::new();
    let mut fail =
        |id: &str, error: &ottla::Error| failures.push(format!("transactional ID \"{id}\": {error}"));
    // A coordinator would create an ID that it does not know.
    let mut known = Vec::new();
    for (id, result) in admin.describe_transactions(&ids, call_timeout())? {
        match result {
            Ok(one) => known.push((id, one)),
            Err(error) => fail(&id, &error),
        }
    }
    let mut out = io::stdout().lock();
    if options.dry_run {
        for (id, one) in &known {
            let (producer, epoch, state) = (one.producer_id, one.producer_epoch, one.state.name());
            writeln!(
                out,
                "would fence producer {producer} with epoch {epoch} of \"{id}\", whose state is {state}"
            )?;
        }
    } else if !known.is_empty() {
        let ids: Vec<&str> = known.iter().map(|(id, _)| id.as_str()).collect();
        for (id, result) in admin.fence_producers(&ids, call_timeout())? {
            match result {
                Ok(one) => {
                    let (producer, epoch) = (one.producer_id, one.producer_epoch);
                    writeln!(
                        out,
                        "fenced the producer of \"{id}\" with producer ID {producer} and epoch {epoch}"
                    )?;
                }
                Err(error) => fail(&id, &error),
            }
        }
    }
    finish(failures)
}
