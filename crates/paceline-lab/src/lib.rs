//! Scenario to plan to world to rows to metrics. Under construction.

pub mod metrics;
pub mod plan;
pub mod rows;
<<<<<<< HEAD
pub mod run;
pub mod scenario;
pub mod sim;
pub mod stats;
=======
pub mod store;
>>>>>>> store
pub mod trace;
pub mod world;
