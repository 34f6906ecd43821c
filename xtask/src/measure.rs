// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask bench` and `cargo xtask track`: CPU time.

use crate::dist;
use crate::instructions::callgrind;
use crate::steps::{Problem, command, no_arguments, program, run, target};
use std::fs;

/// Prints the machine, the table of the `speed` program, and instructions per packet if valgrind is installed.
pub fn bench(arguments: &[String]) -> Result<(), Problem> {
    no_arguments(arguments)?;
    let folder = dist::guided()?;
    println!("{}\n", machine());
    run(program(folder.join("speed"), "table"))?;
    println!();
    match callgrind(&[]) {
        Err(Problem::Missing(advice)) => println!("instructions per packet: not measured. {advice}"),
        counted => counted?,
    }
    Ok(())
}

/// Measures speed and accuracy of a link of real packets.
pub fn track(arguments: &[String]) -> Result<(), Problem> {
    let seconds = match arguments {
        [] => "10",
        [seconds] => seconds,
        _ => return Err(Problem::Usage("takes a number of seconds, or nothing".into())),
    };
    run(command("cargo build --quiet --profile dist --package paceline-live --example track"))?;
    println!("{}\n", machine());
    run(program(target().join("dist/examples/track"), seconds))?;
    Ok(())
}

/// Returns CPU model and number of cores.
fn machine() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{}, {cores} cores, {} {}", model.unwrap_or("unknown CPU"), std::env::consts::OS, std::env::consts::ARCH)
}
