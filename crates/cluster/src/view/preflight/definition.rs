//! The comparison of the CRD that the cluster serves with the one of this program.
//!
//! An API server drops, without a word, what the schema of a kind does not know. A status is the memory of this program: one
//! that forgets what was written to it is worse than none.

use five_spot_api::names;
use http::Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIGroup;
use kube::Client;
use serde_json::Value;
use std::fmt;

/// The result of the comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrdFit {
    /// Everything that this program has to remember has its place.
    Fits(FieldDifferences),
    /// It has no place for parts of the status.
    TooOld(FieldDifferences),
    /// Other versions are served, and not ours.
    OtherVersions(Vec<String>),
    /// Nothing is served in our group.
    Absent,
}

/// Fields that only one of both has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldDifferences {
    /// Fields that this program knows and the cluster does not.
    pub missing: Vec<String>,
    /// Fields that the cluster knows and this program does not.
    pub unknown: Vec<String>,
}

/// The name of the CRD.
const NAME: &str = "scheduledmachines.5spot.finos.org";

/// The number of fields that are named; the others are only counted.
const NAMED: usize = 5;

impl fmt::Display for CrdFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (crd, ours) = (NAME, names::VERSION);
        match self {
            Self::Fits(differences) => {
                let FieldDifferences { missing, unknown } = differences;
                if !missing.is_empty() {
                    write!(
                        f,
                        "the CRD {crd} is older than this program: it does not contain {}",
                        list(missing)
                    )?;
                }
                if !missing.is_empty() && !unknown.is_empty() {
                    f.write_str("; ")?;
                }
                if !unknown.is_empty() {
                    write!(f, "the CRD {crd} is newer than this program, which ignores {}", list(unknown))?;
                }
                Ok(())
            }
            Self::TooOld(differences) => write!(
                f,
                "the CRD {crd} is older than this program: it does not contain {}; the controller does \
                 nothing until the CRD of this version (deploy/crds) is applied",
                list(&differences.missing)
            ),
            Self::OtherVersions(served) => write!(
                f,
                "the CRD {crd} serves {} and not {ours}, which this program needs: apply the CRD of this version \
                 (deploy/crds), or run a version that fits",
                served.join(", ")
            ),
            Self::Absent => {
                write!(f, "the CRD {crd} is not installed, or serves no version: apply deploy/crds")
            }
        }
    }
}

