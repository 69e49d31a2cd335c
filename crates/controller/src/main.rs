//! The program `5spot-controller`.

fn main() {}
