//! External controllers by name: `exec:COMMAND`, `lib:PATH`.
//!
//! A name on the command line starts its program or loads its library. A name in a file does so only with `--allow-exec`,
//! because the reader of a scenario of others does not expect it to run code.

use crate::commands::Selection;
use miette::Result;
use paceline::Registry;
use paceline_netsim::backend::BackendError;
use paceline_netsim::plan::Plan;
use paceline_scenario::Origin;
use std::ffi::OsString;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The command as it was typed.
static COMMAND: OnceLock<Vec<String>> = OnceLock::new();
/// The scenario of `run` or `compare`, how it is run, and the controllers that the arguments name.
static SELECTION: Mutex<Option<(Selection, Vec<String>)>> = Mutex::new(None);

/// Stores the words of the command, for errors.
pub fn remember_command(words: &[OsString]) {
    let _ = COMMAND.set(words.iter().map(|word| word.to_string_lossy().into_owned()).collect());
}

/// Stores what is run, for errors.
pub fn remember(selection: &Selection, controllers: &[String]) {
    *SELECTION.lock().unwrap_or_else(PoisonError::into_inner) = Some((selection.clone(), controllers.to_vec()));
}

/// Returns the command that repeats the run in which a controller failed.
pub fn repeat(controller: &str, plan: &str, case: &str, seed: u64) -> String {
    let quoted = |words: &[&str]| words.iter().map(|w| paceline_report::shell_quoted(w)).collect::<Vec<_>>().join(" ");
    if let Some((selection, named)) = &*SELECTION.lock().unwrap_or_else(PoisonError::into_inner) {
        return selection.repeat(named.iter().any(|name| name == controller).then_some(controller), seed);
    }
    // Other commands that change the scenario or the world are repeated as they were typed.
    let is_changed =
        |word: &String| ["sweep", "--set", "--world"].iter().any(|name| word.split('=').next() == Some(name));
    if !COMMAND.get().is_some_and(|words| words.iter().any(is_changed))
        && paceline_scenario::Catalogue.find(plan).is_ok()
    {
        let seed = seed.to_string();
        let mut words = vec!["paceline", "run", plan];
        if !case.is_empty() {
            words.extend(["--case", case]);
        }
        words.extend(["--controllers", controller, "--seed", &seed]);
        return quoted(&words);
    }
    let words: Vec<&str> = COMMAND.get().into_iter().flatten().skip(1).map(String::as_str).collect();
    quoted(&[&["paceline"], words.as_slice()].concat())
}

/// Adds the external controllers that are named: in a list, as values of `--set`, and as values in the text of a TOML file.
///
/// # Errors
/// A program does not start or does not introduce itself, or a library does not load.
#[cfg(unix)]
pub fn add(mut registry: Registry, controllers: &[String], set: &[String], text: &str) -> Result<Registry> {
    let set =
        set.iter().filter_map(|change| change.split_once('=')).map(|(_, value)| value.trim_matches('"').to_owned());
    let mut names: Vec<String> = controllers.iter().cloned().chain(set).collect();
    // A text that cannot be parsed has its error where it is loaded.
    if let Ok(value) = text.parse::<toml::Table>() {
        strings(&toml::Value::Table(value), &mut names);
    }
    for name in names.iter().filter(|name| paceline_external::is_external(name)) {
        if registry.get(name).is_none() {
            registry.add(paceline_external::entry(name).map_err(hinted)?);
        }
    }
    Ok(registry)
}

/// Adds the external controllers that are named, and returns errors as text with their hint.
///
/// # Errors
/// As [`add`].
pub fn add_named(registry: Registry, controllers: &[String]) -> std::result::Result<Registry, String> {
    add(registry, controllers, &[], "").map_err(|error| match error.help() {
        Some(help) => format!("{error}; {help}"),
        None => error.to_string(),
    })
}

/// Calls `work`, which makes a run on this thread and calls [`check_failure`] between its steps.
pub fn collect_failures<T>(work: impl FnOnce() -> T) -> T {
    #[cfg(unix)]
    return paceline_external::collect(work);
    #[cfg(not(unix))]
    work()
}

/// Checks that no external controller of the run on this thread has failed.
///
/// # Errors
/// A controller failed.
pub fn check_failure(plan: &Plan, seed: u64) -> std::result::Result<(), BackendError> {
    #[cfg(unix)]
    return paceline_external::check_failure(plan, seed);
    #[cfg(not(unix))]
    {
        let _ = (plan, seed);
        Ok(())
    }
}

/// Adds the external controllers that files name, if `allow_exec`: the option with which the user trusts the files.
///
/// # Errors
/// As [`add`].
pub fn add_of_files(registry: Registry, allow_exec: bool, files: &[Origin]) -> Result<Registry> {
    let mut texts = files.iter().filter(|_| allow_exec).map(|file| file.text.as_str());
    texts.try_fold(registry, |registry, text| add(registry, &[], &[], text))
}

/// Returns whether this is the name of an external controller.
pub fn is_external(name: &str) -> bool {
    #[cfg(unix)]
    return paceline_external::is_external(name);
    #[cfg(not(unix))]
    return false;
}

#[cfg(unix)]
fn hinted(error: paceline_external::ExternalError) -> miette::Report {
    let help = match error.name.starts_with(paceline_external::LIB) {
        true => "paceline.h declares the table of functions; docs/how-to/c.md shows a complete library",
        false => {
            "`paceline schema controller` describes the lines; try the program alone: its first output is the hello"
        }
    };
    miette::miette!(help = help, "{error}")
}

/// This system has no external controllers.
#[cfg(not(unix))]
pub fn add(registry: Registry, _: &[String], _: &[String], _: &str) -> Result<Registry> {
    Ok(registry)
}

/// Collects every string of a document.
#[cfg(unix)]
fn strings(value: &toml::Value, found: &mut Vec<String>) {
    match value {
        toml::Value::String(text) => found.push(text.clone()),
        toml::Value::Array(list) => list.iter().for_each(|value| strings(value, found)),
        toml::Value::Table(table) => table.values().for_each(|value| strings(value, found)),
        _ => {}
    }
}

/// Returns the schema of the lines.
#[cfg(unix)]
pub fn schema() -> Result<serde_json::Value> {
    Ok(paceline_external::protocol::schema())
}

/// This system has no external controllers.
#[cfg(not(unix))]
pub fn schema() -> Result<serde_json::Value> {
    Err(miette::miette!(help = "use Linux or macOS", "this system has no external controllers"))
}

/// Ends the programs that run.
pub fn end_all() {
    #[cfg(unix)]
    paceline_external::end_all();
}
