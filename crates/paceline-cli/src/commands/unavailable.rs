//! Replaces the commands that this build does not include.

use crate::worlds::{needs_feature, unavailable};
use miette::Result;
use std::process::ExitCode;

/// Replaces `call`.
pub mod call {
    pub use crate::commands::AnyArguments as Arguments;

    /// Reports the missing feature; exit code 3.
    pub fn call(_: &Arguments) -> super::Result<super::ExitCode> {
        Err(super::unavailable("the command `call`", super::needs_feature("browser")))
    }
}

/// Replaces `link`.
pub mod link {
    pub use crate::commands::AnyArguments as Arguments;

    /// Reports the missing feature; exit code 3.
    pub fn link(_: &Arguments) -> super::Result<super::ExitCode> {
        Err(super::unavailable("the command `link`", super::needs_feature("testbed")))
    }
}

/// Replaces `send`.
pub mod send {
    pub use crate::commands::AnyArguments as Arguments;

    /// Reports the missing feature; exit code 3.
    pub fn send(_: &Arguments) -> super::Result<super::ExitCode> {
        Err(super::unavailable("the command `send`", super::needs_feature("testbed")))
    }
}

/// Replaces `recv`.
pub mod recv {
    pub use crate::commands::AnyArguments as Arguments;

    /// Reports the missing feature; exit code 3.
    pub fn recv(_: &Arguments) -> super::Result<super::ExitCode> {
        Err(super::unavailable("the command `recv`", super::needs_feature("testbed")))
    }
}
