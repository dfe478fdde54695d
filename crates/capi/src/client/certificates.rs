//! Certificates and keys that a program passes instead of file names, and its callback that checks brokers'
//! certificates.
//!
//! # Pitfalls
//!
//! - The callback may clear the error number, but not set one: librdkafka ignores a number beside a result of 1
//!   (`check_of_the_application_decides_as_with_the_original`).

use std::{
    ffi::{CStr, c_int, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Weak,
    time::Instant,
};

use ottla::{CertificateCallback, CertificateInChain, PassedCredentials, Secret};
use ottla_net::credentials::{self, Store};

use crate::{
    client::{
        callbacks::CertificateCb,
        conf::Conf,
        handle::Client,
        property::{CONF_INVALID, CONF_OK},
    },
    ffi::{
        argument::{Buffer, RefMut},
        boundary::{Opaque, bytes, c_text},
        export,
        gate::Gate,
    },
};

/// The application's callback that checks brokers' certificates. I/O threads call it.
#[derive(Debug)]
pub(crate) struct CertificateCheck {
    callback: CertificateCb,
    opaque: Opaque,
    client: Weak<Client>,
    gate: Gate,
}

/// The size of the buffer for the reason of a refusal, with its zero byte.
const REASON_SIZE: usize = 512;

impl CertificateCheck {
    /// Returns the check of a client; `None` if the application set no callback.
    pub(super) fn of(conf: &Conf, client: &Weak<Client>) -> Option<Self> {
        let callback = conf.callbacks.certificate?;
        Some(Self { callback, opaque: conf.opaque, client: Weak::clone(client), gate: Gate::default() })
    }

    /// Stops all calls of the application's function, as [`Gate::shut`].
    pub(super) fn shut(&self, until: Instant) -> Result<(), &'static str> {
        self.gate.shut(until)
    }
}

impl CertificateCallback for CertificateCheck {
    fn check(&self, certificate: CertificateInChain<'_>, error: &mut i32) -> Result<(), String> {
        let destroyed = || "the client is destroyed".to_owned();
        let client = self.client.upgrade().ok_or_else(destroyed)?;
        let _pass = self.gate.enter("ssl_cert_verify_cb").ok_or_else(destroyed)?;
        let broker = c_text(certificate.broker);
        let (mut number, mut reason) = (*error, [0; REASON_SIZE]);
        // SAFETY: the application's function gets texts, bytes and writable addresses that live until it returns.
        let call = || unsafe {
            (self.callback)(
                client.as_c(),
                broker.as_ptr(),
                certificate.node_id.unwrap_or(-1),
                &raw mut number,
                c_int::try_from(certificate.depth).unwrap_or(c_int::MAX),
                certificate.der.as_ptr().cast(),
                certificate.der.len(),
                reason.as_mut_ptr(),
                REASON_SIZE,
                self.opaque.0,
            )
        };
        let result = catch_unwind(AssertUnwindSafe(call)).map_err(|_| "it panicked".to_owned())?;
        if result == 0 {
            reason[REASON_SIZE - 1] = 0;
            // SAFETY: the last byte is zero.
            let reason = unsafe { CStr::from_ptr(reason.as_ptr()) };
            return Err(reason.to_string_lossy().into_owned());
        }
        if number == 0 {
            *error = 0;
        }
        Ok(())
    }
}

export!(
    #[local(CONF_INVALID)]
    fn rd_kafka_conf_set_ssl_cert_verify_cb(
        conf: RefMut<Conf>,
        ssl_cert_verify_cb: Option<CertificateCb>,
    ) -> c_int {
        let Some(conf) = Conf::passed_mut(conf) else { return CONF_INVALID };
        conf.callbacks.certificate = ssl_cert_verify_cb;
        CONF_OK
    }
);

export!(
    #[local(CONF_INVALID)]
    fn rd_kafka_conf_set_ssl_cert(
        conf: RefMut<Conf>,
        cert_type: c_int,
        encoding: c_int,
        buffer: *const c_void,
        size: usize,
        errstr: Buffer,
        errstr_size: usize,
    ) -> c_int {
        let Some(conf) = Conf::passed_mut(conf) else {
            errstr.put(errstr_size, "the configuration is invalid or in use by a client");
            return CONF_INVALID;
        };
        // SAFETY: the header demands `size` bytes, or NULL.
        let bytes = unsafe { bytes(buffer, size) };
        let password =
            conf.raw.get("ssl.key.password").ok().filter(|text| !text.is_empty()).map(Secret::from);
        match set_certificate(&mut conf.credentials, cert_type, encoding, bytes, password.as_ref()) {
            Ok(()) => CONF_OK,
            Err(why) => {
                errstr.put(errstr_size, &why);
                CONF_INVALID
            }
        }
    }
);

export!(
    // Clients with an engine are refused, so the pointer is never read.
    #[local(())]
    fn rd_kafka_conf_set_engine_callback_data(conf: RefMut<Conf>, callback_data: *mut c_void) {
        let _ = (conf, callback_data);
    }
);

