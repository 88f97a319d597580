//! The program: parse, call one verb, return its exit status.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(rigel::cli::main(std::env::args_os().collect()))
}
