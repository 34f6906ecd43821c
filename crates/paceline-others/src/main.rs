// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs suites under the controllers of other libraries, beside controllers of this one.

use clap::Parser;
use miette::{IntoDiagnostic, Result, miette};
use paceline::Registry;
use paceline_lab::results::{RowKind, SUITES_FILE, SuitesReport};
use paceline_lab::run::Runner;
use paceline_lab::suite::{Suite, run};
use paceline_others::{OTHERS, add, subject};
use paceline_scenario::Catalogue;
use std::path::PathBuf;
use std::process::ExitCode;

/// The name that stands for all suites.
const ALL: &str = "all";

/// Runs suites under controllers of other libraries, beside controllers of Paceline.
#[derive(Parser)]
#[command(name = "cargo xtask others")]
struct Arguments {
    /// Suites of `paceline list suites`, `all`, or manifests, NAME.suite.toml.
    #[arg(required = true, value_name = "SUITE")]
    suites: Vec<String>,
    /// Controllers of Paceline to run beside them.
    #[arg(long, value_delimiter = ',', default_value = "googcc", value_name = "A,B[,…]")]
    controllers: Vec<String>,
    /// Number of runs of each test, on seeds from 1; as many as its verdicts need if absent.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    repeats: Option<u64>,
    /// Writes suites.json, its page and the leaderboard into this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Adds the rows of the other libraries to the results in this folder, which `paceline suite --out` wrote for the same suites.
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// Prints one JSON document.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    match others(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:?}");
            ExitCode::from(2)
        }
    }
}

fn others(arguments: &Arguments) -> Result<()> {
    let registry = add(Registry::standard());
    let suites = find_suites(&arguments.suites)?;
    let names = arguments.controllers.iter().map(String::as_str).filter(|name| !OTHERS.contains(name)).chain(OTHERS);
    let names: Vec<&str> = names.collect();
    if let Some(name) = names.iter().find(|name| registry.get(name).is_none()) {
        return Err(miette!(help = "see `paceline list controllers`", "no controller `{name}`"));
    }
    if let Some(file) = arguments.into.as_deref().filter(|path| path.is_file()) {
        return Err(miette!(
            help = "name the folder that it is in",
            "--into takes a folder, and {} is a file",
            file.display()
        ));
    }
    let into = arguments.into.as_deref().map(|folder| SuitesReport::read(&folder.join(SUITES_FILE)));
    let into = into.transpose().into_diagnostic()?;
    let subjects: Vec<_> = names.into_iter().map(|name| subject(name, &registry)).collect();
    let runner = Runner::simulator(&registry);
    let report = run(&runner, &suites, &subjects, arguments.repeats, None, &|_| ())?.into_diagnostic()?;
    if let Some(folder) = &arguments.out {
        paceline_cli::write_suites(folder, &report)?;
    }
    if let (Some(folder), Some(mut document)) = (&arguments.into, into) {
        let mut rows = report.clone();
        rows.suites.iter_mut().for_each(|suite| suite.rows.retain(|row| row.kind == RowKind::OtherImplementation));
        let help = "write it with `paceline suite` for the same suites and --repeats, at the same commit";
        let problem = |reason| miette!(help = help, "{}: {reason}", folder.display());
        document.add_rows(&rows).map_err(problem)?;
        paceline_cli::write_suites(folder, &document)?;
    }
    match arguments.json {
        true => anstream::println!("{}", serde_json::to_string_pretty(&report).into_diagnostic()?),
        false => anstream::print!("{}", paceline_cli::suites_view(&suites, &report).text()),
    }
    Ok(())
}

fn find_suites(names: &[String]) -> Result<Vec<Suite>> {
    let mut suites = Vec::new();
    for name in names {
        match name.as_str() {
            ALL => suites.extend(Catalogue.suites().map(Suite::find).collect::<Result<Vec<_>, _>>()?),
            name => suites.push(Suite::find(name)?),
        }
    }
    Ok(suites)
}
