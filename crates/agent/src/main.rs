//! The program `5spot-reclaim-agent`.

use std::process::ExitCode;

fn main() -> ExitCode {
    five_spot_agent::program::main(std::env::args_os())
}
