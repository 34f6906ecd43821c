// SPDX-License-Identifier: MIT OR Apache-2.0
//! Development tasks, run as `cargo xtask <name>`.

mod access_link;
mod api;
mod architectures;
mod beside;
mod book;
mod c_library;
mod callgrind;
mod check;
mod deny;
mod dist;
mod docs;
mod figures;
mod fuzz;
mod instructions;
mod javascript;
mod licences;
mod make_traces;
mod measure;
mod miri;
mod notices;
mod package;
mod playground;
mod reference;
mod release;
mod scoreboard;
mod screenshots;
mod steps;
mod suite_runs;
mod wasm;
mod wheel;

use std::process::ExitCode;
use steps::Problem;

/// A task: its name, a description of one line, and its function, which takes the arguments after the name.
struct Task {
    name: &'static str,
    help: &'static str,
    run: fn(&[String]) -> Result<(), Problem>,
}

const TASKS: &[Task] = &[
    Task {
        name: "test",
        help: "all checks, or the named stages: lint, tests, determinism, generated, docs, browser, javascript, package, api, c, targets, architectures, msrv, licences, fuzz",
        run: check::test,
    },
    Task {
        name: "full",
        help: "the checks of which .ci/run makes a sample or none: long calls and sessions, random steps and fuzzing, other architectures, all papers and suites (hours)",
        run: check::full,
    },
    Task { name: "bench", help: "the tables of docs/explanation/benchmarks.md", run: measure::bench },
    Task {
        name: "track",
        help: "speed and accuracy of a link of real packets; each trial takes [seconds], 10 by default (needs root)",
        run: measure::track,
    },
    Task {
        name: "beside",
        help: "the same links with Chromium, googcc over UDP and googcc in the simulator into [folder]: table and figures; resumes (needs root and chromium)",
        run: beside::beside,
    },
    Task {
        name: "dist",
        help: "published binaries, optimised for what simulations execute (needs the component llvm-tools)",
        run: dist::dist,
    },
    Task {
        name: "release",
        help: "the command as an archive for Linux, target/release-archive (--quick: without the optimisation of `dist`; --results: also the results that `scoreboard` left)",
        run: release::release,
    },
    Task {
        name: "playground",
        help: "the simulator in one HTML page, target/playground/playground.html (needs the target wasm32-unknown-unknown)",
        run: playground::playground,
    },
    Task {
        name: "javascript",
        help: "the package for JavaScript, target/javascript, and its tests (needs the same target and Node)",
        run: javascript::javascript,
    },
    Task {
        name: "wheel",
        help: "the Python package as a manylinux wheel and as sources, target/wheels (--sdist: only sources; needs Python; fetches maturin, zig, auditwheel)",
        run: wheel::wheel,
    },
    Task {
        name: "api",
        help: "write the public interface of each published crate into its api.txt (--check: only compare; needs rustup)",
        run: api::api,
    },
    Task {
        name: "c",
        help: "write the header of the library for C, crates/paceline-c/include/paceline.h (--check: only compare)",
        run: c_library::c,
    },
    Task {
        name: "callgrind",
        help: "instructions per packet (--check: compare with the committed ones, --accept REASON: write these; needs valgrind)",
        run: instructions::callgrind,
    },
    Task {
        name: "fuzz",
        help: "every fuzz target with a fuzzer, --minutes N in all, 10 by default (needs cargo-fuzz); writes fuzz/corpus",
        run: fuzz::fuzz,
    },
    Task {
        name: "miri",
        help: "tests of the crates with `unsafe` under Miri (needs the component miri of the nightly toolchain)",
        run: miri::miri,
    },
    Task {
        name: "deny",
        help: "vulnerabilities, licences and sources of the dependencies (needs cargo-deny; without a network, the stored advisories)",
        run: deny::deny,
    },
    Task {
        name: "scoreboard",
        help: "write the verdicts and trace hashes of papers and suites, scoreboard (papers, suites [NAME…], expected: only these; --check: only compare)",
        run: scoreboard::scoreboard,
    },
    Task {
        name: "others",
        help: "run suites under the controllers of other libraries: SUITE… [--into FILE] (--help: all options)",
        run: suite_runs::others,
    },
    Task {
        name: "mutations",
        help: "run suites under GoogCC with one fault each, and print the bounds that find it: SUITE… [--repeats N] [--only NAME]",
        run: suite_runs::mutations,
    },
    Task {
        name: "screenshots",
        help: "write the screenshots of the docs, docs/images (needs chromium and the testbed)",
        run: screenshots::screenshots,
    },
    Task {
        name: "figures",
        help: "draw the figures of the docs, docs/figures, from runs (--check: only compare)",
        run: figures::figures,
    },
    Task {
        name: "make-traces",
        help: "write the synthetic traces and frame sizes under scenarios/real (--check: only compare)",
        run: make_traces::run,
    },
    Task {
        name: "docs",
        help: "check the links of the docs, run their commands and compare the output (--accept: write the output into the pages)",
        run: docs::docs,
    },
    Task {
        name: "promises",
        help: "check that each promise of the pages has a test, docs/promises.toml, and print promise, tries and tests",
        run: docs::promises::promises,
    },
    Task {
        name: "book",
        help: "build the docs and generated pages as a book, target/book (needs mdbook; --pages: only target/book-src, without it; --results: with the results that `scoreboard` left)",
        run: book::book,
    },
];

const USAGE: &str = "usage: cargo xtask <task> [arguments]";
const EXITS: &str = "exit codes: 0 done, 1 failed, 2 usage, 3 a program that the task needs is missing";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_help = |word: &String| ["-h", "--help", "help"].contains(&word.as_str());
    if arguments.first().is_some_and(is_help) {
        print!("{}", help());
        return ExitCode::SUCCESS;
    }
    let task = arguments.first().and_then(|name| TASKS.iter().find(|task| task.name == name));
    let Some(task) = task else {
        eprint!("{}", help());
        return ExitCode::from(2);
    };
    if arguments.get(1).is_some_and(is_help) {
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
