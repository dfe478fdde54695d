//! Import cycles between modules.
//!
//! A module is a file. An import is a `use` of a path that begins with `crate`, `super` or `self`; it points to the file of
//! the longest prefix of the path that is a module. Unit tests don't count.

use std::collections::{BTreeMap, BTreeSet};

use super::{Found, Source};

/// Finds the largest set of modules under `folder` that all reach each other.
pub fn largest(sources: &[Source], folder: &str) -> Found {
    let modules: BTreeMap<Vec<String>, &Source> = sources
        .iter()
        .filter(|source| source.path.starts_with(folder) && !source.is_test())
        .map(|source| (module_path(&source.path[folder.len()..]), source))
        .collect();
    let graph: BTreeMap<&Vec<String>, BTreeSet<Vec<String>>> = modules
        .iter()
        .map(|(module, source)| {
            let imported = imports(source, module).into_iter().filter_map(|path| resolve(path, &modules));
            (module, imported.filter(|path| path != module).collect())
        })
        .collect();
    let reached: BTreeMap<&Vec<String>, _> =
        graph.keys().map(|module| (*module, reachable(&graph, module))).collect();
    let mut largest: Vec<String> = Vec::new();
    for (start, from_start) in &reached {
        let back = |other: &&&Vec<String>| reached.get(**other).is_some_and(|it| it.contains(start));
        let circle: Vec<String> = from_start.iter().filter(back).map(|module| module.join("::")).collect();
        if circle.len() > largest.len() {
            largest = circle;
        }
    }
    Found::count(largest)
}

/// Returns the modules that can be reached from a module.
fn reachable<'a>(
    graph: &'a BTreeMap<&Vec<String>, BTreeSet<Vec<String>>>,
    start: &'a Vec<String>,
) -> BTreeSet<&'a Vec<String>> {
    let mut seen = BTreeSet::new();
    let mut next = vec![start];
    while let Some(module) = next.pop() {
        next.extend(graph.get(module).into_iter().flatten().filter(|imported| seen.insert(*imported)));
    }
    seen
}

/// `cluster/mod.rs` is `[cluster]`, `lib.rs` is `[]`.
pub(super) fn module_path(file: &str) -> Vec<String> {
    let stem = file.trim_end_matches(".rs");
    let mut path: Vec<String> = stem.split('/').map(str::to_owned).collect();
    if path.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        path.pop();
    }
    path
}

/// Returns the longest prefix that is a module.
fn resolve(mut path: Vec<String>, modules: &BTreeMap<Vec<String>, &Source>) -> Option<Vec<String>> {
    while !path.is_empty() {
        if modules.contains_key(&path) {
            return Some(path);
        }
        path.pop();
    }
    None
}

/// Returns the absolute paths that a source imports.
pub(super) fn imports(source: &Source, module: &[String]) -> Vec<Vec<String>> {
    let code: String = source
        .production()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n");
    let mut found = Vec::new();
    for statement in code.split("use ").skip(1).filter_map(|rest| rest.split_once(';')) {
        let statement: String = statement.0.split_whitespace().collect();
        for path in expand(&statement) {
            let mut words = path.split("::").map(str::to_owned);
            let mut absolute = match words.next().as_deref() {
                Some("crate") => Vec::new(),
                Some("self") => module.to_vec(),
                Some("super") => module[..module.len().saturating_sub(1)].to_vec(),
                _ => continue,
            };
            for word in words {
                match word.as_str() {
                    "super" => drop(absolute.pop()),
                    "self" => {}
                    _ => absolute.push(word),
                }
            }
            found.push(absolute);
        }
    }
    found
}

/// Expands the braces of a `use` tree.
fn expand(tree: &str) -> Vec<String> {
    let Some((before, rest)) = tree.split_once('{') else { return vec![tree.to_owned()] };
    let mut found = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, letter) in rest.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                let item = &rest[start..at];
                if !item.is_empty() {
                    found.extend(expand(item).into_iter().map(|path| format!("{before}{path}")));
                }
                start = at + 1;
                if letter == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_trees_expand_to_paths() {
        assert_eq!(expand("crate::{a::{b,self},c}"), ["crate::a::b", "crate::a::self", "crate::c"]);
    }

    #[test]
    fn modules_that_import_each_other_form_a_cycle() {
        let source = |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
        let sources = [
            source("src/a.rs", "use crate::b::Thing;\n"),
            source("src/b/mod.rs", "use super::a;\nmod c;\n"),
            source("src/b/c.rs", "use super::Thing;\n"),
        ];
        assert_eq!(largest(&sources, "src/").places, ["a", "b"]);
    }
}
