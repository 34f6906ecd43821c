// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP models for cross traffic: a sender with NewReno, CUBIC, DCTCP, Prague or BBR congestion control and SACK-based loss
//! recovery, and a receiver.
//!
//! Segments are typed ([`Segment`]) and carry lengths, not bytes. Both endpoints are driven like the media endpoints,
//! as described on the [crate page](crate).
//!
//! `docs/explanation/tcp.md` lists the modelled parts, with sources, and the omissions.

pub mod congestion;
mod delivery_rate;
mod ecn;
mod profile;
mod receiver;
mod recovery;
mod rtt_estimator;
mod scoreboard;
mod segment;
mod sender;
mod workload;

pub use congestion::{CONGESTION, find_congestion};
pub use ecn::TcpEcn;
pub use profile::{Profile, RtoRule, WindowReduction};
pub use receiver::{TcpReceiver, TcpReceiverEvent};
pub use segment::{Flags, IP_TCP_HEADERS, SACK_BLOCKS_MAX, SackBlocks, Segment, TIMESTAMP_OPTION};
pub use sender::{SegmentKind, TcpSender, TcpSenderEvent};
pub use workload::{Bursts, Workload, draw_pause, draw_transfer_size};

use paceline_units::DataSize;

/// The configuration of a TCP sender and its receiver.
#[derive(Clone, Copy, Debug)]
pub struct TcpConfig {
    /// The congestion control algorithm, a name of [`CONGESTION`] as returned by [`find_congestion`].
    pub congestion: &'static str,
    /// Behaviour according to the RFCs or as in Linux.
    pub profile: Profile,
    /// Bytes of data in a full segment (SMSS).
    pub segment: DataSize,
    /// The receive window: the most bytes in flight; `None`: [`RECEIVE_WINDOW_DEFAULT`], and on the testbed what the kernel
    /// chooses.
    pub receive_window: Option<DataSize>,
    /// The use of ECN, which must [fit](TcpEcn::fits) the congestion control.
    pub ecn: TcpEcn,
}

/// The window that a receiver grows to by default: half of 6 MiB, the largest receive buffer of Linux up to 6.14 (`tcp_rmem`), of which
/// `tcp_adv_win_scale = 1` keeps half for overhead (Documentation/networking/ip-sysctl).
pub const RECEIVE_WINDOW_DEFAULT: DataSize = DataSize::from_bytes(3 << 20);

impl TcpConfig {
    /// Returns the most bytes in flight.
    #[inline]
    pub fn window(&self) -> DataSize {
        self.receive_window.unwrap_or(RECEIVE_WINDOW_DEFAULT)
    }

    /// Returns the largest growth of the window per ACK in slow start; `None`: by the acknowledged data.
    #[inline]
    fn slow_start_limit(&self) -> Option<DataSize> {
        let bytes = |segments| DataSize::from_bytes(u64::from(segments) * self.segment.as_bytes());
        self.profile.slow_start_limit.map(bytes)
    }

    /// Returns the size of the IP packet of a full segment.
    pub fn full_packet(&self) -> DataSize {
        self.segment + FULL_HEADERS
    }

    /// Returns the largest segment, at most the default, whose packet fits an MTU; zero if none does.
    pub fn segment_for(mtu: DataSize) -> DataSize {
        SEGMENT_DEFAULT.min(mtu.saturating_sub(FULL_HEADERS))
    }
}

/// Headers of a full segment: IP, TCP and its timestamps.
const FULL_HEADERS: DataSize = DataSize::from_bytes(IP_TCP_HEADERS.as_bytes() + TIMESTAMP_OPTION.as_bytes());

/// Data in a full segment, which makes a packet of 1500 bytes.
const SEGMENT_DEFAULT: DataSize = DataSize::from_bytes(1448);

impl Default for TcpConfig {
    fn default() -> Self {
        Self {
            congestion: "cubic",
            profile: Profile::LINUX,
            segment: SEGMENT_DEFAULT,
            receive_window: None,
            ecn: TcpEcn::Off,
        }
    }
}
