//! A secret that is in every Secret and every kubeconfig of the recorded run is nowhere else.

use crate::fixture::CANARY;
use crate::recorded_run::{Record, record};

#[test]
fn no_secret_is_printed_anywhere() {
    let Record { fresh, crowded, busy, empty, log, events, machines } = record();
    let log = log.text();
    // Secrets were watched, machines were lent by what is in one, and the log goes down to the last detail.
    assert!(busy.contains(r#"fivespot_watch_age_seconds{resource="secrets"}"#));
    assert!(machines.iter().any(|one| one["status"]["workloadCluster"]["secretName"] == "shop-kubeconfig"));
    assert!(log.contains(r#""level":"TRACE""#));
    // As it is, and as Secrets and bodies in base64 have it, wherever it begins.
    let encoded = ["YzRuNHJ5LXMzY3Iz", "NG40cnktczNjcjN0", "bjRyeS1zM2NyM3"];
    let pages = [fresh, crowded, busy, empty].map(|page| ("the metrics", page.clone()));
    let lists = [("an event", events), ("a status", machines)]
        .map(|(what, list)| (what, serde_json::to_string(list).expect("JSON")));
    for (what, text) in pages.into_iter().chain(lists).chain([("the log", log)]) {
        for secret in encoded.iter().chain([&CANARY]) {
            assert!(!text.contains(secret), "{what} tells {secret}");
        }
    }
}
