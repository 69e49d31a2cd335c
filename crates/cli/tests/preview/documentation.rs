//! The documentation shows what the program does: every command in it is run, and so is the one that draws its
//! picture.

use crate::program::{five_spot, root};
use std::fs;

/// A file with mistakes is no example, so it lives here; the page calls it by its name.
const BROKEN: &str = "crates/cli/tests/preview/broken.yaml";

fn page() -> String {
    fs::read_to_string(root().join("docs/preview.md")).expect("the page")
}

/// The words of a command line after `5spot`.
fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().map(|word| if word == "broken.yaml" { BROKEN } else { word }).collect()
}

#[test]
fn every_output_in_the_documentation_is_real() {
    let mut commands = 0;
    for block in page().split("```console\n").skip(1) {
        let (block, _) = block.split_once("```").expect("a block ends");
        let (line, shown) = block.split_once('\n').expect("a command and its output");
        let answer = five_spot(&words(line.strip_prefix("$ 5spot ").expect("a command")));
        let given = [answer.stderr, answer.stdout].concat().replace(BROKEN, "broken.yaml");
        assert_eq!(given, shown, "{line}");
        commands += 1;
    }
    assert!(commands >= 6, "{commands}");
}

#[test]
fn the_picture_in_the_documentation_is_current() {
    let page = page();
    let line = page.lines().find(|line| line.ends_with("> docs/images/preview.svg")).expect("the command");
    let (command, path) = line.split_once(" > ").expect("a command and a file");
    let drawn = five_spot(&words(command.strip_prefix("5spot ").expect("a command"))).text();
    let shown = fs::read_to_string(root().join(path)).expect("the picture");
    assert!(drawn == shown, "the picture is not current; draw it with: {line}");
}
