//! The project's own chores, run as `cargo xtask <name>`.

mod make_traces;

use std::process::ExitCode;

/// One chore: its name, what it does in a line, and the function that does it, given the arguments after the name.
struct Task {
    name: &'static str,
    help: &'static str,
    run: fn(&[String]) -> Result<(), String>,
}

const TASKS: &[Task] = &[Task {
    name: "make-traces",
    help: "write the synthetic traces and frame sizes under scenarios/real (--check: only compare)",
    run: make_traces::run,
}];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((task, rest)) =
        arguments.split_first().and_then(|(name, rest)| TASKS.iter().find(|t| t.name == *name).map(|t| (t, rest)))
    else {
        eprintln!("usage: cargo xtask <task> [arguments]\n");
        for task in TASKS {
            eprintln!("  {:<14}{}", task.name, task.help);
        }
        return ExitCode::from(2);
    };
    match (task.run)(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{}: {problem}", task.name);
            ExitCode::FAILURE
        }
    }
}
