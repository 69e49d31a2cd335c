//! The emergency matrix: every way to take a machine back at once, or to let its object go, with everything beside it that
//! can be broken.
//!
//! Each [`Cell`] says how long the machine may take to be given back while the fault lasts. After the fault has been
//! lifted, everything has to converge, and nothing may stay behind.

mod cell;
mod emergency;
mod expected;
mod obstacle;

pub use cell::Cell;
pub use emergency::Emergency;
pub use expected::Expected;
pub use obstacle::Obstacle;

/// Every cell.
pub fn cells() -> Vec<Cell> {
    let of = |emergency| Obstacle::ALL.map(|obstacle| Cell { emergency, obstacle });
    Emergency::ALL.into_iter().flat_map(of).collect()
}
