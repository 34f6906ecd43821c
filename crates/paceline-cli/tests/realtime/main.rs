// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command in real time. A test binary of its own, so that no simulation runs at the same time.
#![cfg(target_os = "linux")]

#[path = "../../../paceline-live/tests/common/mod.rs"]
mod common;
mod host_faults;
mod hosts;
mod hosts_path;
mod killed;
mod machine;
mod machine_state;
mod soak;
mod track;
mod watch;

use std::process::{Command, Output};

fn paceline(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paceline"));
    command.args(arguments);
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
