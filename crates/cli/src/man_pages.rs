//! The manual pages, for packages: one of the program, and one of each command.

use std::path::PathBuf;

use crate::failure::Outcome;

/// Write the manual pages into a folder, for packages
#[derive(clap::Args, Debug)]
pub struct ManPagesOptions {
    /// The folder, which exists
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Writes a page per command. Their titles are dated by nothing, so that they are the same on every day.
pub fn run(command: clap::Command, options: &ManPagesOptions) -> Outcome {
    clap_mangen::generate_to(command, &options.folder)?;
    Ok(())
}
