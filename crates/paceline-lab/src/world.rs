//! A world turns a plan and a seed into rows. The simulator is the first; others drive real networks.

use crate::machine::Machine;
use crate::plan::Plan;
use crate::rows::RowSink;
use paceline::{ConfigError, Registry};
use paceline_flow::source::SourceError;
use std::time::Duration;

/// What a calendar shows at [`Time::ZERO`](paceline_units::Time::ZERO) of a world that has no date of its own, as time
/// since 1970: 2000-01-01 00:00:00 UTC.
pub const EPOCH: Duration = Duration::from_secs(946_684_800);

/// What a world says at the end, besides its rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Hash over every decision of links and endpoints; equal runs have equal hashes.
    pub trace_hash: u64,
    /// Events handled.
    pub events: u64,
    /// Largest number of events that waited at once.
    pub pending_max: usize,
    /// Datagrams that reached their endpoint.
    pub delivered: u64,
    /// The machine that it ran on; none in virtual time.
    pub machine: Option<Machine>,
}

/// Why a world could not run a plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// A controller cannot be built.
    #[error("flow `{flow}`: {error}")]
    Controller {
        /// Which flow.
        flow: String,
        /// Why.
        error: ConfigError,
    },
    /// A source cannot be built.
    #[error("flow `{flow}`: {error}")]
    Source {
        /// Which flow.
        flow: String,
        /// Why.
        error: SourceError,
    },
    /// The registry does not know the controller.
    #[error("flow `{flow}`: no controller `{name}`")]
    UnknownController {
        /// Which flow.
        flow: String,
        /// What was asked for.
        name: String,
    },
    /// This machine does not have the world.
    #[error("{cause}")]
    Unavailable {
        /// What is missing.
        cause: String,
        /// How to get it.
        hint: String,
    },
    /// The run broke off.
    #[error("the run broke off: {cause}")]
    Broken {
        /// Why.
        cause: String,
    },
}

/// Plan and seed in, rows out.
pub trait World: Sync {
    /// Its name in results.
    fn name(&self) -> &'static str;
    /// Whether a run takes as long as it lasts; such runs are made one after the other, for they share the machine.
    fn real_time(&self) -> bool {
        false
    }
    /// Controllers of its own, which a reproduction puts beside those that a scenario names.
    fn baselines(&self) -> &'static [&'static str] {
        &[]
    }
    /// What a media flow under this controller is here, for people: a world may play one of its halves.
    fn played(&self, controller: &str, registry: &Registry) -> String {
        let _ = registry;
        controller.to_owned()
    }
    /// Runs the plan to its end.
    fn run(&self, plan: &Plan, registry: &Registry, seed: u64, rows: &mut dyn RowSink) -> Result<Outcome, WorldError>;
}
