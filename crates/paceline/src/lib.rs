//! Congestion controllers for real-time media, as state machines without I/O, clock, threads, or allocation in steady
//! state. The object that runs in the simulator is the object that drives a socket.
//!
//! # Halves and decision
//!
//! A [`Controller`] consists of up to two halves. The [`SendHalf`] runs at the sender: it handles receiver reports,
//! per-packet feedback and the messages of the receive half, and returns a [`Decision`] for encoder and pacer. The
//! [`ReceiveHalf`], which only some controllers have, runs at the receiver: it handles packet arrivals and sends
//! messages such as REMB.
//!
//! The program passes each [`Event`] with the current time to [`SendHalf::handle_event`] and then reads
//! [`SendHalf::decision`]. At the receiver it calls `handle_*` and then [`ReceiveHalf::poll_message`]. Each half has a
//! timeout at the time that `poll_timeout` returns. The halves never read a clock.
//!
//! ```
//! use paceline::{Event, ReceiverReport, Registry, Setup, Signals};
//! use paceline_units::{Fraction, Rate, Time};
//!
//! let registry = Registry::standard();
//! let setup = Setup::new(Rate::from_kbps(300), Rate::from_kbps(50), Rate::from_kbps(2000));
//! let controller = registry.get("gcc-2016").unwrap().build(&setup, &[])?;
//! let mut send = controller.send.expect("gcc-2016 has a send half");
//!
//! // A receiver report with 20 % loss, 1 s into the call: by equation 5 of the paper the rate decreases by 10 %.
//! let report = ReceiverReport { fraction_lost: Fraction::new(0.2).unwrap() };
//! send.handle_event(Time::from_secs(1), &Event::Report(&report), &mut Signals::disabled());
//! assert_eq!(send.decision().target, Rate::from_kbps(270));
//! # Ok::<(), paceline::ConfigError>(())
//! ```
//!
//! # Guard
//!
//! [`Config::build`] wraps every send half that controls its rate in a [`Guard`]. If no feedback arrives for 3 s while packets are
//! sent, the guard caps the target at half of its value, and halves the cap every second, down to the minimum. When feedback
//! resumes, the cap doubles every second until it exceeds the controller's target.
//!
//! # Coupling
//!
//! Flows of one sender that share a bottleneck can share one rate by priority: a [`FlowStateExchange`] (RFC 8699) divides it.
//! [`Entry::couples`] says which controllers support this.
//!
//! # What else is here
//!
//! [`History`] joins feedback with sent packets, [`Pacer`] spreads packets over time, [`ResendBudget`] and
//! [`FecDemand`] bound loss protection. [`gcc`], [`nada`] and [`scream`] contain the controllers, [`blocks`] the
//! parts that several of them share. Each controller has a [`Config`], whose numbers the [`FieldVisitor`] lists and
//! changes; [`Signals`] expose its internal variables.

#![forbid(unsafe_code)]

extern crate alloc;

pub mod blocks;
mod controller;
mod decision;
pub mod drc;
mod entry;
mod event;
mod failure;
mod fair_queue;
mod fields;
mod fixed;
mod fse;
pub mod gcc;
pub mod googcc;
mod guard;
mod history;
mod message;
pub mod nada;
mod pacer;
mod packet;
mod protection;
mod registry;
pub mod scream;
mod signals;
#[cfg(test)]
mod testing;

pub use paceline_units as units;

pub use controller::{Controller, FeedbackRequirement, ReceiveHalf, ReceiveSnapshot, SendHalf, SendSnapshot};
pub use decision::{Decision, ProbeCluster, ProbeId, Window};
pub use entry::{Config, ConfigError, Entry, Preset, Setup, SignalTables};
pub use event::{Bounds, Event, Feedback, QueuedFrame, ReceiverReport, RoundTrip, StreamState};
pub use failure::Failure;
pub use fields::{Block, FieldEntry, FieldInfo, FieldSources, FieldVisitor};
pub use fse::{Coupling, FlowStateExchange};
pub use guard::Guard;
pub use history::{Flight, History};
pub use message::{AppMessage, GradientReport, Message, NadaMode, NadaReport};
pub use pacer::{Pacer, PacketPriority};
pub use packet::{Arrival, MediaKind, PacketKind, PacketReport, SentPacket};
pub use protection::{
    FEC_SHARE_MAX, FecDemand, FecScheme, Protection, RESEND_SHARE, ResendBudget, ResendRule, TargetSplit, split_target,
};
pub use registry::Registry;
pub use signals::{SignalName, SignalShape, SignalSpec, Signals};

/// The guide's example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../library.md")]
struct Guide;
