//! The answer of the command.

use crate::style::Style;
use serde::Serialize;
use std::fmt::Write as _;

/// Everything that exists afterwards.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Created {
    pub(super) secret: SecretName,
    pub(super) server: String,
    pub(super) service_account: String,
    pub(super) expires_at: String,
    pub(super) applied: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
}

/// The Secret with the kubeconfig.
#[derive(Serialize)]
pub(super) struct SecretName {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) key: &'static str,
}

/// The answer for people.
pub(super) fn text(created: &Created, _: Style) -> String {
    let mut text = String::new();
    for object in &created.applied {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "applied {object}");
    }
    let SecretName { namespace, name, .. } = &created.secret;
    let _ =
        writeln!(text, "The token expires at {}. Run this command again before then.", created.expires_at);
    for warning in &created.warnings {
        let _ = writeln!(text, "Warning: {warning}.");
    }
    let _ = writeln!(text, "In ScheduledMachines of namespace {namespace}, set:");
    let _ = writeln!(text, "  spec:\n    kubeconfigSecretRef:\n      name: {name}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::ProcessEnvironment;

    #[test]
    fn the_answer_names_the_secret_and_the_end_and_no_token() {
        let created = Created {
            secret: SecretName {
                namespace: "desks".into(),
                name: "edge-5spot-kubeconfig".into(),
                key: "value",
            },
            server: "https://api.example:6443".into(),
            service_account: "5spot-system/5spot-controller".into(),
            expires_at: "2027-02-15T09:00:00Z".into(),
            applied: vec!["Secret desks/edge-5spot-kubeconfig in the management cluster".into()],
            warnings: vec!["the address is that of this machine".into()],
        };
        let shown = text(&created, Style::of(&ProcessEnvironment::quiet()));
        for part in [
            "applied Secret desks/edge",
            "2027-02-15T09:00:00Z",
            "Warning: the address is that of this machine.",
            "name: edge-5spot-kubeconfig",
        ] {
            assert!(shown.contains(part), "{shown}");
        }
        let json = serde_json::to_value(&created).expect("JSON");
        assert_eq!(json["secret"]["key"], "value");
        assert_eq!(json["expiresAt"], "2027-02-15T09:00:00Z");
        assert_eq!(json["warnings"][0], "the address is that of this machine");
        assert!(json.get("token").is_none());
    }
}
