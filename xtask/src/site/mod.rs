//! `cargo xtask docs --site`: the documentation as a site in `target/site`, made by mdBook from the pages of the repository.
//!
//! ```text
//!   docs/SUMMARY.md ──► pages.rs: the pages, links to sources ──► target/site-source ──► mdbook ──► target/site
//!                                                                                                       │
//!                        links.rs: every link and anchor of the HTML leads somewhere  ◄─────────────────┘
//!   figures.rs: versions and sizes that the pages name, compared with the packages
//! ```
//!
//! Pages stay where a reader of the repository looks for them. A link to another page becomes a link inside the site, one to a
//! picture is copied with it, and one to a source leads to the repository. The site needs no server.

mod blocks;
mod figures;
mod links;
mod pages;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

pub use blocks::check as check_blocks;
pub use pages::check as check_pages;

use crate::{
    Result, install,
    shell::{self, root},
    test::target_folder,
};

/// What mdBook is told; the path of its style is relative to the book.
const BOOK: &str = r#"[book]
title = "Ottla"
description = "An Apache Kafka client: library, C library in place of librdkafka, command line, embedded broker"
language = "en"

[build]
create-missing = false

[output.html]
default-theme = "light"
preferred-dark-theme = "navy"
additional-css = ["site.css"]
git-repository-url = "REPOSITORY"
input-404 = ""
no-section-label = true

[output.html.fold]
enable = true
level = 1

[output.html.print]
enable = false

[output.html.playground]
runnable = false
"#;

/// Builds the site, and returns its folder. Fails if a link of a page leads nowhere.
pub fn build() -> Result<PathBuf> {
    let target = target_folder()?;
    let (source, site) = (target.join("site-source"), target.join("site"));
    for folder in [&source, &site] {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
    }
    let repository = repository()?;
    let count = pages::write(&root(), &source.join("src"), &repository)?;
    fs::write(source.join("book.toml"), BOOK.replace("REPOSITORY", &repository))?;
    fs::copy(root().join("packaging/site/site.css"), source.join("site.css"))?;

    let mut mdbook = Command::new(install::mdbook()?);
    mdbook.arg("build").arg("--dest-dir").arg(&site).arg(&source);
    let done = shell::run(&mut mdbook, Duration::from_secs(120), false)?;
    if !done.success || done.output.contains("WARN") {
        return Err(format!("{}\nmdbook: {}", done.output, done.ending).into());
    }
    let links = links::check(&site)?;
    println!("{}: {count} pages, {links} links lead somewhere", site.display());
    for line in figures::compare(&root(), &target.join("packages"))? {
        println!("{line}");
    }
    Ok(site)
}

/// Returns the address of the repository that the packages name.
fn repository() -> Result<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml"))?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("repository = \""));
    Ok(line.and_then(|line| line.strip_suffix('"')).ok_or("Cargo.toml names no repository")?.to_owned())
}

/// Returns a path of the repository with `/` between its parts, without `.` and `..`.
fn normal(path: &Path) -> String {
    let mut parts: Vec<String> = Vec::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                parts.pop();
            }
            std::path::Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            _ => {}
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_up_are_resolved() {
        assert_eq!(normal(Path::new("docs/start/../../bench/./cpu.svg")), "bench/cpu.svg");
    }
}
