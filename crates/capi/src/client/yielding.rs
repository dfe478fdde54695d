//! `rd_kafka_yield`: a callback asks the poll that called it to return.

use std::cell::Cell;

thread_local! {
    static YIELD: Cell<bool> = const { Cell::new(false) };
}

/// Lets the poll of this thread return after the callback.
pub(crate) fn ask_to_yield() {
    YIELD.set(true);
}

/// True if the callback that just returned asked its poll to return.
pub(crate) fn take_yield() -> bool {
    YIELD.replace(false)
}
