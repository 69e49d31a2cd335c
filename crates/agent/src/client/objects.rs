//! The objects of the API server, as far as the agent reads them.

use super::ClientError;
use http::StatusCode;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The most of a message from the API server that is kept.
const MAX_MESSAGE_BYTES: usize = 500;

/// The metadata of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// The name.
    pub name: String,
    /// The UID.
    pub uid: String,
    /// The version, which changes with every write.
    pub resource_version: String,
}

/// A ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ConfigMap {
    /// Its metadata.
    pub metadata: Metadata,
    /// Its text values.
    pub data: BTreeMap<String, String>,
}

/// The answer to a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedConfigMap {
    /// The ConfigMap, if it exists.
    pub config_map: Option<ConfigMap>,
    /// The version of the list, from which a watch continues.
    pub version: String,
}

/// An event of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEvent {
    /// The ConfigMap was made or changed.
    Applied(ConfigMap),
    /// The ConfigMap was deleted, at this version.
    Deleted(String),
    /// Nothing happened up to this version.
    Bookmark(String),
    /// The watch must begin with a list again.
    Expired,
}

pub(super) fn parse_list(body: &[u8]) -> Result<ListedConfigMap, serde_json::Error> {
    #[derive(Deserialize)]
    struct List {
        metadata: Metadata,
        #[serde(default)]
        items: Option<Vec<ConfigMap>>,
    }
    let list: List = serde_json::from_slice(body)?;
    let config_map = list.items.unwrap_or_default().into_iter().next();
    Ok(ListedConfigMap { config_map, version: list.metadata.resource_version })
}

/// Reads a line of a watch.
pub fn parse_watch_event(line: &[u8]) -> Result<WatchEvent, ClientError> {
    /// A ConfigMap; the Status of an ERROR has the last two fields instead of data.
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Object {
        metadata: Metadata,
        data: BTreeMap<String, String>,
        code: u16,
        message: String,
    }
    #[derive(Deserialize)]
    struct Event {
        #[serde(rename = "type")]
        kind: String,
        object: Object,
    }
    let event: Event = serde_json::from_slice(line).map_err(ClientError::Malformed)?;
    let Object { metadata, data, code, message } = event.object;
    let config_map = ConfigMap { metadata, data };
    match event.kind.as_str() {
        "ADDED" | "MODIFIED" => Ok(WatchEvent::Applied(config_map)),
        "DELETED" => Ok(WatchEvent::Deleted(config_map.metadata.resource_version)),
        "BOOKMARK" => Ok(WatchEvent::Bookmark(config_map.metadata.resource_version)),
        // Almost always 410: the version is too old.
        _ => match StatusCode::from_u16(code) {
            Ok(StatusCode::GONE) | Err(_) => Ok(WatchEvent::Expired),
            Ok(code) => Err(refused(code, message)),
        },
    }
}

/// Turns the body of a refusal into an error.
pub(super) fn parse_status(code: StatusCode, body: &[u8]) -> ClientError {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Status {
        message: String,
    }
    let status: Status = serde_json::from_slice(body).unwrap_or_default();
    refused(code, status.message)
}

fn refused(code: StatusCode, mut message: String) -> ClientError {
    message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES));
    if message.is_empty() {
        message.push_str("no message");
    }
    ClientError::Refused { code, message }
}
