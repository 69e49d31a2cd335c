//! The validation rules of the CRD beyond types and bounds: CEL expressions, each with a message that says what is allowed.
//! The API server puts the path of the field in front of the message.
//!
//! An expression refers to the value of its field as `self`. Patterns avoid backslashes, so that they are the same in Rust,
//! CEL and YAML. A conversion that can fail comes after a pattern that guards it, so that the rule returns false instead of
//! an evaluation error. The exception is [`TIMEZONE`], because only a conversion can tell whether a zone exists. The API
//! server accepts an unchanged value that violates a rule (ratcheting), but not one for which the rule fails to evaluate;
//! therefore that rule compares the value with `oldSelf` itself.

/// A CEL expression that a value must satisfy, and the message if it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The CEL expression, which is true for allowed values.
    pub expression: &'static str,
    /// A description of the allowed values, without an initial capital and a full stop.
    pub message: &'static str,
    /// The path of the field that the API server reports, relative to the value, such as `.to`; empty for the value itself.
    pub field_path: &'static str,
    /// True if the expression also uses the previous value, as the optional `oldSelf`.
    pub optional_old_self: bool,
}

impl Rule {
    const fn new(expression: &'static str, message: &'static str) -> Self {
        Self { expression, message, field_path: "", optional_old_self: false }
    }

    const fn at(self, field_path: &'static str) -> Self {
        Self { field_path, ..self }
    }

    const fn with_optional_old_self(self) -> Self {
        Self { optional_old_self: true, ..self }
    }
}

macro_rules! day {
    () => {
        "(mon|tue|wed|thu|fri|sat|sun)"
    };
}

macro_rules! hour {
    () => {
        "([0-9]|1[0-9]|2[0-3])"
    };
}

/// A calendar date with the correct number of days for each month and year.
macro_rules! date {
    () => {
        concat!(
            "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])",
            "|(0[469]|11)-(0[1-9]|[12][0-9]|30)",
            "|02-(0[1-9]|1[0-9]|2[0-8]))",
            "|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)"
        )
    };
}

