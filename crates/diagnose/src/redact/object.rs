//! Credentials in objects.

use super::{REDACTED, redact_text};
use serde_json::{Map, Value};

/// Annotations that repeat a whole object, with whatever was in it then.
const COPIES: [&str; 1] = ["kubectl.kubernetes.io/last-applied-configuration"];

/// Parts of provider specs that hold files and scripts of a machine, in which anything may stand.
const CONTENTS: [&str; 14] = [
    "content",
    "contents",
    "userData",
    "customData",
    "bootstrapData",
    "stringData",
    "cloudInit",
    "cloudConfig",
    "ignition",
    "script",
    "scripts",
    "commands",
    "runCmd",
    "bootCmd",
];

/// Lists of commands that are the names of processes.
const PROCESS_NAMES: [&str; 2] = ["killIfCommands", "match_commands"];

/// The ends of names whose values are credentials, in lower case without separators.
const NAMES: [&str; 23] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pass",
    "pwd",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "accesskeyid",
    "secretkey",
    "privatekey",
    "sshkey",
    "accountkey",
    "authkey",
    "signingkey",
    "encryptionkey",
    "credential",
    "credentials",
    "cookie",
    "keydata",
    "certificatedata",
];

/// The ends of further names of variables and headers, in lower case. As names of fields they are too common.
const VARIABLES: [&str; 6] = ["_key", "_auth", "_creds", "_dsn", "_pat", "authorization"];

/// Names that hold a whole kubeconfig or the like.
const WHOLE: [&str; 3] = ["kubeconfig", "dockerconfigjson", "joincommand"];

/// Removes credentials from an object, and its managed fields, which nobody reads. Returns how many were removed.
pub fn redact_object(object: &mut Value) -> usize {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    redact_value(object, false)
}

