//! The command line by itself. What the environment adds to it is tested with the real program, which has one of its own.

use super::values::{namespace, whole_number};
use super::{Args, ProgramEnvironment};
use clap::{CommandFactory, Parser};

fn environment() -> ProgramEnvironment {
    ProgramEnvironment { host_name: "host".to_owned(), ..ProgramEnvironment::default() }
}

#[test]
fn the_command_line_is_consistent() {
    Args::command().debug_assert();
}

#[test]
fn an_election_is_held_in_each_shard() {
    for (arguments, lease) in [
        (vec![], "5spot-leader"),
        (vec!["--instance-id=5spot-controller-2", "--instance-count=3"], "5spot-leader-2"),
    ] {
        let all = ["5spot-controller", "--enable-leader-election"].into_iter().chain(arguments);
        let args = Args::try_parse_from(all).expect("they are fine");
        let (configuration, _) = args.configure(environment()).expect("nothing is wrong");
        assert_eq!(configuration.settings.election.expect("it is on").name, lease);
    }
}

#[test]
fn only_a_single_instance_without_election_renews_rarely() {
    let renewals = |arguments: &[&str]| {
        let args = Args::try_parse_from(["5spot-controller"].iter().chain(arguments)).expect("they are fine");
        let (configuration, _) = args.configure(environment()).expect("nothing is wrong");
        let timing = configuration.settings.shards.expect("always").timing;
        assert!(timing.renew_every * 2 <= timing.renew_deadline && timing.renew_deadline < timing.duration);
        (timing.renew_every.as_secs(), timing.duration.as_secs())
    };
    assert_eq!(renewals(&[]), (10, 30));
    assert_eq!(renewals(&["--lease-duration-secs=60", "--lease-renew-deadline-secs=40"]), (20, 60));
    // Before the deadline, whatever the duration is.
    assert_eq!(renewals(&["--lease-duration-secs=60"]), (5, 60));
    assert_eq!(renewals(&["--instance-count=2", "--lease-renew-deadline-secs=3"]), (1, 15));
    assert_eq!(renewals(&["--instance-count=2"]), (5, 15));
    assert_eq!(renewals(&["--enable-leader-election"]), (5, 15));
}

#[test]
fn every_flag_is_explained_under_a_heading() {
    for argument in Args::command().get_arguments() {
        assert!(argument.get_help().is_some(), "{}", argument.get_id());
        assert!(argument.get_help_heading().is_some(), "{}", argument.get_id());
    }
}

#[test]
fn the_instance_is_the_pod_or_else_the_host() {
    for (pod_name, expected) in [(Some("5spot-controller-0"), "5spot-controller-0"), (None, "host")] {
        let environment = ProgramEnvironment { pod_name: pod_name.map(str::to_owned), ..environment() };
        let args = Args::try_parse_from(["5spot-controller"]).expect("no arguments are needed");
        let (configuration, _) = args.configure(environment).expect("nothing is wrong");
        assert_eq!(configuration.settings.instance, expected);
    }
}

#[test]
fn namespaces_are_watched_once_and_in_order() {
    let arguments =
        ["5spot-controller", "--watch-namespace", "b", "--watch-namespace=a", "--watch-namespace", "b"];
    let args = Args::try_parse_from(arguments).expect("they are names");
    let (configuration, _) = args.configure(environment()).expect("nothing is wrong");
    assert_eq!(configuration.settings.namespaces, ["a", "b"]);
}

#[test]
fn workload_networks_may_be_separated_by_commas() {
    let arguments = ["5spot-controller", "--workload-cidr=127.0.0.0/8,::1", "--workload-cidr", "169.254.1.1"];
    let args = Args::try_parse_from(arguments).expect("they are networks");
    let (configuration, _) = args.configure(environment()).expect("nothing is wrong");
    let allowed: Vec<String> = configuration.workload_rules.allowed.iter().map(ToString::to_string).collect();
    assert_eq!(allowed, ["127.0.0.0/8", "::1/128", "169.254.1.1/32"]);
    assert!(!configuration.workload_rules.allow_insecure);
    assert!(Args::try_parse_from(["5spot-controller", "--workload-cidr=localhost"]).is_err());
}

#[test]
fn what_surrounds_this_process_has_a_host_name() {
    assert_ne!(ProgramEnvironment::observe().host_name, "");
}

#[test]
fn names_that_no_namespace_can_have_are_refused() {
    let longest = "a".repeat(63);
    for fine in ["a", "0", "team-a", "5spot-system", &longest] {
        assert_eq!(namespace(fine).ok().as_deref(), Some(fine));
    }
    for bad in ["", "-a", "a-", "A", "a.b", "a_b", "ä", "a,b", &format!("{longest}a")] {
        assert!(namespace(bad).is_err(), "{bad}");
    }
}

#[test]
fn numbers_out_of_bounds_are_refused() {
    for (text, expected) in [("1", Some(1)), ("10", Some(10)), ("007", Some(7)), ("0", None), ("11", None)] {
        assert_eq!(whole_number::<1, 10>(text).ok(), expected, "{text}");
    }
    for text in ["", "-1", "1.5", "5s", "99999999999", " 5"] {
        assert!(whole_number::<1, 10>(text).is_err(), "{text}");
    }
}
