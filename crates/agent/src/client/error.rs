//! The failures of a request.

use http::StatusCode;
use std::path::PathBuf;
use std::time::Duration;

/// The reason why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Token or certificate authority cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Credentials {
        /// The file.
        path: PathBuf,
        /// The refusal of the operating system.
        source: std::io::Error,
    },
    /// The certificate authority is not usable.
    #[error("the certificate authority of the API server is unusable: {0}")]
    CertificateAuthority(String),
    /// No connection could be made.
    #[error("cannot connect to the API server {authority}: {source}")]
    Connect {
        /// Host and port.
        authority: String,
        /// The failure.
        source: std::io::Error,
    },
    /// The API server did not answer in time.
    #[error("the API server did not answer within {0:?}")]
    Timeout(Duration),
    /// The connection failed.
    #[error("the connection to the API server failed: {0}")]
    Http(hyper::Error),
    /// The request could not be built.
    #[error("invalid request: {0}")]
    Request(String),
    /// The answer could not be read to its end.
    #[error("the answer of the API server could not be read: {0}")]
    Body(String),
    /// The answer is not what a Kubernetes API server sends.
    #[error("the answer of the API server is malformed: {0}")]
    Malformed(serde_json::Error),
    /// The API server refused.
    #[error("the API server answered {code}: {message}")]
    Refused {
        /// The status code.
        code: StatusCode,
        /// The message of the API server, at most 500 bytes.
        message: String,
    },
}

impl ClientError {
    /// True if an admission policy or webhook refused. The API server tells that from other refusals by its message alone.
    pub fn is_denied_by_admission(&self) -> bool {
        let denials = ["denied request", "denied the request"];
        self.refusal().is_some_and(|(_, message)| denials.iter().any(|words| message.contains(words)))
    }

    /// The status code of a refusal.
    pub fn code(&self) -> Option<u16> {
        self.refusal().map(|(code, _)| code)
    }

    /// The status code and the message of a refusal.
    fn refusal(&self) -> Option<(u16, &str)> {
        match self {
            Self::Refused { code, message } => Some((code.as_u16(), message)),
            Self::Credentials { .. }
            | Self::CertificateAuthority(_)
            | Self::Connect { .. }
            | Self::Timeout(_)
            | Self::Http(_)
            | Self::Request(_)
            | Self::Body(_)
            | Self::Malformed(_) => None,
        }
    }
}
