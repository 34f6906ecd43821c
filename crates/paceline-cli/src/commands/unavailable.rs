// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replaces the commands that this build does not include.

/// Declares modules of commands that need a feature.
macro_rules! replaced {
    ($($name:ident needs $feature:literal;)*) => { $(
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
    call needs "browser";
    link needs "testbed";
    send needs "testbed";
    recv needs "testbed";
}
