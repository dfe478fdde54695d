//! Names of tests, and texts that must not stand in production code.

use super::{Found, Source};

const LONGEST_TEST_NAME: usize = 70;

/// Test functions with names that are too long.
pub fn long_test_names(sources: &[Source]) -> Found {
    let mut places = Vec::new();
    for source in sources {
        let mut is_test = false;
        for (at, line) in source.text.lines().enumerate() {
            let line = line.trim();
            if let Some(rest) = line.strip_prefix("fn ").or_else(|| line.strip_prefix("async fn ")) {
                let name = rest.split('(').next().unwrap_or_default();
                if is_test && name.len() > LONGEST_TEST_NAME {
                    places.push(format!("{}:{}: {name}", source.path, at + 1));
                }
                is_test = false;
            } else if line.starts_with("#[test]") {
                is_test = true;
            }
        }
    }
    Found::count(places)
}

/// Lines of production code with this text.
pub fn occurrences(sources: &[Source], text: &str) -> Found {
    let mut places = Vec::new();
    for source in sources.iter().filter(|source| !source.path.starts_with("xtask/") && !source.is_test()) {
        for (at, line) in source.production().enumerate() {
            if line.contains(text) {
                places.push(format!("{}:{}: {}", source.path, at + 1, line.trim()));
            }
        }
    }
    Found::count(places)
}
