//! `ottla report`: compares the reports of performance tests.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use clap::Args;

use crate::failure::{EXIT_CODES, Outcome};
use crate::report::options::read_all;
use crate::report::run::{Run, to_json};
use crate::report::{Output, cells, headings, page};

/// Compare reports of performance tests, as a table or one page
///
/// The files are those that producer-perf-test and consumer-perf-test wrote with --report, or this command with --output.
#[derive(Args, Debug)]
#[command(after_help = format!("Examples:\n  \
    ottla producer-perf-test --topic demo --num-records 5000000 --record-size 100 --report before.html\n  \
    ottla report before.html after.html                        # a table\n  \
    ottla report before.html after.html --output both.html     # one page with the charts of both\n\n{EXIT_CODES}"))]
pub struct ReportCommandOptions {
    /// Reports
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Write a page with all runs to this file
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print the runs as JSON
    #[arg(short = 'J', long)]
    json: bool,
}

/// Runs the command.
pub fn run(options: &ReportCommandOptions) -> Outcome {
    let runs = read_all(&options.files)?;
    let output = options.output.as_deref().map(Output::open).transpose()?;
    if options.json {
        writeln!(io::stdout(), "{}", to_json(&runs))?;
    } else {
        io::stdout().write_all(table(&runs).as_bytes())?;
    }
    match output {
        Some(output) => output.write(&page(&runs)),
        None => Ok(()),
    }
}

/// One column per run: there are more figures than runs.
fn table(runs: &[Run]) -> String {
    let is_terminal = io::stdout().is_terminal();
    let shown = |name: &str| if is_terminal { crate::top::figures::clean(name) } else { name.to_owned() };
    let mut columns: Vec<Vec<String>> =
        vec![headings().iter().map(|heading| (*heading).to_owned()).collect()];
    columns.extend(runs.iter().map(|run| std::iter::once(shown(&run.name)).chain(cells(run)).collect()));
    let width = |column: &Vec<String>| column.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = columns.iter().map(width).collect();
    let mut text = String::new();
    for row in 0..headings().len() {
        let cells = columns.iter().zip(&widths).enumerate().map(|(index, (column, width))| match index {
            0 => format!("{:<width$}", column[row]),
            _ => format!("{:>width$}", column[row]),
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::run::Totals;

    #[test]
    fn runs_stand_beside_each_other() {
        let totals = |records| Totals { records, seconds: 2.0, p99: Some(1.25), ..Totals::default() };
        let run = |name: &str, records| Run { name: name.into(), totals: totals(records), ..Run::default() };
        let text = table(&[run("before", 1000), run("after", 1500)]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "run        before  after");
        assert_eq!(lines[4], "records/s     500    750");
        assert_eq!(lines[8], "p99 ms        1.2    1.2");
    }
}
