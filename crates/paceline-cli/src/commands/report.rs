//! `paceline report`.

use miette::{IntoDiagnostic, Result};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `report`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Folder of results, as `run --out` and `compare --out` make it.
    dir: PathBuf,
    /// Where the page goes; into the folder, as report.html, if absent.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Draws what is in a folder of results.
pub fn report(arguments: &Arguments) -> Result<ExitCode> {
    let within = || arguments.dir.join(paceline_report::page::REPORT_FILE);
    let to = arguments.out.clone().unwrap_or_else(within);
    write(&arguments.dir, &to)?;
    Ok(ExitCode::SUCCESS)
}

/// Draws a folder into the folder.
pub fn report_within(dir: &Path) -> Result<()> {
    write(dir, &dir.join(paceline_report::page::REPORT_FILE))
}

fn write(dir: &Path, to: &Path) -> Result<()> {
    paceline_report::page::write(dir, to).into_diagnostic()?;
    eprintln!("the report is {}", to.display());
    Ok(())
}
