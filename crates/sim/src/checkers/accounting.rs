//! When all is over, nothing is charged and no memory is held.

use super::Broken;
use crate::workload::Producer;

/// Checks a producer whose records all have their reports.
pub fn check(producer: &Producer) -> Result<(), Broken> {
    let budget = &producer.shared.budget;
    if budget.messages() != 0 || budget.bytes() != 0 {
        let what = format!(
            "producer {}: {} messages and {} bytes are still charged",
            producer.number,
            budget.messages(),
            budget.bytes()
        );
        return Err(Broken::new("accounting", what));
    }
    Ok(())
}
