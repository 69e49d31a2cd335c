//! The reason why a machine is wanted or not, pauses, and time zones.

use super::finding::{Finding, Fix, Severity};
use super::id::FindingId;
use super::json::text;
use super::machine::Case;
use crate::shell::quoted;
use five_spot_api::names;
use serde_json::json;

/// `is_broken` says that a graver finding about the machine exists already.
pub(super) fn judge(case: &Case<'_>, is_broken: bool, findings: &mut Vec<Finding>) {
    findings.extend(invalid(case));
    findings.extend(paused(case));
    if !is_broken {
        findings.extend(not_wanted(case));
    }
    findings.extend(timezone(case));
}

fn invalid(case: &Case<'_>) -> Option<Finding> {
    let recorded = case.condition("Scheduled").filter(|scheduled| scheduled.reason == "InvalidSchedule");
    let errors: Vec<String> = match &case.machine.spec {
        Ok(_) => Vec::new(),
        Err(errors) => errors
            .iter()
            .filter(|error| {
                error.field.starts_with("spec.schedule") || error.field.starts_with("spec.override")
            })
            .map(ToString::to_string)
            .collect(),
    };
    if recorded.is_none() && errors.is_empty() {
        return None;
    }
    Some(
        case.find(FindingId::InvalidSchedule, Severity::Error, "the schedule is invalid")
            .cause("The controller cannot tell whether the machine is wanted: a lent machine stays, and no window opens.")
            .evidence_of(recorded.map(|condition| condition.words()))
            .evidence_of(errors)
            .evidence_of(case.log("Failed to evaluate schedule"))
            .fix(Fix::command(case.kubectl("edit")).because(
                "days are written mon-fri, hours 9-17, and the time zone as an IANA name such as America/New_York",
            )),
    )
}

fn paused(case: &Case<'_>) -> Option<Finding> {
    let paused = case.condition("Paused").filter(|paused| paused.status == "True")?;
    if paused.reason == "TooManyRemovals" {
        let until = case.in_hours(1);
        return Some(
            case.find(FindingId::RemovalsHeld, Severity::Error, "the removal of this machine is held back")
                .cause(
                    "More machines than --max-unplanned-removals allows would have been removed at once for \
                     a reason that their schedules do not explain: time-zone data, an edited calendar, or \
                     the clock.",
                )
                .evidence(paused.words())
                .fix(Fix::note("find out what changed before you allow the removals"))
                .fix(
                    Fix::command(format!(
                        "kubectl annotate namespace {} --overwrite 5spot.finos.org/allow-removals={until}",
                        case.facts.controller.namespace
                    ))
                    .because(format!("lets all held removals go until {until}"))
                    .risky(),
                ),
        );
    }
    let is_idle = paused.message.contains("no changes are held back");
    let severity = if is_idle { Severity::Info } else { Severity::Warning };
    let title =
        if is_idle { "a pause will hold back the next changes" } else { "a pause holds back all changes" };
    Some(
        case.find(FindingId::Paused, severity, title)
            .cause(if is_idle {
                "Nothing is held back at the moment."
            } else {
                "Until the pause ends, the controller writes nothing but the status."
            })
            .evidence(paused.words())
            .fix(Fix::command(resume(case, paused.reason, paused.message))),
    )
}

/// The command that ends a pause.
fn resume(case: &Case<'_>, reason: &str, message: &str) -> String {
    let (namespace, name) = (case.machine.namespace(), case.machine.name());
    let machine = names::machine(name);
    let on_machine = message.contains(&format!("on Machine {namespace}/{machine}"));
    match reason {
        "NamespaceAnnotation" => format!("kubectl annotate namespace {namespace} 5spot.finos.org/paused-"),
        "CapiAnnotation" if on_machine => {
            format!(
                "kubectl annotate machines.cluster.x-k8s.io {machine} -n {namespace} cluster.x-k8s.io/paused-"
            )
        }
        "CapiAnnotation" => format!("{} cluster.x-k8s.io/paused-", case.kubectl("annotate")),
        "ClusterPaused" => {
            let cluster = quoted(text(&case.machine.object, "/spec/clusterName"));
            format!(
                "kubectl patch clusters.cluster.x-k8s.io {cluster} -n {namespace} --type=merge -p \
                 '{{\"spec\":{{\"paused\":false}}}}'"
            )
        }
        _ => format!("{} 5spot.finos.org/paused-", case.kubectl("annotate")),
    }
}

