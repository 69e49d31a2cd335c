//! The memory that answers of one cluster may take while they are read.

use super::TransportError;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes that are buffered for a cluster. Clones are the same budget.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    buffered: Arc<AtomicUsize>,
    limit: usize,
}

impl Budget {
    pub(super) fn new(limit: usize) -> Self {
        Self { buffered: Arc::default(), limit }
    }

    /// A part of the budget of which nothing is used yet.
    pub(super) fn share(&self) -> Share {
        Share { budget: self.clone(), bytes: 0 }
    }
}

/// The part of a budget that one answer uses, until this is dropped.
#[derive(Debug)]
pub(super) struct Share {
    budget: Budget,
    bytes: usize,
}

impl Share {
    /// Takes more, if the budget allows it.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<(), TransportError> {
        let before = self.budget.buffered.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        if before.saturating_add(bytes) > self.budget.limit {
            return Err(TransportError::OverBudget { limit: self.budget.limit });
        }
        Ok(())
    }

    /// Returns everything to the budget.
    pub(super) fn clear(&mut self) {
        self.budget.buffered.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = 0;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_one_budget_add_up() {
        let budget = Budget::new(100);
        let (mut one, mut other) = (budget.share(), budget.share());
        one.grow(60).unwrap();
        assert_eq!(other.grow(60), Err(TransportError::OverBudget { limit: 100 }));
        drop(other);
        one.grow(40).unwrap();
        one.clear();
        budget.share().grow(100).unwrap();
    }
}
