// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command that repeats a run in which a controller failed.

use crate::commands::Selection;
use crate::errors::RunFailed;
use miette::Report;
use paceline_netsim::world::WorldError;
use std::ffi::OsString;

/// What the command was called with.
pub(crate) struct Repeat<'a> {
    /// The words of the command, the first of which is the name of the program.
    pub words: &'a [OsString],
    /// The scenario of `run`, `compare` or `call`, how it is run, and the controllers that the arguments name.
    pub selection: Option<(Selection, Vec<String>)>,
}

impl Repeat<'_> {
    /// Returns the command that repeats the run of a plan, case and seed under a controller.
    pub fn command(&self, controller: &str, plan: &str, case: &str, seed: u64) -> String {
        if let Some((selection, named)) = &self.selection {
            return selection.repeat(named.iter().any(|name| name == controller).then_some(controller), seed);
        }
        let typed: Vec<String> = self.words.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        // Other commands that change the scenario or the world are repeated as they were typed.
        let is_changed =
            |word: &String| ["sweep", "--set", "--world"].iter().any(|name| word.split('=').next() == Some(name));
        if !typed.iter().any(is_changed) && paceline_scenario::Catalogue.find(plan).is_ok() {
            let seed = seed.to_string();
            let mut words = vec!["paceline", "run", plan];
            if !case.is_empty() {
                words.extend(["--case", case]);
            }
            words.extend(["--controllers", controller, "--seed", &seed]);
            return quoted(words);
        }
        quoted(std::iter::once("paceline").chain(typed.iter().map(String::as_str)))
    }
}

/// Adds the command that repeats the run, if the error is the failure of a controller.
pub fn with_repeat(error: Report, repeat: &Repeat<'_>) -> Report {
    let mut failed: RunFailed = match error.downcast() {
        Ok(failed) => failed,
        Err(other) => return other,
    };
    if let WorldError::ControllerFailed { failure, plan, case, seed } = &failed.error {
        let command = repeat.command(&failure.controller, plan, case, *seed);
        failed.hint = Some(format!("the same run again: {command}"));
    }
    failed.into()
}

fn quoted<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(paceline_lab::report::shell_quoted).collect::<Vec<_>>().join(" ")
}
