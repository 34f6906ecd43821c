// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `paceline` command: arguments in, text or JSON out.
//!
//! Results go to stdout, messages and progress to stderr. Exit codes: 0: done, and every assertion passed; 1: done, and an
//! assertion failed, `diff` found a difference, or `validate` found differences outside the tolerance; 2: bad input or usage; 3: the
//! world is not available.
//!
//! The Python package contains the same command, and shows results as it does.

/// Prints a line to stderr, like the macro of the standard library, which panics if the other end of a pipe has closed.
macro_rules! eprintln {
    ($($text:tt)*) => {{
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{}\n", format_args!($($text)*)));
    }};
}

#[cfg(test)]
#[path = "../../paceline-lab/tests/it/altered_simulator.rs"]
mod altered_simulator;
mod commands;
mod environment;
mod errors;
pub mod external;
mod interrupt;
mod output;
mod progress;
mod repeat;
mod table;
mod usage;
pub mod view;
pub mod worlds;

pub use commands::choose::view as choice_view;
pub use commands::compare::{table_view as comparison_table_view, view as comparison_view};
pub use commands::explain::Explained;
pub use commands::reproduce::text as reproduction_text;
pub use commands::run::{group_view, view as runs_view};
pub use commands::suite::{view as suites_view, write as write_suites};
pub use commands::sweep::view as sweep_view;
pub use environment::environment;
pub use output::Cited;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use commands::Selection;
use miette::{Result, miette};
use repeat::Repeat;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::OnceLock;

/// The longest line of the help.
const HELP_WIDTH: usize = 100;

/// Help of the controllers of `compare`.
const COMPARED: &str = "Controllers for every media flow: names (see `paceline list controllers`), the oracles `ideal` and `causal`, \
                        which know the path, or `all`. The first is the baseline";

/// The commands in the order of the help.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Everyday", &["new", "run", "choose", "compare", "report", "list", "play"]),
    ("Real networks", &["link", "call", "send", "recv", "validate", "explain", "fit"]),
    ("Research", &["suite", "reproduce", "sweep", "search", "calibrate", "diff"]),
    ("Tools", &["mcp", "trace", "schema", "completions", "man", "help"]),
];

/// Returns the command line, with its commands in groups.
fn command() -> clap::Command {
    let mut command = Arguments::command();
    command.build();
    let mut groups = String::new();
    for (group, names) in GROUPS {
        groups += &format!("{}\n", output::bold(&format!("{group}:")));
        for command in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let width = output::width().min(HELP_WIDTH).saturating_sub(14);
            for (n, line) in output::wrap_to(&about, width).iter().enumerate() {
                groups += &format!("  {:11} {line}\n", if n == 0 { command.get_name() } else { "" });
            }
        }
        groups += "\n";
    }
    let options = output::bold("Options:");
    let template =
        format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{options}\n{{options}}{{after-help}}");
    Arguments::command().help_template(template)
}

/// The command line.
#[derive(Parser)]
#[command(name = "paceline", version = commands::VERSION, long_version = commands::long_version(), about = "Congestion control for real-time media: run and compare experiments")]
#[command(after_help = commands::FIRST_STEPS, term_width = output::width().min(HELP_WIDTH))]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Lists controllers and their parameters, scenarios, queues, losses, sources, trace formats and metrics.
    List(commands::list::Arguments),
    /// Writes a commented scenario, from options or questions.
    New(commands::new::Arguments),
    /// Writes the playground: one HTML page that simulates a scenario, with controls for controllers and path.
    Play(commands::play::Arguments),
    /// Runs a scenario.
    Run(commands::run::Arguments),
    /// Runs a call with a browser: `run --world browser`, or with --watch a live page that also controls the link.
    #[cfg_attr(all(feature = "testbed", target_os = "linux"), command(
        mut_arg("world", |world| world.default_value("browser")),
        mut_arg("scenario", |scenario| scenario.required(false).default_value(commands::call::SCENARIO))
    ))]
    Call(commands::call::Arguments),
    /// Says which controller to choose for a call on your paths: recorded traces, presets and scenarios. Writes one page.
    Choose(commands::choose::Arguments),
    /// Runs a scenario under several controllers, on the same seeds.
    #[command(mut_arg("controllers", |names| names.required(true).help(COMPARED)))]
    Compare(commands::stored::StoredRuns),
    /// Explains why the rate of a call fell, from a capture, a dump or a log of it.
    Explain(commands::explain::Arguments),
    /// Prints the path of a stored run, a capture or a dump, as far as its ends saw it, as a scenario.
    Fit(commands::fit::Arguments),
    /// Draws a folder of results as one HTML page.
    Report(commands::report::Arguments),
    /// Gives a verdict on each published value and each claim of a paper's experiments.
    Reproduce(commands::reproduce::Arguments),
    /// Searches the assumed constants of a paper on one half of its experiments and judges them on the other (Python package).
    Calibrate(commands::calibrate::Arguments),
    /// Searches paths on which a controller fails, and writes them as scenarios (Python package).
    Search(commands::search::Arguments),
    /// Judges controllers by suites of tests, such as that of RFC 8867.
    Suite(commands::suite::Arguments),
    /// Prints a capacity trace of a model of a cellular link.
    Trace(commands::trace::Arguments),
    /// Measures at each point of a grid, a list or a sample of settings.
    Sweep(commands::sweep::Arguments),
    /// Compares the simulator with a real path: the same runs in both.
    #[command(mut_arg("world", |world| world.default_value("testbed").help("World to compare the simulator with")))]
    Validate(commands::validate::Arguments),
    /// The former name of `validate`.
    #[command(hide = true)]
    Gap(commands::AnyArguments),
    /// Runs a command behind an emulated link, or connects two UDP sockets through one.
    Link(commands::link::Arguments),
    /// Sends media to `paceline recv` on another host, and reports how good a call over this path would be.
    Send(commands::send::Arguments),
    /// Receives media of `paceline send` on another host.
    Recv(commands::recv::Arguments),
    /// Shows what differs between two results: folders written by --out, or scoreboards.
    Diff(commands::diff::Arguments),
    /// Serves explain, what_if, run, compare and list as tools of the Model Context Protocol, over stdin and stdout.
    Mcp(commands::mcp::Arguments),
    /// Prints a JSON schema: of scenario files, or of the lines of an external controller.
    Schema(commands::schema::Arguments),
    /// Prints a script that completes commands and options in a shell.
    Completions(commands::shell::Completions),
    /// Writes a man page for each command into a folder.
    Man(commands::shell::Man),
}

