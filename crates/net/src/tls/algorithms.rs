//! The lists of cipher suites, curves and signature algorithms, in OpenSSL's and in the standard names.

use std::collections::BTreeMap;

use ottla_core::lock::Mutex;
use rustls::{
    CipherSuite, NamedGroup, SignatureScheme, SupportedProtocolVersion,
    crypto::{CryptoProvider, WebPkiSupportedAlgorithms},
    version::{TLS12, TLS13},
};

/// A cipher suite's names, and the words of OpenSSL's lists that include it.
struct Suite {
    id: CipherSuite,
    standard: &'static str,
    openssl: &'static str,
    words: &'static [&'static str],
}

const SUITES: &[Suite] = {
    const fn suite(
        id: CipherSuite,
        standard: &'static str,
        openssl: &'static str,
        words: &'static [&'static str],
    ) -> Suite {
        Suite { id, standard, openssl, words }
    }
    use CipherSuite as C;
    &[
        suite(C::TLS13_AES_256_GCM_SHA384, "TLS_AES_256_GCM_SHA384", "", &[]),
        suite(C::TLS13_AES_128_GCM_SHA256, "TLS_AES_128_GCM_SHA256", "", &[]),
        suite(C::TLS13_CHACHA20_POLY1305_SHA256, "TLS_CHACHA20_POLY1305_SHA256", "", &[]),
        suite(
            C::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
            "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
            "ECDHE-ECDSA-AES256-GCM-SHA384",
            &["ECDSA", "AECDSA", "AES256", "AES", "AESGCM"],
        ),
        suite(
            C::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
            "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
            "ECDHE-ECDSA-AES128-GCM-SHA256",
            &["ECDSA", "AECDSA", "AES128", "AES", "AESGCM"],
        ),
        suite(
            C::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
            "ECDHE-ECDSA-CHACHA20-POLY1305",
            &["ECDSA", "AECDSA", "CHACHA20"],
        ),
        suite(
            C::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
            "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            "ECDHE-RSA-AES256-GCM-SHA384",
            &["ARSA", "AES256", "AES", "AESGCM"],
        ),
        suite(
            C::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            "ECDHE-RSA-AES128-GCM-SHA256",
            &["ARSA", "AES128", "AES", "AESGCM"],
        ),
        suite(
            C::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
            "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
            "ECDHE-RSA-CHACHA20-POLY1305",
            &["ARSA", "CHACHA20"],
        ),
    ]
};

/// The words of OpenSSL's lists that include every suite that this library has.
const ALL_SUITES: &[&str] = &[
    "DEFAULT",
    "ALL",
    "COMPLEMENTOFDEFAULT",
    "HIGH",
    "ECDHE",
    "EECDH",
    "KECDHE",
    "KEECDH",
    "TLSV1.2",
    "FIPS",
    "AEAD",
];

const CURVES: &[(NamedGroup, &[&str])] = &[
    (NamedGroup::X25519, &["x25519"]),
    (NamedGroup::secp256r1, &["p-256", "prime256v1", "secp256r1"]),
    (NamedGroup::secp384r1, &["p-384", "secp384r1"]),
    (NamedGroup::X25519MLKEM768, &["x25519mlkem768"]),
];

