//! The emergency matrix: every way to return a machine at once, or to release its object, combined with everything that
//! can be broken.
//!
//! Each [`Cell`] states how long the return of the machine may take while the fault lasts. After the fault has been
//! lifted, everything has to converge, and nothing may stay behind.

mod cell;
mod emergency;
mod expected;
mod obstacle;

pub use cell::Cell;
pub use emergency::MatrixEmergency;
pub use expected::Expected;
pub use obstacle::Obstacle;

/// Every cell.
pub fn cells() -> Vec<Cell> {
    let of = |emergency| Obstacle::ALL.map(|obstacle| Cell { emergency, obstacle });
    MatrixEmergency::ALL.into_iter().flat_map(of).collect()
}
