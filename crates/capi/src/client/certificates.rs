//! Certificates and keys that a program passes instead of naming files.

use std::ffi::{c_char, c_int, c_void};

use ottla::{PassedCredentials, Secret};
use ottla_net::credentials::{self, Store};

use crate::{
    client::{
        conf::Conf,
        property::{CONF_INVALID, CONF_OK},
    },
    ffi::{boundary::put_text, export},
};

export!(
    #[local(CONF_INVALID)]
    fn rd_kafka_conf_set_ssl_cert(
        conf: *mut Conf,
        cert_type: c_int,
        encoding: c_int,
        buffer: *const c_void,
        size: usize,
        errstr: *mut c_char,
        errstr_size: usize,
    ) -> c_int {
        // SAFETY: the header demands a configuration, `size` bytes, and a buffer for the error of its size, or NULL.
        unsafe {
            let Some(conf) = Conf::changeable(conf) else {
                put_text(errstr, errstr_size, "no configuration, or one that a client has already");
                return CONF_INVALID;
            };
            let bytes = match buffer.is_null() {
                true => None,
                false => Some(std::slice::from_raw_parts(buffer.cast::<u8>(), size)),
            };
            let password =
                conf.raw.get("ssl.key.password").ok().filter(|text| !text.is_empty()).map(Secret::from);
            match set_certificate(&mut conf.credentials, cert_type, encoding, bytes, password.as_ref()) {
                Ok(()) => CONF_OK,
                Err(why) => {
                    put_text(errstr, errstr_size, &why);
                    CONF_INVALID
                }
            }
        }
    }
);

/// Sets or, without bytes, removes a certificate or the key. Error: what is wrong with the arguments.
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
    let bytes = bytes.unwrap_or_default();
    let store = || match encoding {
        0 => credentials::store(bytes, Some(password.unwrap_or(&Secret::default()))),
        1 | 2 if kind == PRIVATE => {
            let key = Some(credentials::private_key(bytes, password)?);
            Ok(Store { key, ..Store::default() })
        }
        1 | 2 => Ok(Store { certificates: credentials::certificates(bytes)?, ..Store::default() }),
        other => Err(format!("{other} is no encoding of a certificate")),
    };
    let store = if bytes.is_empty() { Store::default() } else { store()? };
    match kind {
        PUBLIC => passed.certificate = store.certificates,
        PRIVATE if store.key.is_none() && !bytes.is_empty() => {
            return Err("there is no private key".to_owned());
        }
        PRIVATE => passed.key = store.key,
        CA => passed.ca = store.certificates,
        other => return Err(format!("{other} is no type of a certificate")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ottla_embedded_broker::TestAuthority;

    use super::*;

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
