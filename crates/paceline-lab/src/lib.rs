// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab: a scenario file in, measured results out.
//!
//! Data flows one way, and no later stage reaches back:
//!
//! ```text
//! text --scenario--> Scenario --world--> events --metrics--> RunResult --run--> summary, assertions
//!                                           '----results----> results.sqlite and Parquet files
//! ```
//!
//! ```
//! use paceline::Registry;
//! use paceline_lab::{registries, run::Runner};
//! use paceline_scenario::{Catalogue, Changes, load};
//!
//! let controllers = Registry::standard();
//! let origin = Catalogue.find("mmsys16/table1")?;
//! let changes = Changes { settings: vec!["duration=60s".parse()?], ..Changes::default() };
//! let scenario = load(&origin, &changes, registries(&controllers))?;
//! let result = Runner::simulator(&controllers).run(&scenario, 1, None)?;
//! assert!(result.whole.link.utilization.unwrap() > 0.3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Other programs embed `paceline`, not this crate: what a name says needs no comment.
#![allow(missing_docs)]
// Without the feature `storage` some helpers of judges and comparisons have no user.
#![cfg_attr(not(feature = "storage"), allow(dead_code, unused_imports))]

#[cfg(test)]
#[path = "../tests/it/altered_simulator.rs"]
mod altered_simulator;
#[cfg(feature = "capture")]
pub mod capture;
#[cfg(feature = "storage")]
pub mod catalogue;
pub mod compare;
#[cfg(feature = "storage")]
pub mod diff;
#[cfg(feature = "storage")]
pub mod done_runs;
pub mod group;
pub mod gym;
pub mod judge;
mod load;
pub mod metrics;
#[cfg(feature = "report")]
pub mod report;
#[cfg(feature = "storage")]
pub mod reproduce;
pub mod results;
pub mod run;
#[cfg(feature = "storage")]
pub mod run_cache;
#[cfg(feature = "storage")]
pub mod run_identity;
mod run_result;
#[cfg(feature = "storage")]
pub mod storage;
#[cfg(feature = "storage")]
mod stored_run;
#[cfg(feature = "storage")]
pub mod suite;
#[cfg(feature = "storage")]
pub mod sweep;
#[cfg(feature = "storage")]
pub mod validate;
pub mod yardsticks;

pub use load::load;

use paceline::Registry;
use paceline_scenario::Registries;

/// Returns the names that scenarios may use: these controllers, and every metric of the lab.
pub fn registries(controllers: &Registry) -> Registries<'_> {
    Registries { controllers, metrics: Some(metrics::catalogue()) }
}
