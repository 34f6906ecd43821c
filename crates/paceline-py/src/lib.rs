// SPDX-License-Identifier: MIT OR Apache-2.0
//! The extension of the Python package `paceline`: the commands as functions of text and numbers.
//!
//! ```text
//! python/paceline (names, types, notebooks) --> _paceline (this crate) --> paceline-lab
//!        ^---- controllers written in Python, called back from a run -----------'
//! ```
//!
//! Documents are JSON, in the shapes of the command's `--json`. Series are numpy arrays that own the memory that the run
//! filled. Work runs on threads of the package without the GIL, while the caller's thread waits for it or for Ctrl-C.

mod commands;
mod controller;
mod endpoint_values;
mod endpoints;
mod errors;
mod explain;
mod gym;
mod half;
mod load;
mod packets;
mod plot;
mod receive;
mod recording;
mod request;
mod rows;
mod send;
mod series;
mod stop;
mod suite;
mod sweep;
mod testing;
mod types;
mod world;

use pyo3::prelude::*;

/// The extension module.
#[pymodule]
mod _paceline {
    #[pymodule_export]
    use crate::commands::{
        cases, catalogue, choose, command, compare, constants, edited, find, reproduce, runs, trial,
    };
    #[pymodule_export]
    use crate::endpoint_values::{Event, PacketHead, Probe, Report, Transmit};
    #[pymodule_export]
    use crate::endpoints::{FlowReceiver, FlowSender};
    #[pymodule_export]
    use crate::explain::{explain, fit};
    #[pymodule_export]
    use crate::gym::{Gym, Observer, evaluate, quantities};
    #[pymodule_export]
    use crate::load::{load, replay, rows};
    #[pymodule_export]
    use crate::plot::svg;
    #[pymodule_export]
    use crate::suite::{FinishedSuites, SuiteRuns, suite_job};
    #[pymodule_export]
    use crate::sweep::{FinishedSweep, Folder, Sweep};
    #[pymodule_export]
    use crate::testing::{Receiver, Sender};
    #[pymodule_export]
    use crate::types::{
        Arrivals, Bounds, Decision, Feedback, Message, QueuedFrame, ReceiverReport, RoundTrip, SentPacket, Setup,
        StreamState,
    };

    /// Version of the wheel, of the command and of results.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
