//! A bare client that sends the recorded requests of one object again, for many objects: the time that the API server
//! needs for the requests alone.

use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use five_spot_api::ScheduledMachine;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::{Method, Request, header};
use http_body_util::BodyExt as _;
use kube::api::ListParams;
use kube::client::Body;
use kube::{Api, Client};
use serde::Deserialize;

use super::objects;
use super::recorder::Recorded;

/// The status of an answer to a request that created something.
const CREATED: u16 = 201;

/// The requests of one object, with what has to be replaced in them for another one.
pub(super) struct Template {
    requests: Vec<Recorded>,
    namespace: String,
    number: usize,
    uid: String,
    /// The Lease of its claim, if there is one in the requests.
    lease: Option<String>,
}

/// The part of an answer that the next request needs.
#[derive(Deserialize)]
struct Answer {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    resource_version: String,
}

/// The object for which the requests are sent.
struct Target {
    number: usize,
    uid: String,
    version: String,
}

impl Template {
    pub(super) fn new(requests: Vec<Recorded>, namespace: &str, number: usize, uid: String) -> Self {
        let lease = requests.iter().filter(|request| request.uri.contains("/leases")).find_map(|request| {
            let body: serde_json::Value = serde_json::from_str(&request.body).ok()?;
            Some(body["metadata"]["name"].as_str()?.to_owned())
        });
        Self { requests, namespace: namespace.to_owned(), number, uid, lease }
    }

    /// The number of requests for each object.
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    /// The requests, one in a line.
    pub(super) fn describe(&self) -> Vec<String> {
        let path = |request: &Recorded| request.uri.split('?').next().unwrap_or_default().to_owned();
        let line = |request: &Recorded| format!("{} {} -> {}", request.method, path(request), request.code());
        self.requests.iter().map(line).collect()
    }

    /// The number of objects that the requests create.
    pub(super) fn creations(&self) -> usize {
        self.requests.iter().filter(|request| request.code() == CREATED).count()
    }

    /// True if every request succeeded, or read something that is not there.
    pub(super) fn succeeded(&self) -> bool {
        let is_success = |request: &Recorded| match request.code() {
            404 => request.method == Method::GET,
            code => (200..300).contains(&code),
        };
        self.requests.iter().all(is_success)
    }

    /// Sends the requests for objects of a namespace, so many objects at a time, and returns how long that took.
    pub(super) async fn replay(
        &self,
        client: &Client,
        namespace: &str,
        numbers: Range<usize>,
        concurrency: usize,
    ) -> anyhow::Result<Duration> {
        let targets = targets(client, namespace, &numbers).await?;
        ensure!(targets.len() == numbers.len(), "{} of {} objects", targets.len(), numbers.len());
        let begun = Instant::now();
        stream::iter(targets)
            .map(|target| self.send_all(client, namespace, target))
            .buffer_unordered(concurrency)
            .try_collect::<Vec<()>>()
            .await?;
        Ok(begun.elapsed())
    }

    async fn send_all(&self, client: &Client, namespace: &str, mut target: Target) -> anyhow::Result<()> {
        for request in &self.requests {
            let answer = send(client, self.filled_in(request, namespace, &target)?).await?;
            let (code, body) = answer;
            // What the controller created is created here, too: a change of an object that is there costs something else.
            ensure!(
                code == request.code(),
                "{} {}: {code} and not {} for {}: {}",
                request.method,
                request.uri,
                request.code(),
                objects::name(target.number),
                String::from_utf8_lossy(&body)
            );
            if is_of_object(request) {
                target.version = serde_json::from_slice::<Answer>(&body)?.metadata.resource_version;
            }
        }
        Ok(())
    }

    fn filled_in(
        &self,
        request: &Recorded,
        namespace: &str,
        target: &Target,
    ) -> anyhow::Result<Request<Body>> {
        let replace = |text: &str| {
            let mut text = text
                .replace(&objects::name(self.number), &objects::name(target.number))
                .replace(&self.namespace, namespace)
                .replace(&self.uid, &target.uid);
            if let Some(lease) = &self.lease {
                let kept = lease.len().saturating_sub(6);
                text = text.replace(lease.as_str(), &format!("{}{:06}", &lease[..kept], target.number));
            }
            text
        };
        let mut body = replace(&request.body);
        // Others have the version of an object that is to be created, which is the same for all.
        if is_of_object(request)
            && let Some((before, after)) = body.split_once("\"resourceVersion\":\"")
        {
            let (_, after) = after.split_once('"').context("the end of a version")?;
            body = format!("{before}\"resourceVersion\":\"{}\"{after}", target.version);
        }
        let mut uri = replace(&request.uri);
        // A read of the object is at least as new as the last write of it.
        if is_of_object(request)
            && let Some((before, _)) = uri.split_once("resourceVersion=")
        {
            uri = format!("{before}resourceVersion={}", target.version);
        }
        let mut filled = Request::builder().method(&request.method).uri(uri);
        if let Some(content_type) = &request.content_type {
            filled = filled.header(header::CONTENT_TYPE, content_type);
        }
        Ok(filled.body(Body::from(body.into_bytes()))?)
    }
}

/// True for requests about the `ScheduledMachine` itself.
fn is_of_object(request: &Recorded) -> bool {
    request.uri.contains("/scheduledmachines/")
}

/// The objects of a namespace as they are now.
async fn targets(client: &Client, namespace: &str, numbers: &Range<usize>) -> anyhow::Result<Vec<Target>> {
    let api: Api<ScheduledMachine> = Api::namespaced(client.clone(), namespace);
    let objects = api.list_metadata(&ListParams::default()).await?.items.into_iter();
    let target = |metadata: kube::core::ObjectMeta| {
        Some(Target {
            number: objects::number(metadata.name.as_deref()?)?,
            uid: metadata.uid?,
            version: metadata.resource_version?,
        })
    };
    Ok(objects
        .filter_map(|object| target(object.metadata))
        .filter(|target| numbers.contains(&target.number))
        .collect())
}

async fn send(client: &Client, request: Request<Body>) -> anyhow::Result<(u16, bytes::Bytes)> {
    let response = client.send(request).await?;
    let code = response.status().as_u16();
    Ok((code, response.into_body().collect().await?.to_bytes()))
}
