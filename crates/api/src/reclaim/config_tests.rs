use super::*;
use proptest::prelude::*;

fn commands(names: &[&str]) -> AgentConfig {
    AgentConfig { match_commands: names.iter().map(ToString::to_string).collect(), ..AgentConfig::default() }
}

fn parse(text: &str) -> AgentConfig {
    AgentConfig::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}")).config
}

fn refusal(text: &str) -> String {
    AgentConfig::parse(text).expect_err(text).to_string()
}

#[test]
fn plain_commands_are_written_as_in_json() {
    let text = commands(&["java", "idea64"]).to_toml();
    assert_eq!(
        text,
        "match_commands = [\"java\",\"idea64\"]\nmatch_argv_substrings = []\npoll_interval_ms = 250\n"
    );
}

/// An agent and a controller of different versions: the text that a controller has written is read by agents of the version before
/// and after it.
#[test]
fn texts_of_other_versions_are_read() {
    let previous = "match_commands = [\"java\"]\nmatch_argv_substrings = []\npoll_interval_ms = 250\n";
    assert_eq!(parse(previous), commands(&["java"]));
    let next = format!("{previous}match_cgroups = [\"desktop\"]\n");
    let next = AgentConfig::parse(&next).expect("a later version adds keys");
    assert_eq!((next.config, next.unknown_keys), (commands(&["java"]), vec!["match_cgroups".to_owned()]));
}

#[test]
fn characters_that_toml_cannot_hold_are_escaped() {
    for (name, written) in [
        ("a\u{7f}b", "\"a\\u007Fb\""),
        ("say \"hi\"", "\"say \\\"hi\\\"\""),
        ("C:\\java", "\"C:\\\\java\""),
        ("two\nlines\r\t", "\"two\\nlines\\r\\t\""),
        ("\u{0}\u{1b}\u{1f}", "\"\\u0000\\u001B\\u001F\""),
        ("\u{1f600} \u{10ffff}", "\"\u{1f600} \u{10ffff}\""),
        ("\u{85}\u{2028}\u{feff}", "\"\u{85}\u{2028}\u{feff}\""),
    ] {
        let config = commands(&[name]);
        let text = config.to_toml();
        assert!(text.starts_with(&format!("match_commands = [{written}]\n")), "{text:?}");
        assert_eq!(parse(&text), config);
    }
}

#[test]
fn absent_keys_have_their_defaults() {
    assert_eq!(parse(""), AgentConfig::default());
    assert_eq!(parse("# by hand\nmatch_commands = ['java']"), commands(&["java"]));
    assert!(parse("").is_inert());
    assert!(!parse("match_argv_substrings = ['-jar']").is_inert());
}

#[test]
fn numbers_are_parsed_in_every_notation() {
    let config = parse("match_uids = [1000, 0x3e9, 1_002]\npoll_interval_ms = 60_000");
    assert_eq!((config.match_uids, config.poll_interval_ms), (vec![1000, 1001, 1002], 60_000));
    assert_eq!(
        parse(&AgentConfig { match_uids: vec![0, u32::MAX], ..commands(&[]) }.to_toml()).match_uids[1],
        u32::MAX
    );
}

#[test]
fn errors_name_the_line_and_the_key() {
    for (text, expected) in [
        ("\nmatch_commands = 'java'", "line 2: match_commands: expected a list, found string"),
        (
            "match_commands = ['a', 1]",
            "line 1: match_commands: expected a list of strings, found an entry of type integer",
        ),
        (
            "match_argv_substrings = ['']",
            "line 1: match_argv_substrings: an empty pattern would match every process",
        ),
        (
            "poll_interval_ms = 49",
            "line 1: poll_interval_ms: 49 is out of range; it must be from 50 to 60000",
        ),
        (
            "poll_interval_ms = 60001",
            "line 1: poll_interval_ms: 60001 is out of range; it must be from 50 to 60000",
        ),
        (
            "poll_interval_ms = -1",
            "line 1: poll_interval_ms: '-1' is not a whole number from 0 to 4294967295",
        ),
        ("poll_interval_ms = 2.5", "line 1: poll_interval_ms: expected a whole number, found float"),
        (
            "match_uids = [4294967296]",
            "line 1: match_uids: '4294967296' is not a whole number from 0 to 4294967295",
        ),
    ] {
        assert_eq!(refusal(text), expected);
    }
    for text in ["match_commands = [", "\u{0}", "= 1", "match_commands = ['a']\nmatch_commands = ['b']"] {
        let message = refusal(text);
        assert!(message.starts_with("line ") && !message.contains('\n'), "{text:?}: {message:?}");
    }
}

#[test]
fn lists_and_patterns_have_bounds() {
    let long = "x".repeat(MAX_PATTERN_BYTES);
    assert_eq!(parse(&commands(&[&long]).to_toml()), commands(&[&long]));
    assert!(refusal(&commands(&[&format!("{long}x")]).to_toml()).contains("4097 bytes"));
    let many = vec!["a"; MAX_LIST_ENTRIES + 1];
    assert!(refusal(&commands(&many).to_toml()).contains("1001 entries"));
}

#[test]
fn the_longest_list_of_commands_that_the_crd_allows_fits() {
    // In bytes a character of four is the longest, and a control character is when it is escaped.
    for character in ["\u{1f600}", "\u{7f}", "\u{0}", "\"", "\\"] {
        let config = commands(&[character.repeat(256).as_str(); 100]);
        let text = config.to_toml();
        assert!(text.len() < 1 << 20, "a ConfigMap holds 1 MiB, not {} bytes", text.len());
        assert_eq!(parse(&text), config);
    }
}

#[test]
fn unknown_keys_are_reported_and_have_no_effect() {
    let parsed = AgentConfig::parse("match_command = ['java']\n[later]\nx = 1").expect("valid");
    assert_eq!(parsed.config, AgentConfig::default());
    assert_eq!(parsed.unknown_keys, ["later", "match_command"]);
}

#[test]
fn deep_nesting_is_an_error_and_not_an_overflow() {
    let text = format!("match_commands = {}", "[".repeat(500_000));
    AgentConfig::parse(&text).expect_err("not closed");
}

proptest! {
    #[test]
    fn every_string_survives_a_round_trip(
        match_commands in prop::collection::vec(any::<String>().prop_filter("not empty", |s| !s.is_empty()), 0..8),
        match_argv_substrings in prop::collection::vec(".{1,64}", 0..8),
        match_uids in prop::collection::vec(any::<u32>(), 0..4),
        poll_interval_ms in MIN_POLL_INTERVAL_MS..=MAX_POLL_INTERVAL_MS,
    ) {
        let config = AgentConfig { match_commands, match_argv_substrings, match_uids, poll_interval_ms };
        let parsed = AgentConfig::parse(&config.to_toml()).expect("what was written can be read");
        prop_assert_eq!(parsed, ParsedConfig { config, unknown_keys: Vec::new() });
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>()) {
        let _ = AgentConfig::parse(&text);
    }
}
