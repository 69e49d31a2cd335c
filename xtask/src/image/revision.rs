//! The commit that an image is made from.

use std::path::Path;
use std::process::Command;

use five_spot_image::Image;

/// A commit, if the sources are in a repository.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Revision {
    /// Its hash, followed by `-dirty` if files differ from it.
    hash: Option<String>,
    /// Its time in seconds since 1970. Images of one commit have the same time, and so the same digest.
    seconds: Option<i64>,
}

impl Revision {
    /// The commit of this repository.
    pub(super) fn of_repository() -> Self {
        let dirty = git(&["status", "--porcelain"]).is_some_and(|changes| !changes.is_empty());
        let suffix = if dirty { "-dirty" } else { "" };
        Self {
            hash: git(&["rev-parse", "HEAD"]).map(|hash| format!("{hash}{suffix}")),
            seconds: git(&["log", "-1", "--format=%ct"]).and_then(|seconds| seconds.parse().ok()),
        }
    }

    /// Returns true if files differ from the commit, or there is none.
    pub(super) fn is_dirty(&self) -> bool {
        self.hash.as_ref().is_none_or(|hash| hash.ends_with("-dirty"))
    }

    /// The time in the form of `SOURCE_DATE_EPOCH`.
    pub(super) fn epoch(&self) -> String {
        self.seconds.unwrap_or_default().to_string()
    }

    /// The image with the hash and the time, as far as they are known.
    pub(super) fn label(&self, image: Image) -> Image {
        let image = match self.seconds.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok()) {
            Some(at) => {
                image.created(&at.to_string()).label("org.opencontainers.image.created", &at.to_string())
            }
            None => image,
        };
        match &self.hash {
            Some(hash) => image.label("org.opencontainers.image.revision", hash),
            None => image,
        }
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let output = Command::new("git").args(arguments).current_dir(root).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_without_a_repository_have_an_image_too() {
        let image = Image::new("x", &["/bin/x"]);
        assert_eq!(Revision::default().label(image.clone()).digest(), image.digest());
        let known = Revision { hash: Some("abc".into()), seconds: Some(0) };
        assert_ne!(known.label(image.clone()).digest(), image.digest());
        assert_eq!(known.epoch(), "0");
    }
}
