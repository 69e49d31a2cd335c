//! testenv
