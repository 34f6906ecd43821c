// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline explain`.

mod folder;
mod open_loop;
mod page;
mod text;
mod what_if;

use super::check_controllers;
use crate::view::View;
use crate::{external, output, worlds};
use miette::{IntoDiagnostic, Result, miette};
use paceline::Registry;
use paceline_explain::document::{Explanation, explain as explained};
use paceline_explain::model::Call;
use paceline_explain::{ReadError, readers, redact};
use paceline_lab::report::{ReportError, timeline};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use what_if::WhatIf;

/// Arguments of `explain`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Folders that --out wrote, a folder of files, or files: pcapng or pcap captures, webrtc-internals dumps (text or .gz),
    /// getStats samples as JSON, rtcstats dumps, or RTC event logs.
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
    /// Prints one JSON document, of inputs or of a folder of files. `paceline schema explain` has the schema of both.
    #[arg(long)]
    json: bool,
}

/// The version of the document: higher if a member went away or has another meaning.
const VERSION: u32 = 1;

/// What `paceline explain --json` prints. Members may be added within a version.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
enum Printed<'a> {
    Inputs(Document<'a>),
    Folder(folder::Calls),
}

/// The explanations of inputs.
#[derive(JsonSchema, Serialize)]
pub struct Document<'a> {
    /// The version of the document: higher if a member went away or has another meaning.
    version: u32,
    /// The inputs, in the order of the arguments.
    inputs: &'a [Explained],
}

impl<'a> Document<'a> {
    fn of(inputs: &'a [Explained]) -> Self {
        Self { version: VERSION, inputs }
    }
}

/// Returns the JSON schema of both documents: that of inputs and that of a folder of files.
pub fn schema() -> serde_json::Value {
    let mut schema =
        SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<Printed<'static>>();
    schema.insert("title".to_owned(), "Explanations of `paceline explain --json`".into());
    schema.to_value()
}

/// An explained input. Its path is not in the document, because names of files may name people. Only the document of a folder of files
/// has their names.
#[derive(JsonSchema, Serialize)]
pub struct Explained {
    #[serde(skip)]
    call: Call,
    #[serde(flatten)]
    explanation: Explanation,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    what_if: Vec<WhatIf>,
}

impl Explained {
    /// Explains a call, and runs these controllers on the path of each flow that is sent.
    pub fn new(call: Call, what_if: &[String], registry: &Registry) -> Result<Self> {
        let explanation = explained(&call);
        let sent = call.flows.iter().filter(|flow| flow.is_sent && !what_if.is_empty());
        let runs = sent.map(|flow| what_if::run(flow, what_if, registry)).collect::<Result<Vec<_>>>()?;
        Ok(Self { call, explanation, what_if: runs.into_iter().flatten().collect() })
    }

    /// Describes the explanation under the name of its input.
    pub fn view(&self, name: &str) -> View {
        text::describe(name, &self.call, &self.explanation, &self.what_if)
    }

    /// Returns what `--json` prints of one input.
    pub fn document(&self) -> Document<'_> {
        Document::of(std::slice::from_ref(self))
    }
}

/// Explains inputs.
pub fn explain(arguments: &Arguments) -> Result<ExitCode> {
    if let Some(to) = &arguments.redact {
        return write_redacted(&arguments.files, to);
    }
    if let Some((folder, files)) = arguments.files.iter().find_map(|path| Some((path, folder::files_of(path)?))) {
        return explain_folder(arguments, folder, &files);
    }
    let registry = external::add(worlds::registry("sim"), &arguments.what_if, &[], "")?;
    check_controllers(&arguments.what_if, &registry)?;
    let read = |file: &PathBuf| {
        let call = readers::read(file, arguments.run.as_deref()).map_err(|error| failed(file, &error))?;
        Explained::new(call, &arguments.what_if, &registry)
    };
    let mut all: Vec<(&PathBuf, Result<Explained>)> = arguments.files.iter().map(|file| (file, read(file))).collect();
    // A file that cannot be read does not hide the others.
    let last = match all.iter().rposition(|(_, explained)| explained.is_err()) {
        Some(index) if all.iter().any(|(_, explained)| explained.is_ok()) => all.remove(index).1.err(),
        _ => None,
    };
    all.retain(|(_, explained)| match explained {
        Err(error) if last.is_some() => {
            eprintln!("{}", output::printable(&format!("{error:?}")));
            false
        }
        _ => true,
    });
    let (files, all): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    let all = all.into_iter().collect::<Result<Vec<_>>>()?;
    let written = arguments.page.iter().try_for_each(|to| {
        let mut timeline = timeline::Timeline { command: command(arguments), ..timeline::Timeline::default() };
        for Explained { call, explanation, what_if } in &all {
            page::add(&mut timeline, call, explanation, what_if);
        }
        timeline::write(&timeline, to)?;
        eprintln!("the page is {}", to.display());
        Ok::<_, ReportError>(())
    });
    output::print_result(arguments.json, &Printed::Inputs(Document::of(&all)), || {
        let texts = all.iter().zip(&files).map(|(explained, file)| explained.view(&file.display().to_string()).text());
        texts.collect::<Vec<_>>().join("\n")
    })?;
    written.into_diagnostic()?;
    last.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// Explains a folder of files. A page, runs of other controllers and names of runs are those of one call.
fn explain_folder(arguments: &Arguments, folder: &Path, files: &[PathBuf]) -> Result<ExitCode> {
    let is_alone = arguments.files.len() == 1;
    if !is_alone || arguments.page.is_some() || !arguments.what_if.is_empty() || arguments.run.is_some() {
        return Err(miette!(
            help = "call the command for the folder alone, or name files of it instead of the folder",
            "{}: a folder of files takes no --page, --what-if or --run, and no other arguments",
            folder.display()
        ));
    }
    let calls = folder::Calls::new(files);
    if let Some(failure) = calls.failure() {
        let error = ReadError::NoResults;
        return Err(miette!(help = error.help(), "{}: {error}, and {failure}", folder.display()));
    }
    let text = calls.view().text();
    output::print_result(arguments.json, &Printed::Folder(calls), || text)?;
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
