//! The output: a line per step as soon as it has ended, on a terminal or in a pipe; or JSON at the end.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use ottla_sorted::SortedSet;
use serde_json::{Value, json};

use super::diagnosis::{Check, Problem, Sink, Step, Verdict};

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Colours and symbols.
    Terminal,
    /// Text only.
    Plain,
    Json,
}

impl Style {
    /// Returns the style for standard output.
    pub fn for_output(json: bool) -> Self {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        match () {
            () if json => Self::Json,
            () if io::stdout().is_terminal() && !is_dumb && !no_color => Self::Terminal,
            () => Self::Plain,
        }
    }
}

/// Prints checks as they end.
#[derive(Debug)]
pub struct Report<W> {
    out: W,
    style: Style,
    target: String,
    checks: Vec<Check>,
    /// The first error of writing.
    failure: Option<io::Error>,
}

/// The width of the names of steps.
const COLUMN: usize = 10;
/// Lines on a terminal are at most this long.
const WIDTH: usize = 110;
/// Shorter times are not printed.
const NOTABLE: Duration = Duration::from_millis(1);

impl<W: Write> Report<W> {
    pub fn new(out: W, style: Style) -> Self {
        Self { out, style, target: String::new(), checks: Vec::new(), failure: None }
    }

    /// Ends the output. Returns the problems for which the examination fails, each once.
    pub fn finish(mut self) -> io::Result<Vec<Problem>> {
        let problems = |failed: bool| -> SortedSet<Problem> {
            let verdicts = self.checks.iter().map(|check| check.finding.verdict);
            verdicts
                .filter_map(|verdict| match verdict {
                    Verdict::Failed(problem) if failed => Some(problem),
                    Verdict::Warning(problem) if !failed => Some(problem),
                    _ => None,
                })
                .collect()
        };
        let (failed, warned) = (problems(true), problems(false));
        let names =
            |problems: &SortedSet<Problem>| -> Vec<_> { problems.iter().map(|it| it.name()).collect() };
        match self.style {
            Style::Json => {
                let json = json!({
                    "ok": failed.is_empty(),
                    "problems": names(&failed),
                    "warnings": names(&warned),
                    "checks": self.checks.iter().map(as_json).collect::<Vec<_>>(),
                });
                self.write(&format!("{json:#}\n"));
            }
            Style::Terminal | Style::Plain => {
                let line = match (failed.len(), warned.len()) {
                    (0, 0) => "no problem found".to_owned(),
                    (0, _) => format!("no problem found; to consider: {}", names(&warned).join(", ")),
                    _ => format!("found: {}", names(&failed).join(", ")),
                };
                let line = match (self.style, failed.is_empty()) {
                    (Style::Terminal, true) => format!("\n\x1b[1;32m{line}\x1b[0m\n"),
                    (Style::Terminal, false) => format!("\n\x1b[1;31m{line}\x1b[0m\n"),
                    _ => format!("{line}\n"),
                };
                self.write(&line);
            }
        }
        match self.failure {
            Some(error) => Err(error),
            None => Ok(failed.into_iter().collect()),
        }
    }

    fn write(&mut self, text: &str) {
        let result = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        if let Err(error) = result {
            self.failure.get_or_insert(error);
        }
    }

    fn terminal_lines(check: &Check) -> String {
        let finding = &check.finding;
        let (symbol, color) = match finding.verdict {
            Verdict::Passed => ("✓", "32"),
            Verdict::Warning(_) => ("!", "33"),
            Verdict::Failed(_) => ("✗", "1;31"),
        };
        let took = match check.took >= NOTABLE {
            true => format!("  \x1b[2m{} ms\x1b[0m", check.took.as_millis()),
            false => String::new(),
        };
        let indent = " ".repeat(COLUMN + 4);
        let summary = wrapped(&finding.summary, WIDTH - indent.len()).join(&format!("\n{indent}"));
        let name = check.step.name();
        let mut text = format!("\r\x1b[2K  \x1b[{color}m{symbol}\x1b[0m {name:COLUMN$}{summary}{took}\n");
        for note in &finding.notes {
            for line in wrapped(note, WIDTH - indent.len()) {
                text.push_str(&format!("{indent}\x1b[2m{line}\x1b[0m\n"));
            }
        }
        for advice in &finding.advice {
            let lines = wrapped(advice, WIDTH - indent.len() - 2).join(&format!("\n{indent}  "));
            text.push_str(&format!("{indent}\x1b[36m→ {lines}\x1b[0m\n"));
        }
        text
    }

