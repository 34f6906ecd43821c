// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worlds by name. To add one: a line in `WORLDS`.

use crate::errors::world_error;
use miette::{Result, miette};
use paceline::Registry;
use paceline_lab::yardsticks;
use paceline_netsim::link_control::LinkControl;
#[cfg(all(feature = "testbed", target_os = "linux"))]
use paceline_netsim::preview::PreviewImages;
use paceline_netsim::sim::{Simulator, StoppableSimulator};
use paceline_netsim::world::{World, WorldError};
use paceline_scenario::suggestion;

/// Connects a world to the watch page.
#[cfg(all(feature = "testbed", target_os = "linux"))]
#[derive(Default)]
pub(crate) struct WatchHandles {
    /// Changes of the link by the user.
    pub link: LinkControl,
    /// Latest video frames of each end.
    pub preview: PreviewImages,
}

/// This build has no watch page.
#[cfg(not(all(feature = "testbed", target_os = "linux")))]
pub(crate) enum WatchHandles {}

/// Opens a world. The error states what is missing, then on a line of its own how to get it.
type Open = fn(Option<&WatchHandles>) -> std::result::Result<Box<dyn World>, (String, String)>;

const WORLDS: [(&str, Open); 3] = [("sim", |_| Ok(Box::new(Simulator))), ("testbed", testbed), ("browser", browser)];

#[cfg(all(feature = "testbed", target_os = "linux"))]
fn testbed(watch: Option<&WatchHandles>) -> std::result::Result<Box<dyn World>, (String, String)> {
    let link_control = watch.map(|watch| watch.link.clone());
    match paceline_live::testbed::Testbed::missing() {
        None => {
            Ok(Box::new(paceline_live::testbed::Testbed { link_control, ..paceline_live::testbed::Testbed::default() }))
        }
        Some(missing) => Err((missing.to_string(), missing.hint().to_string())),
    }
}

#[cfg(not(all(feature = "testbed", target_os = "linux")))]
fn testbed(_: Option<&WatchHandles>) -> std::result::Result<Box<dyn World>, (String, String)> {
    Err(needs_feature("testbed"))
}

#[cfg(all(feature = "browser", target_os = "linux"))]
fn browser(watch: Option<&WatchHandles>) -> std::result::Result<Box<dyn World>, (String, String)> {
    let (link_control, preview_images) = watch.map(|watch| (watch.link.clone(), watch.preview.clone())).unzip();
    match paceline_browser::call::BrowserWorld::missing() {
        None => Ok(Box::new(paceline_browser::call::BrowserWorld {
            link_control,
            preview_images,
            ..paceline_browser::call::BrowserWorld::default()
        })),
        Some((missing, hint)) => Err((missing.to_string(), hint.to_string())),
    }
}

#[cfg(not(all(feature = "browser", target_os = "linux")))]
fn browser(_: Option<&WatchHandles>) -> std::result::Result<Box<dyn World>, (String, String)> {
    Err(needs_feature("browser"))
}

/// States that this build lacks a Cargo feature, and how to get it.
#[cfg(not(all(feature = "browser", feature = "mcp", target_os = "linux")))]
pub(crate) fn needs_feature(feature: &str) -> (String, String) {
    let place = if feature == "mcp" { "" } else { "on Linux, " };
    let hint = format!("{place}rebuild with `cargo build --release --features {feature}`");
    ("this build lacks the Cargo feature".to_owned(), hint)
}

/// Returns the names of the worlds.
pub fn names() -> [&'static str; 3] {
    WORLDS.map(|(name, _)| name)
}

/// Returns the controllers that a world has, the faulty ones of the yardsticks included; calls with a browser do not have those.
pub fn registry(name: &str) -> Registry {
    match name {
        #[cfg(all(feature = "browser", target_os = "linux"))]
        "browser" => paceline_browser::call::registry(Registry::standard()),
        _ => yardsticks::add(Registry::standard()),
    }
}

/// Opens the world with this name, connected to a watch page if there is one.
///
/// # Errors
/// There is no such world (exit code 2), or this machine or this build does not have it (exit code 3).
pub(crate) fn open(name: &str, watch: Option<&WatchHandles>) -> Result<Box<dyn World>> {
    let Some((_, open)) = WORLDS.iter().find(|(known, _)| *known == name) else {
        return Err(miette!(help = suggestion(name, &names()), "no world `{name}`"));
    };
    open(watch).map_err(|missing| unavailable(&format!("the world `{name}`"), missing))
}

/// Opens the world with this name, whose runs end when `control` is stopped. `None` if there is no such world.
///
/// # Errors
/// This machine or this build does not have it.
pub fn open_with(name: &str, control: &LinkControl) -> Option<std::result::Result<Box<dyn World>, WorldError>> {
    let (_, open) = WORLDS.iter().find(|(known, _)| *known == name)?;
    if name == Simulator.name() {
        return Some(Ok(Box::new(StoppableSimulator(control.stop_flag()))));
    }
    let opened = open(handles(control).as_ref());
    Some(opened.map_err(|(missing, hint)| WorldError::Unavailable {
        cause: format!("the world `{name}` is not available: {missing}"),
        hint,
    }))
}

#[cfg(all(feature = "testbed", target_os = "linux"))]
fn handles(control: &LinkControl) -> Option<WatchHandles> {
    Some(WatchHandles { link: control.clone(), ..WatchHandles::default() })
}

#[cfg(not(all(feature = "testbed", target_os = "linux")))]
fn handles(_: &LinkControl) -> Option<WatchHandles> {
    None
}

/// Returns the error, with exit code 3, for a world or a command that is not available.
pub(crate) fn unavailable(what: &str, (missing, hint): (String, String)) -> miette::Report {
    world_error(WorldError::Unavailable { cause: format!("{what} is not available: {missing}"), hint })
}
