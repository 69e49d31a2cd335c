//! The audit log of an API server as typed records: the user, the request and the result.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::PathBuf;

use jiff::Timestamp;
use serde::Deserialize;

use crate::cluster::Side;

/// The audit log of one cluster.
#[derive(Debug, Clone)]
pub struct AuditLog {
    side: Side,
    path: PathBuf,
}

/// A completed request, or the start or end of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRecord {
    /// The cluster that received the request.
    pub side: Side,
    /// The time at which the request arrived.
    pub received: Timestamp,
    /// The time at which it was answered.
    pub answered: Timestamp,
    /// `ResponseComplete`; for watches first `ResponseStarted`.
    pub stage: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// The user, such as `system:serviceaccount:5spot-system:5spot-controller`.
    pub user: String,
    /// The pod that the user's token is bound to; empty if there is none.
    pub pod: String,
    /// The user agent.
    pub user_agent: String,
    /// The path and query.
    pub uri: String,
    /// The object of the request; fields that the request does not name are empty.
    pub object: AuditObject,
    /// The HTTP status of the answer.
    pub code: Option<u16>,
}

/// The object of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuditObject {
    /// The API group; empty for the core group.
    pub api_group: String,
    /// The version.
    pub api_version: String,
    /// The plural resource name.
    pub resource: String,
    /// `status`, `eviction`, `token`.
    pub subresource: String,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// A selection of records. An empty query selects all.
#[derive(Debug, Clone, Default)]
pub struct AuditQuery {
    user: Option<String>,
    user_agent_prefix: Option<String>,
    verbs: Vec<String>,
    resource: Option<(String, String)>,
    namespace: Option<String>,
    name: Option<String>,
    since: Option<Timestamp>,
}

impl AuditQuery {
    /// All records.
    pub fn all() -> Self {
        Self::default()
    }

    /// Only requests of this user.
    #[must_use]
    pub fn user(mut self, user: &str) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Only requests of clients whose user agent begins with this text.
    #[must_use]
    pub fn user_agent(mut self, prefix: &str) -> Self {
        self.user_agent_prefix = Some(prefix.into());
        self
    }

    /// Only these verbs.
    #[must_use]
    pub fn verbs(mut self, verbs: &[&str]) -> Self {
        self.verbs = verbs.iter().map(ToString::to_string).collect();
        self
    }

    /// Only writes.
    #[must_use]
    pub fn writes(self) -> Self {
        self.verbs(&["create", "update", "patch", "delete", "deletecollection"])
    }

    /// Only this resource; a subresource is written after a slash: `pods/eviction`.
    #[must_use]
    pub fn resource(mut self, resource: &str) -> Self {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        self.resource = Some((resource.into(), subresource.into()));
        self
    }

    /// Only this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only objects of this name.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Only requests that arrived at or after this instant.
    #[must_use]
    pub fn since(mut self, since: Timestamp) -> Self {
        self.since = Some(since);
        self
    }

    /// Returns true if the query selects a record.
    pub fn matches(&self, record: &AuditRecord) -> bool {
        let Self { user, user_agent_prefix, verbs, resource, namespace, name, since } = self;
        user.as_ref().is_none_or(|user| record.user == *user)
            && user_agent_prefix.as_ref().is_none_or(|prefix| record.user_agent.starts_with(prefix))
            && (verbs.is_empty() || verbs.contains(&record.verb))
            && resource.as_ref().is_none_or(|(resource, subresource)| {
                record.object.resource == *resource && record.object.subresource == *subresource
            })
            && namespace.as_ref().is_none_or(|namespace| record.object.namespace == *namespace)
            && name.as_ref().is_none_or(|name| record.object.name == *name)
            && since.is_none_or(|since| record.received >= since)
    }
}

impl AuditLog {
    pub(crate) fn new(side: Side, path: PathBuf) -> Self {
        Self { side, path }
    }

    /// The records that `query` selects, oldest first. The API server writes a record before it responds, so
    /// a client that has the response finds its record here.
    pub fn read(&self, query: &AuditQuery) -> io::Result<Vec<AuditRecord>> {
        Ok(self.read_from(0, query)?.0)
    }

    /// The records after a position in the log, and the position after the last of them, for repeated reads.
    pub fn read_from(&self, place: u64, query: &AuditQuery) -> io::Result<(Vec<AuditRecord>, u64)> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(place))?;
        let (mut records, mut next) = (Vec::new(), place);
        let mut lines = BufReader::new(file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let length = lines.read_until(b'\n', &mut line)?;
            let record = parse(self.side, &line);
            // The last line may still be being written.
            if length == 0 || (record.is_none() && !line.ends_with(b"\n")) {
                return Ok((records, next));
            }
            next += length as u64;
            records.extend(record.filter(|record| query.matches(record)));
        }
    }

    /// The position after the last record.
    pub fn end(&self) -> io::Result<u64> {
        Ok(std::fs::metadata(&self.path)?.len())
    }
}