const SIGNATURES: &[(SignatureScheme, &[&str])] = &[
    (SignatureScheme::ECDSA_NISTP256_SHA256, &["ecdsa_secp256r1_sha256", "ecdsa+sha256"]),
    (SignatureScheme::ECDSA_NISTP384_SHA384, &["ecdsa_secp384r1_sha384", "ecdsa+sha384"]),
    (SignatureScheme::ECDSA_NISTP521_SHA512, &["ecdsa_secp521r1_sha512", "ecdsa+sha512"]),
    (SignatureScheme::ED25519, &["ed25519"]),
    (SignatureScheme::RSA_PSS_SHA256, &["rsa_pss_rsae_sha256", "rsa-pss+sha256", "pss+sha256"]),
    (SignatureScheme::RSA_PSS_SHA384, &["rsa_pss_rsae_sha384", "rsa-pss+sha384", "pss+sha384"]),
    (SignatureScheme::RSA_PSS_SHA512, &["rsa_pss_rsae_sha512", "rsa-pss+sha512", "pss+sha512"]),
    (SignatureScheme::RSA_PKCS1_SHA256, &["rsa_pkcs1_sha256", "rsa+sha256"]),
    (SignatureScheme::RSA_PKCS1_SHA384, &["rsa_pkcs1_sha384", "rsa+sha384"]),
    (SignatureScheme::RSA_PKCS1_SHA512, &["rsa_pkcs1_sha512", "rsa+sha512"]),
];

/// The values of the properties that choose algorithms; `None` is the default.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    /// `ssl.cipher.suites`.
    pub suites: Option<String>,
    /// `ssl.curves.list`.
    pub curves: Option<String>,
    /// `ssl.sigalgs.list`.
    pub signatures: Option<String>,
    /// `ssl.enabled.protocols`.
    pub versions: Option<String>,
}

impl Lists {
    /// Returns a provider with the listed algorithms. Error: the property and what is wrong with it.
    pub fn provider(&self) -> Result<CryptoProvider, String> {
        let mut provider = super::default_provider();
        if let Some(list) = &self.suites {
            let permitted = suites(list).map_err(|why| format!("ssl.cipher.suites: {why}"))?;
            provider.cipher_suites.retain(|suite| permitted.contains(&suite.suite()));
            let order = |id| permitted.iter().position(|known| *known == id);
            provider.cipher_suites.sort_by_key(|suite| order(suite.suite()));
        }
        if let Some(list) = &self.curves {
            let permitted = named(list, CURVES).map_err(|why| format!("ssl.curves.list: {why}"))?;
            let known = std::mem::take(&mut provider.kx_groups);
            for group in permitted {
                let found = known.iter().find(|known| known.name() == group).ok_or_else(|| {
                    format!("ssl.curves.list: {group:?} needs a build with the feature aws-lc-rs")
                })?;
                provider.kx_groups.push(*found);
            }
        }
        if let Some(list) = &self.signatures {
            let permitted = named(list, SIGNATURES).map_err(|why| format!("ssl.sigalgs.list: {why}"))?;
            provider.signature_verification_algorithms =
                restricted(provider.signature_verification_algorithms, &permitted);
        }
        Ok(provider)
    }

    /// Returns the permitted protocol versions. Older ones in the list are left out, with a note.
    pub fn versions(
        &self,
        notes: &mut Vec<String>,
    ) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
        let Some(list) = &self.versions else { return Ok(vec![&TLS13, &TLS12]) };
        let (mut versions, mut old) = (Vec::new(), Vec::new());
        for name in items(list) {
            match &*name.to_ascii_lowercase() {
                "tlsv1.3" => versions.push(&TLS13),
                "tlsv1.2" | "tls" => versions.push(&TLS12),
                "tlsv1.1" | "tlsv1" | "sslv3" | "sslv2hello" => old.push(name),
                _ => {
                    return Err(format!(
                        "ssl.enabled.protocols: \"{}\" is not supported; TLSv1.2 and TLSv1.3 are, older versions are insecure",
                        shown(name)
                    ));
                }
            }
        }
        if !old.is_empty() {
            let old = old.join(", ");
            if versions.is_empty() {
                return Err(format!(
                    "ssl.enabled.protocols: {old}: TLSv1.2 and TLSv1.3 are supported, older versions are insecure"
                ));
            }
            notes.push(format!(
                "ssl.enabled.protocols: {old} has no effect, because versions before TLSv1.2 are insecure"
            ));
        }
        if versions.is_empty() {
            return Err("ssl.enabled.protocols: the list is empty".to_owned());
        }
        Ok(versions)
    }
}

