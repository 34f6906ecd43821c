//! Sans-IO endpoints of a flow: a media sender and a media receiver that exchange real RTP and RTCP bytes.
//!
//! A flow is one transport: one history, one pacer, one send half, one or more streams. Payload bytes are a length,
//! not a buffer: a [`Datagram`] holds the header bytes that exist and counts the rest.
//!
//! ```text
//!  Source -> packets -> Pacer -> RTP bytes --network--> RTP bytes -> ReceiveHalf
//!     ^       and FEC     ^                                       -> Repair -> Reassembly -> frames
//!     '---- Decision ----'                                        -> NackList
//!              ^                                                      |
//!          SendHalf <- History <- RTCP bytes <--network-- RTCP bytes <-'
//! ```
//!
//! Both endpoints keep one contract: after each `handle_*`, drain `poll_transmit` and `poll_event`, then ask
//! `poll_timeout`. Times never go back.

mod allocation;
mod cadence;
mod ccfb;
mod datagram;
mod feedback;
mod messages;
mod nack;
mod padding;
mod reassembly;
mod receiver;
mod repair;
mod resend;
mod rtcp_timer;
mod sender;
pub mod source;
mod streams;
pub mod tcp;

pub use datagram::{Datagram, FramePiece, IP_UDP_HEADERS, MAX_RTP_PACKET, MEDIA_HEADERS};
pub use receiver::{MediaReceiver, ReceiverConfig, ReceiverEvent};
pub use rtcp_timer::RtcpTiming;
pub use sender::{MediaSender, SenderConfig, SenderEvent, Sent, StreamConfig, rtp_timestamp};
pub use streams::{MediaKind, StreamNames};
