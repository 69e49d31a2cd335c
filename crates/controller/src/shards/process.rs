//! The identity of a process on its machine. A controller that is started again on the same machine, outside a pod, can
//! see that the previous process has ended, so it need not wait until the Lease expires.

use std::{fs, io};

/// Returns the identity of this process; nothing if the kernel does not provide it.
pub(crate) fn identity() -> Option<String> {
    let pid = std::process::id();
    let process = read(pid).ok()??;
    Some(format!("{}/{pid}/{}", process_table()?, process.started))
}

/// Returns true if the process of this identity ran on this machine and has ended. If that is unknown, returns false.
pub(crate) fn has_ended(identity: &str) -> bool {
    let Some(rest) = process_table().and_then(|table| identity.strip_prefix(&format!("{table}/"))) else {
        return false;
    };
    let Some((Ok(pid), started)) = rest.split_once('/').map(|(pid, started)| (pid.parse(), started)) else {
        return false;
    };
    match read(pid) {
        Ok(process) => process.is_some_and(|now| now.is_dead || now.started != started),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// The process table in which process ids are valid: that of one boot and one pid namespace.
fn process_table() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{}/{}", boot.trim(), namespace.to_str()?))
}

/// The facts that distinguish a process from a later one with the same id.
struct ProcessStat {
    /// Its start in clock ticks since the boot.
    started: String,
    /// True if it has ended and its parent has not waited for it yet.
    is_dead: bool,
}

/// Reads `/proc/<pid>/stat`. Nothing if that has an unknown form.
fn read(pid: u32) -> io::Result<Option<ProcessStat>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name of the program is in parentheses and may contain any character.
    let Some((_, fields)) = text.rsplit_once(')') else { return Ok(None) };
    let mut fields = fields.split_whitespace();
    let is_dead = fields.next().is_some_and(|state| matches!(state, "Z" | "X"));
    // The 22nd field of all, and the 19th after the state.
    Ok(fields.nth(18).map(|started| ProcessStat { started: started.to_owned(), is_dead }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_has_ended_when_it_was_killed_and_not_before() {
        assert!(!has_ended(&identity().expect("an identity")));
        let mut child = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().expect("sleep");
        let table = process_table().expect("a process table");
        let started = read(child.id()).expect("stat").expect("fields").started;
        let living = format!("{table}/{}/{started}", child.id());
        assert!(!has_ended(&living));
        assert!(has_ended(&format!("{table}/{}/1", child.id())), "another process of that number");
        child.kill().expect("kill");
        // Its parent has not waited for it yet: it is still in the process table.
        while !has_ended(&living) {
            std::thread::yield_now();
        }
        child.wait().expect("wait");
        assert!(has_ended(&living));
    }

    #[test]
    fn a_process_elsewhere_is_not_judged() {
        let table = process_table().expect("a process table");
        for identity in
            ["", "/", "other-boot/pid:[1]/1/1", &table, &format!("{table}/x/1"), &format!("{table}/1")]
        {
            assert!(!has_ended(identity), "{identity}");
        }
    }
}
