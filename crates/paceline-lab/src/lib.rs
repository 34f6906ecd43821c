//! Scenario to plan to world to rows to metrics. Under construction.

pub mod plan;
pub mod rows;
pub mod sim;
pub mod trace;
pub mod world;
