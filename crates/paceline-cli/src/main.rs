//! The `paceline` command.
//!
//! Results go to stdout, talk and progress to stderr. Exit 0: done, and every assertion held; 1: it ran, an assertion
//! failed, (`diff`) something moved or (`gap`) the worlds are not close; 2: bad input or usage; 3: the world was not available.

mod commands;
mod output;
mod progress;
mod table;
mod worlds;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// The command line.
#[derive(Parser)]
#[command(version, about = "Congestion control for real-time media: run and compare experiments", after_help = FIRST_STEPS)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

const FIRST_STEPS: &str = "\
Three things to try first:
  paceline run mmsys16/table1                                   one call over a changing link
  paceline compare mmsys16/table1 --controllers gcc-2016,fixed  two controllers on it
  paceline reproduce mmsys16/table2                             a paper's table, published beside measured";

#[derive(Subcommand)]
enum Command {
    /// What there is: controllers and their parameters, scenarios, queues, losses, sources, trace formats, metrics.
    List(commands::list::Arguments),
    /// Runs a scenario.
    Run(commands::run::Arguments),
    /// Runs a scenario under several controllers, on the same seeds.
    Compare(commands::compare::Arguments),
    /// Draws a folder of results as one HTML page.
    Report(commands::report::Arguments),
    /// Gives a verdict on each published value and each claim of a paper's experiments.
    Reproduce(commands::reproduce::Arguments),
    /// Measures at each point of a grid, a list or a sample of settings.
    Sweep(commands::sweep::Arguments),
    /// Says how far the simulator lies from a real path: the same runs in both.
    Gap(commands::gap::Arguments),
    /// Runs a command behind the network model as a real link, or joins UDP sockets through it.
    #[cfg(target_os = "linux")]
    Link(commands::link::Arguments),
    /// Says what moved between two results: folders that --out made, or scoreboards.
    Diff(commands::diff::Arguments),
    /// Prints the JSON schema of scenario files.
    Schema,
}

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    {
        let mut arguments = std::env::args_os().skip(1);
        if arguments.next().is_some_and(|first| first == paceline_live::hold::HOLD) {
            return ExitCode::from(paceline_live::hold::hold(&arguments.collect::<Vec<_>>()));
        }
    }
    // Terminals wrap, and scripts look for whole phrases: complaints keep their lines.
    let plain = |_: &_| -> Box<dyn miette::ReportHandler> {
        Box::new(miette::MietteHandlerOpts::new().wrap_lines(false).build())
    };
    miette::set_hook(Box::new(plain)).expect("nothing has complained yet");
    let arguments = Arguments::parse();
    let done = match arguments.command {
        None => commands::welcome(),
        Some(Command::List(arguments)) => commands::list::list(&arguments),
        Some(Command::Run(arguments)) => commands::run::run(&arguments),
        Some(Command::Compare(arguments)) => commands::compare::compare(&arguments),
        Some(Command::Report(arguments)) => commands::report::report(&arguments),
        Some(Command::Reproduce(arguments)) => commands::reproduce::reproduce(&arguments),
        Some(Command::Sweep(arguments)) => commands::sweep::sweep(&arguments),
        Some(Command::Gap(arguments)) => commands::gap::gap(&arguments),
        #[cfg(target_os = "linux")]
        Some(Command::Link(arguments)) => commands::link::link(&arguments),
        Some(Command::Diff(arguments)) => commands::diff::diff(&arguments),
        Some(Command::Schema) => commands::schema(),
    };
    match done {
        Ok(code) => code,
        Err(report) => {
            eprintln!("{report:?}");
            ExitCode::from(report.downcast_ref::<commands::Refused>().map_or(2, commands::Refused::code))
        }
    }
}
