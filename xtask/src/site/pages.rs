//! The pages of the site: those that `docs/SUMMARY.md` lists, with links that hold there.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use super::normal;
use crate::Result;

/// The table of contents, in which paths are relative to its folder.
const SUMMARY: &str = "docs/SUMMARY.md";

/// The page that opens the site. mdBook calls the file of the first page `index.html` if it is `index.md`.
const FIRST: (&str, &str) = ("README.md", "index.md");

/// Files beside pages that are copied when a page links to them.
const ATTACHED: [&str; 4] = ["svg", "png", "json", "yml"];

/// Finds pages in `docs` that the table of contents does not list, and entries that have no file.
pub fn check(root: &Path) -> Result<Vec<String>> {
    let listed = listed(root)?;
    let mut found = Vec::new();
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder)?.flatten().map(|entry| entry.path()) {
            let name = normal(path.strip_prefix(root)?);
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".md") && name != SUMMARY && !listed.contains(&name) {
                found.push(format!("{SUMMARY} does not list {name}"));
            }
        }
    }
    found.extend(
        listed
            .iter()
            .filter(|name| !root.join(name).is_file())
            .map(|name| format!("{SUMMARY}: there is no {name}")),
    );
    Ok(found)
}

/// Writes the pages and what they show into a folder; returns how many there are.
pub fn write(root: &Path, into: &Path, repository: &str) -> Result<usize> {
    let listed = listed(root)?;
    let mut attached = BTreeSet::new();
    for page in &listed {
        let text = fs::read_to_string(root.join(page)).map_err(|error| format!("{page}: {error}"))?;
        let mut site = Site { root, page, listed: &listed, repository, attached: &mut attached };
        put(&into.join(renamed(page)), &site.rewritten(&text))?;
    }
    let summary = fs::read_to_string(root.join(SUMMARY))?;
    let mut site = Site { root, page: SUMMARY, listed: &listed, repository, attached: &mut attached };
    put(&into.join("SUMMARY.md"), &with_targets(&summary, |target| Some(site.page_from_top(target))))?;
    for file in &attached {
        let to = into.join(file);
        fs::create_dir_all(to.parent().ok_or("no folder")?)?;
        fs::copy(root.join(file), to)?;
    }
    Ok(listed.len())
}

fn put(path: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(path.parent().ok_or("no folder")?)?;
    Ok(fs::write(path, text)?)
}

/// Returns the paths of the pages that the table of contents lists.
fn listed(root: &Path) -> Result<BTreeSet<String>> {
    let summary = fs::read_to_string(root.join(SUMMARY)).map_err(|error| format!("{SUMMARY}: {error}"))?;
    let mut listed = BTreeSet::new();
    with_targets(&summary, |target| {
        listed.insert(normal(&Path::new(SUMMARY).with_file_name("").join(target)));
        None
    });
    Ok(listed)
}

fn renamed(page: &str) -> &str {
    if page == FIRST.0 { FIRST.1 } else { page }
}

/// A page on its way into the site.
struct Site<'a> {
    root: &'a Path,
    page: &'a str,
    listed: &'a BTreeSet<String>,
    repository: &'a str,
    attached: &'a mut BTreeSet<String>,
}

