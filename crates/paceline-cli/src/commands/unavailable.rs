//! Replaces the commands that this build does not include.

#[cfg(not(all(feature = "testbed", target_os = "linux")))]
use crate::worlds::needs_feature;
use crate::worlds::unavailable;
use miette::Result;
use std::process::ExitCode;

/// Replaces `play`.
#[cfg(not(feature = "playground"))]
pub mod play {
    pub use crate::commands::AnyArguments as Arguments;

    /// Reports the missing feature; exit code 3.
    pub fn play(_: &Arguments) -> super::Result<super::ExitCode> {
        let hint = "in a clone, run `cargo xtask playground`, whose page target/playground/playground.html opens in any browser; \
                    then `cargo build --release --features playground` builds the command with it";
        let missing = ("this build lacks the Cargo feature".to_owned(), hint.to_owned());
        Err(super::unavailable("the command `play`", missing))
    }
}

/// Replaces `call`.
#[cfg(not(all(feature = "testbed", target_os = "linux")))]
pub mod call {
    pub use crate::commands::AnyArguments as Arguments;

    /// Reports the missing feature; exit code 3.
    pub fn call(_: &Arguments) -> super::Result<super::ExitCode> {
        Err(super::unavailable("the command `call`", super::needs_feature("browser")))
    }
}

/// Replaces `link`.
#[cfg(not(all(feature = "testbed", target_os = "linux")))]
pub mod link {
    pub use crate::commands::AnyArguments as Arguments;

    /// Reports the missing feature; exit code 3.
    pub fn link(_: &Arguments) -> super::Result<super::ExitCode> {
        Err(super::unavailable("the command `link`", super::needs_feature("testbed")))
    }
}