fn list(fields: &[String]) -> String {
    let named = fields.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match fields.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Turns "not served" into nothing.
fn or_unserved<T>(answer: Result<T, kube::Error>) -> Result<Option<T>, kube::Error> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

/// Asks the API server, which describes what it serves to everyone.
pub async fn definition(client: &Client) -> Result<CrdFit, kube::Error> {
    let path = format!("/openapi/v3/apis/{}/{}", names::GROUP, names::VERSION);
    if let Some(document) = or_unserved(get::<Value>(client, &path).await)?
        && let Some(served) = schema_of(&document)
    {
        return Ok(compare(&our_schema(), served));
    }
    let group: Option<APIGroup> = or_unserved(get(client, &format!("/apis/{}", names::GROUP)).await)?;
    let Some(group) = group else { return Ok(CrdFit::Absent) };
    let served: Vec<String> = group.versions.into_iter().map(|version| version.version).collect();
    if served.iter().any(|version| version == names::VERSION) {
        // It takes the server a moment to describe what it has begun to serve.
        return Err(kube::Error::Service("the API server does not publish the schema of the CRD yet".into()));
    }
    Ok(CrdFit::OtherVersions(served))
}

async fn get<T: serde::de::DeserializeOwned>(client: &Client, path: &str) -> Result<T, kube::Error> {
    let request = Request::get(path).header(http::header::ACCEPT, "application/json").body(Vec::new());
    client.request(request.map_err(kube::Error::HttpError)?).await
}

/// The schema of our kind in a description of everything that is served in our group.
fn schema_of(document: &Value) -> Option<&Value> {
    let is_ours = |schema: &&Value| {
        let kinds = schema["x-kubernetes-group-version-kind"].as_array();
        kinds.into_iter().flatten().any(|kind| kind["kind"] == names::KIND)
    };
    document["components"]["schemas"].as_object()?.values().find(is_ours)
}

fn our_schema() -> Value {
    // A test of the API types checks that it can be parsed.
    serde_json::from_str(five_spot_api::SHAPE).unwrap_or_default()
}

fn compare(ours: &Value, served: &Value) -> CrdFit {
    let mut differences = FieldDifferences::default();
    for part in ["spec", "status"] {
        let (ours, served) = (&ours["properties"][part], &served["properties"][part]);
        only_in_first(ours, served, part, &mut differences.missing);
        only_in_first(served, ours, part, &mut differences.unknown);
    }
    if differences.missing.iter().any(|field| is_status(field)) {
        differences.missing.retain(|field| is_status(field));
        return CrdFit::TooOld(differences);
    }
    CrdFit::Fits(differences)
}

fn is_status(field: &str) -> bool {
    field == "status" || field.starts_with("status.")
}

/// The fields that only the first of two schemas has, the outermost of each.
fn only_in_first(first: &Value, second: &Value, path: &str, only: &mut Vec<String>) {
    if first.is_null() || second["x-kubernetes-preserve-unknown-fields"] == true {
        return;
    }
    if second.is_null() {
        only.push(path.to_owned());
        return;
    }
    if !first["items"].is_null() {
        only_in_first(&first["items"], &second["items"], &format!("{path}[]"), only);
    }
    for (name, schema) in first["properties"].as_object().into_iter().flatten() {
        only_in_first(schema, &second["properties"][name], &format!("{path}.{name}"), only);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn without(path: &str) -> Value {
        let mut schema = our_schema();
        let (parent, name) = path.rsplit_once('/').expect("a path");
        schema.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object").remove(name);
        schema
    }

    #[test]
    fn the_name_is_that_of_the_installed_crd() {
        assert_eq!(five_spot_api::crd().metadata.name.as_deref(), Some(NAME));
    }

    #[test]
    fn the_same_definition_fits_without_a_word() {
        let same = compare(&our_schema(), &our_schema());
        assert_eq!(same, CrdFit::Fits(FieldDifferences::default()));
        assert_eq!(same.to_string(), "");
    }

    #[test]
    fn a_missing_spec_field_is_a_remark_a_status_field_an_obstacle() {
        let older = compare(&our_schema(), &without("/properties/spec/properties/drain"));
        let CrdFit::Fits(differences) = &older else { panic!("{older:?}") };
        assert_eq!(differences.missing, ["spec.drain"]);
        assert!(older.to_string().ends_with("does not contain spec.drain"), "{older}");
        let taints = "/properties/status/properties/drain/properties/blocked/items/properties/reason";
        let too_old = compare(&our_schema(), &without(taints));
        let CrdFit::TooOld(differences) = &too_old else { panic!("{too_old:?}") };
        assert_eq!(differences.missing, ["status.drain.blocked[].reason"]);
        assert!(too_old.to_string().contains("does not contain status.drain.blocked[].reason"), "{too_old}");
    }

    #[test]
    fn what_this_program_does_not_know_is_a_remark() {
        let mut newer = our_schema();
        newer["properties"]["spec"]["properties"]["colour"] = json!({"type": "string"});
        newer["properties"]["status"]["properties"]["mood"] = json!({"type": "string"});
        let newer = compare(&our_schema(), &newer);
        assert!(newer.to_string().ends_with("which ignores spec.colour, status.mood"), "{newer}");
        assert!(matches!(newer, CrdFit::Fits(_)));
    }

    /// The schema of the version before this one.
    fn previous_schema() -> Value {
        let crd = include_str!("../../../../../tests/crd/previous.yaml");
        let crd: Value = serde_saphyr::from_str(crd).expect("previous.yaml is YAML");
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
    }

    #[test]
    fn the_previous_crd_is_too_old_for_this_program() {
        let upgraded = compare(&our_schema(), &previous_schema());
        let CrdFit::TooOld(differences) = &upgraded else { panic!("{upgraded:?}") };
        for field in ["status.reclaims[].stages", "status.unplannedRemoval"] {
            assert!(differences.missing.iter().any(|missing| missing == field), "{differences:?}");
        }
        assert!(upgraded.to_string().contains("(deploy/crds)"), "{upgraded}");
    }

    #[test]
    fn the_previous_program_works_with_this_crd() {
        let rolled_back = compare(&previous_schema(), &our_schema());
        let CrdFit::Fits(differences) = &rolled_back else { panic!("{rolled_back:?}") };
        assert_eq!(differences.missing, Vec::<String>::new(), "a field was removed");
        assert!(
            differences.unknown.iter().any(|field| field == "status.unplannedRemoval"),
            "{differences:?}"
        );
    }

    #[test]
    fn what_is_kept_whatever_it_is_has_no_missing_fields() {
        let ours = json!({"properties": {"status": {"properties": {"a": {"type": "string"}}}}});
        let anything = json!({"properties": {"status": {"x-kubernetes-preserve-unknown-fields": true}}});
        assert_eq!(compare(&ours, &anything), CrdFit::Fits(FieldDifferences::default()));
    }
}
