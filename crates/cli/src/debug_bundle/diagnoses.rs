//! The output of `5spot doctor` and `5spot explain`.

use super::bundle::{Bundle, path_part};
use crate::cluster_access::CallerCluster;
use crate::doctor::{Scope, diagnose};
use crate::explain::explain_one;
use five_spot_cluster::ObjectKey;
use jiff::SignedDuration;
use std::time::Duration;

/// The objects that are explained: each costs a few requests.
const EXPLAINED: usize = 200;

/// The time for all explanations: a workload cluster that does not answer costs each of them half a minute.
const EXPLAINED_WITHIN: Duration = Duration::from_mins(3);

/// Adds the findings.
pub async fn findings(
    access: &CallerCluster,
    bundle: &mut Bundle,
    namespace: Option<&str>,
    difference: SignedDuration,
) {
    let scope = Scope { namespace: namespace.map(str::to_owned), name: None };
    match diagnose(access, &scope, difference).await {
        Ok(diagnosis) => {
            let json = serde_json::to_string_pretty(&diagnosis.report).unwrap_or_default();
            bundle.add_text("doctor.json", "the findings of 5spot doctor", &json);
            for what in diagnosis.not_read {
                bundle.miss("a check of 5spot doctor", &what);
            }
        }
        Err(error) => bundle.miss("the findings of 5spot doctor", &format!("{error:#}")),
    }
}

/// Adds an explanation for each object.
pub async fn explanations(access: &CallerCluster, bundle: &mut Bundle, machines: &[ObjectKey]) {
    if machines.len() > EXPLAINED {
        bundle.miss(
            "further explanations",
            &format!("only the first {EXPLAINED} ScheduledMachines were explained"),
        );
    }
    let all = async {
        for key in machines.iter().take(EXPLAINED) {
            explanation(access, bundle, key).await;
        }
    };
    if tokio::time::timeout(EXPLAINED_WITHIN, all).await.is_err() {
        let limit = EXPLAINED_WITHIN.as_secs();
        bundle.miss("further explanations", &format!("they were not finished within {limit} s"));
    }
}

async fn explanation(access: &CallerCluster, bundle: &mut Bundle, key: &ObjectKey) {
    match explain_one(access, key).await {
        Ok(Some(explained)) => {
            let json = serde_json::to_string_pretty(&explained.explanation).unwrap_or_default();
            let path = format!("explain/{}/{}.json", path_part(&key.namespace), path_part(&key.name));
            bundle.add_text(&path, "the explanation of 5spot explain", &json);
        }
        Ok(None) => bundle.miss(&format!("the explanation of {key}"), "it was deleted in the meantime"),
        Err(error) => bundle.miss(&format!("the explanation of {key}"), &format!("{error:#}")),
    }
}