fn items(list: &str) -> impl Iterator<Item = &str> {
    list.split([':', ',', ';', ' ']).map(str::trim).filter(|item| !item.is_empty())
}

fn shown(name: &str) -> String {
    name.chars().take(60).collect()
}

/// Returns the suites that a list permits, in its order. Unless the list names suites of TLS 1.3, all of these are
/// permitted, as in OpenSSL, whose lists concern older versions only.
fn suites(list: &str) -> Result<Vec<CipherSuite>, String> {
    let is_13 = |suite: &Suite| suite.openssl.is_empty();
    let (mut permitted, mut removed) = (Vec::<CipherSuite>::new(), Vec::new());
    let mut unknown = None;
    for item in items(list) {
        let upper = item.to_ascii_uppercase();
        let (operator, name) = match upper.as_bytes()[0] {
            b'!' | b'-' => ('!', &upper[1..]),
            b'+' => ('+', &upper[1..]),
            b'@' => ('@', &upper[1..]),
            _ => (' ', &*upper),
        };
        let matches = |suite: &&Suite| {
            suite.standard == name
                || (!is_13(suite)
                    && (suite.openssl == name
                        || ALL_SUITES.contains(&name)
                        || name
                            .split('+')
                            .all(|word| ALL_SUITES.contains(&word) || suite.words.contains(&word))))
        };
        let found = SUITES.iter().filter(matches).map(|suite| suite.id);
        match operator {
            // Exclusions of algorithms that rustls does not have are ignored: `!aNULL`, `!MD5`.
            '!' => {
                removed.extend(found.clone());
                permitted.retain(|id| !removed.contains(id));
            }
            '@' if name == "STRENGTH" => {}
            '@' => {
                return Err(format!(
                    "\"{}\" is OpenSSL's; this library always requires at least 112 bits of security (RSA keys of 2048 bits) \
                     and ephemeral keys",
                    shown(item)
                ));
            }
            '+' => {}
            _ => {
                let before = permitted.len();
                let new: Vec<_> =
                    found.filter(|id| !permitted.contains(id) && !removed.contains(id)).collect();
                permitted.extend(new);
                if permitted.len() == before && unknown.is_none() {
                    unknown = Some(item);
                }
            }
        }
    }
    if permitted.is_empty() {
        let names: Vec<_> =
            SUITES.iter().map(|it| if is_13(it) { it.standard } else { it.openssl }).collect();
        let item = shown(unknown.unwrap_or(list));
        return Err(format!("\"{item}\" leaves no suite that this library has; it has {}", names.join(", ")));
    }
    let mut all = Vec::new();
    if !SUITES.iter().any(|suite| is_13(suite) && permitted.contains(&suite.id)) {
        all.extend(SUITES.iter().filter(|suite| is_13(suite)).map(|suite| suite.id));
    }
    all.extend(permitted);
    Ok(all)
}

/// Returns the listed values of a table, in the order of the list.
fn named<T: Copy + PartialEq>(list: &str, table: &[(T, &[&str])]) -> Result<Vec<T>, String> {
    let mut found = Vec::new();
    for item in items(list) {
        let name = item.to_ascii_lowercase();
        let Some((value, _)) = table.iter().find(|(_, names)| names.contains(&&*name)) else {
            let known: Vec<_> = table.iter().map(|(_, names)| names[0]).collect();
            return Err(format!("\"{}\" is not supported; supported are {}", shown(item), known.join(", ")));
        };
        if !found.contains(value) {
            found.push(*value);
        }
    }
    if found.is_empty() { Err("the list is empty".to_owned()) } else { Ok(found) }
}

type Mapping =
    [(SignatureScheme, &'static [&'static dyn rustls::pki_types::SignatureVerificationAlgorithm])];

