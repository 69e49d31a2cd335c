//! The real process connector of this machine.

use super::*;
use std::path::Path;
use std::process::Command;

/// Set where the tests must pass without process events, as in a container without the host's namespaces.
const WITHOUT_EVENTS: &str = "FIVE_SPOT_TEST_WITHOUT_PROCESS_EVENTS";

/// A subscriber, or `None` where the tests were told to do without.
fn subscriber(options: SubscriberOptions) -> Option<Subscriber> {
    match Subscriber::new(options) {
        Ok(subscriber) => Some(subscriber),
        Err(error) if std::env::var_os(WITHOUT_EVENTS).is_some() => {
            assert!(error.to_string().contains("--detector=poll"), "{error}");
            None
        }
        Err(error) => {
            panic!("this machine has no process events; set {WITHOUT_EVENTS}=1 to go without: {error}")
        }
    }
}

fn sees_a_program(mut subscriber: Subscriber) {
    subscriber.self_test(Path::new("/bin/true")).expect("an event");
}

#[test]
fn events_arrive_with_every_kind_of_filtering() {
    for filtering in [Filtering::KernelMask, Filtering::SocketFilter, Filtering::None] {
        let options = SubscriberOptions { filtering, ..SubscriberOptions::default() };
        if let Some(subscriber) = subscriber(options) {
            sees_a_program(subscriber);
        }
    }
}

#[test]
fn a_renamed_process_is_reported() {
    let Some(mut subscriber) = subscriber(SubscriberOptions::default()) else { return };
    let mut shell = Command::new("/bin/sh")
        .args(["-c", "read line; echo fs-renamed > /proc/$$/comm; read line"])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut count = 0;
    let mut wanted = 1;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while count < 2 && std::time::Instant::now() < deadline {
        let _ = subscriber.receive(|received| {
            count += u32::from(matches!(received, Received::Process { id, .. } if id == shell.id()));
            true
        });
        if count >= wanted && wanted == 1 {
            use std::io::Write;
            shell.stdin.as_mut().expect("a pipe").write_all(b"go\n").expect("a line");
            wanted = 2;
        }
        std::thread::yield_now();
    }
    let _ = shell.kill();
    let _ = shell.wait();
    assert_eq!(count, 2, "one event for the program, one for the name");
}

/// Where `match_uids` is set, a program that is started by root and then changes its user matches only from then on.
#[test]
fn a_process_with_another_user_is_reported() {
    use std::os::unix::process::CommandExt;
    let Some(mut subscriber) = subscriber(SubscriberOptions::default()) else { return };
    // The child changes its user first, and then its program.
    let mut program = Command::new("/bin/true").uid(65534).spawn().expect("a process; this test needs root");
    let mut count = 0;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while count < 2 && std::time::Instant::now() < deadline {
        let receive = subscriber.receive(|received| {
            count += u32::from(matches!(received, Received::Process { id, .. } if id == program.id()));
            true
        });
        receive.expect("events");
        std::thread::yield_now();
    }
    let _ = program.wait();
    assert!(count >= 2, "one event for the user, one for the program, but {count}");
}

#[test]
fn an_overflow_is_reported_as_loss() {
    // The smallest buffer that the kernel gives holds a handful of events.
    let options = SubscriberOptions { receive_buffer: 1, ..SubscriberOptions::default() };
    let Some(mut subscriber) = subscriber(options) else { return };
    for _ in 0..200 {
        assert!(Command::new("/bin/true").status().expect("a process").success());
    }
    let mut lost = 0;
    subscriber
        .receive(|received| {
            lost += u32::from(received == Received::Lost);
            true
        })
        .expect("what is left");
    assert_eq!(lost, 1, "one overflow, one report");
}

/// The kernel sends nothing to a socket that has overflowed until all that it holds was received.
#[test]
fn events_after_a_loss_arrive() {
    // Room for about a hundred events: other programs of this machine do not overflow it once more.
    let options = SubscriberOptions { receive_buffer: 32 << 10, ..SubscriberOptions::default() };
    let Some(mut subscriber) = subscriber(options) else { return };
    for _ in 0..500 {
        assert!(Command::new("/bin/true").status().expect("a process").success());
    }
    let mut lost = false;
    let stop_at_loss = |received| {
        lost = received == Received::Lost;
        !lost
    };
    subscriber.receive(stop_at_loss).expect("a loss");
    assert!(lost);
    let mut program = Command::new("/bin/true").spawn().expect("a process");
    let mut seen = false;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while !seen && std::time::Instant::now() < deadline {
        let is_program = |received| matches!(received, Received::Process { id, .. } if id == program.id());
        subscriber
            .receive(|received| {
                seen |= is_program(received);
                !seen
            })
            .expect("events");
        std::thread::yield_now();
    }
    let _ = program.wait();
    assert!(seen, "the event of a program that was started after the loss");
}

#[test]
fn a_program_that_cannot_be_started_is_an_error() {
    let Some(mut subscriber) = subscriber(SubscriberOptions::default()) else { return };
    let error = subscriber.self_test(Path::new("/nonexistent")).expect_err("no program");
    assert!(matches!(error, NetlinkError::SelfTest(_)), "{error}");
}

#[test]
fn refusals_are_explained() {
    let explained = |number| NetlinkError::from(std::io::Error::from_raw_os_error(number)).to_string();
    let eperm = explained(libc::EPERM);
    for part in ["netlink i/o: EPERM", "CAP_NET_ADMIN", "--detector=poll"] {
        assert!(eperm.contains(part), "{part} in {eperm}");
    }
    let refused = explained(libc::ECONNREFUSED);
    for part in ["netlink i/o: ECONNREFUSED", "hostNetwork: true", "--detector=poll"] {
        assert!(refused.contains(part), "{part} in {refused}");
    }
    assert!(explained(libc::EPROTONOSUPPORT).contains("CONFIG_PROC_EVENTS"));
    assert!(explained(libc::ENOMEM).starts_with("netlink i/o: "));
}