/// A DNS label.
macro_rules! dns_label {
    () => {
        "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    };
}

/// The key of a label, an annotation or a taint: `name` or `domain/name`.
macro_rules! qualified_name {
    () => {
        concat!(
            "^(",
            dns_label!(),
            "([.]",
            dns_label!(),
            ")*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
        )
    };
}

macro_rules! label_value {
    () => {
        "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
    };
}

/// [`crate::names::RESERVED_DOMAINS`] and their subdomains.
macro_rules! reserved_key {
    () => {
        "^([^/]*[.])?(5spot[.]finos[.]org|cluster[.]x-k8s[.]io|kubernetes[.]io|k8s[.]io)/"
    };
}

/// The name of the object.
pub const NAME: Rule = Rule::new(
    "size(self.metadata.name) <= 53",
    "must be at most 53 characters, so that the names derived from it fit into 63",
)
.at(".metadata.name");

/// A duration that is not zero.
pub const DURATION: Rule = Rule::new(
    "self.matches('^[1-9][0-9]{0,4}[smh]$') && duration(self) <= duration('24h')",
    "must be a whole number of seconds, minutes or hours from 1s to 24h, such as 90s, 5m or 2h",
);

/// A duration that may be zero.
pub const DURATION_OR_ZERO: Rule = Rule::new(
    "self == '0s' || (self.matches('^[1-9][0-9]{0,4}[smh]$') && duration(self) <= duration('24h'))",
    "must be 0s, or a whole number of seconds, minutes or hours up to 24h, such as 90s, 5m or 2h",
);

/// `reclaim.podGracePeriod`, which must be well below the time limit of an emergency reclaim.
pub const POD_GRACE_PERIOD: Rule = Rule::new(
    "self.matches('^([0-9]|[1-3][0-9]|4[0-5])s$')",
    "must be a whole number of seconds from 0s to 45s, such as 10s",
);

/// At least one of the fields that open a schedule is present.
pub const SCHEDULE_PRESENT: Rule = Rule::new(
    "has(self.daysOfWeek) || has(self.hoursOfDay) || (has(self.windows) && size(self.windows) > 0)",
    "must have at least one of daysOfWeek, hoursOfDay and windows",
);

/// An entry of `daysOfWeek`.
pub const DAYS_OF_WEEK: Rule = Rule::new(
    concat!("self.matches('^", day!(), "(-", day!(), ")?(,", day!(), "(-", day!(), ")?)*$')"),
    "must be a weekday (mon, tue, wed, thu, fri, sat, sun), a range such as mon-fri or fri-mon, \
     or several of these joined by commas without spaces",
);

/// An entry of `hoursOfDay`, or of the `hours` of an exception.
pub const HOURS_OF_DAY: Rule = Rule::new(
    concat!("self.matches('^", hour!(), "(-", hour!(), ")?(,", hour!(), "(-", hour!(), ")?)*$')"),
    "must be an hour from 0 to 23, a range such as 9-17 or 22-6, \
     or several of these joined by commas without spaces",
);

/// A time zone. An unchanged value is always accepted: an API server with another time-zone database must not block every
/// change of the object, including the removal of its finalizer.
pub const TIMEZONE: Rule = Rule::new(
    "(oldSelf.hasValue() && oldSelf.value() == self) \
     || (self.matches('^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') && self != 'Local' \
     && timestamp('2000-01-01T00:00:00Z').getHours(self) >= 0)",
    "must be the name of an IANA time zone, spelled exactly as in the IANA database, \
     such as Europe/Berlin or UTC; an offset such as +02:00 is not a time zone",
)
.with_optional_old_self();

/// An end of a window.
pub const MINUTE_OF_WEEK: Rule = Rule::new(
    concat!("self.matches('^", day!(), " ([01][0-9]|2[0-3]):[0-5][0-9]$')"),
    "must be a weekday (mon, tue, wed, thu, fri, sat, sun) and a time from 00:00 to 23:59, such as fri 21:30",
);

/// A window is not empty.
pub const WINDOW_NOT_EMPTY: Rule =
    Rule::new("self.from != self.to", "must not be equal to from: the window would be empty").at(".to");

/// A day of an exception.
pub const DATE: Rule = Rule::new(
    concat!("self.matches('^", date!(), "$')"),
    "must be a date that exists in the calendar, as year-month-day, such as 2026-12-24",
);

/// The days of an exception are given in one of two ways.
pub const EXCEPTION_DAYS: Rule = Rule::new(
    "has(self.date) ? !has(self.from) && !has(self.to) : has(self.from) && has(self.to)",
    "must have either date, or both from and to",
);

/// A range of days is in order.
pub const EXCEPTION_ORDER: Rule = Rule::new(
    "!has(self.from) || !has(self.to) || self.from <= self.to",
    "must not be earlier than from; a range of days includes both its first and its last day",
)
.at(".to");

/// `clusterName`.
pub const CLUSTER_NAME: Rule = Rule::new(
    concat!("self.matches('^", dns_label!(), "$')"),
    "must be the name of a Cluster: 1 to 63 lower-case letters, digits and hyphens, \
     with a letter or digit at both ends",
);

/// The `apiVersion` of a provider object. The groups are [`crate::names::PROVIDER_GROUPS`].
pub const PROVIDER_API_VERSION: Rule = Rule::new(
    "self.matches('^(bootstrap[.]cluster[.]x-k8s[.]io|infrastructure[.]cluster[.]x-k8s[.]io|k0smotron[.]io)\
     /v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$')",
    "must be a group and version whose group is bootstrap.cluster.x-k8s.io, infrastructure.cluster.x-k8s.io \
     or k0smotron.io, such as bootstrap.cluster.x-k8s.io/v1beta2",
);

/// The `kind` of a provider object.
pub const PROVIDER_KIND: Rule = Rule::new(
    "self.matches('^[A-Z][A-Za-z0-9]*$')",
    "must be a kind: letters and digits, beginning with an upper-case letter, such as K0sWorkerConfig",
);

/// The keys of labels and annotations.
pub const KEYS: Rule = Rule::new(
    concat!("self.all(key, key.matches('", qualified_name!(), "') && key.indexOf('/') <= 253)"),
    "every key must be a name of 1 to 63 letters, digits, '-', '_' and '.', \
     optionally with a DNS domain and '/' in front, such as rack or example.org/rack",
);

/// The keys of labels and annotations are not in a domain of 5-Spot, Cluster API or Kubernetes.
pub const KEYS_NOT_RESERVED: Rule = Rule::new(
    concat!("self.all(key, !key.matches('", reserved_key!(), "'))"),
    "no key may be in the domains 5spot.finos.org, cluster.x-k8s.io, kubernetes.io and k8s.io \
     or in their subdomains",
);

/// The value of a label or a taint.
pub const LABEL_VALUE: Rule = Rule::new(
    concat!("self.matches('", label_value!(), "')"),
    "must be empty, or up to 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends",
);

/// The key of a taint.
pub const TAINT_KEY: Rule = Rule::new(
    concat!("self.matches('", qualified_name!(), "') && self.indexOf('/') <= 253"),
    "must be a name of 1 to 63 letters, digits, '-', '_' and '.', \
     optionally with a DNS domain and '/' in front, such as dedicated or example.org/dedicated",
);

/// The key of a taint is not in a domain of 5-Spot, Cluster API or Kubernetes.
pub const TAINT_KEY_NOT_RESERVED: Rule = Rule::new(
    concat!("!self.matches('", reserved_key!(), "')"),
    "must not be in the domains 5spot.finos.org, cluster.x-k8s.io, kubernetes.io and k8s.io \
     or in their subdomains",
);

/// No two taints have the same key and effect.
pub const TAINTS_UNIQUE: Rule = Rule::new(
    "self.all(taint, self.exists_one(other, other.key == taint.key && other.effect == taint.effect))",
    "must not have two taints with the same key and effect",
);

/// `machineTemplate.version`.
pub const KUBERNETES_VERSION: Rule = Rule::new(
    "self.matches('^v?(0|[1-9][0-9]*)[.](0|[1-9][0-9]*)[.](0|[1-9][0-9]*)([-+][-+.0-9A-Za-z]+)?$')",
    "must be a Kubernetes version of three numbers, such as v1.36.4 or v1.36.4+k0s.0",
);

/// The name of a Secret.
pub const SECRET_NAME: Rule = Rule::new(
    concat!("self.matches('^", dns_label!(), "([.]", dns_label!(), ")*$')"),
    "must be the name of a Secret: lower-case letters, digits, '-' and '.', with a letter or digit at both ends",
);

/// A key in a Secret.
pub const SECRET_KEY: Rule = Rule::new(
    "self.matches('^[-._a-zA-Z0-9]+$')",
    "must be a key of a Secret: letters, digits, '-', '_' and '.', such as value",
);

/// `override.until`. With some offsets, a time on the last day of the year 9999 is out of range.
pub const UNTIL: Rule = Rule::new(
    concat!(
        "self.matches('^",
        date!(),
        "T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$') \
         && self < '9999-12-30'"
    ),
    "must be an RFC 3339 time with an offset, such as 2026-12-24T18:00:00Z or 2026-12-24T18:00:00+01:00",
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{MAX_NAME_LENGTH, PROVIDER_GROUPS, RESERVED_DOMAINS};

    #[test]
    fn patterns_and_messages_say_the_lists_of_names() {
        for group in PROVIDER_GROUPS {
            assert!(PROVIDER_API_VERSION.expression.contains(&group.replace('.', "[.]")), "{group}");
            assert!(PROVIDER_API_VERSION.message.contains(group), "{group}");
        }
        for domain in RESERVED_DOMAINS {
            for rule in [KEYS_NOT_RESERVED, TAINT_KEY_NOT_RESERVED] {
                assert!(rule.expression.contains(&domain.replace('.', "[.]")), "{domain}");
                assert!(rule.message.contains(domain), "{domain}");
            }
        }
        assert!(NAME.expression.ends_with(&format!("<= {MAX_NAME_LENGTH}")));
        assert!(NAME.message.contains(&format!("at most {MAX_NAME_LENGTH} characters")));
    }
}
