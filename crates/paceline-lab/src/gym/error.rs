// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of episodes.

use paceline_netsim::world::WorldError;
use paceline_scenario::ScenarioError;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GymError {
    #[error(transparent)]
    Scenario(#[from] Box<ScenarioError>),
    /// A controller or a source cannot be built.
    #[error(transparent)]
    World(#[from] WorldError),
    #[error("`{scenario}` has no media flow{}", flow.as_ref().map_or_else(String::new, |id| format!(" `{id}`")))]
    NoFlow {
        scenario: String,
        /// The requested flow; none: any.
        flow: Option<String>,
        /// The media flows of the scenario.
        known: Vec<String>,
    },
    /// The flow lasts less than one step.
    #[error("the flow of `{scenario}` must last at least one step")]
    TooShort { scenario: String },
    #[error("range of `{key}`: {cause}")]
    Range { key: String, cause: String },
    #[error("a task needs at least one scenario")]
    NoScenario,
    #[error("action {index} is {action}, but must be a number from -1 to 1")]
    Action { index: usize, action: f32 },
    #[error("{what}: {got} given for {wanted} episodes")]
    Length {
        what: &'static str,
        got: usize,
        /// The length that it must have.
        wanted: usize,
    },
    #[error("no threads: {0}")]
    Threads(String),
}

impl GymError {
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
