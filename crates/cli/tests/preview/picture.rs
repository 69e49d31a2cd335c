//! The picture: well-formed, complete, and the same chart as the text.

use crate::machine::machine;
use crate::program::{preview, preview_of};

/// The names of all elements, given that every one that is opened is closed in its place.
fn elements(svg: &str) -> Vec<String> {
    let (mut open, mut all) = (Vec::new(), Vec::new());
    for tag in svg.split('<').skip(1) {
        let (tag, text) = tag.split_once('>').expect("a tag ends");
        assert!(!text.contains('>'), "{text:?}");
        let name = tag.trim_matches('/').split([' ', '\n']).next().expect("a name").to_owned();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else {
            all.push(name.clone());
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
    }
    assert_eq!(open, Vec::<String>::new());
    all
}

#[test]
fn a_night_in_which_the_clocks_go_back() {
    let svg = preview("-f examples/lord-howe.yaml --from 2026-04-04T00:00:00+11:00 --days 2 -o svg").text();
    elements(&svg);
    insta::assert_snapshot!(svg);
}

#[test]
fn the_picture_is_always_well_formed() {
    let disabled = machine("idle", "hoursOfDay: ['9']\nenabled: false");
    for svg in [
        preview("-f examples/fleet.yaml -f examples/holidays.yaml --from 2026-12-20T00:00:00Z -o svg").text(),
        preview("-f examples/weekend-window.yaml --from 2026-03-25T00:00:00Z -o svg").text(),
        preview_of(disabled, "-o svg").text(),
        preview_of("{apiVersion: v1, kind: Secret}", "-o svg").text(),
    ] {
        assert_eq!(elements(&svg).first().map(String::as_str), Some("svg"));
        assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""), "{svg}");
    }
}

#[test]
fn every_machine_and_every_window_is_in_it() {
    let svg = preview("-f examples/fleet.yaml --from 2026-10-30T00:00:00-04:00 --days 4 -o svg").text();
    for words in [
        "trading-desk-07",
        "render-node-03",
        "weather-station",
        "Mon 02 Nov 09:00 EST to Mon 02 Nov 18:00 EST",
        "9h (2026-11-02T14:00:00Z to 2026-11-02T23:00:00Z)",
        "2026-11-01: clocks go back 1h at 02:00 EDT, to 01:00 EST; no window is affected",
        "shown twice by the clocks",
    ] {
        assert!(svg.contains(words), "{words}");
    }
}
