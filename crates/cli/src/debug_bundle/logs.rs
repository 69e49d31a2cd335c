//! Logs of pods in the namespace of 5-Spot.

use super::bundle::{Bundle, path_part};
use super::read::Reader;
use five_spot_api::names;
use serde_json::Value;

/// The lines of one log, the newest. About a day of a busy controller.
const LOG_LINES: usize = 20_000;

/// The most bytes of an answer: a log that is longer is asked for again with fewer lines.
const LOG_BYTES: usize = 12 << 20;

/// The logs of every container, and of its predecessor if it was restarted.
pub async fn collect(reader: &Reader<'_>, bundle: &mut Bundle, pod: &Value, folder: &str) {
    let name = text(&pod["metadata"]["name"]);
    let statuses =
        ["containerStatuses", "initContainerStatuses"].map(|field| pod["status"][field].as_array());
    for status in statuses.into_iter().flatten().flatten() {
        let container = text(&status["name"]);
        log(reader, bundle, folder, (&name, &container), false).await;
        if status["restartCount"].as_i64().unwrap_or_default() > 0 {
            log(reader, bundle, folder, (&name, &container), true).await;
        }
    }
}

async fn log(
    reader: &Reader<'_>,
    bundle: &mut Bundle,
    folder: &str,
    (pod, container): (&str, &str),
    previous: bool,
) {
    let which = if previous { "previous log" } else { "log" };
    let what = format!("{which} of pod {pod}, container {container}");
    let base = format!("/api/v1/namespaces/{}/pods/{pod}/log", names::SYSTEM_NAMESPACE);
    let previous_flag = if previous { "&previous=true" } else { "" };
    let mut lines = LOG_LINES;
    let content = loop {
        let path = format!(
            "{base}?container={container}&timestamps=false&tailLines={lines}&limitBytes={LOG_BYTES}{previous_flag}"
        );
        let Some(content) = reader.text(bundle, &what, &path).await else { return };
        // The API server cuts at the end, where the newest lines are.
        if content.len() < LOG_BYTES || lines < 100 {
            break content;
        }
        lines /= 4;
    };
    let end = if previous { "previous.log" } else { "log" };
    let path = format!("{folder}/{}/{}.{end}", path_part(pod), path_part(container));
    bundle.add_text(&path, &format!("the {what}, the newest {lines} lines at most"), &content);
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
