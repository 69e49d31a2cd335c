//! The program `5spot-controller`.

use std::process::ExitCode;

fn main() -> ExitCode {
    five_spot_controller::program::main(std::env::args_os())
}
