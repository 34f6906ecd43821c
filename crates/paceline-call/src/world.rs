//! The world `browser`.

use crate::browsers::Browsers;
use crate::calls::{Calls, refusal};
use paceline::Registry;
use paceline_chromium::{Error, installed};
use paceline_lab::moves::Moves;
use paceline_lab::pictures::Pictures;
use paceline_lab::plan::Plan;
use paceline_lab::rows::RowSink;
use paceline_lab::world::{Outcome, World, WorldError};
use paceline_live::track::Track;
use paceline_live::wait::Timing;

/// Calls of real browsers over the test track's link.
#[derive(Clone, Debug)]
pub struct BrowserWorld {
    /// How exactly the link and our ends keep their times.
    pub timing: Timing,
    /// Where somebody moves the link.
    pub moves: Option<Moves>,
    /// Where somebody sees what Chromium's ends look like.
    pub pictures: Option<Pictures>,
}

impl Default for BrowserWorld {
    fn default() -> Self {
        Self { timing: Timing::Sleep, moves: None, pictures: None }
    }
}

impl BrowserWorld {
    /// What this machine lacks to be this world, and how to get it; `None`: nothing.
    pub fn missing() -> Option<(String, String)> {
        if installed().is_none() {
            let hint = "Debian and Ubuntu have it as `apt-get install chromium`; it is looked for on the PATH";
            return Some(("there is no Chromium".to_owned(), hint.to_owned()));
        }
        Track::open().err().map(|missing| (missing.to_string(), missing.hint().to_owned()))
    }
}

impl World for BrowserWorld {
    fn name(&self) -> &'static str {
        "browser"
    }

    fn real_time(&self) -> bool {
        true
    }

    fn baselines(&self) -> &'static [&'static str] {
        &["chromium"]
    }

    fn played(&self, controller: &str, registry: &Registry) -> String {
        registry.get(controller).map_or(controller, |entry| entry.summary()).to_owned()
    }

    fn run(&self, plan: &Plan, registry: &Registry, seed: u64, rows: &mut dyn RowSink) -> Result<Outcome, WorldError> {
        if let Some(refusal) = refusal(plan, registry) {
            return Err(refusal);
        }
        if let Some((cause, hint)) = Self::missing() {
            return Err(WorldError::Unavailable { cause, hint });
        }
        let track = Track::open()?.moved_by(self.moves.clone());
        let mut browsers = Browsers::new(rows.wants_artefacts(), self.pictures.is_some());
        let calls = Calls::prepare(plan, registry, &track, &mut browsers).map_err(broken)?;
        if let Some(pictures) = &self.pictures {
            calls.show(pictures).map_err(broken)?;
        }
        let outcome = track.run(self.timing, &calls, plan, registry, seed, rows)?;
        if rows.wants_artefacts() {
            for (name, bytes) in browsers.event_logs().map_err(|error| broken(Error::Start(error)))? {
                rows.artefact(&name, bytes);
            }
        }
        Ok(outcome)
    }
}

fn broken(error: Error) -> WorldError {
    WorldError::Broken { cause: error.to_string() }
}