impl Command {
    fn run(self) -> Result<ExitCode> {
        match self {
            Self::List(arguments) => commands::list::list(&arguments),
            Self::New(arguments) => commands::new::new(&arguments),
            Self::Play(arguments) => commands::play::play(&arguments),
            Self::Run(arguments) => commands::run::run(&arguments),
            Self::Call(arguments) => commands::call::call(&arguments),
            Self::Choose(arguments) => commands::choose::choose(&arguments),
            Self::Compare(arguments) => commands::compare::compare(&arguments),
            Self::Explain(arguments) => commands::explain::explain(&arguments),
            Self::Fit(arguments) => commands::fit::fit(&arguments),
            Self::Report(arguments) => commands::report::report(&arguments),
            Self::Reproduce(arguments) => commands::reproduce::reproduce(&arguments),
            Self::Calibrate(arguments) => commands::calibrate::calibrate(&arguments, PROGRAM.get().map(Vec::as_slice)),
            Self::Search(arguments) => commands::search::search(&arguments, PROGRAM.get().map(Vec::as_slice)),
            Self::Suite(arguments) => commands::suite::suite(&arguments),
            Self::Trace(arguments) => commands::trace::trace(&arguments),
            Self::Sweep(arguments) => commands::sweep::sweep(&arguments),
            Self::Validate(arguments) => commands::validate::validate(&arguments),
            Self::Gap(_) => Err(miette!(help = "use `paceline validate`", "the command `gap` was renamed")),
            Self::Link(arguments) => commands::link::link(&arguments),
            Self::Send(arguments) => commands::send::send(&arguments),
            Self::Recv(arguments) => commands::recv::recv(&arguments),
            Self::Diff(arguments) => commands::diff::diff(&arguments),
            Self::Mcp(arguments) => commands::mcp::mcp(&arguments),
            Self::Schema(arguments) => commands::schema::schema(&arguments),
            Self::Completions(arguments) => commands::shell::completions(&arguments, Arguments::command()),
            Self::Man(arguments) => commands::shell::man(&arguments, Arguments::command()),
        }
    }
}

impl Command {
    /// Returns the scenario and how it is run, and the controllers that the arguments name; `None` for commands without these.
    fn selection(&self) -> Option<(Selection, Vec<String>)> {
        match self {
            Self::Run(arguments) => Some(arguments.runs.selected()),
            Self::Compare(arguments) => Some(arguments.selected()),
            #[cfg(all(feature = "testbed", target_os = "linux"))]
            Self::Call(arguments) => Some(arguments.run.runs.selected()),
            _ => None,
        }
    }
}

/// Returns the style of errors. Lines are wrapped for terminals only: programs search for whole phrases.
fn report_handler() -> miette::MietteHandler {
    let options = miette::MietteHandlerOpts::new().break_words(false);
    let options = options.word_separator(textwrap::WordSeparator::AsciiSpace);
    let options = options.word_splitter(textwrap::WordSplitter::NoHyphenation);
    match std::io::stderr().is_terminal() {
        true => options.width(output::width()).build(),
        false => options.wrap_lines(false).build(),
    }
}

/// The words with which this program starts itself, if it lies in another program.
static PROGRAM: OnceLock<Vec<OsString>> = OnceLock::new();

/// Sets the words with which this program starts itself: it lies in another program, such as an interpreter. Later calls have no
/// effect.
pub fn set_program(words: Vec<OsString>) {
    #[cfg(all(feature = "testbed", target_os = "linux"))]
    paceline_live::testbed::child_guard::set_program(words.clone());
    let _ = PROGRAM.set(words);
}

/// Runs the command with these words, of which the first is the name of the program, and returns its exit code. May end the
/// process instead: for help, and at an interrupt.
pub fn run(words: &[OsString]) -> ExitCode {
    #[cfg(all(feature = "testbed", target_os = "linux"))]
    if let [_, first, rest @ ..] = words
        && first == paceline_live::testbed::child_guard::GUARD
    {
        return ExitCode::from(paceline_live::testbed::child_guard::run(rest));
    }
    // An error means that the caller has its own style of reports.
    let _ = miette::set_hook(Box::new(|_| Box::new(report_handler())));
    let parsed = command().try_get_matches_from(words).and_then(|found| Arguments::from_arg_matches(&found));
    let arguments = parsed.map_err(|error| {
        let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        usage::usage_error(&error, &words, &Arguments::command())
    });
    let run = |arguments: Arguments| {
        let Some(command) = arguments.command else { return commands::welcome() };
        let repeat = Repeat { words, selection: command.selection() };
        command.run().map_err(|error| repeat::with_repeat(error, &repeat))
    };
    arguments.and_then(run).unwrap_or_else(|error| {
        eprintln!("{}", output::printable(&format!("{error:?}")));
        ExitCode::from(errors::exit_code(&error))
    })
}
