//! The duration of reclaims, from the request of the agent to each stage. The times are facts in the status: a stage is measured by
//! the controller that records it, and by no other.

use super::families::Families;
use five_spot_api::{ReclaimRecord, ReclaimStage, ReclaimStages};

/// Measures the stages that are in the status now and were not before.
pub(super) fn measure(families: &Families, before: &[ReclaimRecord], now: &[ReclaimRecord]) {
    for record in now {
        let Some(stages) = &record.stages else { continue };
        let mut same = before
            .iter()
            .filter(|known| known.node_uid == record.node_uid && known.requested_at == record.requested_at);
        let known = same.next().map(|known| known.stages.as_ref());
        let is_recorded = |stage| match known {
            None => false,
            // An older controller recorded the reclaim without its stages.
            Some(None) => true,
            Some(Some(known)) => ReclaimStages::duration(known, stage).is_some(),
        };
        for stage in ReclaimStage::ALL.into_iter().filter(|stage| !is_recorded(*stage)) {
            if let Some(duration) = stages.duration(stage) {
                families
                    .reclaim_duration
                    .with_label_values(&[stage.as_str()])
                    .observe(duration.as_secs_f64());
            }
        }
    }
}
