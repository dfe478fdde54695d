//! The list of `--print-metrics`, in the layout of Kafka's tools.

use std::io::{self, Write};

use crate::failure::Outcome;

/// Prints the metrics of a group.
pub fn print_metrics(group: &str, client_id: &str, metrics: &[(&str, f64)]) -> Outcome {
    Ok(write!(io::stdout(), "{}", lay_out(group, client_id, metrics))?)
}

fn lay_out(group: &str, client_id: &str, metrics: &[(&str, f64)]) -> String {
    let names: Vec<String> =
        metrics.iter().map(|(name, _)| format!("{group}:{name}:{{client-id={client_id}}}")).collect();
    let width = names.iter().map(String::len).max().unwrap_or(0);
    let mut out = format!("\n{:<width$}   Value\n", "Metric Name");
    for (name, (_, value)) in names.iter().zip(metrics) {
        out.push_str(&format!("{name:<width$} : {value:.3}\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_padded_to_the_longest() {
        assert_eq!(
            lay_out("g", "c", &[("a", 1.0), ("long", 0.5)]),
            "\nMetric Name            Value\ng:a:{client-id=c}    : 1.000\ng:long:{client-id=c} : 0.500\n"
        );
    }
}