fn redact_value(value: &mut Value, is_content: bool) -> usize {
    match value {
        Value::String(text) if is_content => replace(text),
        Value::String(text) => {
            let (redacted, removed) = redact_text(text);
            if removed > 0 {
                *text = redacted.into_owned();
            }
            removed
        }
        Value::Array(items) => {
            redact_flags(items) + items.iter_mut().map(|item| redact_value(item, is_content)).sum::<usize>()
        }
        Value::Object(fields) => redact_fields(fields, is_content),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn redact_fields(fields: &mut Map<String, Value>, is_content: bool) -> usize {
    let mut removed = 0;
    // A variable: `{"name": "DB_PASSWORD", "value": "..."}`.
    let is_variable = fields.get("name").and_then(Value::as_str).is_some_and(is_credential_variable);
    for (key, value) in fields.iter_mut() {
        let is_copy = COPIES.contains(&key.as_str());
        let is_credential = is_credential_name(key) || (is_variable && key == "value");
        removed += if let Value::String(text) = value
            && (is_copy || is_credential || holds_whole(key, text))
        {
            replace(text)
        } else {
            redact_value(value, is_content || holds_contents(key) || holds_credentials(key))
        };
    }
    removed
}

/// A group of fields that are credentials, whatever they are called.
fn holds_credentials(key: &str) -> bool {
    key.to_ascii_lowercase().ends_with("credentials")
}

/// `preKubeadmCommands`, `postInstallScript`: every provider has its own.
fn holds_contents(key: &str) -> bool {
    let ends = ["Commands", "Script", "Scripts"];
    let is_script = ends.iter().any(|end| key.ends_with(end)) && !PROCESS_NAMES.contains(&key);
    is_script || CONTENTS.iter().any(|name| name.eq_ignore_ascii_case(key))
}

fn replace(text: &mut String) -> usize {
    if text.is_empty() || text == REDACTED {
        return 0;
    }
    REDACTED.clone_into(text);
    1
}

/// Arguments with the value in the next element: `["--token", "abc"]`.
fn redact_flags(items: &mut [Value]) -> usize {
    let mut removed = 0;
    for index in 1..items.len() {
        let is_flag = |word: &str| word.starts_with('-') && !word.contains('=') && is_credential_name(word);
        let follows_flag = items[index - 1].as_str().is_some_and(is_flag);
        if let Value::String(text) = &mut items[index]
            && follows_flag
            && !text.starts_with('-')
        {
            removed += replace(text);
        }
    }
    removed
}

fn is_credential_name(name: &str) -> bool {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    NAMES.iter().any(|end| name.ends_with(end))
}

/// The name of a variable or header with a credential: `SIGNING_KEY`, `Authorization`.
fn is_credential_variable(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    is_credential_name(name) || VARIABLES.iter().any(|end| lower.ends_with(end))
}

/// A kubeconfig in a field that is called so. A short value is its name.
fn holds_whole(key: &str, text: &str) -> bool {
    let key: String = key.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    (text.contains('\n') || text.len() > 253) && WHOLE.iter().any(|name| key.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn credentials_in_objects_are_removed() {
        let cases = [
            (
                json!({"metadata": {"managedFields": [{}], "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}x"}}}),
                json!({"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "[REDACTED]"}}}),
            ),
            (
                json!({"env": [{"name": "DB_PASSWORD", "value": "x"}, {"name": "RUST_LOG", "value": "info"}]}),
                json!({"env": [{"name": "DB_PASSWORD", "value": "[REDACTED]"}, {"name": "RUST_LOG", "value": "info"}]}),
            ),
            (
                json!({"env": [{"name": "API_TOKEN", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}]}),
                json!({"env": [{"name": "API_TOKEN", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}]}),
            ),
            (
                json!({"args": ["--token", "abc", "--verbose", "--password=x", "--secret", "--next"]}),
                json!({"args": ["--token", "[REDACTED]", "--verbose", "--password=[REDACTED]", "--secret", "--next"]}),
            ),
            (json!({"data": {"kubeconfig": "a\nb"}}), json!({"data": {"kubeconfig": "[REDACTED]"}})),
            (
                json!({"spec": {"kubeconfigSecretRef": {"name": "edge"}, "automountServiceAccountToken": false}}),
                json!({"spec": {"kubeconfigSecretRef": {"name": "edge"}, "automountServiceAccountToken": false}}),
            ),
            (
                json!({"bootstrapSpec": {"spec": {"files": [{"path": "/etc/x", "content": "anything"}], "preStartCommands": ["a b"]}}}),
                json!({"bootstrapSpec": {"spec": {"files": [{"path": "/etc/x", "content": "[REDACTED]"}], "preStartCommands": ["[REDACTED]"]}}}),
            ),
            (
                json!({"preKubeadmCommands": ["login hunter2"], "runcmd": ["x"], "killIfCommands": ["java"]}),
                json!({"preKubeadmCommands": ["[REDACTED]"], "runcmd": ["[REDACTED]"], "killIfCommands": ["java"]}),
            ),
            (json!({"note": "login with Bearer abc"}), json!({"note": "login with Bearer [REDACTED]"})),
            (
                json!({"env": [{"name": "SIGNING_KEY", "value": "x"}, {"name": "MYSQL_PWD", "value": "y"}, {"name": "KEYS", "value": "z"}]}),
                json!({"env": [
                    {"name": "SIGNING_KEY", "value": "[REDACTED]"}, {"name": "MYSQL_PWD", "value": "[REDACTED]"},
                    {"name": "KEYS", "value": "z"},
                ]}),
            ),
            (
                json!({"httpHeaders": [{"name": "Authorization", "value": "Basic dXNlcg=="}]}),
                json!({"httpHeaders": [{"name": "Authorization", "value": "[REDACTED]"}]}),
            ),
            (
                json!({"credentials": {"user": "a", "value": "b"}, "credentialsRef": {"name": "c"}}),
                json!({"credentials": {"user": "[REDACTED]", "value": "[REDACTED]"}, "credentialsRef": {"name": "c"}}),
            ),
            (
                json!({"postInstallScript": "x", "cloudInit": {"a": ["y"]}, "ignition": {"config": "z"}, "key": "taint"}),
                json!({"postInstallScript": "[REDACTED]", "cloudInit": {"a": ["[REDACTED]"]},
                    "ignition": {"config": "[REDACTED]"}, "key": "taint"}),
            ),
            (
                json!({"data": {"config.yaml": "db:\n  password: |\n    hunter2\n  name: x\n"}}),
                json!({"data": {"config.yaml": "db:\n  password: |\n    [REDACTED]\n  name: x\n"}}),
            ),
            (
                json!({"sshPrivateKey": "x", "accessKey": "y"}),
                json!({"sshPrivateKey": "[REDACTED]", "accessKey": "[REDACTED]"}),
            ),
        ];
        for (mut object, expected) in cases {
            redact_object(&mut object);
            assert_eq!(object, expected);
        }
    }

    #[test]
    fn secrets_are_recognised() {
        assert!(
            super::super::is_secret(&json!({"kind": "Secret"}))
                && super::super::is_secret(&json!({"kind": "SecretList"}))
        );
        assert!(!super::super::is_secret(&json!({"kind": "ConfigMap"})));
    }
}
