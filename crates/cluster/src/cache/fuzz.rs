//! Fuzzing of what is made of the objects that a server sends: names, projections, kubeconfigs.

use crate::cache::project;
use crate::transport::core_kinds::{Node, Pod};
use crate::transport::key::ObjectKey;
use crate::transport::kubeconfig;
use crate::transport::valid_name::{identifies, is_label, is_subdomain};
use five_spot_fuzz::Target;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DynamicObject, ObjectList, PartialObjectMeta, WatchEvent};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::PathBuf;

const TARGETS: [Target; 3] = [("objects", objects), ("names", names), ("kubeconfig", kubeconfig)];

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz-corpus")
}

#[test]
fn the_corpus_does_no_harm() {
    five_spot_fuzz::replay(&corpus(), &TARGETS);
}

#[test]
fn mutations_of_the_corpus_do_no_harm() {
    five_spot_fuzz::mutate(&corpus(), &TARGETS);
}

/// Every line of a watch and every page of a list that can be parsed can be projected, and what is kept is bounded.
fn objects(input: &[u8]) {
    for node in parsed::<Node>(input) {
        let facts = project::node(&node);
        assert!(facts.reclaim.is_none_or(|request| request.reason.len() <= 4096));
    }
    for pod in parsed::<Pod>(input) {
        let agent = project::agent_pod(&pod);
        assert!(agent.node.as_str().is_empty() || is_subdomain(agent.node.as_str()));
        project::pod(&pod);
    }
    for config in parsed::<PartialObjectMeta<ConfigMap>>(input) {
        project::agent_config(&config);
    }
    for object in parsed::<DynamicObject>(input) {
        project::machine(&object);
        project::cluster(&object);
        project::provider(&object);
        project::scheduled_machine(&object);
        if identifies(&object) {
            let key = ObjectKey::of(&object);
            assert!(is_subdomain(&key.name) && (key.namespace.is_empty() || is_label(&key.namespace)));
        }
    }
}

/// The objects of a line of a watch, of a page of a list, or of a text with one object.
fn parsed<K: Clone + DeserializeOwned>(input: &[u8]) -> Vec<K> {
    match serde_json::from_slice::<WatchEvent<K>>(input) {
        Ok(WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object)) => {
            return vec![object];
        }
        Ok(WatchEvent::Bookmark(_) | WatchEvent::Error(_)) | Err(_) => {}
    }
    let one = serde_json::from_slice::<K>(input).ok();
    one.into_iter()
        .chain(serde_json::from_slice::<ObjectList<K>>(input).into_iter().flat_map(|list| list.items))
        .collect()
}

/// A name that passes leads nowhere else in a URL.
fn names(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for (passes, longest) in [(is_subdomain(&text), 253), (is_label(&text), 63)] {
        if passes {
            assert!(text.len() <= longest && !text.contains(".."), "{text}");
            assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte)), "{text}");
        }
    }
}

/// A kubeconfig is refused or harmless, and the message of a refusal repeats none of it.
fn kubeconfig(input: &[u8]) {
    const CANARY: &str = "c4n4ry";
    let data = BTreeMap::from([("value".to_owned(), ByteString(input.to_vec()))]);
    let secret = Secret { data: Some(data), ..Secret::default() };
    let facts = kubeconfig::secret(&secret, &["value".to_owned()].into());
    match kubeconfig::read(&facts, "value") {
        Err(message) => assert!(message.len() < 200 && !message.contains(CANARY), "{message}"),
        Ok(kubeconfig) => {
            for user in kubeconfig.auth_infos.iter().filter_map(|named| named.auth_info.as_ref()) {
                assert!(user.exec.is_none() && user.token_file.is_none() && user.impersonate.is_none());
            }
        }
    }
}
