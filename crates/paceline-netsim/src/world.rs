// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interface of a world: it runs a plan with a seed and emits events. The simulator is one world; others use
//! real networks.

use crate::controller_failure::ControllerFailure;
use crate::flow::source::SourceError;
use crate::plan::Plan;
use crate::records::{EventObserver, HostStats, Program};
use core::any::Any;
use core::error::Error;
use paceline::{ConfigError, Registry};
use std::time::Duration;

/// Wall-clock time at [`Time::ZERO`](paceline_units::Time::ZERO) of the simulator, since 1970: 2000-01-01 00:00:00 UTC.
pub const EPOCH: Duration = Duration::from_secs(946_684_800);

/// An error of a world that could not run a plan.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// A controller cannot be built.
    #[error("flow `{flow}`: {error}")]
    Controller {
        flow: String,
        /// The reason.
        error: ConfigError,
    },
    /// A source cannot be built.
    #[error("flow `{flow}`: {error}")]
    Source {
        flow: String,
        /// The reason.
        error: SourceError,
    },
    /// The registry does not know the controller.
    #[error("flow `{flow}`: no controller `{name}`")]
    UnknownController {
        flow: String,
        /// The requested name.
        name: String,
    },
    /// The world is not available on this host.
    #[error("{cause}")]
    Unavailable {
        /// The missing capability.
        cause: String,
        /// A hint to make it available.
        hint: String,
    },
    /// A controller failed during the run.
    #[error("{failure} of {plan}{}, seed {seed}{}", labelled(case), source_below(failure))]
    ControllerFailed {
        /// The flow, its controller, the time and what failed.
        failure: ControllerFailure,
        /// The scenario.
        plan: String,
        /// Its case; empty without one.
        case: String,
        /// The seed of the run.
        seed: u64,
    },
    /// The run was aborted.
    #[error("the run broke off: {cause}")]
    Broken {
        /// The reason.
        cause: String,
    },
}

impl WorldError {
    /// Returns the error of a run that another error broke off, with the causes of that one.
    pub fn broken_by(error: &dyn Error) -> Self {
        let (mut cause, mut next) = (error.to_string(), error.source());
        while let Some(error) = next {
            cause += &format!(": {error}");
            next = error.source();
        }
        Self::Broken { cause }
    }
}

impl ControllerFailure {
    /// Returns the error of the run of this plan and seed.
    pub fn in_run(self, plan: &Plan, seed: u64) -> WorldError {
        let (plan, case) = (plan.id.clone(), plan.case.to_string());
        WorldError::ControllerFailed { failure: self, plan, case, seed }
    }
}

/// Returns the label of a case in brackets.
fn labelled(case: &str) -> String {
    if case.is_empty() { String::new() } else { format!(" [{case}]") }
}

/// Returns what the controller itself says, on lines of their own.
fn source_below(failure: &ControllerFailure) -> String {
    failure.source().map_or_else(String::new, |source| format!("\n{source}"))
}

/// Runs plans. A caller that knows the type of its observer can downcast a world to [`Simulator`](crate::sim::Simulator), whose
/// `simulate` calls the observer directly.
pub trait World: Any + Sync {
    /// Returns the name in results.
    fn name(&self) -> &'static str;
    /// Returns whether a run takes its duration in real time. Such runs are made one after the other, because they
    /// share the host.
    fn real_time(&self) -> bool {
        false
    }
    /// Returns additional controllers of this world, which a reproduction compares with those of a scenario.
    fn baselines(&self) -> &'static [&'static str] {
        &[]
    }
    /// Describes a media flow under this controller: in some worlds a remote implementation replaces one half.
    fn describe_controller(&self, controller: &str, registry: &Registry) -> String {
        let _ = registry;
        controller.to_owned()
    }
    /// Runs the plan to its end, and emits its events to `observer`.
    ///
    /// # Errors
    /// See [`WorldError`].
    fn run(
        &self,
        plan: &Plan,
        registry: &Registry,
        seed: u64,
        observer: &mut dyn EventObserver,
    ) -> Result<Outcome, WorldError>;
}

/// The result of a run, besides its events.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The trace hash over every decision of links and endpoints; equal runs have equal hashes.
    pub trace_hash: u64,
    /// Number of events handled.
    pub events: u64,
    /// Number of packets that reached their endpoint.
    pub delivered: u64,
    /// Statistics of the host; `None` in virtual time.
    pub machine: Option<HostStats>,
    /// Other programs that took part, such as browsers.
    pub programs: Vec<Program>,
}
