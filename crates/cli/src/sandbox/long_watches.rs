//! A layer in front of the API server that makes watches last longer. In an idle week, most of the work would
//! be watches that restart every five minutes and bookmarks every minute. Through this layer, a watch lasts
//! for a day and sends a bookmark only shortly before its client would give up. Changes are delivered without
//! delay.

use bytes::Bytes;
use five_spot_apiserver::{ApiServer, ApiService, BoxError, ResponseBody};
use futures::future::BoxFuture;
use futures::stream;
use http::{Request, Response, Uri};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt as _, StreamBody};
use kube::client::Body;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tower::Service;

/// The interval between bookmarks: the controller gives up a watch after three minutes without an event.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(170);

/// The API server for clients in this process, with long watches.
#[derive(Clone, Debug)]
pub struct LongWatches {
    api: ApiServer,
    service: ApiService,
}

impl LongWatches {
    pub fn new(api: ApiServer) -> Self {
        Self { service: api.service(), api }
    }
}

impl Service<Request<Body>> for LongWatches {
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Service::<Request<Body>>::poll_ready(&mut self.service, context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let Some(longer) = longer_watch(request.uri()) else {
            return self.service.call(request);
        };
        let path = request.uri().path().to_owned();
        *request.uri_mut() = longer;
        let (answer, api) = (self.service.call(request), self.api.clone());
        Box::pin(async move {
            let answer = answer.await?;
            let is_watch = answer.status().is_success();
            Ok(if is_watch { answer.map(|body| with_bookmarks(body, api, &path)) } else { answer })
        })
    }
}

/// Returns the same watch with a timeout of one day and without bookmarks, or `None` if the request is not a
/// watch with bookmarks.
fn longer_watch(uri: &Uri) -> Option<Uri> {
    let query = uri.query()?;
    let has = |wanted: &str| query.split('&').any(|pair| pair == wanted);
    if !has("watch=true") || !has("allowWatchBookmarks=true") || has("sendInitialEvents=true") {
        return None;
    }
    let others = query
        .split('&')
        .filter(|pair| !pair.starts_with("timeoutSeconds=") && !pair.starts_with("allowWatchBookmarks="));
    let query: Vec<&str> = others.chain(["timeoutSeconds=86400"]).collect();
    format!("{}?{}", uri.path(), query.join("&")).parse().ok()
}

/// A body that yields a bookmark after each silent period. The bookmark is correct because all earlier
/// changes have been sent: the inner body has no more data.
fn with_bookmarks(body: ResponseBody, api: ApiServer, path: &str) -> ResponseBody {
    let version = api_version(path);
    let frames = stream::unfold(body, move |mut body| {
        let (api, version) = (api.clone(), version.clone());
        async move {
            let next = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context));
            match tokio::time::timeout(BOOKMARK_INTERVAL, next).await {
                Ok(frame) => Some((frame?, body)),
                Err(_) => Some((Ok(Frame::data(bookmark(&version, api.revision()))), body)),
            }
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

fn bookmark(api_version: &str, revision: u64) -> Bytes {
    let object = format!(
        r#"{{"apiVersion":"{api_version}","kind":"Bookmark","metadata":{{"resourceVersion":"{revision}"}}}}"#
    );
    format!("{{\"type\":\"BOOKMARK\",\"object\":{object}}}\n").into()
}

fn api_version(path: &str) -> String {
    let mut parts = path.split('/').skip(1);
    match (parts.next(), parts.next(), parts.next()) {
        (Some("apis"), Some(group), Some(version)) => format!("{group}/{version}"),
        (_, version, _) => version.unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use five_spot_apiserver::{ApiServerConfig, Clock};
    use futures::StreamExt as _;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Client;
    use kube::api::{WatchEvent, WatchParams};
    use serde_json::json;

    #[test]
    fn only_watches_with_bookmarks_are_prolonged() {
        let longer = |uri: &str| longer_watch(&uri.parse().expect("a URI")).map(|uri| uri.to_string());
        assert_eq!(
            longer("/api/v1/nodes?&watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=7")
                .as_deref(),
            Some("/api/v1/nodes?&watch=true&resourceVersion=7&timeoutSeconds=86400")
        );
        for uri in [
            "/api/v1/nodes",
            "/api/v1/nodes?limit=500",
            "/api/v1/nodes?watch=true&timeoutSeconds=290",
            "/api/v1/nodes?watch=true&allowWatchBookmarks=true&sendInitialEvents=true",
        ] {
            assert_eq!(longer(uri), None, "{uri}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_watch_gets_bookmarks_and_changes_are_prompt() {
        let api = ApiServer::new(ApiServerConfig::new(Clock::starting_at(
            "2026-03-02T08:00:00Z".parse().expect("an instant"),
        )));
        let maps: kube::Api<ConfigMap> =
            kube::Api::default_namespaced(Client::new(LongWatches::new(api.clone()), "default"));
        let origin = tokio::time::Instant::now();
        let mut events = maps.watch(&WatchParams::default(), "0").await.expect("a watch").boxed();
        loop {
            match events.next().await.expect("more").expect("an event") {
                WatchEvent::Bookmark(mark) => {
                    assert_eq!(mark.metadata.resource_version, api.revision().to_string());
                    break;
                }
                // The objects that the server creates in every new namespace.
                WatchEvent::Added(_) => {}
                WatchEvent::Modified(_) | WatchEvent::Deleted(_) | WatchEvent::Error(_) => {
                    panic!("unexpected")
                }
            }
        }
        assert_eq!(origin.elapsed(), BOOKMARK_INTERVAL);
        api.create("/api/v1/namespaces/default/configmaps", &json!({"metadata": {"name": "news"}}));
        let Some(Ok(WatchEvent::Added(map))) = events.next().await else { panic!("no news") };
        assert_eq!(map.metadata.name.as_deref(), Some("news"));
        assert_eq!(origin.elapsed(), BOOKMARK_INTERVAL);
    }
}
