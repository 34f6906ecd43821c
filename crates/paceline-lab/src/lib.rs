//! The laboratory: a scenario file in, measured results out.
//!
//! Data flows one way, and no later stage reaches back:
//!
//! ```text
//! text --scenario--> Plan --World--> rows --metrics--> RunResult --run--> summary, assertions
//!                                      '----store----> Parquet files and a manifest
//! ```
//!
//! ```
//! use paceline::Registry;
//! use paceline_lab::{run::Runner, scenario::{self, Catalogue, Changes}, sim::Simulator};
//!
//! let registry = Registry::standard();
//! let origin = Catalogue.find("mmsys16/table1")?;
//! let changes = Changes { settings: vec!["duration=60s".parse()?], ..Changes::default() };
//! let plan = scenario::load(&origin, &changes, &registry)?;
//! let runner = Runner { world: &Simulator, registry: &registry, clock: &|| 0.0, ticked: &|| () };
//! let result = runner.run(&plan, 1, None)?;
//! assert!(result.whole.link.utilization.unwrap() > 0.3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod capture;
mod clock;
pub mod diff;
pub mod gap;
pub mod group;
pub mod gym;
mod json;
pub mod label;
pub mod machine;
pub mod media;
pub mod metrics;
pub mod network;
pub mod plan;
pub mod reproduce;
pub mod rows;
pub mod run;
pub mod scenario;
pub mod sight;
pub mod sim;
pub mod stats;
pub mod store;
pub mod sweep;
pub mod trace;
pub mod world;
