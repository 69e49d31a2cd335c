//! The memory that the answers of one cluster may take while they are read, and what is kept of them afterwards.

use super::TransportError;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes that are buffered or kept for a cluster, or for all clusters of a namespace. Clones are the same budget.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    buffered: Arc<AtomicUsize>,
    limit: usize,
    /// The budget of its namespace, of which everything is taken as well.
    of_namespace: Option<Box<Self>>,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Self {
        Self { buffered: Arc::default(), limit, of_namespace: None }
    }

    /// The same budget as a part of that of its namespace.
    pub(crate) fn within(self, namespace: &Self) -> Self {
        Self { of_namespace: Some(Box::new(namespace.clone())), ..self }
    }

    /// Adds to what is buffered. True if that is within the limit.
    fn add(&self, bytes: usize) -> bool {
        let before = self.buffered.fetch_add(bytes, Ordering::Relaxed);
        before.saturating_add(bytes) <= self.limit
    }

    fn give_back(&self, bytes: usize) {
        self.buffered.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// A part of the budget of which nothing is used yet.
    pub(crate) fn share(&self) -> Share {
        Share { budget: self.clone(), bytes: 0 }
    }
}

/// The part of a budget that one answer or one object uses, until this is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Budget,
    bytes: usize,
}

impl Share {
    /// Takes more, if the budget allows it.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), TransportError> {
        self.bytes += bytes;
        let is_within = self.budget.add(bytes);
        let over = self.budget.of_namespace.as_ref().filter(|namespace| !namespace.add(bytes));
        match over {
            _ if !is_within => Err(TransportError::OverBudget { limit: self.budget.limit }),
            Some(namespace) => Err(TransportError::NamespaceOverBudget { limit: namespace.limit }),
            None => Ok(()),
        }
    }

    /// Returns everything to the budget.
    pub(crate) fn clear(&mut self) {
        self.budget.give_back(self.bytes);
        if let Some(namespace) = &self.budget.of_namespace {
            namespace.give_back(self.bytes);
        }
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

    #[test]
    fn budgets_of_one_namespace_add_up() {
        let namespace = Budget::new(150);
        let (one, other) = (Budget::new(100).within(&namespace), Budget::new(100).within(&namespace));
        let mut first = one.share();
        first.grow(100).unwrap();
        let mut second = other.share();
        second.grow(50).unwrap();
        assert_eq!(second.grow(1), Err(TransportError::NamespaceOverBudget { limit: 150 }));
        assert_eq!(first.grow(1), Err(TransportError::OverBudget { limit: 100 }));
        drop((first, second));
        let (mut first, mut second) = (one.share(), other.share());
        first.grow(100).unwrap();
        second.grow(50).unwrap();
    }
}
