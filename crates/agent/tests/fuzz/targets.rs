//! The parsers under test. Each target takes any bytes and panics if something is wrong.

use crate::process::Process;
use five_spot_agent::client::parse_watch_event;
use five_spot_agent::matcher::{CgroupView, MatchSource, Matcher, is_in_pod, leading_basenames};
use five_spot_agent::netlink::frame::{ProcessEvent, frame, messages};
use five_spot_agent::procfs;
use five_spot_api::reclaim::{AgentConfig, REASON, REQUESTED, REQUESTED_AT, ReclaimRequest};
use five_spot_fuzz::Target;
use std::collections::BTreeMap;

pub const TARGETS: [Target; 6] = [
    ("netlink", netlink),
    ("cgroup", cgroup),
    ("proc", proc),
    ("toml", toml),
    ("watch", watch),
    ("annotations", annotations),
];

fn netlink(input: &[u8]) {
    let count = messages(input).count();
    assert!(count <= input.len() / 16, "a message has a header");
    // A well-formed frame around any payload is one message at most, and an event only if its kind is known.
    let whole: Vec<_> = messages(&frame(1, 2, &input[..input.len().min(4096)])).collect();
    assert!(whole.len() <= 1);
    for message in whole {
        if let ProcessEvent::Acknowledgement { request, .. } = message.event {
            assert_eq!(request, 1);
        }
    }
}

fn cgroup(input: &[u8]) {
    let in_host = is_in_pod(input, CgroupView::Host);
    let view = procfs::cgroup_view(Some("cgroup:[4026532817]"), input);
    assert!(
        view == CgroupView::Host || is_in_pod(input, view) || !input.contains(&b'/'),
        "the agent is in a pod"
    );
    if in_host {
        assert!(is_in_pod(input, CgroupView::Container), "a pod is one from everywhere");
    }
    // Whatever else the file says, a line of a pod makes it a pod.
    let with_pod = [input, b"\n0::/kubepods/besteffort/x"].concat();
    assert!(is_in_pod(&with_pod, CgroupView::Host));
}

fn proc(input: &[u8]) {
    let _ = (procfs::state(input), procfs::uid(input), procfs::last_pid(input), procfs::name_in_stat(input));
    let _ = procfs::started(input);
    // A name cannot make a process a kernel thread or a zombie, the child of another process, or another name.
    let stat = [b"7 (", input, b") S 1 1 1 0 -1 4194304 0 0"].concat();
    let state = procfs::state(&stat).expect("fields after the name");
    assert!(!state.is_kernel_thread && !state.has_ended && state.parent == 1);
    assert_eq!(procfs::name_in_stat(&stat), Some(input));
    command_line(input);
}

/// The search in chunks finds what a search in the whole finds.
fn command_line(input: &[u8]) {
    let process = |chunk| Process {
        comm: b"bash\n",
        command_line: input,
        cgroup: b"0::/user.slice\n",
        stat: b"7 (bash) S 1 1 1 0 -1 4194304 0 0",
        status: b"Uid:\t1000\t1000\n",
        chunk,
    };
    let config = AgentConfig {
        match_commands: vec!["a-name-longer-than-15".into()],
        match_argv_substrings: vec!["java -jar".into()],
        match_uids: vec![1000],
        ..AgentConfig::default()
    };
    let matcher = Matcher::new(&config);
    let shown: Vec<u8> = input.iter().map(|byte| if *byte == 0 { b' ' } else { *byte }).collect();
    let expected = shown.windows(9).any(|window| window == b"java -jar");
    for chunk in [1, 7, 4096, 1 << 20] {
        let hit = matcher.check(&mut process(chunk));
        assert_eq!(hit.is_some(), expected, "in chunks of {chunk}");
        assert!(hit.is_none_or(|hit| hit.source == MatchSource::CommandLine));
        assert_eq!(leading_basenames(&mut process(chunk)), leading_basenames(&mut process(1)));
    }
}

fn toml(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(parsed) = AgentConfig::parse(&text) {
        let again = AgentConfig::parse(&parsed.config.to_toml()).expect("what was written can be read");
        assert_eq!(again.config, parsed.config);
        assert!((50..=60_000).contains(&parsed.config.poll_interval_ms));
    }
    // Any text can be a pattern.
    let pattern: String = text.chars().take(1000).collect();
    if !pattern.is_empty() {
        let config = AgentConfig { match_commands: vec![pattern], ..AgentConfig::default() };
        assert_eq!(AgentConfig::parse(&config.to_toml()).expect("valid").config, config);
    }
}

fn watch(input: &[u8]) {
    if let Err(error) = parse_watch_event(input) {
        assert!(!error.to_string().is_empty());
    }
}

fn annotations(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let mut parts = text.split('\n').map(str::to_owned);
    let keys = [REQUESTED, REASON, REQUESTED_AT];
    let annotations: BTreeMap<String, String> =
        keys.iter().filter_map(|key| Some(((*key).to_owned(), parts.next()?))).collect();
    if let Some(request) = ReclaimRequest::from_annotations(&annotations) {
        assert_eq!(annotations[REQUESTED], "true");
        assert_eq!(ReclaimRequest::from_annotations(&request.to_annotations()), Some(request));
    }
}
