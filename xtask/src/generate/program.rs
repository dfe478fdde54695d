//! A program as data, and its text: one step per line, below the name of its thread or callback.

use std::{collections::BTreeSet, fmt::Write as _};

use crate::Result;

/// A step: `[NAME[,NAME] =] WORD...`, of which the first word is a function or a step of the runner.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// The handles that it makes.
    pub names: Vec<String>,
    pub words: Vec<String>,
}

impl Step {
    /// Returns the function.
    pub fn function(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    fn text(&self) -> String {
        let names =
            if self.names.is_empty() { String::new() } else { format!("{} = ", self.names.join(",")) };
        names + &self.words.join(" ")
    }
}

/// The steps of the main thread, of another thread, or of a callback.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// Empty for the main thread, else `thread NAME` or `in NAME`.
    pub header: String,
    pub steps: Vec<Step>,
}

/// A program; the first block is the main thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    pub blocks: Vec<Block>,
}

impl Program {
    /// Formats the program for the runner, and for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for block in &self.blocks {
            if !block.header.is_empty() {
                let _ = writeln!(text, "{}", block.header);
            }
            for step in &block.steps {
                let _ = writeln!(text, "{}{}", if block.header.is_empty() { "" } else { "  " }, step.text());
            }
        }
        text
    }

    /// Reads the text of a program.
    ///
    /// # Errors
    ///
    /// A quote is not closed.
    pub fn parse(text: &str) -> Result<Self> {
        let mut program = Self { blocks: vec![Block::default()] };
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if line.starts_with("thread ") || line.starts_with("in ") {
                program.blocks.push(Block { header: line.to_owned(), steps: Vec::new() });
                continue;
            }
            let mut step = Step { names: Vec::new(), words: words(line)? };
            if step.words.get(1).is_some_and(|word| word == "=") {
                step.names = step.words[0].split(',').map(str::to_owned).collect();
                step.words.drain(..2);
            }
            if let Some(block) = program.blocks.last_mut() {
                block.steps.push(step);
            }
        }
        Ok(program)
    }

    /// Returns the number of steps.
    pub fn len(&self) -> usize {
        self.blocks.iter().map(|block| block.steps.len()).sum()
    }

    /// Returns the program without the steps `from..to`, counted through all blocks. A block without steps stays: a callback
    /// prints its arguments.
    pub fn without(&self, from: usize, to: usize) -> Self {
        let mut at = 0;
        let mut program = self.clone();
        for block in &mut program.blocks {
            block.steps.retain(|_| {
                at += 1;
                !(from..to).contains(&(at - 1))
            });
        }
        program
    }

    /// Returns the program without a step, counted through all blocks, and without all steps that use what it makes, directly or
    /// not.
    pub fn without_uses(&self, from: usize) -> Self {
        let (mut lost, mut at) = (BTreeSet::new(), 0);
        let mut program = self.clone();
        for block in &mut program.blocks {
            block.steps.retain(|step| {
                at += 1;
                let is_lost =
                    |word: &String| word.trim_matches(['[', ']']).split(',').any(|part| lost.contains(part));
                let is_gone = at - 1 == from || step.words.iter().skip(1).any(is_lost);
                if is_gone {
                    lost.extend(step.names.iter().filter(|name| *name != "_").cloned());
                }
                !is_gone
            });
        }
        program
    }
}

/// Divides a line at the blanks outside of quotes.
fn words(line: &str) -> Result<Vec<String>> {
    let (mut words, mut word, mut is_quoted, mut is_escaped) = (Vec::new(), String::new(), false, false);
    for letter in line.chars() {
        if letter == ' ' && !is_quoted {
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            continue;
        }
        is_quoted ^= letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped && is_quoted;
        word.push(letter);
    }
    if is_quoted {
        return Err(format!("`{line}`: a quote is not closed").into());
    }
    words.extend((!word.is_empty()).then_some(word));
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "c1 = rd_kafka_conf_new\n_,l1 = f c1 \"a \\\" b\" NULL\nin dr\n  rd_kafka_poll k1 0\n";

    #[test]
    fn program_is_read_and_written_the_same() {
        let program = Program::parse(TEXT).unwrap();
        assert_eq!(program.text(), TEXT);
        assert_eq!(program.blocks[0].steps[1].words, ["f", "c1", "\"a \\\" b\"", "NULL"]);
        assert!(Program::parse("f \"a").is_err());
    }

    #[test]
    fn step_is_removed_with_all_that_uses_what_it_makes() {
        let program =
            Program::parse("c = new\nk = make c 1\nl = list\nuse [k,l] 2\nin dr\n  poll k\n").unwrap();
        assert_eq!(program.without_uses(0).text(), "l = list\nin dr\n");
        assert_eq!(program.without_uses(3).text(), program.without(3, 4).text());
    }

    #[test]
    fn steps_are_removed_across_blocks() {
        let program = Program::parse(TEXT).unwrap().without(1, 3);
        assert_eq!(program.text(), "c1 = rd_kafka_conf_new\nin dr\n");
    }
}