/// Sets a certificate or the key, or removes it if there are no bytes. Error: the invalid argument.
fn set_certificate(
    passed: &mut PassedCredentials,
    kind: c_int,
    encoding: c_int,
    bytes: Option<&[u8]>,
    password: Option<&Secret>,
) -> Result<(), String> {
    const PUBLIC: c_int = 0;
    const PRIVATE: c_int = 1;
    const CA: c_int = 2;
    let read = |bytes: &[u8]| match encoding {
        0 => credentials::store(bytes, Some(password.unwrap_or(&Secret::default()))),
        1 | 2 if kind == PRIVATE => {
            let key = Some(credentials::private_key(bytes, password)?);
            Ok(Store { key, ..Store::default() })
        }
        1 | 2 => Ok(Store { certificates: credentials::certificates(bytes)?, ..Store::default() }),
        other => Err(format!("unknown certificate encoding {other}")),
    };
    if ![PUBLIC, PRIVATE, CA].contains(&kind) {
        return Err(format!("unknown certificate type {kind}"));
    }
    // NULL removes what was passed before, in any encoding; no bytes are bytes that can't be read.
    let store = bytes.map_or_else(|| Ok(Store::default()), read)?;
    match kind {
        PRIVATE if store.key.is_none() && bytes.is_some() => {
            Err("the data contain no private key".to_owned())
        }
        PRIVATE => {
            passed.key = store.key;
            Ok(())
        }
        _ if store.certificates.is_empty() && bytes.is_some() => {
            Err("the data contain no certificate".to_owned())
        }
        PUBLIC => {
            passed.certificate = store.certificates;
            Ok(())
        }
        _ => {
            passed.ca = store.certificates;
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::c_char;

    use ottla_embedded_broker::TestAuthority;

    use super::*;
    use crate::{
        client::{
            conf::{rd_kafka_conf_new, rd_kafka_conf_set_opaque},
            create::rd_kafka_new,
            destroy::rd_kafka_destroy,
        },
        ffi::quarantine::counted,
    };

    /// A callback that accepts, refuses with a reason, clears the number, or sets it, depending on the opaque pointer's
    /// number.
    unsafe extern "C-unwind" fn decide(
        rk: *const crate::ffi::types::rd_kafka_t,
        broker: *const c_char,
        broker_id: i32,
        number: *mut c_int,
        depth: c_int,
        der: *const c_char,
        size: usize,
        errstr: *mut c_char,
        errstr_size: usize,
        opaque: *mut c_void,
    ) -> c_int {
        // SAFETY: the client passes the arguments that the header documents.
        unsafe {
            assert!(!rk.is_null() && CStr::from_ptr(broker) == c"host:9093" && (broker_id, depth) == (-1, 2));
            assert_eq!(bytes(der.cast(), size), Some(&b"der"[..]));
            match opaque.addr() {
                1 => return 1,
                2 => crate::ffi::boundary::put_text(errstr, errstr_size, "not today"),
                3 => {
                    *number = 0;
                    return 1;
                }
                _ => {
                    *number = 10;
                    return 1;
                }
            }
            0
        }
    }

    #[test]
    fn check_of_the_application_decides_as_with_the_original() {
        for (decision, number, expected) in [
            (1, 62, Ok(62)),
            (2, 62, Err("not today".to_owned())),
            (3, 62, Ok(0)),
            (4, 62, Ok(62)),
            (4, 0, Ok(0)),
        ] {
            // SAFETY: a new client, whose callback gets a number as its opaque pointer.
            let rk = unsafe {
                let conf = rd_kafka_conf_new();
                rd_kafka_conf_set_opaque(conf, std::ptr::without_provenance_mut(decision));
                assert_eq!(rd_kafka_conf_set_ssl_cert_verify_cb(conf, Some(decide)), CONF_OK);
                rd_kafka_new(0, conf, std::ptr::null_mut(), 0)
            };
            // SAFETY: the client was just created.
            let client = unsafe { counted(rk) }.unwrap();
            let check = client.certificate_check.clone().unwrap();
            let certificate =
                CertificateInChain { broker: "host:9093", node_id: None, depth: 2, der: b"der" };
            let mut seen = number;
            let result = check.check(certificate, &mut seen);
            assert_eq!(result.map(|()| seen), expected);
            drop(client);
            // SAFETY: the client is no longer used.
            unsafe { rd_kafka_destroy(rk) };
            check.check(certificate, &mut seen).unwrap_err();
        }
    }

    #[test]
    fn certificates_and_keys_are_set_and_removed() {
        let authority = TestAuthority::new("CA").unwrap();
        let client = authority.issue("client", &[]).unwrap();
        let mut passed = PassedCredentials::default();
        let (pem, der) = (2, 1);
        for (kind, encoding, bytes) in [
            (0, pem, client.pem.as_bytes()),
            (0, der, &client.der),
            (1, pem, client.key_pem.as_bytes()),
            (1, der, &client.key_der),
            (2, der, authority.der()),
            (2, pem, authority.pem().as_bytes()),
        ] {
            set_certificate(&mut passed, kind, encoding, Some(bytes), None).unwrap();
        }
        assert_eq!((&passed.certificate, &passed.ca), (&vec![client.der], &vec![authority.der().to_vec()]));
        assert_eq!(passed.key.as_ref().unwrap().expose(), client.key_der);
        for (kind, encoding, bytes) in [
            (0, pem, &b"junk"[..]),
            (1, pem, b"junk"),
            (0, 0, b"junk"),
            (3, pem, client.pem.as_bytes()),
            (0, 3, b"x"),
            (0, pem, b""),
            (1, der, b""),
            (2, 0, b""),
        ] {
            set_certificate(&mut passed, kind, encoding, Some(bytes), None).unwrap_err();
        }
        assert!(passed.key.is_some(), "a refused value changes nothing");
        for kind in [0, 1, 2] {
            set_certificate(&mut passed, kind, pem, None, None).unwrap();
        }
        assert!(passed.certificate.is_empty() && passed.key.is_none() && passed.ca.is_empty());
    }
}
