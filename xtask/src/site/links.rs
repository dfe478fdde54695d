//! Links of the finished site: each leads to a file that is there, and to an anchor that the file has.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use super::normal;
use crate::Result;

/// Returns the number of links that were followed. Error: those that lead nowhere.
pub fn check(site: &Path) -> Result<usize> {
    let mut pages = BTreeMap::new();
    let mut folders = vec![site.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder)?.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "html") {
                let text = fs::read_to_string(&path)?;
                pages.insert(normal(path.strip_prefix(site)?), text);
            }
        }
    }
    let (count, broken) = broken(&pages, |path| site.join(path).exists());
    if broken.is_empty() {
        return Ok(count);
    }
    Err(format!("{} links lead nowhere:\n  {}", broken.len(), broken.join("\n  ")).into())
}

/// Returns the number of links of the pages inside the site, and those that lead nowhere.
fn broken(pages: &BTreeMap<String, String>, exists: impl Fn(&str) -> bool) -> (usize, Vec<String>) {
    let anchors: BTreeMap<&str, BTreeSet<&str>> =
        pages.iter().map(|(name, text)| (name.as_str(), values(text, " id=\"").collect())).collect();
    let mut count = 0;
    let mut broken = Vec::new();
    for (page, text) in pages {
        for target in values(text, " href=\"").chain(values(text, " src=\"")) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            if file.contains(':') || target.is_empty() {
                continue;
            }
            count += 1;
            let path = if file.is_empty() {
                page.clone()
            } else {
                normal(&PathBuf::from(page).with_file_name("").join(file))
            };
            let is_there = exists(&path)
                && (anchor.is_empty()
                    || anchors.get(path.as_str()).is_none_or(|anchors| anchors.contains(anchor)));
            if !is_there {
                broken.push(format!("{page}: {target}"));
            }
        }
    }
    (count, broken)
}

/// Returns the values of an attribute, which stand in double quotes.
fn values<'a>(text: &'a str, attribute: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(attribute).skip(1).filter_map(|rest| rest.split_once('"')).map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_files_and_anchors_are_found() {
        let page = "<a href=\"b/c.html#x\"></a><a href=\"b/c.html#y\"></a><a href=\"https://d\"></a><img src=\"e.svg\">";
        let pages = BTreeMap::from([
            ("a.html".to_owned(), page.to_owned()),
            (
                "b/c.html".to_owned(),
                "<h1 id=\"x\"></h1><a href=\"../a.html\"></a><a href=\"#z\"></a>".to_owned(),
            ),
        ]);
        let (count, broken) = broken(&pages, |path| pages.contains_key(path));
        assert_eq!(count, 5);
        assert_eq!(broken, ["a.html: b/c.html#y", "a.html: e.svg", "b/c.html: #z"]);
    }
}
