//! Mutexes around maps of which every change is one insertion, removal or assignment.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. A change is one operation, which a panic of another holder cannot interrupt: poisoning is ignored.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
