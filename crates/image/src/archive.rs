//! The archive of an image in the layout of the Open Container Initiative (`oci-archive`): blobs under the names of their
//! digests, and an index.

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::fmt::Write as _;

use crate::tar::Archive;

/// The media types of the parts.
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// Not compressed, so that the digest does not depend on the version of a compressor. Registries and the tools that push to
/// them compress layers themselves.
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// A blob and its digest.
pub(crate) struct Blob {
    pub(crate) digest: String,
    content: Vec<u8>,
    media_type: &'static str,
}

impl Blob {
    fn new(media_type: &'static str, content: Vec<u8>) -> Self {
        Self { digest: hex_digest(&content), content, media_type }
    }

    pub(crate) fn layer(content: Vec<u8>) -> Self {
        Self::new(LAYER, content)
    }

    pub(crate) fn config(content: &Value) -> Self {
        Self::new(CONFIG, content.to_string().into_bytes())
    }

    pub(crate) fn manifest(config: &Self, layer: &Self, annotations: &Value) -> Self {
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config.descriptor(),
            "layers": [layer.descriptor()],
            "annotations": annotations,
        });
        Self::new(MANIFEST, manifest.to_string().into_bytes())
    }

    fn descriptor(&self) -> Value {
        json!({"mediaType": self.media_type, "digest": self.name(), "size": self.content.len()})
    }

    /// The digest with its algorithm.
    pub(crate) fn name(&self) -> String {
        format!("sha256:{}", self.digest)
    }
}

/// The archive of these blobs, of which `manifest` is the image.
pub(crate) fn archive(manifest: &Blob, others: &[&Blob], annotations: &Value, platform: &Value) -> Vec<u8> {
    let mut entry = manifest.descriptor();
    entry["annotations"] = annotations.clone();
    entry["platform"] = platform.clone();
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]});
    let mut archive = Archive::default();
    archive.directory("blobs", 0o755);
    archive.directory("blobs/sha256", 0o755);
    for blob in others.iter().copied().chain([manifest]) {
        archive.file(&format!("blobs/sha256/{}", blob.digest), 0o644, &blob.content);
    }
    archive.file("index.json", 0o644, index.to_string().as_bytes());
    archive.file("oci-layout", 0o644, br#"{"imageLayoutVersion":"1.0.0"}"#);
    archive.finish()
}

fn hex_digest(bytes: &[u8]) -> String {
    let digest = digest(&SHA256, bytes);
    let mut hex = String::with_capacity(2 * digest.as_ref().len());
    for byte in digest.as_ref() {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_sha256sum() {
        assert_eq!(hex_digest(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
