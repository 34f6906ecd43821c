// SPDX-License-Identifier: MIT OR Apache-2.0
//! The world `browser`.

use crate::call::browsers::Browsers;
use crate::call::calls::{Calls, unsupported};
use crate::chromium::{Error, installed};
use paceline::Registry;
use paceline_live::testbed::testbed_network::TestbedNetwork;
use paceline_live::testbed::timing::Timing;
use paceline_netsim::link_control::LinkControl;
use paceline_netsim::plan::Plan;
use paceline_netsim::preview::PreviewImages;
use paceline_netsim::records::EventObserver;
use paceline_netsim::world::{Outcome, World, WorldError};

/// Runs calls of real browsers over the testbed's link.
#[derive(Clone, Debug)]
pub struct BrowserWorld {
    /// The accuracy with which the link and the local endpoints wait for their deadlines.
    pub timing: Timing,
    /// Changes of the link while the run lasts.
    pub link_control: Option<LinkControl>,
    /// Receives preview images of Chromium's pages.
    pub preview_images: Option<PreviewImages>,
}

impl Default for BrowserWorld {
    fn default() -> Self {
        Self { timing: Timing::Sleep, link_control: None, preview_images: None }
    }
}

impl BrowserWorld {
    /// Returns the missing requirement of this world and a hint to install it; `None` if the world is available.
    pub fn missing() -> Option<(String, String)> {
        if installed().is_none() {
            let hint = "install it (Debian and Ubuntu: `apt-get install chromium`); the PATH is searched";
            return Some(("Chromium is not installed".to_owned(), hint.to_owned()));
        }
        TestbedNetwork::open().err().map(|missing| (missing.to_string(), missing.hint().to_owned()))
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

    fn describe_controller(&self, controller: &str, registry: &Registry) -> String {
        registry.get(controller).map_or(controller, |entry| entry.summary()).to_owned()
    }

    fn run(
        &self,
        plan: &Plan,
        registry: &Registry,
        seed: u64,
        rows: &mut dyn EventObserver,
    ) -> Result<Outcome, WorldError> {
        if let Some(refusal) = unsupported(plan, registry) {
            return Err(refusal);
        }
        if let Some((cause, hint)) = Self::missing() {
            return Err(WorldError::Unavailable { cause, hint });
        }
        let network = TestbedNetwork::open()?.with_link_control(self.link_control.clone());
        let mut browsers = Browsers::new(rows.wants_attachments(), self.preview_images.is_some());
        let calls = Calls::prepare(plan, registry, &network, &mut browsers).map_err(broken)?;
        if let Some(preview_images) = &self.preview_images {
            calls.show(preview_images).map_err(broken)?;
        }
        let outcome = network.run(self.timing, &calls, plan, registry, seed, rows)?;
        if rows.wants_attachments() {
            let logs = browsers.event_logs().map_err(|error| broken(Error::Start(error)))?;
            for (name, bytes) in logs.into_iter().chain(calls.dumps()) {
                rows.on_attachment(&name, &bytes);
            }
        }
        Ok(Outcome { programs: browsers.programs(), ..outcome })
    }
}

fn broken(error: Error) -> WorldError {
    WorldError::Broken { cause: error.to_string() }
}
