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
//! let report = ReceiverReport::new(Fraction::new(0.2).unwrap());
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
//! [`FecDemand`] bound loss protection. Each controller has a [`Config`], such as [`GoogCcConfig`]. Its numbers have names
//! and ranges, which [`Entry::fields`] lists; [`Entry::build`] and [`Entry::preset`] set them. [`Signals`] expose the
//! internal variables of a controller.
//!
//! The algorithms themselves are private. Their parts are public only with the feature `unstable-internals`, for which
//! there is no promise of stability.
//!
//! # Without the standard library
//!
//! The crate needs only `core` and `alloc`. The default feature `std` adds `Clock` to [`units`], which converts between
//! [`Time`](units::Time) and `std::time::Instant`.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
#[macro_use]
extern crate std;

mod blocks;
mod controller;
mod decision;
mod drc;
mod entry;
mod event;
mod failure;
mod fair_queue;
mod fields;
mod fixed;
mod fse;
mod gcc;
mod googcc;
mod guard;
mod history;
mod message;
mod nada;
mod pacer;
mod packet;
mod protection;
mod receiver;
mod registry;
mod report;
#[cfg(feature = "rtp")]
pub mod rtcp_message;
mod scream;
mod sender;
mod setters;
mod signals;
#[cfg(test)]
mod testing;

pub use paceline_units as units;

use paceline_units::DataSize;

/// Size of the IPv4 and UDP headers of every datagram. Every rate in Paceline includes them.
pub const IP_UDP_HEADERS: DataSize = DataSize::from_bytes(20 + 8);

/// Parts of the controllers, for the tests and the laboratory of Paceline. They carry no promise of stability: any
/// version may change or remove them.
#[cfg(feature = "unstable-internals")]
pub mod internals {
    /// The blocks that several controllers share.
    pub mod blocks {
        pub use crate::blocks::*;
    }
    /// The parts of Google Congestion Control.
    pub mod gcc {
        pub use crate::gcc::*;
    }
    /// The parts of GoogCC.
    pub mod googcc {
        pub use crate::googcc::*;
    }
    /// The parts of NADA.
    pub mod nada {
        pub use crate::nada::*;
    }
    /// The parts of SCReAM.
    pub mod scream {
        pub use crate::scream::*;
    }
}

pub use blocks::{ApplicationLimit, EcnValidation, GroupDelta, UnusedRate};
pub use controller::{Controller, FeedbackRequirement, Needs, ReceiveHalf, ReceiveSnapshot, SendHalf, SendSnapshot};
pub use decision::{Decision, ProbeCluster, ProbeId, Window};
pub use drc::DrcConfig;
pub use entry::{Config, ConfigError, Entry, Preset, Setup, SignalTables};
pub use event::{Bounds, Event, Feedback, QueuedFrame, ReceiverReport, RoundTrip, StreamState};
pub use failure::Failure;
pub use fields::{Block, FieldEntry, FieldInfo, FieldSources, FieldVisitor};
pub use fse::{Coupling, FlowStateExchange};
pub use gcc::{
    gcc_draft_2015::GccDraft2015Config, gcc_med16::GccMed16Config, gcc_remb_2018::GccRemb2018Config,
    gcc_tfb::GccTfbConfig, gcc2013::Gcc2013Config, gcc2015::Gcc2015Config, gcc2016::Gcc2016Config,
};
pub use googcc::GoogCcConfig;
pub use guard::Guard;
pub use history::{Flight, History};
pub use message::{AppMessage, GradientReport, Message, MessageKind, NadaMode, NadaReport};
pub use nada::{nada2015::Nada2015Config, rfc8698::NadaConfig};
pub use pacer::{Pacer, PacketPriority};
pub use packet::{Arrival, MediaKind, PacketKind, PacketReport, SentPacket};
pub use protection::{
    FEC_SHARE_MAX, FecDemand, FecScheme, Protection, RESEND_SHARE, ResendBudget, ResendRule, TargetSplit, split_target,
};
#[cfg(feature = "rtp")]
pub use receiver::{FeedbackBuilder, RtpArrival, SendTimeUnwrapper};
pub use receiver::{FeedbackFormat, FeedbackFormats, Receiver};
pub use registry::Registry;
pub use report::{PacketArrival, Reception, Report};
pub use scream::{ScreamConfig, v2::ScreamV2Config};
#[cfg(feature = "rtp")]
pub use sender::ReportStatus;
pub use sender::{
    Admission, FrameDropped, NewFrame, Outgoing, PacketHead, Release, Sender, SenderConfig, SenderEvent, StreamConfig,
    Transmit, rtp_timestamp,
};
pub use signals::{SignalName, SignalShape, SignalSpec, Signals};

/// The guide's example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../library.md")]
struct Guide;
