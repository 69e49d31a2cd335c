//! The way into the cluster that this pod runs in: the variables and files that the kubelet gives to every pod.

use super::ClientError;
use std::net::IpAddr;
use std::path::PathBuf;

/// The folder in which a pod finds its token and the certificate authority of its API server.
pub const SERVICE_ACCOUNT_FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The reason why a cluster cannot be accessed.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// A variable is missing or unusable.
    #[error("{variable} is not set to a usable value: the agent runs in a pod, where the kubelet sets it")]
    Variable {
        /// The name of the variable.
        variable: &'static str,
    },
}

/// Address and credentials of an API server.
#[derive(Clone, Debug)]
pub struct ClusterAccess {
    host: String,
    port: u16,
    folder: PathBuf,
}

impl ClusterAccess {
    /// The API server at `host` and `port`, with the credentials in `folder`.
    pub fn new(host: String, port: u16, folder: PathBuf) -> Self {
        Self { host, port, folder }
    }

    /// The API server that the variables name. `variable` looks one up.
    pub fn from_variables(
        variable: impl Fn(&str) -> Option<String>,
        folder: PathBuf,
    ) -> Result<Self, AccessError> {
        const HOST: &str = "KUBERNETES_SERVICE_HOST";
        const PORT: &str = "KUBERNETES_SERVICE_PORT";
        let host = variable(HOST).filter(|host| !host.is_empty());
        let host = host.ok_or(AccessError::Variable { variable: HOST })?;
        let port = variable(PORT).and_then(|port| port.parse().ok());
        let port = port.ok_or(AccessError::Variable { variable: PORT })?;
        Ok(Self::new(host, port, folder))
    }

    /// The name or address of the API server.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port of the API server.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Host and port, as in a URL.
    pub fn authority(&self) -> String {
        match self.host.parse() {
            Ok(IpAddr::V6(address)) => format!("[{address}]:{}", self.port),
            Ok(IpAddr::V4(_)) | Err(_) => format!("{}:{}", self.host, self.port),
        }
    }

    /// The token, as it is now: the kubelet replaces it before it expires.
    pub fn token(&self) -> Result<String, ClientError> {
        let token = self.read("token")?;
        Ok(String::from_utf8_lossy(&token).trim().to_owned())
    }

    /// The certificates by which the API server is trusted, in PEM, as they are now.
    pub fn certificate_authority(&self) -> Result<Vec<u8>, ClientError> {
        self.read("ca.crt")
    }

    fn read(&self, file: &str) -> Result<Vec<u8>, ClientError> {
        let path = self.folder.join(file);
        std::fs::read(&path).map_err(|source| ClientError::Credentials { path, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_the_pod_name_the_server() {
        let access = |host: &str, port: &str| {
            let (host, port) = (host.to_owned(), port.to_owned());
            let variable = move |name: &str| match name {
                "KUBERNETES_SERVICE_HOST" => Some(host.clone()),
                "KUBERNETES_SERVICE_PORT" => Some(port.clone()),
                _ => None,
            };
            ClusterAccess::from_variables(variable, PathBuf::new()).map(|access| access.authority())
        };
        assert_eq!(access("10.96.0.1", "443").expect("valid"), "10.96.0.1:443");
        assert_eq!(access("fd00::1", "6443").expect("valid"), "[fd00::1]:6443");
        assert_eq!(access("api.example", "443").expect("valid"), "api.example:443");
        for (host, port, variable) in [
            ("", "443", "KUBERNETES_SERVICE_HOST"),
            ("h", "", "KUBERNETES_SERVICE_PORT"),
            ("h", "x", "KUBERNETES_SERVICE_PORT"),
        ] {
            let error = access(host, port).expect_err("refused").to_string();
            assert!(error.starts_with(variable), "{error}");
        }
    }
}
