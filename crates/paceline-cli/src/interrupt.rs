// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ctrl-C: prints what was kept and how to continue, and ends the process.

use std::path::Path;

/// How a command that was interrupted continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continues {
    /// The same command makes only the runs that are not stored.
    Again,
    /// The same command with `--resume`.
    Resume,
}

/// Prints a message when the process is interrupted, before it ends.
pub fn announce(out: Option<&Path>, continues: Continues) {
    on_interrupt(message(out, continues));
}

fn message(out: Option<&Path>, continues: Continues) -> String {
    let Some(dir) = out else {
        return "interrupted: nothing was kept; with --out DIR, finished runs are".to_owned();
    };
    let dir = dir.display();
    match continues {
        Continues::Again => format!("interrupted: finished runs are in {dir}; the same command continues"),
        Continues::Resume => {
            format!("interrupted: finished runs are in {dir}; the same command with --resume continues")
        }
    }
}

#[cfg(unix)]
fn on_interrupt(message: String) {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) else { return };
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            eprintln!("\n{}", crate::output::printable(&message));
            crate::external::end_all();
            // Ends the process as if the signal were not handled.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
}

#[cfg(not(unix))]
fn on_interrupt(_: String) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_what_was_kept_and_how_to_continue() {
        assert!(message(None, Continues::Resume).contains("nothing was kept"));
        let dir = Some(Path::new("results"));
        assert!(message(dir, Continues::Resume).ends_with("are in results; the same command with --resume continues"));
        assert!(message(dir, Continues::Again).ends_with("the same command continues"));
    }
}
