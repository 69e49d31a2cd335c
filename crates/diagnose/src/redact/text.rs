//! Credentials in text, such as logs and serialized objects.

use super::REDACTED;
use regex::{Captures, Regex};
use std::borrow::Cow;
use std::sync::LazyLock;

/// The ends of names whose values are credentials.
const NAMES: &str = "password|passwd|passphrase|passcode|pass|pwd|secret|token|api[_-]?key|access[_-]?key(?:[_-]?id)?|secret[_-]?key|\
                     private[_-]?key|ssh[_-]?key|account[_-]?key|auth[_-]?key|signing[_-]?key|encryption[_-]?key|credentials?|cookie|\
                     key-data|certificate-data|certificate-authority-data|client[_-]?secret";

/// A pattern, and the number of its group that is replaced; 0 for all of it.
struct Pattern {
    regex: Regex,
    group: usize,
}

/// In this order: what is large first, because the others would only remove parts of it.
static PATTERNS: LazyLock<Vec<Pattern>> = LazyLock::new(|| {
    let pattern =
        |regex: &str, group| Pattern { regex: Regex::new(regex).expect("the pattern is valid"), group };
    vec![
        // PEM in base64, gzip in base64 (join tokens of k0s), and kubeconfigs in base64.
        pattern(r"\b(?:LS0tLS1CRUdJTi|H4sI|YXBpVmVyc2lvb|a2luZDogQ29uZmln)[A-Za-z0-9+/_-]{16,}={0,2}", 0),
        // JSON Web Tokens.
        pattern(r"\beyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?", 0),
        // Authorization headers.
        pattern(r#"(?i)\bbearer\s+([^\s"',;\\]+)"#, 1),
        pattern(
            r#"(?i)\bauthorization["']?\s*[:=]\s*["']?(?:basic|digest|negotiate|apikey|token)\s+([^\s"',;\\]+)"#,
            1,
        ),
        // Passwords in addresses, which may have slashes and at signs in them, and tokens in their place.
        pattern(r#"\b[a-zA-Z][a-zA-Z0-9+.-]*://([^\s/@:"']*:[^\s"'\\]+)@"#, 1),
        pattern(r#"\b[a-zA-Z][a-zA-Z0-9+.-]*://([^\s/@:"'\\]+)@"#, 1),
        // Tokens of well-known services.
        pattern(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", 0),
        pattern(r"\bgh[pousr]_[A-Za-z0-9]{20,}\b", 0),
        pattern(r"\bgithub_pat_[A-Za-z0-9_]{20,}\b", 0),
        pattern(r"\bglpat-[A-Za-z0-9_-]{16,}", 0),
        pattern(r"\bxox[abprs]-[A-Za-z0-9-]{10,}", 0),
        // Bootstrap tokens of kubeadm.
        pattern(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b", 0),
        // Flags with a value in the next word.
        pattern(&format!(r#"(?i)(?:^|[\s"'])--?[a-z0-9._-]*(?:{NAMES})\s+([^\s"',;\\-][^\s"',;\\]*)"#), 1),
        // A line of YAML, to its end: the value may have any characters in it.
        pattern(
            &format!(
                r#"(?i)^[ \t]*(?:- )*["']?[a-z0-9_./-]*(?:{NAMES})["']?[ \t]*:[ \t]+([^\s"'{{\[|>].*?)[ \t\r\n]*$"#
            ),
            1,
        ),
        // `"name":"value"` with escaped characters in the value, to the quote that ends it.
        pattern(&format!(r#"(?i)(?:{NAMES})\\*["']?\s*[:=]\s*"((?:[^"\\]|\\.)+)"#), 1),
        pattern(&format!(r#"(?i)(?:{NAMES})\\*["']?\s*[:=]\s*'((?:[^']|'')+)"#), 1),
        // The same inside of a string, however often that is escaped: to the quote before the next field.
        pattern(&format!(r#"(?i)(?:{NAMES})\\+["']\s*:\s*\\+["'](.+?)\\+["']\s*(?:[,}}\]]|$)"#), 1),
        // `name=value`, `name: value`, `"name":"value"`, also with escaped quotes.
        pattern(&format!(r#"(?i)(?:{NAMES})\\*["']?\s*[:=]\s*\\*["']([^"'\\]+)"#), 1),
        pattern(&format!(r#"(?i)(?:{NAMES})\\*["']?\s*[:=][ \t]*([^\s"',;&{{}}\[\]\\]+)"#), 1),
    ]
});

/// The name of a credential whose value is the block of lines that follows: `password: |`.
static BLOCK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(&format!(r#"(?i)(?:{NAMES})["']?[ \t]*:[ \t]*[|>][0-9+-]*[ \t\r\n]*$"#))
        .expect("the pattern is valid")
});

/// PEM blocks, also with escaped line ends, and to the end of the text if they do not end.
static PEM: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?s)-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|\z)")
        .expect("the pattern is valid")
});

/// A sign that a line may match one of the patterns. Most lines have none, and one fast look at each is enough.
static SIGN: LazyLock<regex::bytes::Regex> = LazyLock::new(|| {
    let signs = format!(
        r"(?-u)(?i:{NAMES}|bearer|authorization)|://|LS0tLS1CRUdJTi|H4sI|YXBpVmVyc2lvb|a2luZDogQ29uZmln|eyJ|AKIA|ASIA|gh[pousr]_|github_pat_|glpat-|xox|[a-z0-9]{{6}}\.[a-z0-9]{{16}}"
    );
    regex::bytes::Regex::new(&signs).expect("the pattern is valid")
});

/// Returns the text without credentials, and how many were removed.
pub fn redact_text(text: &str) -> (Cow<'_, str>, usize) {
    let mut removed = 0;
    let text = PEM.replace_all(text, |found: &Captures<'_>| replacement(found, 0, &mut removed));
    if !SIGN.is_match(text.as_bytes()) {
        return (text, removed);
    }
    let mut result = String::with_capacity(text.len());
    // The column of a name whose block is left out.
    let mut hidden: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        if let Some(column) = hidden {
            if is_within(line, column) {
                removed += hide(line, &mut result);
                continue;
            }
            hidden = None;
        }
        if SIGN.is_match(line.as_bytes()) {
            let (harmless, found) = redact_line(line);
            removed += found;
            result.push_str(&harmless);
            hidden = BLOCK.is_match(line).then(|| margin(line, "-"));
        } else {
            result.push_str(line);
        }
    }
    if removed == 0 { (text, 0) } else { (Cow::Owned(result), removed) }
}

/// The length of what stands before the first word of a line: blanks, and the given marks.
fn margin(line: &str, marks: &str) -> usize {
    let is_margin = |c: char| c == ' ' || c == '\t' || marks.contains(c);
    line.len() - line.trim_start_matches(is_margin).len()
}

/// True if a line belongs to the block of a name in a column: it stands further to the right, or is empty.
fn is_within(line: &str, column: usize) -> bool {
    line.trim().is_empty() || margin(line, "") > column
}

/// Adds a line without its content. Returns 1 if that removes something.
fn hide(line: &str, result: &mut String) -> usize {
    let content = line.trim();
    if content.is_empty() || content == REDACTED {
        result.push_str(line);
        return 0;
    }
    result.push_str(&line[..margin(line, "")]);
    result.push_str(REDACTED);
    if line.ends_with('\n') {
        result.push('\n');
    }
    1
}

fn redact_line(line: &str) -> (Cow<'_, str>, usize) {
    let mut result = Cow::Borrowed(line);
    let mut removed = 0;
    for pattern in PATTERNS.iter() {
        if !pattern.regex.is_match(&result) {
            continue;
        }
        let replaced = pattern
            .regex
            .replace_all(&result, |found: &Captures<'_>| replacement(found, pattern.group, &mut removed));
        result = Cow::Owned(replaced.into_owned());
    }
    (result, removed)
}

fn replacement(found: &Captures<'_>, group: usize, removed: &mut usize) -> String {
    let whole = &found[0];
    let Some(value) = found.get(group) else { return whole.to_owned() };
    if value.as_str().is_empty() || value.as_str().contains(REDACTED) || is_harmless(value.as_str()) {
        return whole.to_owned();
    }
    *removed += 1;
    let start = value.start() - found.get(0).map_or(0, |it| it.start());
    format!("{}{REDACTED}{}", &whole[..start], &whole[start + value.len()..])
}

/// Values that are no credentials, whatever the name says.
fn is_harmless(value: &str) -> bool {
    matches!(value, "true" | "false" | "null" | "none" | "None" | "~" | "|" | ">" | "|-" | ">-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(text: &str) -> String {
        redact_text(text).0.into_owned()
    }

    #[test]
    fn credentials_are_removed_and_the_rest_stays() {
        for (text, expected) in [
            ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer [REDACTED]"),
            ("curl -H 'authorization: Basic dXNlcjpwYXNz' x", "curl -H 'authorization: Basic [REDACTED]' x"),
            ("a eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln b", "a [REDACTED] b"),
            ("postgres://app:s3cret@db:5432/x", "postgres://[REDACTED]@db:5432/x"),
            ("https://10.0.0.1:6443/api", "https://10.0.0.1:6443/api"),
            ("DB_PASSWORD=hunter2 next", "DB_PASSWORD=[REDACTED] next"),
            ("{\"token\":\"abc\",\"name\":\"x\"}", "{\"token\":\"[REDACTED]\",\"name\":\"x\"}"),
            ("{\\\"password\\\":\\\"abc\\\"}", "{\\\"password\\\":\\\"[REDACTED]\\\"}"),
            ("password: 'two words'", "password: '[REDACTED]'"),
            ("apiKey: abcdef", "apiKey: [REDACTED]"),
            ("client-key-data: AAAA", "client-key-data: [REDACTED]"),
            ("kubeadm join --token abcdef.0123456789abcdef", "kubeadm join --token [REDACTED]"),
            ("run --db-password hunter2 --verbose", "run --db-password [REDACTED] --verbose"),
            ("run --token=abc", "run --token=[REDACTED]"),
            ("AKIAIOSFODNN7EXAMPLE", "[REDACTED]"),
            ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "[REDACTED]"),
            ("glpat-abcdefghijklmnopqrst", "[REDACTED]"),
            ("k0s H4sIAAAAAAAC/2yRT2vbQBDF7/oUgw+52d token", "k0s [REDACTED] token"),
            ("caBundle: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1J", "caBundle: [REDACTED]"),
            // Whatever characters a value has, nothing of it stays.
            ("password: hun,ter's 2 \n", "password: [REDACTED] \n"),
            ("- db.password: a;b&c", "- db.password: [REDACTED]"),
            (r#"{"password":"a\"b'c,d","x":"y"}"#, r#"{"password":"[REDACTED]","x":"y"}"#),
            ("{'token':'a\"b','x':'y'}", "{'token':'[REDACTED]','x':'y'}"),
            (
                r#"{\\\"token\\\":\\\"abc\\\",\\\"x\\\":1}"#,
                r#"{\\\"token\\\":\\\"[REDACTED]\\\",\\\"x\\\":1}"#,
            ),
            ("https://bob:p@s/s@example.org/x", "https://[REDACTED]@example.org/x"),
            ("https://t0ken@example.org/x", "https://[REDACTED]@example.org/x"),
            (
                "DefaultEndpointsProtocol=https;AccountKey=abc==;x",
                "DefaultEndpointsProtocol=https;AccountKey=[REDACTED];x",
            ),
            ("Set-Cookie: session=abc; Path=/", "Set-Cookie: [REDACTED]"),
            ("MYSQL_PWD=abc DB_PASS=def", "MYSQL_PWD=[REDACTED] DB_PASS=[REDACTED]"),
        ] {
            assert_eq!(redacted(text), expected);
        }
    }

    #[test]
    fn pem_blocks_are_removed_in_every_form() {
        let block = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----";
        assert_eq!(redacted(&format!("a {block} b")), "a [REDACTED] b");
        let escaped = block.replace('\n', "\\n");
        assert_eq!(redacted(&format!("{{\"a\":\"{escaped}\"}}")), "{\"a\":\"[REDACTED]\"}");
        assert_eq!(redacted("a -----BEGIN CERTIFICATE-----\nMIIE\nno end"), "a [REDACTED]");
        let indented = block.replace('\n', "\n    ");
        assert_eq!(
            redacted(&format!("key: |\n    {indented}\nnext: 1\n")),
            "key: |\n    [REDACTED]\nnext: 1\n"
        );
    }

    #[test]
    fn blocks_of_lines_are_removed() {
        let text = "a:\n  password: |-\n    hunter2\n\n    more\n  name: x\n- token: >\n    abc\n  user: y\n";
        let expected = "a:\n  password: |-\n    [REDACTED]\n\n    [REDACTED]\n  name: x\n- token: >\n    [REDACTED]\n  user: y\n";
        assert_eq!(redacted(text), expected);
        assert_eq!(redact_text(expected).1, 0);
    }

    #[test]
    fn ordinary_lines_stay_as_they_are() {
        for line in [
            r#"{"level":"INFO","fields":{"message":"Reconciliation finished","resource":"desk-17","namespace":"desks"}}"#,
            "secretName: edge-kubeconfig",
            "kubeconfigSecretRef:",
            "automountServiceAccountToken: false",
            "pods \"web-0\" is forbidden: User \"system:serviceaccount:5spot-system:5spot-controller\" cannot get",
            "image: registry.example.org/5spot-controller:0.1.0",
            "uid: 1f9b6f3b-6d62-48a7-bae6-d6e461c769a9",
        ] {
            assert_eq!(redact_text(line), (Cow::Borrowed(line), 0));
        }
    }

    #[test]
    fn what_was_removed_is_counted_once() {
        let (text, removed) = redact_text("token=a password=b");
        assert_eq!(removed, 2);
        assert_eq!(redact_text(&text).1, 0, "{text}");
    }
}
