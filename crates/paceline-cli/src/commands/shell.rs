// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline completions` and `paceline man`: files for shells and for `man`, from the definition of the command line.

use crate::output;
use clap::Command;
use clap_complete::Shell;
use miette::{IntoDiagnostic, Result};
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `completions`.
#[derive(clap::Args)]
pub struct Completions {
    /// The shell.
    shell: Shell,
}

/// Arguments of `man`.
#[derive(clap::Args)]
pub struct Man {
    /// The folder, such as ~/.local/share/man/man1.
    dir: PathBuf,
}

/// Prints the script of a shell.
pub fn completions(arguments: &Completions, mut command: Command) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "paceline", &mut script);
    let mut script = String::from_utf8_lossy(&script).trim_end().to_owned();
    if arguments.shell == Shell::Fish {
        // The generator leaves out positional arguments in fish.
        for verb in command.get_subcommands() {
            let names: Vec<String> = verb
                .get_positionals()
                .flat_map(|argument| argument.get_possible_values())
                .map(|value| value.get_name().to_owned())
                .collect();
            if !names.is_empty() {
                let (name, names) = (verb.get_name(), names.join(" "));
                script +=
                    &format!("\ncomplete -c paceline -n \"__fish_seen_subcommand_from {name}\" -f -a \"{names}\"");
            }
        }
    }
    output::print(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes `paceline.1`, and `paceline-COMMAND.1` for each command.
pub fn man(arguments: &Man, command: Command) -> Result<ExitCode> {
    std::fs::create_dir_all(&arguments.dir).into_diagnostic()?;
    // One line: a page has no room for the sources of all controllers.
    let command = command.name("paceline").long_version(super::VERSION);
    clap_mangen::generate_to(command, &arguments.dir).into_diagnostic()?;
    eprintln!("the man pages are in {}", arguments.dir.display());
    Ok(ExitCode::SUCCESS)
}
