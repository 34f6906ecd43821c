//! The worlds by name: the one place where the command knows which there are.

use miette::{Result, miette};
use paceline::Registry;
use paceline_lab::scenario::suggestion;
use paceline_lab::sim::Simulator;
use paceline_lab::world::World;
use std::process::ExitCode;

/// Answers a world, or what is missing for it to be had.
type Open = fn() -> std::result::Result<Box<dyn World>, String>;

/// Each world and how to open it. To add one: a line here.
const WORLDS: [(&str, Open); 3] = [("sim", || Ok(Box::new(Simulator))), ("testbed", testbed), ("browser", browser)];

#[cfg(target_os = "linux")]
fn testbed() -> std::result::Result<Box<dyn World>, String> {
    match paceline_live::Testbed::missing() {
        None => Ok(Box::new(paceline_live::Testbed::default())),
        Some(missing) => Err(format!("{missing}\n{}", missing.hint())),
    }
}

#[cfg(not(target_os = "linux"))]
fn testbed() -> std::result::Result<Box<dyn World>, String> {
    Err("it needs Linux".to_owned())
}

#[cfg(all(feature = "browser", target_os = "linux"))]
fn browser() -> std::result::Result<Box<dyn World>, String> {
    match paceline_call::BrowserWorld::missing() {
        None => Ok(Box::new(paceline_call::BrowserWorld::default())),
        Some((missing, hint)) => Err(format!("{missing}\n{hint}")),
    }
}

#[cfg(not(all(feature = "browser", target_os = "linux")))]
fn browser() -> std::result::Result<Box<dyn World>, String> {
    Err("it is not part of this build\n`cargo build --release --features browser` builds a command that has it, on Linux".to_owned())
}

/// The controllers that there are in the world of this name.
pub fn registry(name: &str) -> Registry {
    match name {
        #[cfg(all(feature = "browser", target_os = "linux"))]
        "browser" => paceline_call::registry(Registry::standard()),
        _ => Registry::standard(),
    }
}

/// The world of this name, or the exit code that says it is not to be had.
pub fn world(name: &str) -> Result<std::result::Result<Box<dyn World>, ExitCode>> {
    let names = WORLDS.map(|(name, _)| name);
    let Some((_, open)) = WORLDS.iter().find(|(known, _)| *known == name) else {
        return Err(miette!(help = suggestion(name, &names), "no world `{name}`"));
    };
    Ok(open().map_err(|missing| {
        eprintln!("the world `{name}` is not to be had (`sim` is): {missing}");
        ExitCode::from(3)
    }))
}
