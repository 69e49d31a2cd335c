//! The files of an image: the program, root certificates and the configuration of name lookups.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use five_spot_image::RootFileSystem;

use super::Shipped;

/// The order in which the C library looks up names: the hosts file of the pod, then DNS.
const NAME_LOOKUP: &str = "hosts: files dns\n";

/// The place of the program.
pub(super) fn program_path(shipped: &Shipped) -> String {
    format!("bin/{}", shipped.program)
}

/// The root file system for a statically linked program.
pub(super) fn root(shipped: &Shipped, program: &Path) -> anyhow::Result<RootFileSystem> {
    let content = fs::read(program).with_context(|| format!("failed to read {}", program.display()))?;
    ensure!(
        !has_interpreter(&content),
        "{} is linked dynamically: nothing in the image could load it",
        program.display()
    );
    let mut root = RootFileSystem::default();
    root.file(&program_path(shipped), 0o755, content);
    root.file("etc/nsswitch.conf", 0o644, NAME_LOOKUP);
    root.file("etc/ssl/certs/ca-certificates.crt", 0o644, root_certificates());
    Ok(root)
}

/// The roots that Mozilla trusts, from a pinned crate and not from this machine, as PEM.
fn root_certificates() -> String {
    let mut text = String::new();
    for certificate in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let encoded = STANDARD.encode(certificate);
        for line in encoded.as_bytes().chunks(64) {
            text.push_str(&String::from_utf8_lossy(line));
            text.push('\n');
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}

/// Returns true if an ELF program of 64 bits asks for a loader (a program header of type `PT_INTERP`).
fn has_interpreter(program: &[u8]) -> bool {
    const PT_INTERP: u32 = 3;
    let number = |offset: usize, bytes: usize| {
        let field = program.get(offset..offset + bytes)?;
        Some(field.iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte)))
    };
    let header = |offset, bytes| number(offset, bytes).and_then(|value| usize::try_from(value).ok());
    let (Some(table), Some(size), Some(count)) = (header(32, 8), header(54, 2), header(56, 2)) else {
        return false;
    };
    (0..count).any(|index| number(table + index * size, 4) == Some(u64::from(PT_INTERP)))
}

#[cfg(test)]
mod tests {
    use super::super::SHIPPED;
    use super::*;

    #[test]
    fn a_dynamic_program_is_refused_with_a_reason() {
        let error = root(&SHIPPED[0], Path::new("/bin/sh")).unwrap_err().to_string();
        assert!(error.contains("is linked dynamically"), "{error}");
    }

    #[test]
    fn certificates_are_pem_that_openssl_would_read() {
        let text = root_certificates();
        let count = text.matches("-----BEGIN CERTIFICATE-----\n").count();
        assert_eq!(count, webpki_root_certs::TLS_SERVER_ROOT_CERTS.len());
        assert!(count > 50 && text.lines().all(|line| line.len() <= 64));
    }
}
