//! Congestion controllers for real-time media, as state machines: no I/O, no clock, no threads, no allocation in
//! steady state. The object that runs in the simulator is the object that drives a socket.
//!
//! A controller is a pair of halves joined by a report ([`Controller`]). The driver tells the halves what happened
//! (`handle_*`, each with `now`), then asks what they want (`poll_*`, [`SendHalf::decision`]).
//!
//! ```
//! use paceline::{Registry, Setup};
//! use paceline_units::{Fraction, Rate, Time, TimeDelta};
//!
//! let registry = Registry::standard();
//! let setup = Setup { start: Rate::from_kbps(300), min: Rate::from_kbps(50), max: Rate::from_kbps(2000) };
//! let controller = registry.get("gcc-2016").unwrap().build(&setup, &[])?;
//! let mut send = controller.send.expect("gcc-2016 has a send half");
//! let mut signals = paceline::Signals::unheard();
//!
//! // A receiver report with 20 % loss, 1 s into the call: equation 5 of the paper takes a tenth away.
//! let report = paceline::ReceiverReport { fraction_lost: Fraction::new(0.2).unwrap(), rtt: Some(TimeDelta::from_millis(50)) };
//! send.handle_report(Time::from_secs(1), &report, &mut signals);
//! assert_eq!(send.decision().target, Rate::from_kbps(270));
//! # Ok::<(), paceline::ConfigError>(())
//! ```

pub mod blocks;
mod controller;
mod fields;
mod fixed;
pub mod gcc;
mod guard;
mod history;
mod lanes;
pub mod nada;
mod pacer;
mod protection;
mod registry;
pub mod scream;
mod signals;

pub use controller::{
    Arrival, Controller, Decision, Feedback, FeedbackKind, GradientReport, MediaKind, Message, NadaMode, NadaReport,
    PacketKind, PacketReport, ReceiveHalf, ReceiverReport, SendHalf, SentPacket, StreamState, Window,
};
pub use fields::{Block, Field, FieldInfo, Fields, Listed, Sources};
pub use history::{Flight, History};
pub use pacer::{Class, Pacer};
pub use protection::{
    Division, FEC_SHARE_MAX, FecDemand, FecScheme, Protection, RESEND_SHARE, ResendBudget, ResendRule, divide,
};
pub use registry::{Config, ConfigError, Entry, Registry, Setup};
pub use signals::{SignalShape, SignalSpec, Signals};

/// The guide's example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/library.md")]
struct Guide;
