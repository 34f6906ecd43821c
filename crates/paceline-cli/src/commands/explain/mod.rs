//! `paceline explain`.

mod open_loop;
mod page;
mod text;
mod what_if;

use super::check_controllers;
use crate::{external, output, worlds};
use miette::{IntoDiagnostic, Result, miette};
use paceline_explain::document::{Explanation, explain as explained};
use paceline_explain::model::Call;
use paceline_explain::{ReadError, readers, redact};
use paceline_lab::report::timeline;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use what_if::WhatIf;

/// Arguments of `explain`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Folders that --out wrote, pcapng or pcap captures, webrtc-internals dumps (text or .gz), getStats samples as JSON,
    /// rtcstats dumps, or RTC event logs.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The run of a folder that has several.
    #[arg(long, value_name = "NAME")]
    run: Option<String>,
    /// Writes a page for a browser: series, labels on the timeline, evidence.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Runs these controllers on the path as far as it was observed, in the simulator.
    #[arg(long, value_name = "A,B[,…]", value_delimiter = ',')]
    what_if: Vec<String>,
    /// Writes a copy of the input with only what explanations need, without addresses and identities, and does nothing else.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["page", "what_if", "json"])]
    redact: Option<PathBuf>,
    /// Prints one JSON document.
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Document<'a> {
    inputs: Vec<Input<'a>>,
}

/// One input. Its path is not in it: names of files name people.
#[derive(Serialize)]
struct Input<'a> {
    #[serde(flatten)]
    explanation: &'a Explanation,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    what_if: &'a Vec<WhatIf>,
}

/// Explains inputs.
pub fn explain(arguments: &Arguments) -> Result<ExitCode> {
    if let Some(to) = &arguments.redact {
        return write_redacted(&arguments.files, to);
    }
    let registry = external::add(worlds::registry("sim"), &arguments.what_if, &[], "")?;
    check_controllers(&arguments.what_if, &registry)?;
    let mut all = Vec::new();
    for file in &arguments.files {
        let call = read(file, arguments.run.as_deref())?;
        let explanation = explained(&call);
        let mut what_if = Vec::new();
        if !arguments.what_if.is_empty() {
            for flow in call.flows.iter().filter(|flow| flow.is_sent) {
                what_if.extend(what_if::run(flow, &arguments.what_if, &registry)?);
            }
        }
        all.push((file, call, explanation, what_if));
    }
    if let Some(to) = &arguments.page {
        let mut timeline = timeline::Timeline { command: command(arguments), ..timeline::Timeline::default() };
        for (_, call, explanation, what_if) in &all {
            page::add(&mut timeline, call, explanation, what_if);
        }
        timeline::write(&timeline, to).into_diagnostic()?;
        eprintln!("the page is {}", to.display());
    }
    let inputs = all.iter().map(|(_, _, explanation, what_if)| Input { explanation, what_if });
    let document = Document { inputs: inputs.collect() };
    output::print_result(arguments.json, &document, || {
        let texts = all.iter().map(|(file, call, explanation, what_if)| {
            text::describe(&file.display().to_string(), call, explanation, what_if)
        });
        texts.collect::<Vec<_>>().join("\n")
    })?;
    Ok(ExitCode::SUCCESS)
}

fn command(arguments: &Arguments) -> String {
    let mut words = vec!["paceline explain FILE".to_owned()];
    if !arguments.what_if.is_empty() {
        words.push(format!("--what-if {}", arguments.what_if.join(",")));
    }
    words.push("--page PAGE".to_owned());
    words.join(" ")
}

fn read(file: &Path, run: Option<&str>) -> Result<Call> {
    readers::read(file, run).map_err(|error| failed(file, &error))
}

fn failed(file: &Path, error: &ReadError) -> miette::Report {
    miette!(help = error.help(), "{}: {error}", file.display())
}

fn write_redacted(files: &[PathBuf], to: &Path) -> Result<ExitCode> {
    let [file] = files else {
        return Err(miette!(help = "call the command for each file", "--redact takes one input"));
    };
    let what = redact::redact(file, to).map_err(|error| failed(file, &error))?;
    let text = format!("{}: {what}. Look through it before you share it.", to.display());
    eprintln!("{}", output::wrap_to(&text, output::width()).join("\n"));
    Ok(ExitCode::SUCCESS)
}
