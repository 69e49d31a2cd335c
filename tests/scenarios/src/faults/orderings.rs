//! The watch event that a write causes is delivered before or after the response to the write.

use super::{Baseline, Case, Judge, Sample};
use crate::in_memory::{Disturbance, EventOrder, Reordered, Reordering};

/// Every order for all writes at once, and for each write alone. A sample has all of the former and some of the latter.
pub(super) fn cases(baseline: &Baseline, sample: Sample) -> Vec<Case> {
    let orders = |writes| EventOrder::ALL.map(|order| case(Reordering { writes, order }));
    let each = (0..baseline.run.attempts).map(Reordered::Write).flat_map(orders).collect();
    orders(Reordered::EveryWrite).into_iter().chain(sample.of(each)).collect()
}

fn case(reordering: Reordering) -> Case {
    let disturbance = Disturbance { reordering: Some(reordering), ..Disturbance::default() };
    // A run in which nothing fails has to keep the time of its scenario as well.
    Case { name: reordering.to_string(), disturbance, judge: Judge::SameEnd }
}
