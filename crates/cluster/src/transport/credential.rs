//! The end of the credentials in kubeconfigs: the expiry of a token or of a client certificate.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use jiff::civil::DateTime;
use kube::config::{AuthInfo, Kubeconfig};
use secrecy::ExposeSecret as _;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The time at which the credentials of the current user of a kubeconfig expire: the earlier one, if there are two. Absent if
/// they do not expire, or do not say so.
pub(crate) fn expiry(kubeconfig: &Kubeconfig) -> Option<Timestamp> {
    let context = kubeconfig.current_context.as_deref()?;
    let context = kubeconfig.contexts.iter().find(|one| one.name == context)?.context.as_ref()?;
    let user = context.user.as_deref()?;
    let user = kubeconfig.auth_infos.iter().find(|one| one.name == user)?.auth_info.as_ref()?;
    [token_expiry(user), certificate_expiry(user)].into_iter().flatten().min()
}

/// The claim `exp` of a JSON Web Token (RFC 7519). Its signature is the API server's business.
fn token_expiry(user: &AuthInfo) -> Option<Timestamp> {
    let token = user.token.as_ref()?.expose_secret();
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: serde_json::Value = serde_json::from_slice(&claims).ok()?;
    Timestamp::from_second(claims["exp"].as_i64()?).ok()
}

fn certificate_expiry(user: &AuthInfo) -> Option<Timestamp> {
    let pem = STANDARD.decode(user.client_certificate_data.as_ref()?).ok()?;
    let pem = String::from_utf8(pem).ok()?;
    let (_, rest) = pem.split_once("-----BEGIN CERTIFICATE-----")?;
    let (body, _) = rest.split_once("-----END CERTIFICATE-----")?;
    let body: String = body.chars().filter(|c| !c.is_whitespace()).collect();
    not_after(&STANDARD.decode(body).ok()?)
}

/// The end of the validity of a certificate in DER (RFC 5280, section 4.1).
fn not_after(certificate: &[u8]) -> Option<Timestamp> {
    let (_, certificate, _) = element(certificate)?;
    let (_, mut fields, _) = element(certificate)?;
    // The version is optional and tagged [0]; then come the serial number, the algorithm and the issuer.
    if *fields.first()? == 0xa0 {
        fields = element(fields)?.2;
    }
    for _ in 0..3 {
        fields = element(fields)?.2;
    }
    let (_, validity, _) = element(fields)?;
    let (_, _, validity) = element(validity)?;
    let (tag, text, _) = element(validity)?;
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let text = match tag {
        // UTCTime has two digits for the year: 50 and more are of the last century.
        0x17 => format!("{}{text}", if text.get(..2)? < "50" { "20" } else { "19" }),
        0x18 => text.to_owned(),
        _ => return None,
    };
    let at = DateTime::strptime("%Y%m%d%H%M%S", text).ok()?;
    Some(at.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
}

/// The tag and content of the first element, and everything after it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        // As many bytes of length follow as the lower bits say.
        0x81..=0x84 => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// The expiries of the credentials in use, by the names of their Secrets (`namespace/name`). Clones share them.
#[derive(Clone, Debug, Default)]
pub struct CredentialExpiries {
    entries: Arc<Mutex<Entries>>,
}

#[derive(Debug, Default)]
struct Entries {
    next: u64,
    /// By Secret and number: a new kubeconfig is noted before the old one is forgotten.
    by_secret: BTreeMap<(String, u64), Timestamp>,
}

/// Credentials that are in use for as long as this exists.
#[derive(Debug)]
pub(crate) struct UsedCredential {
    expiries: CredentialExpiries,
    entry: (String, u64),
}

impl CredentialExpiries {
    /// Notes the expiry of the credentials in a Secret, until the returned value is dropped.
    pub(crate) fn note(&self, secret: &str, expiry: Timestamp) -> UsedCredential {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.next += 1;
        let entry = (secret.to_owned(), entries.next);
        entries.by_secret.insert(entry.clone(), expiry);
        UsedCredential { expiries: self.clone(), entry }
    }

    /// The Secrets in use whose credentials expire, with the expiry of the latest content of each.
    pub fn all(&self) -> BTreeMap<String, Timestamp> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.by_secret.iter().map(|((secret, _), at)| (secret.clone(), *at)).collect()
    }
}

impl Drop for UsedCredential {
    fn drop(&mut self) {
        let mut entries = self.expiries.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.by_secret.remove(&self.entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_user(user: &str) -> Kubeconfig {
        let text = format!(
            "apiVersion: v1\nkind: Config\nclusters: []\nusers: [{{name: other, user: {{}}}}, {{name: a, user: {{{user}}}}}]\n\
             contexts: [{{name: here, context: {{cluster: a, user: a}}}}]\ncurrent-context: here\n"
        );
        Kubeconfig::from_yaml(&text).expect("a kubeconfig")
    }

    fn certificate(year: i32) -> String {
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut parameters = rcgen::CertificateParams::default();
        parameters.not_after = rcgen::date_time_ymd(year, 3, 4);
        let certificate = parameters.self_signed(&key).expect("a certificate");
        format!("client-certificate-data: {}", STANDARD.encode(certificate.pem()))
    }

    fn token(claims: &str) -> String {
        format!("token: {}.{}.c2ln", URL_SAFE_NO_PAD.encode("{}"), URL_SAFE_NO_PAD.encode(claims))
    }

    #[track_caller]
    fn check(user: &str, expected: Option<&str>) {
        let expected = expected.map(|at| at.parse::<Timestamp>().expect("a time"));
        assert_eq!(expiry(&with_user(user)), expected, "{user}");
    }

    #[test]
    fn the_end_of_a_certificate_is_read() {
        check(&certificate(2027), Some("2027-03-04T00:00:00Z"));
        // From 2050 on certificates write the year in full.
        check(&certificate(2061), Some("2061-03-04T00:00:00Z"));
    }

    #[test]
    fn the_end_of_a_token_is_read() {
        check(&token(r#"{"exp": 1800000000}"#), Some("2027-01-15T08:00:00Z"));
        check(
            &format!("{}, {}", token(r#"{"exp": 1800000000}"#), certificate(2028)),
            Some("2027-01-15T08:00:00Z"),
        );
    }

    #[test]
    fn credentials_that_do_not_say_so_have_no_end() {
        for user in [
            "",
            "token: s3cret",
            "token: a.b.c",
            "client-certificate-data: bm90aGluZw==",
            "client-certificate-data: '%'",
            &token(r#"{"sub": "somebody"}"#),
            &token("[]"),
        ] {
            check(user, None);
        }
        assert_eq!(not_after(&[]), None);
        assert_eq!(not_after(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
    }

    #[test]
    fn every_prefix_of_a_certificate_is_harmless() {
        let user = certificate(2027);
        let pem = STANDARD.decode(user.split_once(": ").expect("data").1).expect("base64");
        let pem = String::from_utf8(pem).expect("text");
        let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
        let der = STANDARD.decode(body).expect("base64");
        for length in 0..der.len() {
            let _ = not_after(&der[..length]);
        }
        assert!(not_after(&der).is_some());
    }

    #[test]
    fn only_credentials_in_use_are_listed() {
        let expiries = CredentialExpiries::default();
        let at = |second| Timestamp::from_second(second).expect("a time");
        let first = expiries.note("shop/edge", at(1));
        let second = expiries.note("shop/edge", at(2));
        assert_eq!(expiries.all(), [("shop/edge".to_owned(), at(2))].into());
        drop(first);
        assert_eq!(expiries.all().len(), 1);
        drop(second);
        assert!(expiries.all().is_empty());
    }
}
