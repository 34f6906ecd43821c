// SPDX-License-Identifier: MIT OR Apache-2.0
#![doc = include_str!("../library.md")]
//!
//! # Crate features
//!
//! The crate needs only `core` and `alloc`. The default feature `std` adds `Clock` to [`units`], which converts between
//! [`Time`](units::Time) and `std::time::Instant`. `rtp` adds RTCP and the numbers of RTP packets to [`Sender`] and [`Receiver`].
//! The algorithms themselves are private. Their parts and the fields of their configs are public only with the feature
//! `unstable-internals`, for which there is no promise of stability.
//!
//! # For authors of controllers
//!
//! A [`Controller`] consists of up to two halves. The [`SendHalf`] runs at the sender: it handles receiver reports,
//! per-packet feedback and the messages of the receive half, and returns a [`Decision`] for encoder and pacer. The
//! [`ReceiveHalf`], which only some controllers have, runs at the receiver: it handles packet arrivals and sends
//! messages such as REMB. [`params!`](crate::params) declares the parameters of a [`Config`], [`signal_names!`](crate::signal_names) the
//! internal variables, which [`Signals`] carry. [`Config::build`] wraps every send half that controls its rate in a [`Guard`].
//!
//! [`History`] joins feedback with sent packets, [`Pacer`] spreads packets over time, [`ResendBudget`] and
//! [`FecDemand`] bound loss protection. A [`FlowStateExchange`] (RFC 8699) divides one rate among flows of one sender that share a
//! bottleneck; [`Entry::couples`] says which controllers support this.

#![cfg_attr(docsrs, feature(doc_cfg))]
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
mod params;
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

/// Size of the IPv4 and UDP headers of every datagram, 28 bytes. Every rate in Paceline includes them, also on IPv6.
pub const IP_UDP_HEADERS: DataSize = DataSize::from_bytes(20 + 8);

/// Parts of the controllers, for the tests and the laboratory of Paceline. They carry no promise of stability: any
/// version may change or remove them.
#[cfg(feature = "unstable-internals")]
#[doc(hidden)]
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

pub use controller::{Controller, FeedbackRequirement, Needs, ReceiveHalf, ReceiveSnapshot, SendHalf, SendSnapshot};
pub use decision::{Decision, ProbeCluster, ProbeId, Window};
pub use drc::DrcConfig;
pub use entry::{Config, ConfigError, Entry, Preset, Setup, SignalTables};
pub use event::{Bounds, Event, Feedback, QueuedFrame, ReceiverReport, RoundTrip, StreamState};
pub use failure::Failure;
pub use fields::{Declaration, FieldInfo, FieldVisitor, Offer, ParameterValue, Parameters};
pub use fse::{Coupling, FlowStateExchange};
pub use gcc::{
    gcc_draft_2015::GccDraft2015Config, gcc_med16::GccMed16Config, gcc_remb_2018::GccRemb2018Config,
    gcc_tfb::GccTfbConfig, gcc2013::Gcc2013Config, gcc2015::Gcc2015Config, gcc2016::Gcc2016Config,
};
pub use googcc::GoogCcConfig;
pub use guard::Guard;
pub use history::{Flight, History};
pub use message::{AppMessage, Message, MessageKind, NadaMode, NadaReport};
pub use nada::{
    nada2015::Nada2015Config,
    rfc8698::{NadaConfig, NadaSenderConfig},
};
pub use pacer::{Pacer, PacketPriority};
pub use packet::{Arrival, MediaKind, PacketKind, PacketReport, SentPacket};
pub use protection::{
    FEC_SHARE_MAX, FecDemand, FecScheme, Protection, RESEND_SHARE, ResendBudget, ResendRule, TargetSplit, split_target,
};
#[cfg(feature = "rtp")]
pub use receiver::RtpArrival;
pub use receiver::{FeedbackFormat, FeedbackFormats, Receiver};
pub use registry::Registry;
pub use report::{PacketArrival, Reception, Report};
pub use scream::{ScreamConfig, libwebrtc::ScreamLibwebrtcConfig, v2::ScreamV2Config};
#[cfg(feature = "rtp")]
pub use sender::ReportStatus;
pub use sender::{
    Admission, FrameDropped, NewFrame, Outgoing, PacketHead, Release, Sender, SenderConfig, SenderEvent, StreamConfig,
    Transmit, rtp_timestamp,
};
pub use signals::{SignalName, SignalShape, SignalSpec, Signals};
