// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask beside`: the same links with Chromium's own controller, with `googcc` over UDP, and with `googcc` in the
//! simulator.

use crate::steps::{Problem, command, create, failed, need, program, root, run, target};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The cases of `real/chromium` by their label, and the scenario with a CUBIC flow.
const CASES: [&str; 8] = ["1Mbps", "2.5Mbps", "5Mbps", "step", "loss", "rtt-20ms", "rtt-200ms", "cubic"];
/// The senders as their folders name them; those before the simulator are controllers of calls.
const SENDERS: [&str; 3] = ["chromium", "googcc", "simulator"];
const SEEDS: u64 = 3;

/// Makes every call that the folder lacks, one after the other, and writes the table and the figures.
pub fn beside(arguments: &[String]) -> Result<(), Problem> {
    let runs = match arguments {
        [] => target().join("beside"),
        [folder] => PathBuf::from(folder),
        _ => return Err(Problem::Usage("takes a folder of runs or nothing".into())),
    };
    need("chromium --version", "Get it from the system's packages: `apt-get install chromium`.")?;
    run(command("cargo build --release -p paceline-cli --features browser"))?;
    for seed in 1..=SEEDS {
        for case in CASES {
            for sender in SENDERS {
                call(&runs.join(case).join(format!("{sender}-{seed}")), case, sender, seed)?;
            }
        }
    }
    let figures = root().join("docs/figures/googcc-chromium");
    create(&figures)?;
    Ok(run(command("cargo run --release -p paceline-lab --example beside --").arg(&runs).arg(&figures).args(SENDERS))?)
}

/// Makes a call into this folder, unless it is there. A folder without results is from an interrupted run.
fn call(folder: &Path, case: &str, sender: &str, seed: u64) -> Result<(), String> {
    if folder.join("results.sqlite").is_file() {
        return Ok(());
    }
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(failed(folder))?;
    }
    let scenario = match case {
        "cubic" => "real/chromium-cubic".to_owned(),
        case => format!("real/chromium --case link={case}"),
    };
    let arguments = match sender {
        "simulator" => format!("run {scenario} --repeats 1 --seed {seed}"),
        controller => format!("call {scenario} --controllers {controller} --seed {seed}"),
    };
    let mut call = program(target().join("release/paceline"), &arguments);
    run(call.arg("--out").arg(folder).stdout(Stdio::null()))
}
