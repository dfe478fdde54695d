//! What Rust's test programs print: the results of their tests.

/// The sums of the summaries in the output of one or several test programs.
#[derive(Debug, Default, PartialEq)]
pub struct Summary {
    pub passed: u64,
    pub failed: Vec<String>,
    pub ignored: u64,
}

impl Summary {
    pub fn of(output: &str) -> Self {
        let mut sum = Self::default();
        let mut named = 0;
        for line in output.lines() {
            if let Some(test) = line.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... FAILED")) {
                sum.failed.push(test.to_owned());
                named += 1;
            }
            let Some(counts) = line.strip_prefix("test result: ") else { continue };
            let count = |name| {
                let words: Vec<&str> = counts.split_whitespace().collect();
                let found = words.windows(2).find(|pair| pair[1].trim_end_matches(';') == name);
                found.and_then(|pair| pair[0].parse::<u64>().ok()).unwrap_or(0)
            };
            sum.passed += count("passed");
            sum.ignored += count("ignored");
            // A test whose output interrupted its result line still counts.
            for unnamed in named..count("failed") {
                sum.failed.push(format!("without a name, {}", unnamed + 1));
            }
            named = 0;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_of_all_programs_are_summed() {
        let output = "\
running 2 tests
test a::b ... ok
test a::c ... FAILED
test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
test result: ok. 7 passed; 0 failed; 2 ignored; 0 measured; 3 filtered out; finished in 0.00s
test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";
        let failed = vec!["a::c".to_owned(), "without a name, 1".to_owned()];
        assert_eq!(Summary::of(output), Summary { passed: 8, failed, ignored: 2 });
    }

    #[test]
    fn output_without_a_summary_counts_nothing() {
        assert_eq!(Summary::of("error: could not compile `ottla`\n"), Summary::default());
    }
}
