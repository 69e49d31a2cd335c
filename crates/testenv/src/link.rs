//! Network interfaces that the harness creates with the `ip` command.

use std::io;
use std::process::Command;

/// Creates a bridge with an address (`198.19.0.1/24`) and brings it up.
pub fn create_bridge(name: &str, address: &str) -> io::Result<()> {
    ip(&["link", "add", "name", name, "type", "bridge"])?;
    ip(&["address", "add", address, "dev", name])?;
    ip(&["link", "set", "dev", name, "up"])
}

/// Creates a pair of interfaces: `name` with an address on this machine, and `peer` in the network namespace of a process.
pub fn create_pair(name: &str, address: &str, peer: &str, process: u32) -> io::Result<()> {
    let process = process.to_string();
    ip(&["link", "add", "name", name, "type", "veth", "peer", "name", peer, "netns", &process])?;
    ip(&["address", "add", address, "dev", name])?;
    ip(&["link", "set", "dev", name, "up"])
}

/// Adds a route to a subnet. It ends with the interface that leads to `gateway`.
pub fn add_route(subnet: &str, gateway: &str) -> io::Result<()> {
    ip(&["route", "add", subnet, "via", gateway])
}

/// Runs the command in the network namespace of a process.
pub fn ip_in(process: u32, arguments: &[&str]) -> io::Result<()> {
    run(Command::new("nsenter").args(["--target", &process.to_string(), "--net", "ip"]).args(arguments))
}

/// Deletes an interface. One that does not exist is fine.
pub fn delete(name: &str) -> io::Result<()> {
    if !exists(name) {
        return Ok(());
    }
    match ip(&["link", "delete", "dev", name]) {
        // Another process may have deleted it in between.
        Err(_) if !exists(name) => Ok(()),
        deleted => deleted,
    }
}

/// Returns true if there is an interface with this name.
pub fn exists(name: &str) -> bool {
    std::path::Path::new("/sys/class/net").join(name).exists()
}

fn ip(arguments: &[&str]) -> io::Result<()> {
    run(Command::new("ip").args(arguments))
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{command:?}: {}", text.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_does_not_exist_needs_no_deletion() {
        assert!(exists("lo"));
        assert!(!exists("no-such-link"));
        delete("no-such-link").expect("nothing to do");
    }
}
