//! Label selectors, as query strings and as `metav1.LabelSelector`.

use serde_json::{Map, Value};

/// A label selector.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq)]
struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Clone, Debug, PartialEq)]
enum Operator {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
}

impl LabelSelector {
    /// Parses a selector such as `a=b,c!=d,e in (f,g),h,!i`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let requirements =
            split_outside_parentheses(text).into_iter().map(parse_requirement).collect::<Result<_, _>>()?;
        Ok(Self { requirements })
    }

    /// Parses a `metav1.LabelSelector`. The meaning of null differs, so callers handle it before.
    pub fn from_object(selector: &Value) -> Self {
        let mut requirements = Vec::new();
        for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
            let value = value.as_str().unwrap_or_default().to_owned();
            requirements.push(Requirement { key: key.clone(), operator: Operator::In(vec![value]) });
        }
        for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
            let values = || {
                let list = expression["values"].as_array().into_iter().flatten();
                list.filter_map(Value::as_str).map(str::to_owned).collect()
            };
            let operator = match expression["operator"].as_str() {
                Some("In") => Operator::In(values()),
                Some("NotIn") => Operator::NotIn(values()),
                Some("Exists") => Operator::Exists,
                _ => Operator::Absent,
            };
            let key = expression["key"].as_str().unwrap_or_default().to_owned();
            requirements.push(Requirement { key, operator });
        }
        Self { requirements }
    }

    /// Returns true if the selector has no requirement and so matches every object.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Returns true if the object's labels match.
    pub fn matches(&self, object: &Value) -> bool {
        let labels = object["metadata"]["labels"].as_object();
        self.requirements.iter().all(|requirement| requirement.fits(labels))
    }
}

impl Requirement {
    fn fits(&self, labels: Option<&Map<String, Value>>) -> bool {
        let value = labels.and_then(|labels| labels.get(&self.key)).and_then(Value::as_str);
        match &self.operator {
            Operator::In(values) => value.is_some_and(|value| values.iter().any(|one| one == value)),
            Operator::NotIn(values) => value.is_none_or(|value| values.iter().all(|one| one != value)),
            Operator::Exists => value.is_some(),
            Operator::Absent => value.is_none(),
        }
    }
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_u32, 0);
    for (index, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn parse_requirement(part: &str) -> Result<Requirement, String> {
    let requirement = |key: &str, operator| {
        let key = key.trim();
        if is_label_key(key) {
            Ok(Requirement { key: key.to_owned(), operator })
        } else {
            Err(format!("unable to parse requirement: <nil>: Invalid value: {key:?}: is not a label key"))
        }
    };
    if let Some(key) = part.strip_prefix('!') {
        return requirement(key, Operator::Absent);
    }
    if let Some((head, list)) = part.split_once('(') {
        let list =
            list.strip_suffix(')').ok_or_else(|| format!("couldn't parse the selector string {part:?}"))?;
        let values = list.split(',').map(|value| value.trim().to_owned()).collect();
        return match head.split_whitespace().collect::<Vec<_>>().as_slice() {
            [key, "in"] => requirement(key, Operator::In(values)),
            [key, "notin"] => requirement(key, Operator::NotIn(values)),
            _ => Err(format!("couldn't parse the selector string {part:?}")),
        };
    }
    if let Some((key, value)) = part.split_once("!=") {
        return requirement(key, Operator::NotIn(vec![value.trim().to_owned()]));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return requirement(key, Operator::In(vec![value.trim().to_owned()]));
    }
    requirement(part, Operator::Exists)
}

fn is_label_key(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|one| one.is_ascii_alphanumeric() || "-_./".contains(one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selects_as_kubernetes_does() {
        let object = json!({"metadata": {"labels": {"app": "web", "tier": "front"}}});
        let cases = [
            ("app=web", true),
            ("app==web,tier=front", true),
            ("app!=web", false),
            ("other!=web", true),
            ("app in (web,api)", true),
            ("app notin (web,api)", false),
            ("other notin (web)", true),
            ("app", true),
            ("!app", false),
            ("!other,app in (api,web)", true),
            ("", true),
        ];
        for (text, expected) in cases {
            let selector = LabelSelector::parse(text).expect(text);
            assert_eq!(selector.matches(&object), expected, "{text}");
        }
        assert!(LabelSelector::parse("a b=c").is_err());
        assert!(LabelSelector::parse("a in (b").is_err());
    }
}
