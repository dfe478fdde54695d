//! Checks that no client counts more memory than its ceiling permits. One batch above the ceiling may come alone.

use ottla_core::produce::settings::ProducerSettings;

use super::Broken;
use crate::{reader::Reader, workload::Producer};

/// The largest record of the worlds, with all that counts for it in both of its forms, in bytes.
const LARGEST_RECORD: u64 = 1_000;

/// Checks what a producer counts.
pub fn check(producer: &Producer) -> Result<(), Broken> {
    let budget = &producer.shared.budget;
    let Some(ceiling) = budget.ceiling() else { return Ok(()) };
    let memory = budget.memory();
    if memory > ceiling.max(LARGEST_RECORD) {
        let what = format!("producer {}: {memory} bytes count, of {ceiling}", producer.number);
        return Err(Broken::new("memory", what));
    }
    Ok(())
}

/// Checks what a consumer counts. A response of one batch is as large as a producer with these settings makes it.
pub fn check_reader(reader: &Reader, producer: &ProducerSettings) -> Result<(), Broken> {
    let Some(ceiling) = reader.shared.settings.max_memory else { return Ok(()) };
    let memory = reader.shared.queue.memory();
    let batch = producer.topic.batch.max_bytes.max(LARGEST_RECORD as usize);
    if memory > ceiling + 2 * batch {
        let what = format!("consumer {}: {memory} bytes count, of {ceiling}", reader.number);
        return Err(Broken::new("memory", what));
    }
    Ok(())
}
