//! Words and flags of commands that can be pasted into a shell.

/// A word that a shell reads as it is, whatever an object holds.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// An object as an argument of `kubectl`: `pod web-0`, or `pod/--all` where the name alone would be a flag. No object of an
/// honest API server has such a name.
pub fn object(kind: &str, name: &str) -> String {
    if name.starts_with('-') { quoted(&format!("{kind}/{name}")) } else { format!("{kind} {}", quoted(name)) }
}

/// A command of `kubectl` or `5spot` with further flags, such as `--context lab`. `kubectl` takes them before its command,
/// `5spot` after it. Other programs have other flags.
pub fn with_flags(command: &str, flags: &str) -> String {
    let programs = if command.starts_with("kubectl ") {
        1
    } else if command.starts_with("5spot ") {
        2
    } else {
        0
    };
    if flags.is_empty() || programs == 0 {
        return command.to_owned();
    }
    let mut words: Vec<&str> = command.splitn(programs + 1, ' ').collect();
    words.insert(programs.min(words.len()), flags);
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_finds_nothing_to_run_in_a_name() {
        assert_eq!(quoted("a-b.c/d"), "a-b.c/d");
        assert_eq!(quoted("$(reboot)"), "'$(reboot)'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn a_name_is_never_a_flag() {
        assert_eq!(object("pod", "web-0"), "pod web-0");
        assert_eq!(object("pod", "--all"), "pod/--all");
        assert_eq!(object("node", "-x; reboot"), "'node/-x; reboot'");
    }

    #[test]
    fn flags_come_where_each_program_takes_them() {
        let with = |command| with_flags(command, "--context lab");
        assert_eq!(with("kubectl get pods -A"), "kubectl --context lab get pods -A");
        assert_eq!(with("5spot why pod/a -n b"), "5spot why --context lab pod/a -n b");
        assert_eq!(with("5spot doctor"), "5spot doctor --context lab");
        assert_eq!(with("clusterctl init"), "clusterctl init");
        assert_eq!(with_flags("kubectl get pods", ""), "kubectl get pods");
    }
}
