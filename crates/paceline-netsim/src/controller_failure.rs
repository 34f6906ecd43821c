// SPDX-License-Identifier: MIT OR Apache-2.0
//! The failure of a flow's controller.

use core::error::Error;
use core::fmt::{self, Display, Formatter};
use paceline::Failure;
use paceline_units::Time;

/// The failure of a half of a flow's controller, which ends the run.
#[derive(Clone, Debug)]
pub struct ControllerFailure {
    pub flow: String,
    pub controller: String,
    /// The time of the run at which the flow found it; [`Time::ZERO`] also if the half failed before the run.
    pub at: Time,
    /// What failed.
    pub failure: Failure,
}

impl Display for ControllerFailure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { flow, controller, at, failure } = self;
        write!(f, "the controller `{controller}` of flow `{flow}` {failure}")?;
        match *at {
            Time::ZERO => write!(f, ", at the start"),
            at => write!(f, ", at {:.6} s", at.as_secs_f64()),
        }
    }
}

impl Error for ControllerFailure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.failure.source()
    }
}
