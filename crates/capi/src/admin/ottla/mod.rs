//! `rdkafka_ottla.h`: administrative calls that librdkafka does not have.
//!
//! ```text
//!  request ── rows of named texts, which the application fills in
//!     ▼
//!  a call of the tables in `quotas`, `replicas`, `features`, `tokens`, `transactions`, `users`: checks the names, asks `ottla::Admin`
//!     ▼
//!  row ────── the rows of the event `RD_KAFKA_OTTLA_EVENT_RESULT`, each with named texts and an error of its own
//! ```
//!
//! Requests and results of all calls have this one form, so that a new field needs neither a new function nor a new type of the
//! interface. A call is an entry of a table: its function, the fields of its rows, and the conversion to and from the types
//! of `ottla::Admin`.

mod features;
mod quotas;
mod replicas;
mod request;
mod row;
mod tokens;
mod transactions;
mod users;

use std::ffi::{CStr, c_int};

use ottla::AdminFuture;

use self::row::Row;
use super::call::{Listed, Outcome, found};
use crate::{client::event::Failure, ffi::export};

/// The version of this interface: it rises when functions are added.
const VERSION: c_int = 1;
/// `RD_KAFKA_OTTLA_EVENT_RESULT`: the results of all calls.
pub(crate) const RESULT: c_int = 1 << 30;
/// Its name.
pub(crate) const RESULT_NAME: &CStr = c"OttlaResult";

export!(
    #[local(0)]
    fn rd_kafka_ottla_version() -> c_int {
        VERSION
    }
);

/// Declares calls: the function, the fields that its rows may have, and the future of its result.
macro_rules! calls {
    ($(fn $name:ident($($field:literal),*) |$admin:ident, $rows:ident, $options:ident| $body:block)*) => {$(
        $crate::ffi::export!(
            #[on(rk, ())]
            fn $name(
                rk: $crate::ffi::argument::Ref<$crate::client::handle::Client>,
                request: $crate::ffi::argument::Ref<$crate::admin::ottla::request::Request>,
                options: $crate::ffi::argument::Ref<$crate::admin::options::AdminOptions>,
                rkqu: $crate::ffi::argument::Ref<$crate::client::queue::Queue>,
            ) {
                $crate::admin::call::call(rk, options, rkqu, $crate::admin::ottla::RESULT, |$admin, $options| {
                    let $rows = $crate::admin::ottla::request::rows_of(request, &[$($field),*])?;
                    $body
                });
            }
        );
    )*};
}
use calls;

/// Returns the outcome of a call as the rows of its event.
async fn shown<T: Send + 'static>(
    call: AdminFuture<T>,
    rows: impl FnOnce(T) -> Vec<Row> + Send + 'static,
) -> Outcome {
    let result = call.await.map_err(|error| Failure::of(&error))?;
    found(Listed::new(rows(result)))
}
