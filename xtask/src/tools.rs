//! Programs from a Linux distribution: finds them, and installs missing ones if possible.

use anyhow::ensure;
use std::process::{Command, Stdio};

/// A program: the command that finds it, and the Debian package that contains it.
pub(crate) struct Tool {
    /// A command that succeeds if the program is installed.
    pub(crate) check: &'static [&'static str],
    /// The Debian package that contains it.
    pub(crate) package: &'static str,
}

/// Installs missing programs, or returns an error that says what to install.
pub(crate) fn install_missing(tools: &[Tool]) -> anyhow::Result<()> {
    let mut packages: Vec<&str> =
        tools.iter().filter(|tool| !succeeds(tool.check)).map(|tool| tool.package).collect();
    packages.dedup();
    if packages.is_empty() {
        return Ok(());
    }
    let install: Vec<&str> = ["apt-get", "install", "--yes", "--no-install-recommends"]
        .into_iter()
        .chain(packages.clone())
        .collect();
    // A fresh machine has no package lists yet.
    let installed = succeeds(&install) || (succeeds(&["apt-get", "update"]) && succeeds(&install));
    ensure!(
        installed,
        "missing, and this user cannot install: {0}. Run `apt-get install {0}` as root.",
        packages.join(" ")
    );
    Ok(())
}

fn succeeds(command: &[&str]) -> bool {
    let Some((program, arguments)) = command.split_first() else { return false };
    let status = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installed_programs_are_not_installed_again() {
        let there = Tool { check: &["true"], package: "no-such-package" };
        assert!(install_missing(&[there]).is_ok());
    }

    #[test]
    fn a_missing_or_failing_program_is_not_installed() {
        assert!(!succeeds(&["no-such-program-anywhere"]));
        assert!(!succeeds(&["false"]));
    }
}
