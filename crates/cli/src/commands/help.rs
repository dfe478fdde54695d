//! `ottla help`: the options of a command, or how to do a task.

use std::io::{self, Write};

use clap::{Args, Command};
use serde_json::json;

use crate::failure::{EXIT_CODES, Failure, Outcome};
use crate::help_text::HelpTexts;

/// The tasks with their commands. A page of the documentation is made from the same file.
const RECIPES: &str = include_str!("../recipes.txt");

/// Print how to do a task, such as `ottla help copy topic`, or the options of a command
#[derive(Args, Debug)]
#[command(after_help = format!("Examples:\n  \
    ottla help\n  \
    ottla help read last hour\n  \
    ottla help consume\n\n{EXIT_CODES}"))]
pub struct HelpOptions {
    /// Print the tasks as JSON
    #[arg(short = 'J', long)]
    json: bool,

    /// Words of the task, or the name of a command [default: all tasks]
    #[arg(value_name = "WORD")]
    words: Vec<String>,
}

/// A task and the commands that do it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Recipe {
    task: &'static str,
    commands: Vec<&'static str>,
}

fn recipes() -> impl Iterator<Item = Recipe> {
    RECIPES.trim().split("\n\n").map(|block| {
        let mut lines = block.lines();
        let task = lines.next().unwrap_or_default();
        Recipe { task, commands: lines.filter_map(|line| line.strip_prefix("$ ")).collect() }
    })
}

/// Returns the recipes that fit the words best: those with most of them, in the task or in the commands.
fn matching(words: &[String]) -> Vec<Recipe> {
    let score = |recipe: &Recipe| {
        let (task, commands) = (recipe.task.to_lowercase(), recipe.commands.join(" ").to_lowercase());
        let of = |word: &String| {
            let word = word.to_lowercase();
            let stem = word.strip_suffix('s').filter(|stem| stem.len() > 2).unwrap_or(&word);
            u32::from(task.contains(stem)) * 3 + u32::from(commands.contains(stem))
        };
        words.iter().map(of).sum::<u32>()
    };
    let best = recipes().map(|recipe| score(&recipe)).max().unwrap_or(0);
    recipes().filter(|recipe| best > 0 && score(recipe) == best || words.is_empty()).collect()
}

/// Runs the command; `root` is the definition of the command line.
pub fn run(options: &HelpOptions, root: Command) -> Outcome {
    let mut texts = HelpTexts::default();
    let mut root = texts.take(root);
    if let Some(command) = find(&mut root, &options.words) {
        write!(io::stdout(), "{}", texts.put(command.render_long_help().to_string(), true))?;
        return Ok(());
    }
    let found = matching(&options.words);
    let mut out = io::stdout().lock();
    if options.json {
        let recipes: Vec<_> =
            found.iter().map(|recipe| json!({"task": recipe.task, "commands": recipe.commands})).collect();
        writeln!(out, "{}", serde_json::Value::from(recipes))?;
        return Ok(());
    }
    if found.is_empty() {
        return Err(Failure::Usage(format!(
            "no task or command has the words \"{}\"; `ottla help` prints all tasks, `ottla --help` all commands",
            options.words.join(" ")
        )));
    }
    for recipe in &found {
        writeln!(out, "{}", recipe.task)?;
        recipe.commands.iter().try_for_each(|command| writeln!(out, "  {command}"))?;
        writeln!(out)?;
    }
    writeln!(out, "`ottla COMMAND --help` prints the options of a command.")?;
    Ok(())
}

/// Returns the command that all words name.
fn find<'c>(root: &'c mut Command, words: &[String]) -> Option<&'c mut Command> {
    if words.is_empty() {
        return None;
    }
    root.build();
    words.iter().try_fold(root, |command, word| command.find_subcommand_mut(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(words: &[&str]) -> Vec<&'static str> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        matching(&words).iter().map(|recipe| recipe.task).collect()
    }

    #[test]
    fn words_find_the_tasks_that_have_most_of_them() {
        assert_eq!(tasks(&["create", "topic"]), ["Create a topic"]);
        assert_eq!(tasks(&["hour"])[0], "Read the messages of the last hour");
        assert_eq!(tasks(&["csv"]), ["Write a topic into a CSV file for a spreadsheet"]);
        assert_eq!(tasks(&["xyzzy"]), Vec::<&str>::new());
        assert!(tasks(&[]).len() >= 30);
    }

    #[test]
    fn every_task_has_a_command_on_a_line_of_its_own() {
        for recipe in recipes() {
            assert!(!recipe.commands.is_empty(), "{}", recipe.task);
            assert!(recipe.task.len() <= 60 && !recipe.task.ends_with('.'), "{}", recipe.task);
        }
        let lines = RECIPES.trim().lines().filter(|line| !line.is_empty()).count();
        assert_eq!(lines, recipes().map(|recipe| 1 + recipe.commands.len()).sum::<usize>());
    }

    #[test]
    fn tasks_md_lists_the_recipes() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/tasks.md");
        let mut page = "# Everyday tasks\n\nOne command for each task; `ottla help WORDS` prints those that fit. Generated from \
                        `crates/cli/src/recipes.txt`, and each command runs in a\ntest on the embedded broker.\n"
            .to_owned();
        for recipe in recipes() {
            page.push_str(&format!("\n## {}\n\n```console\n", recipe.task));
            recipe.commands.iter().for_each(|command| page.push_str(&format!("$ {command}\n")));
            page.push_str("```\n");
        }
        if std::env::var_os("OTTLA_WRITE_DOCS").is_some() {
            std::fs::write(&path, &page).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(written == page, "docs/guide/tasks.md is stale: `cargo xtask docs` writes it");
    }
}
