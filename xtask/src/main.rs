//! The project's own chores, run as `cargo xtask <name>`.

mod book;
mod check;
mod docs;
mod figures;
mod make_traces;
mod measure;
mod mutations;
mod outside;
mod reference;
mod scoreboard;
mod screenshots;
mod steps;

use std::process::ExitCode;
use steps::Problem;

/// One chore: its name, what it does in a line, and the function that does it, given the arguments after the name.
struct Task {
    name: &'static str,
    help: &'static str,
    run: fn(&[String]) -> Result<(), Problem>,
}

const TASKS: &[Task] = &[
    Task {
        name: "test",
        help: "all checks: format, clippy, tests, docs, made files, equal runs in debug and release, what the pages say",
        run: check::test,
    },
    Task {
        name: "bench",
        help: "the tables of docs/benchmarks.md (--all: the divan benches, too)",
        run: measure::bench,
    },
    Task {
        name: "track",
        help: "how fast and exact a link of real packets is here, each trial for [seconds], 10 unless told (needs root)",
        run: measure::track,
    },
    Task { name: "callgrind", help: "instructions per packet (needs valgrind)", run: measure::callgrind },
    Task {
        name: "mutations",
        help: "change constants by a percent or two and see which test notices",
        run: mutations::mutations,
    },
    Task {
        name: "fuzz",
        help: "every fuzz target for [seconds] each, 60 unless told (needs cargo-fuzz)",
        run: outside::fuzz,
    },
    Task { name: "deny", help: "licences and sources of the dependencies (needs cargo-deny)", run: outside::deny },
    Task {
        name: "scoreboard",
        help: "write the verdicts under scoreboard (--check: only say what moved)",
        run: scoreboard::scoreboard,
    },
    Task {
        name: "screenshots",
        help: "write the pages' photographs, docs/images (needs chromium and the test track)",
        run: screenshots::screenshots,
    },
    Task {
        name: "figures",
        help: "draw the pages' pictures, docs/figures, from runs (--check: only compare)",
        run: figures::figures,
    },
    Task {
        name: "make-traces",
        help: "write the synthetic traces and frame sizes under scenarios/real (--check: only compare)",
        run: |arguments| Ok(make_traces::run(arguments)?),
    },
    Task {
        name: "reference",
        help: "write docs/reference from what the program says of itself (--check: only compare)",
        run: reference::reference,
    },
    Task {
        name: "docs",
        help: "follow the pages: their links lead somewhere, their commands do what they show",
        run: docs::docs,
    },
    Task { name: "book", help: "the pages as a book to read in a browser (needs mdbook)", run: book::book },
];

const USAGE: &str = "usage: cargo xtask <task> [arguments]";
const EXITS: &str = "exit codes: 0 done, 1 failed, 2 usage, 3 a program that the task needs is missing";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let asks = |word: &String| ["-h", "--help", "help"].contains(&word.as_str());
    if arguments.first().is_some_and(asks) {
        print!("{}", help());
        return ExitCode::SUCCESS;
    }
    let task = arguments.first().and_then(|name| TASKS.iter().find(|task| task.name == name));
    let Some(task) = task else {
        eprint!("{}", help());
        return ExitCode::from(2);
    };
    if arguments.get(1).is_some_and(asks) {
        println!("cargo xtask {}: {}", task.name, task.help);
        return ExitCode::SUCCESS;
    }
    let (problem, code) = match (task.run)(&arguments[1..]) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Problem::Failed(problem)) => (problem, 1),
        Err(Problem::Usage(problem)) => (problem, 2),
        Err(Problem::Missing(problem)) => (problem, 3),
    };
    eprintln!("\n{}: {problem}", task.name);
    ExitCode::from(code)
}

fn help() -> String {
    let lines: String = TASKS.iter().map(|task| format!("  {:<12} {}\n", task.name, task.help)).collect();
    format!("{USAGE}\n\n{lines}\n{EXITS}\n")
}