    fn plain_lines(check: &Check) -> String {
        let finding = &check.finding;
        let word = match finding.verdict {
            Verdict::Passed => "ok".to_owned(),
            Verdict::Warning(problem) => format!("warning {}", problem.name()),
            Verdict::Failed(problem) => format!("FAILED {}", problem.name()),
        };
        let mut text = format!("{}: {}: {word}: {}\n", check.target, check.step.name(), finding.summary);
        finding.notes.iter().for_each(|note| text.push_str(&format!("    {note}\n")));
        finding.advice.iter().for_each(|advice| text.push_str(&format!("    to do: {advice}\n")));
        text
    }
}

impl<W: Write> Sink for Report<W> {
    fn begin(&mut self, target: &str, step: Step) {
        if self.style != Style::Terminal {
            return;
        }
        let mut text = String::new();
        // Brokers, topics and groups have their own names.
        let heading = match step {
            Step::Broker | Step::Topic | Step::Group | Step::Metadata => "cluster",
            _ => target,
        };
        if self.target != heading {
            self.target = heading.to_owned();
            text = format!("\x1b[1m{heading}\x1b[0m\n");
        }
        text.push_str(&format!("  \x1b[2m… {}\x1b[0m", step.name()));
        self.write(&text);
    }

    fn end(&mut self, check: Check) {
        let text = match self.style {
            Style::Terminal => {
                let named = matches!(check.step, Step::Broker | Step::Topic | Step::Group);
                let mut shown = check.clone();
                if named {
                    let name = check.target.rsplit(' ').next().unwrap_or_default();
                    shown.finding.summary = format!("{name}: {}", check.finding.summary);
                }
                Some(Self::terminal_lines(&shown))
            }
            Style::Plain => Some(Self::plain_lines(&check)),
            Style::Json => None,
        };
        if let Some(text) = text {
            self.write(&text);
        }
        self.checks.push(check);
    }
}

fn as_json(check: &Check) -> Value {
    let finding = &check.finding;
    json!({
        "target": check.target,
        "step": check.step.name(),
        "outcome": match finding.verdict {
            Verdict::Passed => "ok",
            Verdict::Warning(_) => "warning",
            Verdict::Failed(_) => "failed",
        },
        "problem": finding.problem().map(Problem::name),
        "summary": finding.summary,
        "notes": finding.notes,
        "advice": finding.advice,
        "data": finding.data,
        "ms": (check.took.as_secs_f64() * 1e6).round() / 1e3,
    })
}

/// Breaks text into lines of at most `width` characters, between words.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        let used = line.chars().count();
        if used > 0 && used + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if used > 0 {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Finding;

    fn checks() -> Vec<Check> {
        let check =
            |step, finding| Check { target: "a:1".to_owned(), step, took: Duration::from_millis(7), finding };
        vec![
            check(Step::Dns, Finding::passed("127.0.0.1").with("addresses", 1)),
            check(
                Step::Tls,
                Finding::failed(Problem::WrongHost, "for another host").note("n").advise("connect by b"),
            ),
        ]
    }

    fn printed(style: Style) -> (String, Vec<Problem>) {
        let mut out = Vec::new();
        let mut report = Report::new(&mut out, style);
        for check in checks() {
            report.begin(&check.target, check.step);
            report.end(check);
        }
        let problems = report.finish().unwrap();
        (String::from_utf8(out).unwrap(), problems)
    }

    #[test]
    fn pipe_gets_plain_lines_that_name_target_and_step() {
        let (text, problems) = printed(Style::Plain);
        assert_eq!(
            text,
            "a:1: dns: ok: 127.0.0.1\na:1: tls: FAILED wrong_host: for another host\n    n\n    to do: connect by b\n\
             found: wrong_host\n"
        );
        assert_eq!(problems, [Problem::WrongHost]);
    }

    #[test]
    fn terminal_gets_a_heading_symbols_and_the_running_step() {
        let (text, _) = printed(Style::Terminal);
        assert!(text.starts_with("\x1b[1ma:1\x1b[0m\n  \x1b[2m… dns\x1b[0m\r\x1b[2K"), "{text:?}");
        assert!(text.contains("✓") && text.contains("✗") && text.contains("7 ms"), "{text:?}");
        assert_eq!(text.matches("a:1").count(), 1, "{text:?}");
    }

    #[test]
    fn json_has_all_checks() {
        let (text, _) = printed(Style::Json);
        let json: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["ok"], false);
        assert_eq!(json["checks"][1]["problem"], "wrong_host");
        assert_eq!(json["checks"][0]["data"]["addresses"], 1);
        assert_eq!(json["checks"][1]["advice"][0], "connect by b");
    }

    #[test]
    fn long_text_is_wrapped_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("toolongforthis x", 5), ["toolongforthis", "x"]);
        assert_eq!(wrapped("", 5), [""]);
    }
}
