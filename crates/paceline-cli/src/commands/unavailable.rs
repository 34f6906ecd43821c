// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replaces the commands that this build does not include.

/// Declares modules of commands that need a feature.
macro_rules! replaced {
    ($($(#[$if:meta])? $name:ident needs $feature:literal;)*) => { $(
        $(#[$if])?
        #[doc = concat!("Replaces `", stringify!($name), "`.")]
        pub mod $name {
            pub use crate::commands::AnyArguments as Arguments;
            use crate::worlds::{needs_feature, unavailable};

            /// Reports the missing feature; exit code 3.
            pub fn $name(_: &Arguments) -> miette::Result<std::process::ExitCode> {
                Err(unavailable(concat!("the command `", stringify!($name), "`"), needs_feature($feature)))
            }
        }
    )* };
}

replaced! {
    #[cfg(not(all(feature = "testbed", target_os = "linux")))]
    call needs "browser";
    #[cfg(not(all(feature = "testbed", target_os = "linux")))]
    link needs "testbed";
    #[cfg(not(all(feature = "testbed", target_os = "linux")))]
    send needs "testbed";
    #[cfg(not(all(feature = "testbed", target_os = "linux")))]
    recv needs "testbed";
    #[cfg(not(feature = "mcp"))]
    mcp needs "mcp";
}