impl Site<'_> {
    /// Returns the text with links that hold in the site. A block that is a part of a file gets a line about it, and begins at the left.
    fn rewritten(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + text.len() / 8);
        let mut is_code = false;
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some((fence, file)) =
                line.split_once(" file=").filter(|(fence, _)| fence.starts_with("```"))
            {
                out += &format!("From [{file}]({}/blob/main/{file}):\n\n{fence}\n", self.repository);
                let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
                out += &without_margin(&block);
                out += "```\n";
                continue;
            }
            is_code ^= line.trim_start().starts_with("```");
            match is_code {
                true => out += line,
                false => out += &with_targets(line, |target| self.target(target)),
            }
            out.push('\n');
        }
        out
    }

    /// Returns what a link of the page becomes, or `None` if it stays.
    fn target(&mut self, target: &str) -> Option<String> {
        let (file, anchor) = target.split_once('#').map_or((target, None), |(file, at)| (file, Some(at)));
        if file.is_empty() || file.contains("://") || file.starts_with("mailto:") {
            return None;
        }
        let path = normal(&Path::new(self.page).with_file_name("").join(file));
        let anchor = anchor.map(|anchor| format!("#{anchor}")).unwrap_or_default();
        if self.listed.contains(&path) {
            if path != FIRST.0 {
                return None;
            }
            let up = "../".repeat(self.page.matches('/').count());
            return Some(format!("{up}{}{anchor}", FIRST.1));
        }
        let ending = Path::new(&path).extension().unwrap_or_default().to_string_lossy().into_owned();
        if ATTACHED.contains(&ending.as_str()) {
            self.attached.insert(path);
            return None;
        }
        let kind = if self.root.join(&path).is_dir() { "tree" } else { "blob" };
        Some(format!("{}/{kind}/main/{path}{anchor}", self.repository))
    }

    fn page_from_top(&mut self, target: &str) -> String {
        renamed(&normal(&PathBuf::from(self.page).with_file_name("").join(target))).to_owned()
    }
}

/// Returns the lines without the indentation that all have in common, except lines `...`, which stand for others.
fn without_margin(block: &[&str]) -> String {
    let is_counted = |line: &&&str| !line.trim().is_empty() && **line != "...";
    let indentation = |line: &&str| line.len() - line.trim_start().len();
    let margin = block.iter().filter(is_counted).map(indentation).min().unwrap_or(0);
    let cut = |line: &&str| {
        if *line == "..." { "..." } else { line.get(margin..).unwrap_or_default() }.to_owned() + "\n"
    };
    block.iter().map(cut).collect()
}

/// Replaces the targets of the links in a text, except inside of backticks, by what the function returns.
fn with_targets(text: &str, mut replace: impl FnMut(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("](") {
        let (before, after) = rest.split_at(at + 2);
        out += before;
        let Some((target, behind)) = after.split_once(')') else { return out + after };
        // An odd number of backticks in the line so far: the brackets are code.
        let line = out.rsplit('\n').next().unwrap_or_default();
        let is_code = line.matches('`').count() % 2 == 1;
        match if is_code { None } else { replace(target) } {
            Some(new) => out += &new,
            None => out += target,
        }
        out.push(')');
        rest = behind;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site<'a>(page: &'a str, listed: &'a BTreeSet<String>, attached: &'a mut BTreeSet<String>) -> Site<'a> {
        Site { root: Path::new("/nowhere"), page, listed, repository: "https://r", attached }
    }

    #[test]
    fn links_to_pages_stay_and_others_lead_to_the_repository() {
        let listed = BTreeSet::from(["README.md".to_owned(), "docs/a.md".to_owned()]);
        let mut attached = BTreeSet::new();
        let text = "[a](../a.md#x) [s](../../crates/s.rs) [p](../p.svg) [r](../../README.md) `[c](d.rs)` [w](https://w)";
        let new = site("docs/start/b.md", &listed, &mut attached).rewritten(text);
        let expected = "[a](../a.md#x) [s](https://r/blob/main/crates/s.rs) [p](../p.svg) [r](../../index.md) `[c](d.rs)` [w](https://w)\n";
        assert_eq!(new, expected);
        assert_eq!(attached, BTreeSet::from(["docs/p.svg".to_owned()]));
    }

    #[test]
    fn code_blocks_lose_the_names_of_their_files_and_their_margin() {
        let (listed, mut attached) = (BTreeSet::new(), BTreeSet::new());
        let new = site("docs/b.md", &listed, &mut attached)
            .rewritten("```c file=x.c\n  [a](b.md)\n...\n    c\n```\nd\n");
        assert_eq!(new, "From [x.c](https://r/blob/main/x.c):\n\n```c\n[a](b.md)\n...\n  c\n```\nd\n");
    }
}
