use super::*;
use clap::CommandFactory;
use clap::error::ErrorKind;

fn parse(arguments: &[&str]) -> Result<Args, clap::Error> {
    Args::try_parse_from([&["5spot-reclaim-agent"], arguments].concat())
}

fn refusal(arguments: &[&str]) -> String {
    let error = parse(arguments).expect_err("refused");
    assert_eq!(error.exit_code(), 2, "{error}");
    error.to_string()
}

#[test]
fn the_command_is_well_formed() {
    Args::command().debug_assert();
}

#[test]
fn defaults_are_the_documented_ones() {
    let args = parse(&["--node-name=node-1"]).expect("valid");
    assert_eq!(args.proc_root, PathBuf::from("/proc"));
    assert_eq!(args.machine_id_path, PathBuf::from("/etc/machine-id"));
    assert_eq!((args.detector, args.log_format), (Choice::Auto, LogFormat::Json));
    assert_eq!((args.skip_host_id_check, args.oneshot), (false, false));
    assert_eq!(args.service_account_dir, PathBuf::from(SERVICE_ACCOUNT_FOLDER));
}

#[test]
fn every_documented_flag_has_its_variable() {
    let command = Args::command();
    for (flag, variable) in [
        ("proc-root", "RECLAIM_PROC_ROOT"),
        ("node-name", "NODE_NAME"),
        ("detector", "RECLAIM_DETECTOR"),
        ("machine-id-path", "MACHINE_ID_PATH"),
        ("skip-host-id-check", "SKIP_HOST_ID_CHECK"),
        ("log-format", "RUST_LOG_FORMAT"),
    ] {
        let argument = command.get_arguments().find(|argument| argument.get_long() == Some(flag));
        let argument = argument.unwrap_or_else(|| panic!("--{flag} is missing"));
        assert_eq!(argument.get_env().and_then(|name| name.to_str()), Some(variable));
    }
}

#[test]
fn flags_take_their_values() {
    let args = parse(&[
        "--proc-root=/host/proc",
        "--node-name",
        "a.b-c.d",
        "--detector",
        "netlink",
        "--machine-id-path=/m",
        "--skip-host-id-check",
        "--oneshot",
        "--log-format=text",
    ])
    .expect("valid");
    assert_eq!(args.node_name.as_deref(), Some("a.b-c.d"));
    assert_eq!((args.detector, args.log_format), (Choice::Netlink, LogFormat::Text));
    assert!(args.skip_host_id_check && args.oneshot);
    assert!(!parse(&["--node-name=n", "--skip-host-id-check=false"]).expect("valid").skip_host_id_check);
}

#[test]
fn bad_values_exit_with_2_and_say_what_is_allowed() {
    assert!(refusal(&["--node-name=n", "--detector=ebpf"]).contains("auto, netlink, poll"));
    assert!(refusal(&["--node-name=n", "--skip-host-id-check=yes"]).contains("true, false"));
    assert!(refusal(&["--node-name=n", "--wrong"]).contains("--wrong"));
    let long = "n".repeat(254);
    for name in ["", "Node", "a/b", "../a", "a..b", "-a", "a-", "a b", "a?x=1", long.as_str()] {
        assert!(refusal(&[&format!("--node-name={name}")]).contains("name of a Node"), "{name:?}");
    }
    if std::env::var_os("NODE_NAME").is_none() {
        assert!(refusal(&[]).contains("--node-name <NAME>"));
    }
}

#[test]
fn probe_needs_no_node_name() {
    let args = parse(&["probe", "--state-dir=/tmp/x"]).expect("valid");
    assert!(matches!(args.command, Some(Command::Probe)));
    assert_eq!(args.state_dir, PathBuf::from("/tmp/x"));
}

#[test]
fn help_and_version_are_no_failures() {
    assert_eq!(parse(&["--help"]).expect_err("help").kind(), ErrorKind::DisplayHelp);
    assert_eq!(parse(&["-V"]).expect_err("version").kind(), ErrorKind::DisplayVersion);
    let help = Args::command().render_long_help().to_string();
    for part in ["match_argv_substrings", "reclaim-agent-<NODE_NAME>", "RECLAIM_DETECTOR=poll", "Exit codes"]
    {
        assert!(help.contains(part), "{part}");
    }
}
