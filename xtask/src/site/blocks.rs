//! Code blocks that are parts of files: a page shows what the file's own tests run.
//!
//! A block that begins with ` ```c file=examples/c/producer.c ` has lines of this file, one after the other. A line `...` stands
//! for lines that the page leaves out.

use std::{fs, path::Path, process::Command};

use crate::{Result, shell};

/// Finds blocks whose lines the named file does not have.
pub fn check(root: &Path) -> Result<Vec<String>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard", "*.md"]).current_dir(root);
    let mut found = Vec::new();
    for page in shell::read(&mut git)?.lines() {
        let Ok(text) = fs::read_to_string(root.join(page)) else { continue };
        for (file, block) in blocks(&text) {
            let source = fs::read_to_string(root.join(file)).unwrap_or_default();
            if !is_part(&block, &source) {
                found.push(format!("{page}: a block has lines that {file} lacks"));
            }
        }
    }
    Ok(found)
}

/// Returns the files that blocks name, with the lines of the blocks.
fn blocks(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let file = line.strip_prefix("```").and_then(|info| info.split_once(" file=")).map(|(_, file)| file);
        if let Some(file) = file {
            found.push((file.trim(), lines.by_ref().take_while(|line| *line != "```").collect()));
        }
    }
    found
}

/// True if each run of lines between lines `...` stands in the source, in this order. Indentation does not count.
fn is_part(block: &[&str], source: &str) -> bool {
    let source: Vec<&str> = source.lines().map(str::trim).collect();
    let block: Vec<&str> = block.iter().map(|line| line.trim()).collect();
    let mut at = 0;
    for run in block.split(|line| *line == "...").filter(|run| !run.is_empty()) {
        match source[at..].windows(run.len()).position(|lines| lines == run) {
            Some(begin) => at += begin + run.len(),
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_runs_of_lines_of_their_file_in_order() {
        let text = "```c file=a.c\nb\n...\nd\n```\n```c\nx\n```\n";
        let found = blocks(text);
        assert_eq!(found, [("a.c", vec!["b", "...", "d"])]);
        assert!(is_part(&found[0].1, "a\n  b\nc\nd\n"));
        assert!(!is_part(&found[0].1, "d\nb\n"));
        assert!(!is_part(&["b", "d"], "b\nc\nd\n"));
    }
}
