//! Names of images.

/// The name in full, as container runtimes store it: with a registry and a tag. `5spot-controller` is
/// `docker.io/library/5spot-controller:latest`.
pub(crate) fn in_full(name: &str) -> String {
    let registry = name.split_once('/').map(|(first, _)| first);
    let is_registry = |first: &str| first.contains(['.', ':']) || first == "localhost";
    let prefix = match registry {
        Some(first) if is_registry(first) => "",
        Some(_) => "docker.io/",
        None => "docker.io/library/",
    };
    let last = name.rsplit('/').next().unwrap_or(name);
    let tag = if last.contains([':', '@']) { "" } else { ":latest" };
    format!("{prefix}{name}{tag}")
}

/// The tag of a name in full.
pub(crate) fn tag(name: &str) -> &str {
    name.rsplit_once(':').map_or("latest", |(_, tag)| tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_completed_as_container_runtimes_do() {
        for (name, full) in [
            ("5spot-controller", "docker.io/library/5spot-controller:latest"),
            ("5spot-controller:1", "docker.io/library/5spot-controller:1"),
            ("team/5spot-controller", "docker.io/team/5spot-controller:latest"),
            ("localhost/tenant:1", "localhost/tenant:1"),
            ("registry.example:5000/5spot-controller", "registry.example:5000/5spot-controller:latest"),
        ] {
            assert_eq!(in_full(name), full);
        }
        assert_eq!(tag("registry.example:5000/5spot-controller:0.1.0"), "0.1.0");
    }
}
