// SPDX-License-Identifier: MIT OR Apache-2.0
//! Controllers of other libraries, and GoogCC against the crate `goog_cc`.

mod decisions;
mod halves;
mod known_deviations;
mod mutations;
mod start_up;
