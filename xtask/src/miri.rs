// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask miri`: tests of crates with `unsafe` under the interpreter, which finds undefined behaviour.

use crate::steps::{Problem, command, need, no_arguments, run};

/// Crates, and the arguments of their tests that the interpreter can run: no processes, no shared libraries, no hours.
const TESTS: [(&str, &str); 1] = [("paceline-c", "--lib --test interface -- status fuzz limits")];

/// Runs these tests under Miri. Those with random inputs have fewer of them there.
pub fn miri(arguments: &[String]) -> Result<(), Problem> {
    no_arguments(arguments)?;
    need("cargo +nightly miri --version", "Get it with `rustup component add miri rust-src --toolchain nightly`.")?;
    for (package, tests) in TESTS {
        let line = format!("cargo +nightly miri test --package {package} {tests}");
        run(command(line.trim_end()).env("MIRIFLAGS", "-Zmiri-disable-isolation"))?;
    }
    Ok(())
}
