//! The results of tests, read from the output of their runners.

/// The names of tests.
#[derive(Debug, Default, PartialEq)]
pub struct Results {
    pub passed: Vec<String>,
    pub failed: Vec<String>,
    pub skipped: Vec<String>,
}

impl Results {
    /// Adds the results of another suite.
    pub fn add(&mut self, other: Self) {
        self.passed.extend(other.passed);
        self.failed.extend(other.failed);
        self.skipped.extend(other.skipped);
    }

    /// Reads the output of `go test -v`. A test that started and has no result failed: it hung, or ended the program.
    pub fn of_go(output: &str) -> Self {
        let mut results = Self::default();
        let mut started = Vec::new();
        for line in output.lines() {
            let name = |rest: &str| rest.split(' ').next().unwrap_or_default().to_owned();
            if let Some(rest) = line.strip_prefix("=== RUN   ").filter(|rest| !rest.contains('/')) {
                started.push(rest.trim().to_owned());
            } else if let Some(rest) = line.strip_prefix("--- PASS: ") {
                results.passed.push(name(rest));
            } else if let Some(rest) = line.strip_prefix("--- FAIL: ") {
                results.failed.push(name(rest));
            } else if let Some(rest) = line.strip_prefix("--- SKIP: ") {
                results.skipped.push(name(rest));
            }
        }
        started.retain(|test| {
            let Self { passed, failed, skipped } = &results;
            !passed.iter().chain(failed).chain(skipped).any(|done| done == test)
        });
        results.failed.extend(started);
        results
    }

    /// Reads the output of `cargo test`.
    pub fn of_cargo(output: &str) -> Self {
        let mut results = Self::default();
        for line in output.lines() {
            let Some((name, result)) = line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... "))
            else {
                continue;
            };
            match result.trim() {
                "ok" => results.passed.push(name.to_owned()),
                "FAILED" => results.failed.push(name.to_owned()),
                _ => results.skipped.push(name.to_owned()),
            }
        }
        results
    }

    /// Reads the lines `ok 1 NAME` and `not ok 2 NAME` of the Test Anything Protocol.
    pub fn of_tap(output: &str) -> Self {
        let mut results = Self::default();
        for line in output.lines() {
            let (list, rest) = match (line.strip_prefix("ok "), line.strip_prefix("not ok ")) {
                (Some(rest), _) => (&mut results.passed, rest),
                (_, Some(rest)) => (&mut results.failed, rest),
                _ => continue,
            };
            let name = rest.split_once(' ').map_or(rest, |(_, name)| name);
            match name.split_once(" # SKIP") {
                Some((name, _)) => results.skipped.push(name.to_owned()),
                None => list.push(name.to_owned()),
            }
        }
        results
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn test_of_go_without_a_result_failed() {
        let output = "=== RUN   TestA\n=== RUN   TestA/part\n    --- FAIL: TestA/part (0.00s)\n--- PASS: TestA (0.01s)\n\
                      === RUN   TestB\npanic: no\n=== RUN   TestC\n--- SKIP: TestC (0.00s)\n";
        let results = Results::of_go(output);
        assert_eq!(results.passed, names(&["TestA"]));
        assert_eq!(results.failed, names(&["TestB"]));
        assert_eq!(results.skipped, names(&["TestC"]));
    }

    #[test]
    fn results_of_cargo_and_of_tap_are_read() {
        let cargo =
            Results::of_cargo("test a::b ... ok\ntest c ... FAILED\ntest d ... ignored\ntest result: ok\n");
        let tap = Results::of_tap("1..3\nok 1 a::b\nnot ok 2 c\n  more\nok 3 d # SKIP -\n");
        assert_eq!(cargo, tap);
        assert_eq!(cargo.failed, names(&["c"]));
    }
}
