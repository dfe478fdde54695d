//! `rd_kafka_share_consumer_new`.

use std::{ptr, sync::Arc};

use super::{handle::Share, refusals::refusal};
use crate::{
    client::{conf::Conf, core::ClientKind, create::Defaults, handle::Client},
    ffi::{argument::Buffer, cancel::Uncancelled, codes::code, error::set_last, export, quarantine},
};

/// The defaults of share consumers that differ from those of other consumers.
const DEFAULTS: Defaults = &[
    ("connections.max.idle.ms", "540000"),
    ("reconnect.backoff.ms", "50"),
    ("reconnect.backoff.max.ms", "1000"),
    ("receive.message.max.bytes", "2147483647"),
];

fn create(conf: Option<&Conf>) -> Result<Arc<Share>, String> {
    let conf = conf.ok_or("rd_kafka_share_consumer_new(): conf argument must not be NULL")?;
    if let Some(refusal) = refusal(conf) {
        return Err(refusal);
    }
    let client = Client::create(ClientKind::ShareConsumer, conf, DEFAULTS)?;
    // The application's reference, which `rd_kafka_share_destroy` gives back.
    let _ = Arc::into_raw(Arc::clone(&client));
    Ok(Share::new(client))
}

export!(
    #[local(ptr::null())]
    fn rd_kafka_share_consumer_new(conf: *mut Conf, errstr: Buffer, errstr_size: usize) -> *const Share {
        let _uncancelled = Uncancelled::begin();
        // SAFETY: the header demands NULL or a configuration.
        let given = unsafe { Conf::changeable(conf) }.map(|conf| &*conf);
        match create(given) {
            Ok(share) => {
                // SAFETY: it is the consumer's from now on.
                unsafe { quarantine::retire(conf) };
                set_last(code::NO_ERROR);
                Arc::into_raw(share)
            }
            Err(error) => {
                errstr.put(errstr_size, &error);
                set_last(code::_INVALID_ARG);
                ptr::null()
            }
        }
    }
);
