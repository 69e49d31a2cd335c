//! 5spot
fn main() {}
