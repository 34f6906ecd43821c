//! TCP: the other traffic that a media flow meets. A sender with NewReno's or CUBIC's window, or BBR's model of the path,
//! and recovery by selective acknowledgments; and the receiver that acknowledges.
//!
//! Segments are typed ([`Segment`]) and carry lengths, not bytes. Both ends keep the contract of the media endpoints:
//! after each `handle_*`, drain `poll_transmit` and `poll_event`, then ask `poll_timeout`. Times never go back.
//!
//! What is modelled, from which source, and what is left out: `docs/tcp.md`.

pub mod congestion;
mod delivery;
mod pacing;
mod profile;
mod receiver;
mod recovery;
mod rto;
mod scoreboard;
mod segment;
mod sender;
mod workload;

pub use congestion::{CONGESTION, congestion_named};
pub use profile::{Profile, Reduction, RtoRule};
pub use receiver::{TcpReceiver, TcpReceiverEvent};
pub use segment::{Flags, IP_TCP_HEADERS, SACK_BLOCKS_MAX, SackBlocks, Segment, TIMESTAMP_OPTION};
pub use sender::{TcpSender, TcpSenderEvent, TcpSent};
pub use workload::{Workload, pause, transfer_size};

use paceline_units::DataSize;

/// What a sender and a receiver are made with; both get the same.
#[derive(Clone, Copy, Debug)]
pub struct TcpConfig {
    /// A name of [`CONGESTION`]; [`congestion_named`] finds it.
    pub congestion: &'static str,
    /// By the RFCs, or as in Linux.
    pub profile: Profile,
    /// Bytes of data in a full segment (SMSS).
    pub segment: DataSize,
    /// Most bytes in flight that the receiver allows; `None`: any number.
    pub receive_window: Option<DataSize>,
}

/// Data in a full segment, with which a packet has 1500 bytes.
const SEGMENT_DEFAULT: DataSize = DataSize::from_bytes(1448);

impl Default for TcpConfig {
    fn default() -> Self {
        Self { congestion: "cubic", profile: Profile::LINUX, segment: SEGMENT_DEFAULT, receive_window: None }
    }
}