impl std::fmt::Display for AuditRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let AuditObject { resource, subresource, name, .. } = &self.object;
        let code = self.code.map_or_else(|| "-".into(), |code| code.to_string());
        write!(f, "{} {resource}", self.verb)?;
        if !subresource.is_empty() {
            write!(f, "/{subresource}")?;
        }
        let agent = self.user_agent.split(' ').next().unwrap_or_default();
        write!(f, " {name} -> {code} by {} ({agent})", self.user)
    }
}

/// The parts of Kubernetes' own record that we use.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    stage: String,
    verb: String,
    #[serde(rename = "requestURI")]
    uri: String,
    user: User,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: AuditObject,
    response_status: Option<ResponseStatus>,
    request_received_timestamp: Timestamp,
    stage_timestamp: Timestamp,
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    username: String,
    #[serde(default)]
    extra: BTreeMap<String, Vec<String>>,
}

/// The key under which the API server stores the pod that a token is bound to.
const POD_NAME: &str = "authentication.kubernetes.io/pod-name";

#[derive(Deserialize)]
struct ResponseStatus {
    code: Option<u16>,
}

fn parse(side: Side, line: &[u8]) -> Option<AuditRecord> {
    let event: Event = serde_json::from_slice(line).ok()?;
    Some(AuditRecord {
        side,
        received: event.request_received_timestamp,
        answered: event.stage_timestamp,
        stage: event.stage,
        verb: event.verb,
        pod: event.user.extra.get(POD_NAME).and_then(|names| names.first()).cloned().unwrap_or_default(),
        user: event.user.username,
        user_agent: event.user_agent,
        uri: event.uri,
        object: event.object_ref,
        code: event.response_status.and_then(|status| status.code),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const EVICTION: &str = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"1","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/shop/pods/web-0/eviction","verb":"create","user":{"username":"system:serviceaccount:5spot-system:5spot-controller","groups":["system:authenticated"]},"sourceIPs":["127.0.0.1"],"userAgent":"5spot-controller/0.1.0 (linux)","objectRef":{"resource":"pods","namespace":"shop","name":"web-0","apiVersion":"v1","subresource":"eviction"},"responseStatus":{"metadata":{},"status":"Failure","code":429},"requestReceivedTimestamp":"2026-11-15T08:00:00.000001Z","stageTimestamp":"2026-11-15T08:00:00.021000Z"}"#;
    const DISCOVERY: &str = r#"{"kind":"Event","stage":"ResponseComplete","requestURI":"/x","verb":"get","user":{"username":"system:anonymous"},"requestReceivedTimestamp":"2026-11-15T08:00:01Z","stageTimestamp":"2026-11-15T08:00:01Z"}"#;

    fn log(lines: &[&str]) -> (tempfile::NamedTempFile, AuditLog) {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        write!(file, "{}", lines.join("\n")).expect("write");
        let log = AuditLog::new(Side::Workload, file.path().to_path_buf());
        (file, log)
    }

    #[test]
    fn a_record_has_the_user_and_the_request() {
        let (_file, log) = log(&[EVICTION]);
        let record = &log.read(&AuditQuery::all()).expect("readable")[0];
        assert_eq!((record.verb.as_str(), record.code), ("create", Some(429)));
        assert_eq!(record.object.subresource, "eviction");
        assert_eq!(
            record.to_string(),
            "create pods/eviction web-0 -> 429 by system:serviceaccount:5spot-system:5spot-controller \
             (5spot-controller/0.1.0)"
        );
    }

    #[test]
    fn a_half_written_last_line_is_left_for_later() {
        let (_file, log) = log(&[DISCOVERY, &EVICTION[..200]]);
        assert_eq!(log.read(&AuditQuery::all()).expect("readable").len(), 1);
    }

    #[test]
    fn reading_continues_at_the_last_position() {
        let (mut file, log) = log(&[DISCOVERY, &EVICTION[..200]]);
        let (first, place) = log.read_from(0, &AuditQuery::all()).expect("readable");
        assert_eq!(first.len(), 1);
        writeln!(file, "{}", &EVICTION[200..]).expect("write");
        let (rest, place) = log.read_from(place, &AuditQuery::all()).expect("readable");
        assert_eq!(rest.iter().map(|record| record.verb.as_str()).collect::<Vec<_>>(), ["create"]);
        assert_eq!(place, log.end().expect("a file"));
        assert_eq!(log.read_from(place, &AuditQuery::all()).expect("readable").0, []);
    }

    #[test]
    fn queries_narrow() {
        let (_file, log) = log(&[EVICTION, DISCOVERY]);
        let count = |query: AuditQuery| log.read(&query).expect("readable").len();
        assert_eq!(count(AuditQuery::all()), 2);
        assert_eq!(count(AuditQuery::all().writes()), 1);
        assert_eq!(count(AuditQuery::all().resource("pods/eviction").namespace("shop").name("web-0")), 1);
        assert_eq!(count(AuditQuery::all().resource("pods")), 0, "the subresource is another permission");
        assert_eq!(count(AuditQuery::all().user_agent("5spot-controller")), 1);
        assert_eq!(count(AuditQuery::all().user("system:anonymous")), 1);
        assert_eq!(count(AuditQuery::all().since("2026-11-15T08:00:00.5Z".parse().expect("a time"))), 1);
    }
}
