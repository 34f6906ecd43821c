//! The worlds by name: the one place where the command knows which there are.

use miette::{Result, miette};
use paceline::Registry;
#[cfg(target_os = "linux")]
use paceline_lab::moves::Moves;
#[cfg(target_os = "linux")]
use paceline_lab::pictures::Pictures;
use paceline_lab::scenario::suggestion;
use paceline_lab::sim::Simulator;
use paceline_lab::world::World;
use std::process::ExitCode;

/// What joins a world to people who watch it.
#[cfg(target_os = "linux")]
#[derive(Default)]
pub struct Hands {
    /// Where they move its link.
    pub moves: Moves,
    /// Where it shows what its ends look like.
    pub pictures: Pictures,
}

/// There is nobody.
#[cfg(not(target_os = "linux"))]
pub enum Hands {}

/// Answers a world, or what is missing for it to be had.
type Open = fn(Option<&Hands>) -> std::result::Result<Box<dyn World>, String>;

/// Each world and how to open it. To add one: a line here.
const WORLDS: [(&str, Open); 3] = [("sim", |_| Ok(Box::new(Simulator))), ("testbed", testbed), ("browser", browser)];

#[cfg(target_os = "linux")]
fn testbed(hands: Option<&Hands>) -> std::result::Result<Box<dyn World>, String> {
    let moves = hands.map(|hands| hands.moves.clone());
    match paceline_live::Testbed::missing() {
        None => Ok(Box::new(paceline_live::Testbed { moves, ..paceline_live::Testbed::default() })),
        Some(missing) => Err(format!("{missing}\n{}", missing.hint())),
    }
}

#[cfg(not(target_os = "linux"))]
fn testbed(_: Option<&Hands>) -> std::result::Result<Box<dyn World>, String> {
    Err("it needs Linux".to_owned())
}

#[cfg(all(feature = "browser", target_os = "linux"))]
fn browser(hands: Option<&Hands>) -> std::result::Result<Box<dyn World>, String> {
    let (moves, pictures) = hands.map(|hands| (hands.moves.clone(), hands.pictures.clone())).unzip();
    match paceline_call::BrowserWorld::missing() {
        None => Ok(Box::new(paceline_call::BrowserWorld { moves, pictures, ..paceline_call::BrowserWorld::default() })),
        Some((missing, hint)) => Err(format!("{missing}\n{hint}")),
    }
}

#[cfg(not(all(feature = "browser", target_os = "linux")))]
fn browser(_: Option<&Hands>) -> std::result::Result<Box<dyn World>, String> {
    Err("it is not part of this build\n`cargo build --release --features browser` builds a command that has it, on Linux".to_owned())
}

/// Their names.
pub fn names() -> [&'static str; 3] {
    WORLDS.map(|(name, _)| name)
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
    world_by_hand(name, None)
}

/// The same of a world that somebody watches.
pub fn world_by_hand(name: &str, hands: Option<&Hands>) -> Result<std::result::Result<Box<dyn World>, ExitCode>> {
    let Some((_, open)) = WORLDS.iter().find(|(known, _)| *known == name) else {
        return Err(miette!(help = suggestion(name, &names()), "no world `{name}`"));
    };
    Ok(open(hands).map_err(|missing| {
        eprintln!("the world `{name}` is not to be had (`sim` is): {missing}");
        ExitCode::from(3)
    }))
}
