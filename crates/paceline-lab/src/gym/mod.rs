//! The gym: runs that an agent steers step by step, for reinforcement learning.
//!
//! An [`Episode`] is one run of the simulator in steps of equal length. In each the agent says how fast its flow is to send,
//! and is told what a sender would know by then ([`FEATURES`]: from per-packet feedback, no oracle), a [`Reward`] of what
//! became of its packets, and, beside it, the truth ([`TRUTHS`]). A [`Course`] is what episodes are drawn from, [`Gym`]
//! many of them side by side, on threads.
//!
//! The agent sits where a controller's send half sits (`agent.rs`), under the same guard: encoder, pacer, packets, feedback and
//! path are those of every run. So what pays in the gym is what pays on the path, and an episode that a registered
//! controller flies is the very run that `paceline run` makes, to the hash.

mod agent;
mod course;
mod episode;
mod reward;
mod tally;
mod vector;

pub use agent::{ActionSpace, FEATURES, Quantity};
pub use course::{Course, CourseSpec, Range};
pub use episode::{Episode, Pilot, STEP};
pub use reward::Reward;
pub use tally::{TRUTHS, Truth};
pub use vector::{Gym, Outputs, Score, evaluate};

use crate::scenario::Problem;
use crate::world::WorldError;

/// Why there is no episode, or no next step.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GymError {
    /// A scenario, or what is set in it.
    #[error(transparent)]
    Scenario(#[from] Box<Problem>),
    /// A controller or a source.
    #[error(transparent)]
    World(#[from] WorldError),
    /// No media flow that could be steered.
    #[error("`{scenario}` has no media flow{}", flow.as_ref().map_or_else(String::new, |id| format!(" `{id}`")))]
    NoFlow {
        /// Where.
        scenario: String,
        /// Which was asked for; none: any.
        flow: Option<String>,
        /// Those that there are.
        known: Vec<String>,
    },
    /// The flow lives for less than one step.
    #[error("`{scenario}` leaves no time for a step of its flow")]
    TooShort {
        /// Where.
        scenario: String,
    },
    /// A range that nothing can be drawn from.
    #[error("range of `{key}`: {cause}")]
    Range {
        /// Of which key.
        key: String,
        /// Why.
        cause: String,
    },
    /// No scenario to draw from.
    #[error("a course needs at least one scenario")]
    NoScenario,
    /// An action that is not a number.
    #[error("action {index} is {action}, and no number from -1 to 1")]
    Action {
        /// Of which episode.
        index: usize,
        /// What it is.
        action: f32,
    },
    /// A length that is not the number of episodes.
    #[error("{what}: {got} given for {wanted} episodes")]
    Length {
        /// Of what.
        what: &'static str,
        /// How many were given.
        got: usize,
        /// How many are wanted.
        wanted: usize,
    },
    /// The threads could not be started.
    #[error("no threads: {0}")]
    Threads(String),
}

impl GymError {
    /// What may be done about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Scenario(problem) => problem.hint().map(ToString::to_string),
            Self::NoFlow { known, .. } if known.is_empty() => Some("add a [[flow]] of kind \"media\"".to_owned()),
            Self::NoFlow { known, .. } => Some(format!("media flows: {}", known.join(", "))),
            Self::TooShort { .. } => Some("lengthen `duration`, or shorten the step".to_owned()),
            Self::Range { .. } => Some("write it like (\"{} kbps\", 300, 3000)".to_owned()),
            Self::Action { .. } => Some("-1 is the flow's lowest rate, 1 the most that its sources make".to_owned()),
            _ => None,
        }
    }
}