/// Returns the algorithms with only these schemes. rustls wants static slices, so each list exists once per process.
fn restricted(all: WebPkiSupportedAlgorithms, permitted: &[SignatureScheme]) -> WebPkiSupportedAlgorithms {
    static KNOWN: Mutex<BTreeMap<Vec<u16>, &'static Mapping>> = Mutex::new(BTreeMap::new());
    let chosen: Vec<_> = permitted
        .iter()
        .filter_map(|one| all.mapping.iter().find(|(known, _)| known == one).copied())
        .collect();
    let key = chosen.iter().map(|(scheme, _)| u16::from(*scheme)).collect();
    let mut known = KNOWN.lock();
    let mapping = *known.entry(key).or_insert_with(|| Vec::leak(chosen));
    WebPkiSupportedAlgorithms { all: all.all, mapping }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_are_found_by_openssl_and_standard_names() {
        use CipherSuite as C;
        let tls13 = 3;
        for (list, expected) in [
            ("ECDHE-RSA-AES256-GCM-SHA384", vec![C::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384]),
            ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", vec![C::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384]),
            ("AES128-SHA:ECDHE+CHACHA20:!ECDSA", vec![C::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256]),
        ] {
            assert_eq!(suites(list).unwrap()[tls13..], expected, "{list}");
        }
        assert_eq!(suites("TLS_AES_128_GCM_SHA256").unwrap(), [C::TLS13_AES_128_GCM_SHA256]);
        assert_eq!(suites("HIGH:!aNULL:!MD5:@STRENGTH").unwrap().len(), SUITES.len());
        assert_eq!(suites("DEFAULT:!AES").unwrap().len(), tls13 + 2);
        assert!(suites("AES128-SHA").unwrap_err().contains("AES128-SHA"));
        assert!(
            suites("DEFAULT@SECLEVEL=1").is_err()
                && suites("DEFAULT:@SECLEVEL=0").unwrap_err().contains("2048")
        );
    }

    #[test]
    fn curves_and_signatures_keep_the_order_of_the_list() {
        let lists = Lists { curves: Some("P-384:X25519".to_owned()), ..Lists::default() };
        let names: Vec<_> = lists.provider().unwrap().kx_groups.iter().map(|group| group.name()).collect();
        assert_eq!(names, [NamedGroup::secp384r1, NamedGroup::X25519]);
        let lists = Lists { curves: Some("brainpoolP256r1".to_owned()), ..Lists::default() };
        assert!(lists.provider().unwrap_err().contains("x25519, p-256"));
        let lists =
            Lists { signatures: Some("RSA+SHA256:ecdsa_secp256r1_sha256".to_owned()), ..Lists::default() };
        let mapping = lists.provider().unwrap().signature_verification_algorithms.mapping;
        assert_eq!(mapping.len(), 2);
        assert_eq!(mapping[0].0, SignatureScheme::RSA_PKCS1_SHA256);
        for (scheme, names) in SIGNATURES {
            let lists = Lists { signatures: Some(names[0].to_owned()), ..Lists::default() };
            let mapping = lists.provider().unwrap().signature_verification_algorithms.mapping;
            assert!(mapping.len() == 1 && mapping[0].0 == *scheme, "{scheme:?}");
        }
    }

    #[test]
    fn old_versions_beside_a_new_one_have_no_effect() {
        let versions = |list: &str| {
            let mut notes = Vec::new();
            let lists = Lists { versions: Some(list.to_owned()), ..Lists::default() };
            lists.versions(&mut notes).map(|versions| (versions.len(), notes))
        };
        assert_eq!(versions("TLSv1.2,TLSv1.3"), Ok((2, Vec::new())));
        let (count, notes) = versions("TLSv1.2, TLSv1.1,TLSv1,SSLv2Hello").unwrap();
        assert!(count == 1 && notes[0].contains("TLSv1.1, TLSv1, SSLv2Hello has no effect"), "{notes:?}");
        assert!(versions("TLSv1.1").unwrap_err().contains("TLSv1.1"));
        assert!(versions("TLSv1.2,TLSv9").unwrap_err().contains("TLSv9"));
    }
}
