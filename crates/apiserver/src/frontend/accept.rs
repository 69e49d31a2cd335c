//! The format that a client requests: objects, a table, or only their metadata.

use crate::error::ApiError;
use crate::frontend::Options;
use crate::kinds::Resource;
use crate::tables;
use serde_json::{Value, json};

/// The media type with which `kubectl` requests OpenAPI v2.
const OPENAPI_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// The format of the objects in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Representation {
    Whole,
    Table,
    Metadata,
}

/// A parsed `Accept` header.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Accept {
    pub representation: Representation,
    /// The group of an aggregated discovery document, if the client prefers one.
    pub aggregated_discovery: Option<&'static str>,
    /// True if the client accepts the one supported format of OpenAPI v2.
    pub openapi_protobuf: bool,
    /// True for a request that accepts only plain text or protobuf, which JSON cannot answer.
    acceptable: bool,
}

impl Accept {
    pub(crate) fn parse(header: &str) -> Self {
        let mut accept = Self {
            representation: Representation::Whole,
            aggregated_discovery: None,
            openapi_protobuf: header.contains(OPENAPI_PROTOBUF),
            acceptable: false,
        };
        for clause in header.split(',').map(str::trim).filter(|clause| !clause.is_empty()) {
            let mut parts = clause.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            if !matches!(media, "application/json" | "*/*" | "application/*") {
                continue;
            }
            accept.acceptable = true;
            match parts.find_map(|part| part.strip_prefix("as=")) {
                Some("Table") => accept.representation = Representation::Table,
                Some("PartialObjectMetadata" | "PartialObjectMetadataList") => {
                    accept.representation = Representation::Metadata;
                }
                Some("APIGroupDiscoveryList") if clause.contains("v=v2beta1") => {
                    accept.aggregated_discovery.get_or_insert("v2beta1");
                    continue;
                }
                Some("APIGroupDiscoveryList") => {
                    accept.aggregated_discovery.get_or_insert("v2");
                    continue;
                }
                _ => {}
            }
            // The first supported format is used.
            break;
        }
        accept.acceptable |= header.is_empty();
        accept
    }

    pub(crate) fn check(&self) -> Result<(), ApiError> {
        if self.acceptable { Ok(()) } else { Err(ApiError::not_acceptable()) }
    }
}

/// Converts an object or a list into the requested format.
pub(crate) fn represent(
    value: Value,
    resource: &Resource,
    accept: &Accept,
    options: &Options,
    now: jiff::Timestamp,
) -> Value {
    match accept.representation {
        Representation::Whole => value,
        Representation::Table => tables::table(&value, resource, &options.include_object, now),
        Representation::Metadata => {
            if value["kind"] == resource.list_kind.as_str() {
                let items =
                    value["items"].as_array().into_iter().flatten().map(metadata_only).collect::<Vec<_>>();
                json!({
                    "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                    "metadata": value["metadata"], "items": items,
                })
            } else if value["kind"] == "Status" {
                value
            } else {
                metadata_only(&value)
            }
        }
    }
}

/// The metadata of an object, as a `PartialObjectMetadata`.
pub(crate) fn metadata_only(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}
