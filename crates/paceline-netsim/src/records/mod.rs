// SPDX-License-Identifier: MIT OR Apache-2.0
//! The types of a run's records, which the simulator, stored results and reports share.
//!
//! * [`EventRecord`] is one event of a run; an [`EventObserver`] receives all of them. Metrics, files and plots are made
//!   from events and from nothing else.
//! * [`TappedPacket`] is a packet at one point of the network, as a capture needs it.
//! * [`RunHeader`] names the objects to which events refer by index; [`RunDescription`] adds the metadata of plots.
//! * [`Label`] names one case of an experiment; [`Summary`] and [`Paired`] are statistics over its runs.
//!
//! Nothing here runs a simulation or opens a file.

mod description;
mod environment;
mod event;
mod host_stats;
pub mod json;
mod label;
mod metric;
mod observer;
mod packet;
mod stats;
mod tap;

pub use description::{FlowDescription, HopDescription, RunDescription, RunHeader, SignalDescription};
pub use environment::{Environment, Program};
pub use event::{EventRecord, HalfName, LinkUpdate};
pub use host_stats::{HostStats, Percentiles};
pub use label::Label;
pub use metric::{Better, MetricCatalogue, MetricInfo, MetricKind};
pub use observer::EventObserver;
pub use packet::{DropReason, PacketClass, PacketRecord};
pub use stats::{Paired, Statistic, Summary, Z_95, jain, ratio_interval, score_interval, t_quantile, t_quantile_at};
pub use tap::{Content, TapPoint, TappedPacket};

/// Name of the packet simulator in results.
pub const SIMULATOR: &str = "sim";
