//! The stages of a reclaim, as its owner experiences them. The time of each is a fact in the status, so that it is measured once,
//! whichever controller sees it.

use super::draft::Draft;
use super::reclaim::same_request;
use super::situation::Situation;
use crate::world::{FormerNode, NodeFact, Slot};
use five_spot_api::{ReclaimRecord, ReclaimStages};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

/// Returns the stages of a request that is seen for the first time. A time in the future comes from a wrong clock or is forged.
pub(super) fn begin(situation: &Situation<'_>, requested_at: Option<Timestamp>) -> ReclaimStages {
    let now = now(situation);
    ReclaimStages {
        requested_at: requested_at.map_or_else(|| now.clone(), |time| micros(time.min(situation.now))),
        annotated_at: now,
        pods_gone_at: None,
        machine_deleted_at: None,
        node_gone_at: None,
    }
}

/// Notes that the pods of the current reclaim have left.
pub(super) fn note_pods_gone(situation: &Situation<'_>, draft: &mut Draft) {
    if let Some(stages) = current(draft).and_then(|record| record.stages.as_mut()) {
        stages.pods_gone_at.get_or_insert_with(|| now(situation));
    }
}

/// Notes the stages that the observed state shows. It applies to the newest reclaim only: the machine of an older one has been
/// lent again since.
pub(super) fn note_progress(situation: &Situation<'_>, draft: &mut Draft) {
    let Some(record) = current(draft) else { return };
    let is_old = was_finished(situation, record);
    let has_lost_node = has_lost_node(situation, &record.node_uid);
    let Some(stages) = record.stages.as_mut() else { return };
    if !is_old && is_machine_deleted(situation) {
        stages.machine_deleted_at.get_or_insert_with(|| now(situation));
    }
    if has_lost_node {
        stages.node_gone_at.get_or_insert_with(|| now(situation));
    }
}

fn current(draft: &mut Draft) -> Option<&mut ReclaimRecord> {
    draft.facts.reclaims.first_mut()
}

fn was_finished(situation: &Situation<'_>, record: &ReclaimRecord) -> bool {
    let mut before = situation.prior().reclaims.iter();
    before.any(|known| same_request(known, record) && known.finished_at.is_some())
}

/// Returns true if the deletion of the Machine was accepted, or there is none.
fn is_machine_deleted(situation: &Situation<'_>) -> bool {
    match &situation.world.machine {
        Slot::Ours(machine) => machine.terminating,
        Slot::Absent | Slot::Foreign { .. } => true,
        Slot::Unknown => false,
    }
}

/// Returns true if the recorded Node has this UID and is gone. The same decision removes it from the status, or replaces it by
/// the Node that has joined under its name since.
fn has_lost_node(situation: &Situation<'_>, uid: &str) -> bool {
    let recorded = situation.prior().node_ref.as_ref().and_then(|node| node.uid.as_deref());
    if recorded != Some(uid) {
        return false;
    }
    match &situation.world.machine {
        Slot::Ours(_) => {}
        Slot::Absent | Slot::Foreign { .. } => return situation.world.former_node == FormerNode::Gone,
        Slot::Unknown => return false,
    }
    match &situation.world.node {
        NodeFact::Gone => true,
        NodeFact::Found(node) => node.uid.as_str() != uid,
        NodeFact::Renamed(node) => node.uid.as_str() != uid,
        NodeFact::NotYet | NodeFact::Unknown | NodeFact::Mismatch { .. } => false,
    }
}

/// Returns the current time as the status keeps it.
fn now(situation: &Situation<'_>) -> MicroTime {
    micros(situation.now)
}

/// Rounds a time down to microseconds: a value that is read back must equal the one that was decided.
fn micros(time: Timestamp) -> MicroTime {
    let nanos = time.as_nanosecond();
    MicroTime(Timestamp::from_nanosecond(nanos - nanos.rem_euclid(1000)).unwrap_or(time))
}