/// The reason why no machine is wanted.
fn not_wanted(case: &Case<'_>) -> Option<Finding> {
    let scheduled = case.condition("Scheduled").filter(|scheduled| scheduled.status == "False")?;
    let enable = || Fix::command(case.patch(&json!({"schedule": {"enabled": true}})));
    let found = |id, title: &str| case.find(id, Severity::Info, title).evidence(scheduled.words());
    let reclaim = case.machine.status.reclaims.first().map(|record| {
        format!("status.reclaims: {} on node {}: {}", record.requested_at.0, record.node, record.reason)
    });
    Some(match scheduled.reason {
        "OutsideWindow" | "OverrideDown" => {
            let next = case.machine.status.next_activation.as_ref();
            let when = next.map_or_else(|| "never".to_owned(), |next| next.0.to_string());
            let zone = text(&case.machine.object, "/spec/schedule/timezone");
            let until = case.in_hours(2).to_string();
            found(FindingId::ScheduleNotNow, "no machine is wanted now")
                .cause("The schedule is closed, or an override keeps the machine down.")
                .evidence(format!("the next activation is {when}; the time zone is {zone}"))
                .fix(Fix::command(format!(
                    "5spot preview {} -n {}",
                    case.machine.name(),
                    case.machine.namespace()
                )))
                .fix(
                    Fix::command(case.patch(
                        &json!({"override": {"state": "up", "until": until, "reason": "needed now"}}),
                    ))
                    .because(format!("lends the machine now, until {until}")),
                )
        }
        "Disabled" => found(FindingId::ScheduleDisabled, "the schedule is disabled")
            .cause("spec.schedule.enabled is false.")
            .fix(enable()),
        "KillSwitch" => found(FindingId::ScheduleDisabled, "the kill switch is on")
            .cause("spec.killSwitch is true: no machine is lent until it is false again.")
            .fix(Fix::command(case.patch(&json!({"killSwitch": false})))),
        "EmergencyReclaimDisabledSchedule" => {
            found(FindingId::ScheduleDisabled, "a reclaim has disabled the schedule")
                .cause("The owner needed the machine. It is lent again only when someone allows it.")
                .evidence_of(reclaim)
                .fix(enable().because("after the owner has ended the program that matched"))
        }
        "AwaitingResume" => found(
            FindingId::ScheduleDisabled,
            "the machine was reclaimed and is not lent again yet",
        )
        .cause("spec.reclaim.resume is OnAnnotation, and nobody has allowed the machine to be lent again.")
        .evidence_of(reclaim)
        .fix(Fix::command(format!(
            "{} --overwrite 5spot.finos.org/resume=\"$(date -u +%Y-%m-%dT%H:%M:%SZ)\"",
            case.kubectl("annotate")
        ))),
        _ => return None,
    })
}

/// A time zone that is often not the intended one.
fn timezone(case: &Case<'_>) -> Option<Finding> {
    let zone = text(&case.machine.object, "/spec/schedule/timezone");
    let (severity, meaning) = if let Some(offset) = zone.strip_prefix("Etc/GMT") {
        if offset.is_empty() || offset.trim_start_matches(['+', '-']) == "0" {
            return None;
        }
        (
            Severity::Warning,
            "The signs of these zones are inverted: Etc/GMT+5 is five hours behind UTC, not ahead.",
        )
    } else if matches!(
        zone,
        "EST" | "MST" | "HST" | "EST5EDT" | "CST6CDT" | "MST7MDT" | "PST8PDT" | "CET" | "MET" | "EET" | "WET"
    ) {
        (
            Severity::Warning,
            "This is an abbreviation, not the zone of a place; some abbreviations have no daylight saving \
             time.",
        )
    } else {
        let other =
            usual_zone(case).filter(|other| *other != zone && matches!(zone, "UTC" | "Etc/UTC" | ""))?;
        return Some(
            case.find(
                FindingId::TimezoneSuspect,
                Severity::Info,
                "the time zone is UTC, unlike that of the other machines in the namespace",
            )
            .cause("UTC is the default: spec.schedule.timezone may have been forgotten.")
            .evidence(format!("most machines of the namespace use {other}"))
            .fix(
                Fix::command(case.patch(&json!({"schedule": {"timezone": other}})))
                    .because("moves the windows; check with `5spot preview` first"),
            ),
        );
    };
    Some(
        case.find(
            FindingId::TimezoneSuspect,
            severity,
            format!("the time zone {zone} may not be the intended one"),
        )
        .cause(meaning)
        .evidence(format!("spec.schedule.timezone is {zone}"))
        .fix(
            Fix::command(case.kubectl("edit")).because("name the zone of a place, such as America/New_York"),
        ),
    )
}

/// The zone of most other machines of the namespace, if at least three of four have the same.
fn usual_zone<'a>(case: &Case<'a>) -> Option<&'a str> {
    let own = text(&case.machine.object, "/spec/schedule/timezone");
    let zones = case.index.zones(case.machine.namespace());
    let others: Vec<(&str, usize)> =
        zones.map(|(zone, count)| (zone, count - usize::from(zone == own))).collect();
    let total: usize = others.iter().map(|(_, count)| count).sum();
    let (zone, count) = others.into_iter().max_by_key(|(_, count)| *count)?;
    (total >= 4 && count * 4 >= total * 3 && !matches!(zone, "UTC" | "Etc/UTC" | "")).then_some(zone)
}
