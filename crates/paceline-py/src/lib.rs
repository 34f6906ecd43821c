//! The extension beneath the Python package `paceline`: what the command does, as functions of text and numbers.
//!
//! ```text
//! python/paceline (names, types, notebooks) --> _paceline (this crate) --> paceline-lab
//!        ^---- controllers written in Python, called back from a run -----------'
//! ```
//!
//! Documents cross as JSON, in the shapes of the command's `--json`; series cross as numpy arrays that own the memory that
//! the run filled. Work runs on a thread of its own without the GIL, while the caller's thread waits for it or for Ctrl-C.

mod ask;
mod commands;
mod controller;
mod errors;
mod gym;
mod picture;
mod receive;
mod send;
mod series;
mod stop;
mod sweep;
mod told;
mod world;

use pyo3::prelude::*;

/// The extension module.
#[pymodule]
mod _paceline {
    #[pymodule_export]
    use crate::commands::{cases, catalogue, compare, edited, find, reproduce, run, runs};
    #[pymodule_export]
    use crate::gym::{Gym, evaluate, quantities};
    #[pymodule_export]
    use crate::picture::Watched;
    #[pymodule_export]
    use crate::sweep::{Folder, Sweep, Swept};
    #[pymodule_export]
    use crate::told::{Arrivals, Decision, Feedback, Message, ReceiverReport, SentPacket, Setup, StreamState};

    /// The version that the wheel, the command and results carry.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
