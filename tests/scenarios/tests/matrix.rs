//! The emergency matrix on the in-memory environment, one trial for each cell.

use five_spot_scenarios::in_memory::run_cell;
use five_spot_scenarios::matrix::{Cell, cells};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() {
    if std::env::var_os("RUST_LOG").is_some() {
        tracing_subscriber::fmt().with_env_filter(tracing_subscriber::EnvFilter::from_default_env()).init();
    }
    let arguments = Arguments::from_args();
    libtest_mimic::run(&arguments, cells().into_iter().map(trial).collect()).exit();
}

fn trial(cell: Cell) -> Trial {
    Trial::test(cell.to_string(), move || run_cell(&cell).map_err(|error| Failed::from(format!("{error:#}"))))
}
