//! Checks at the end that all memory is released and nothing is charged.

use super::Broken;
use crate::{reader::Reader, workload::Producer};

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

/// Checks a consumer that has read everything.
pub fn check_reader(reader: &Reader) -> Result<(), Broken> {
    let bytes = reader.shared.queue.queued_bytes();
    if bytes != 0 {
        let what =
            format!("consumer {}: {bytes} bytes are still charged, and everything is read", reader.number);
        return Err(Broken::new("accounting", what));
    }
    Ok(())
}
