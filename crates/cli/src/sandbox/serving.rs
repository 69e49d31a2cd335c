//! Access for `kubectl`: a listening address and a kubeconfig for it.

use crate::sandbox::args::Serving;
use anyhow::Context as _;
use five_spot_apiserver::{ApiServer, HttpServer, serve};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The API server on a port; dropping it stops the server.
#[derive(Debug)]
pub struct KubectlAccess {
    _server: HttpServer,
    kubeconfig: File,
}

/// The path of the kubeconfig. A temporary file is removed on drop.
#[derive(Debug)]
enum File {
    Kept(PathBuf),
    Temporary(NamedTempFile),
}

impl KubectlAccess {
    pub async fn new(api: &ApiServer, serving: &Serving) -> anyhow::Result<Self> {
        let server = serve(api.service(), serving.address)
            .await
            .with_context(|| format!("failed to listen on {}", serving.address))?;
        let text = server.kubeconfig();
        let kubeconfig = if let Some(path) = &serving.kubeconfig {
            std::fs::write(path, text)
                .with_context(|| format!("failed to write --kubeconfig-out {}", path.display()))?;
            File::Kept(path.clone())
        } else {
            let file = tempfile::Builder::new().prefix("5spot-sandbox-").suffix(".kubeconfig").tempfile();
            let file = file.context("failed to create a temporary file for the kubeconfig")?;
            std::fs::write(file.path(), text).context("failed to write the kubeconfig")?;
            File::Temporary(file)
        };
        Ok(Self { _server: server, kubeconfig })
    }

    /// The `KUBECONFIG=` line for the user's shell.
    pub fn line(&self) -> String {
        format!("export KUBECONFIG={}", quoted(self.path()))
    }

    fn path(&self) -> &Path {
        match &self.kubeconfig {
            File::Kept(path) => path,
            File::Temporary(file) => file.path(),
        }
    }
}

/// Quotes a path for a shell.
fn quoted(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_');
    if path.chars().all(is_plain) { path } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_can_be_pasted() {
        assert_eq!(quoted(Path::new("/tmp/a-b_c.d")), "/tmp/a-b_c.d");
        assert_eq!(quoted(Path::new("/tmp/it's here")), "'/tmp/it'\\''s here'");
    }
}
