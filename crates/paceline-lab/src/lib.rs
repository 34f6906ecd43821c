//! Scenario to plan to world to rows to metrics. Under construction.

pub mod rows;
pub mod store;
pub mod trace;
