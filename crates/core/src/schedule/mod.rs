//! When a machine is wanted.
