//! Invalid command lines are refused before anything is started.

use crate::program::{five_spot, machine, sandbox, sandbox_of};

#[test]
fn bad_flags_and_combinations_exit_with_2() {
    for (line, message) in [
        ("--for soon", "'--for <SPAN>': expected a number and m, h, d or w"),
        ("--start yesterday", "expected RFC 3339 with a zone"),
        ("--speed 0", "'--speed <N>'"),
        ("--seed many", "'--seed <N>'"),
        ("--listen 10.0.0.1:8001", "--listen 10.0.0.1:8001: the sandbox has no authentication"),
        ("--listen nowhere", "'--listen <ADDR:PORT>'"),
        ("-o svg", "-o svg needs --once: the image shows a finished run"),
        ("-o xml", "[possible values: text, json, svg]"),
        ("--once --speed 5", "--speed conflicts with --once"),
        ("-f - -f -", "standard input can be read only once"),
        ("--once=yes", "unexpected value 'yes' for '--once'"),
        ("extra", "unexpected argument 'extra'"),
    ] {
        let answer = sandbox(line);
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{line}: {answer:?}");
        assert!(answer.stderr.contains(message), "{line}: {}", answer.stderr);
    }
}

#[test]
fn bad_objects_exit_with_2_and_name_the_field() {
    let invalid = machine("a", "{daysOfWeek: [someday]}", "");
    let answer = sandbox_of(&invalid, "--once -f -");
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{answer:?}");
    assert!(
        answer.stderr.contains("standard input: document 1 (a): spec.schedule.daysOfWeek[0]"),
        "{}",
        answer.stderr
    );
    let twice = machine("a", "{daysOfWeek: [mon]}", "").repeat(2);
    let answer = sandbox_of(&twice, "--once -f -");
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{answer:?}");
    assert!(
        answer.stderr.contains("document 2 (a): ") && answer.stderr.contains("already exists"),
        "{}",
        answer.stderr
    );
    let unknown = "{apiVersion: example.org/v1, kind: Gadget, metadata: {name: g}}";
    let answer = sandbox_of(unknown, "--once -f -");
    assert_eq!(answer.code, 2, "{answer:?}");
    assert!(answer.stderr.contains("the sandbox has no kind Gadget of example.org/v1"), "{}", answer.stderr);
}

#[test]
fn system_errors_exit_with_1() {
    let answer = sandbox("--once -f examples/no-such-file.yaml");
    assert_eq!((answer.code, answer.stdout.as_str()), (1, ""), "{answer:?}");
    assert!(answer.stderr.contains("failed to read examples/no-such-file.yaml"), "{}", answer.stderr);
    let answer = sandbox("--once --kubeconfig-out no/such/directory/kubeconfig");
    assert_eq!((answer.code, answer.stdout.as_str()), (1, ""), "{answer:?}");
    assert!(
        answer.stderr.contains("failed to write --kubeconfig-out no/such/directory/kubeconfig"),
        "{}",
        answer.stderr
    );
}

#[test]
fn an_unknown_command_suggests_a_similar_one() {
    let answer = five_spot("", "sandbax");
    assert_eq!(answer.code, 2);
    assert!(
        answer.stderr.contains("unrecognized subcommand 'sandbax'") && answer.stderr.contains("'sandbox'")
    );
}
