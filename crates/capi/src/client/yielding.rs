//! `rd_kafka_yield`: a callback makes the poll that called it return.

use std::cell::Cell;

thread_local! {
    static YIELD: Cell<bool> = const { Cell::new(false) };
}

/// Makes the poll of this thread return after the callback.
pub(crate) fn ask_to_yield() {
    YIELD.set(true);
}

/// Returns true if the callback that just returned called `rd_kafka_yield`.
pub(crate) fn take_yield() -> bool {
    YIELD.replace(false)
}
