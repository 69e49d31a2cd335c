//! Suggestions for misspelt fields.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray,
};
use std::sync::LazyLock;

/// The message for an unknown field: it lists the fields that are known there.
pub fn beside(path: &str) -> String {
    let parent = path.rsplit_once('.').map_or("", |(parent, _)| parent);
    let known = ROOT.as_ref().and_then(|root| descend(root, parent).map(names));
    match known {
        Some(names) if !names.is_empty() => format!("unknown field; known here: {}", names.join(", ")),
        Some(_) | None => "unknown field".to_owned(),
    }
}

static ROOT: LazyLock<Option<JSONSchemaProps>> = LazyLock::new(|| {
    let version = five_spot_api::crd().spec.versions.into_iter().next()?;
    version.schema?.open_api_v3_schema
});

/// The schema at a path such as `spec.schedule.windows[0]`.
fn descend<'a>(root: &'a JSONSchemaProps, path: &str) -> Option<&'a JSONSchemaProps> {
    path.split('.').filter(|step| !step.is_empty()).try_fold(root, |schema, step| {
        let name = step.split('[').next()?;
        let child = schema.properties.as_ref()?.get(name)?;
        if !step.contains('[') {
            return Some(child);
        }
        match child.items.as_ref()? {
            JSONSchemaPropsOrArray::Schema(item) => Some(&**item),
            JSONSchemaPropsOrArray::Schemas(_) => None,
        }
    })
}

fn names(schema: &JSONSchemaProps) -> Vec<&str> {
    schema.properties.iter().flatten().map(|(name, _)| name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::beside;

    #[test]
    fn an_unknown_field_lists_the_known_ones() {
        let message = beside("spec.schedule.dayOfWeek");
        assert!(
            message.starts_with("unknown field; known here: daysOfWeek, enabled, exceptions"),
            "{message}"
        );
        assert_eq!(beside("spec.schedule.windows[3].form"), "unknown field; known here: from, to");
        assert_eq!(beside("nowhere.at.all"), "unknown field");
        assert!(beside("sepc").contains("spec"), "{}", beside("sepc"));
    }
}
