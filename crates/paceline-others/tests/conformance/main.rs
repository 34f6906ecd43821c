//! GoogCC against the crate `goog_cc`.

mod decisions;
mod known_deviations;
mod mutations;
mod start_up;
