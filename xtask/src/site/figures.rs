//! Versions and sizes that README and the site name, compared with the packages.
//!
//! A file name with a version, such as `ottla_0.1.0_amd64.deb`, has the version of the workspace. A size that a page states, as
//! `` `NAME` (4.1 MB) ``, is that of the file in `target/packages`, up to a tenth; files that were not built are not checked.

use std::{fs, path::Path, process::Command};

use crate::{Result, shell};

/// The relative difference of a size that passes: packages change a little with every commit.
const TOLERANCE: f64 = 0.1;

/// Returns a line per comparison that was made or could not be. Error: what differs.
pub fn compare(root: &Path, packages: &Path) -> Result<Vec<String>> {
    let (mut lines, mut wrong) = (Vec::new(), versions(root)?);
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard", "README.md", "docs"])
        .current_dir(root);
    for page in shell::read(&mut git)?.lines().filter(|page| page.ends_with(".md")) {
        for (name, stated) in sizes(&fs::read_to_string(root.join(page))?) {
            let Ok(file) = fs::metadata(packages.join(&name)) else {
                lines.push(format!("not checked: {page} states {stated} MB for {name}, which was not built"));
                continue;
            };
            let measured = file.len() as f64 / 1e6;
            if (measured - stated).abs() > stated * TOLERANCE {
                wrong.push(format!("{page}: {name} has {measured:.1} MB instead of {stated}"));
            } else {
                lines.push(format!("{name}: {measured:.1} MB, as {page} states"));
            }
        }
    }
    if wrong.is_empty() { Ok(lines) } else { Err(wrong.join("\n").into()) }
}

/// Finds names of packages with another version than the workspace's.
pub fn versions(root: &Path) -> Result<Vec<String>> {
    let version = env!("CARGO_PKG_VERSION");
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard", "README.md", "docs"])
        .current_dir(root);
    let mut found = Vec::new();
    for page in shell::read(&mut git)?.lines().filter(|page| page.ends_with(".md")) {
        let text = fs::read_to_string(root.join(page))?;
        let names = ["ottla_", "ottla-", "ottla:", "ottla = \""];
        for (name, at) in
            names.iter().flat_map(|name| text.match_indices(name).map(move |(at, _)| (name, at)))
        {
            let behind = &text[at + name.len()..];
            let end = behind.find(|it: char| !it.is_ascii_digit() && it != '.').unwrap_or(behind.len());
            let stated = behind[..end].trim_end_matches('.');
            if stated.matches('.').count() == 2 && stated != version {
                found.push(format!("{page}: {name}{stated}, but the version is {version}"));
            }
        }
    }
    Ok(found)
}

/// Returns the files whose sizes a page states, in megabytes.
fn sizes(text: &str) -> Vec<(String, f64)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("` (") {
        let name = text[..at].rsplit('`').next().unwrap_or_default();
        let size = text[at + 3..].split_once(" MB)").and_then(|(size, _)| size.parse().ok());
        if let Some(size) = size {
            found.push((name.replace("VERSION", env!("CARGO_PKG_VERSION")), size));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_stand_behind_the_names_of_files() {
        let found = sizes("| `ottla-VERSION-x.tar` (12.5 MB) | `other` (not measured) |");
        assert_eq!(found, [(format!("ottla-{}-x.tar", env!("CARGO_PKG_VERSION")), 12.5)]);
    }

    #[test]
    fn pages_name_the_version_of_the_workspace() {
        assert_eq!(versions(&shell::root()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_size_that_is_not_the_file_s_is_refused() {
        let folder = std::env::temp_dir().join(format!("ottla-figures-{}", std::process::id()));
        fs::create_dir_all(folder.join("docs")).unwrap();
        let git = |arguments: &[&str]| {
            assert!(Command::new("git").args(arguments).current_dir(&folder).status().unwrap().success())
        };
        git(&["init", "--quiet"]);
        fs::write(folder.join("file"), vec![0; 2_000_000]).unwrap();
        let state = |size: &str| {
            fs::write(folder.join("docs/a.md"), format!("`file` ({size} MB) `gone` (1 MB)")).unwrap()
        };
        state("2.1");
        let right = compare(&folder, &folder).unwrap();
        state("3");
        let wrong = compare(&folder, &folder).unwrap_err().to_string();
        fs::remove_dir_all(&folder).unwrap();
        assert!(
            right[0].starts_with("file: 2.0 MB") && right[1].starts_with("not checked: docs/a.md"),
            "{right:?}"
        );
        assert_eq!(wrong, "docs/a.md: file has 2.0 MB instead of 3");
    }
}
