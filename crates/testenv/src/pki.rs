//! The certificates of one control plane: one authority, created for each run and removed with it.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SigningKey as _,
};
use time::{Duration, OffsetDateTime};

/// A certificate could not be made.
#[derive(Debug, thiserror::Error)]
#[error("failed to create the certificate of {subject}: {source}")]
pub struct PkiError {
    subject: String,
    source: rcgen::Error,
}

/// A certificate with its private key, both in PEM.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

/// The authority that signs everything.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// Makes a new authority.
    pub fn new() -> Result<Self, PkiError> {
        let make = || {
            let mut params = parameters("5spot-testenv-ca", &[], vec![])?;
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.key_usages = vec![
                KeyUsagePurpose::DigitalSignature,
                KeyUsagePurpose::KeyCertSign,
                KeyUsagePurpose::CrlSign,
            ];
            CertifiedIssuer::self_signed(params, KeyPair::generate()?)
        };
        let issuer = make().map_err(|source| PkiError { subject: "the authority".into(), source })?;
        Ok(Self { issuer })
    }

    /// The authority's own certificate and key, which the controller-manager signs with.
    pub fn identity(&self) -> Identity {
        Identity { certificate: self.issuer.pem(), key: self.issuer.key().serialize_pem() }
    }

    /// A serving certificate for the given names and addresses.
    pub fn server(&self, name: &str, alternative_names: &[&str]) -> Result<Identity, PkiError> {
        let alternative_names = alternative_names.iter().map(ToString::to_string).collect();
        self.sign(name, &[], alternative_names, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A client certificate: Kubernetes reads the user from the common name and the groups from the organisations.
    pub fn client(&self, user: &str, groups: &[&str]) -> Result<Identity, PkiError> {
        self.sign(user, groups, vec![], ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn sign(
        &self,
        name: &str,
        organisations: &[&str],
        alternative_names: Vec<String>,
        purpose: ExtendedKeyUsagePurpose,
    ) -> Result<Identity, PkiError> {
        let make = || {
            let mut params = parameters(name, organisations, alternative_names)?;
            params.use_authority_key_identifier_extension = true;
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = vec![purpose];
            let key = KeyPair::generate()?;
            let certificate = params.signed_by(&key, &self.issuer)?;
            Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
        };
        make().map_err(|source| PkiError { subject: name.into(), source })
    }
}

/// The key pair that signs `ServiceAccount` tokens, in PEM. Not a certificate, only the keys.
pub struct SigningKey {
    /// The key that the API server and the controller-manager sign with.
    pub private: String,
    /// The key that the API server verifies with.
    pub public: String,
}

/// Makes the key pair that signs `ServiceAccount` tokens.
pub fn service_account_key() -> Result<SigningKey, PkiError> {
    KeyPair::generate()
        .map(|key| SigningKey { private: key.serialize_pem(), public: key.public_key_pem() })
        .map_err(|source| PkiError { subject: "the service account issuer".into(), source })
}

/// Signs a token with the private key of the issuer (ES256): `unsigned` is its header and claims. Returns the signature as a JWT has
/// it, the two numbers one after the other.
pub fn sign_token(private: &str, unsigned: &str) -> Result<Vec<u8>, PkiError> {
    let signed = KeyPair::from_pem(private).and_then(|key| key.sign(unsigned.as_bytes()));
    let der = signed.map_err(|source| PkiError { subject: "a token".into(), source })?;
    // A sequence of two integers, each with a zero before it if its first bit is set: all lengths are below 128.
    let (r, rest) = der[4..].split_at(usize::from(der[3]));
    let number = |bytes: &[u8]| {
        let start = bytes.len().saturating_sub(NUMBER_BYTES);
        let mut padded = vec![0; NUMBER_BYTES - bytes[start..].len()];
        padded.extend_from_slice(&bytes[start..]);
        padded
    };
    Ok([number(r), number(&rest[2..])].concat())
}

/// The bytes of a number of the curve P-256.
const NUMBER_BYTES: usize = 32;

fn parameters(
    name: &str,
    organisations: &[&str],
    alternative_names: Vec<String>,
) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(alternative_names)?;
    params.distinguished_name.push(DnType::CommonName, name);
    for organisation in organisations {
        params.distinguished_name.push(DnType::OrganizationName, *organisation);
    }
    // A day back, so that a clock that is set back during a test does not invalidate them.
    let now = OffsetDateTime::now_utc();
    params.not_before = now - Duration::days(1);
    params.not_after = now + Duration::days(365);
    Ok(params)
}
