// SPDX-License-Identifier: MIT OR Apache-2.0
//! External controllers by name: `exec:COMMAND`, `lib:PATH`.
//!
//! A name on the command line starts its program or loads its library. A name in a file does so only with `--allow-exec`,
//! because the reader of a scenario of others does not expect it to run code.

use miette::Result;
use paceline::Registry;
use paceline_scenario::Origin;
#[cfg(unix)]
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether no external controller may be added.
#[cfg(unix)]
static IS_FORBIDDEN: AtomicBool = AtomicBool::new(false);

/// Forbids external controllers: the words of a command come from another program.
#[cfg(feature = "mcp")]
pub fn forbid() {
    #[cfg(unix)]
    IS_FORBIDDEN.store(true, Ordering::Relaxed);
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
    for name in names.iter().filter(|name| paceline_live::external::is_external(name)) {
        if IS_FORBIDDEN.load(Ordering::Relaxed) {
            return Err(miette::miette!(help = "run the command yourself", "`{name}` would run code; tools run none"));
        }
        if registry.get(name).is_none() {
            registry.add(paceline_live::external::entry(name).map_err(hinted)?);
        }
    }
    Ok(registry)
}

/// Adds the external controllers that are named, and returns errors as text with their hint.
pub fn add_named(registry: Registry, controllers: &[String]) -> std::result::Result<Registry, String> {
    add(registry, controllers, &[], "").map_err(|error| match error.help() {
        Some(help) => format!("{error}; {help}"),
        None => error.to_string(),
    })
}

/// Adds the external controllers that files name, if `allow_exec`: the option with which the user trusts the files.
pub fn add_of_files(registry: Registry, allow_exec: bool, files: &[Origin]) -> Result<Registry> {
    let mut texts = files.iter().filter(|_| allow_exec).map(|file| file.text.as_str());
    texts.try_fold(registry, |registry, text| add(registry, &[], &[], text))
}

/// Returns whether this is the name of an external controller.
pub fn is_external(name: &str) -> bool {
    #[cfg(unix)]
    return paceline_live::external::is_external(name);
    #[cfg(not(unix))]
    return false;
}

#[cfg(unix)]
fn hinted(error: paceline_live::external::ExternalError) -> miette::Report {
    let help = match error.name.starts_with(paceline_live::external::LIB) {
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
    Ok(paceline_live::external::protocol::schema())
}

/// This system has no external controllers.
#[cfg(not(unix))]
pub fn schema() -> Result<serde_json::Value> {
    Err(miette::miette!(help = "use Linux or macOS", "this system has no external controllers"))
}

/// Ends the programs that run.
pub fn end_all() {
    #[cfg(unix)]
    paceline_live::external::end_all();
}
