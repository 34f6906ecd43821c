// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sans-IO endpoints of flows: a media sender and a media receiver that exchange encoded RTP and RTCP, models of TCP
//! for cross traffic ([`tcp`]), and models of encoders ([`source`]).
//!
//! A media flow is one transport: one history of sent packets, one pacer, one send half, and one or more streams. Media
//! payload is a length, not a buffer: a [`Datagram`] holds the real bytes of its headers and counts the rest.
//!
//! ```text
//!  Source -> packets -> Pacer -> RTP bytes --network--> RTP bytes -> ReceiveHalf
//!     ^       and FEC     ^                                       -> FecDecoder -> Reassembly -> frames
//!     '---- Decision ----'                                        -> NackList
//!              ^                                                      |
//!          SendHalf <- History <- RTCP bytes <--network-- RTCP bytes <-'
//! ```
//!
//! # How to drive an endpoint
//!
//! An endpoint performs no I/O and reads no clock. The caller passes the time to every method; times must not decrease.
//!
//! * `handle_*` methods are inputs: `handle_packet` or `handle_segment` for a received packet, `handle_timeout` for an
//!   expired timeout.
//! * After each input, call `poll_transmit` until it returns nothing and send what it returns, then call `poll_event`
//!   until it returns `None`.
//! * Then call `poll_timeout`. It returns the next time at which `handle_timeout` and `poll_transmit` must be called,
//!   or `None` if the endpoint waits for input only.
//!
//! # Example
//!
//! A sender with a constant rate and a receiver, connected by a path with a delay of 20 ms in one direction:
//!
//! ```
//! use paceline::{Protection, Registry, Setup, Signals};
//! use paceline_netsim::flow::source::{Ideal, VideoConfig};
//! use paceline_netsim::flow::{
//!     Datagram, MediaKind, MediaReceiver, MediaSender, PACKET_SIZE_DEFAULT, ReceiverConfig, ReceiverEvent, RtcpTiming,
//!     SenderConfig, StreamConfig, StreamInfo,
//! };
//! use paceline_units::{Rate, RemoteTime, StreamId, RandomStreams, Time, TimeDelta};
//! use std::collections::VecDeque;
//!
//! let kbps = Rate::from_kbps;
//! let setup = Setup::new(kbps(500), kbps(500), kbps(500));
//! let mut controller = Registry::standard().get("fixed").unwrap().build(&setup, &[])?;
//! let rtcp = RtcpTiming { min_interval: TimeDelta::from_secs(1), session: kbps(1000) };
//! let info = StreamInfo { id: StreamId(0), kind: MediaKind::Video, ssrc: 1, rtx_ssrc: 2, clock_rate: 90_000 };
//! let camera = VideoConfig { fps: 30.0, min: kbps(100), max: kbps(500), start: kbps(500) };
//! let source = Box::new(Ideal::new(camera, Time::ZERO)?);
//! let stream = StreamConfig { info, source, priority: 1.0, suspends: false, first_sequence: 0, timestamp_offset: 0 };
//! let sender = SenderConfig {
//!     extensions: Default::default(),
//!     streams: vec![stream],
//!     start: Time::ZERO,
//!     packet_size: PACKET_SIZE_DEFAULT,
//!     packet_time: TimeDelta::ZERO,
//!     rtcp,
//!     pacer_limit: TimeDelta::from_secs(2),
//!     retransmit: true,
//!     protection: Protection::default(),
//!     feedback_formats: Default::default(),
//!     ntp_origin: 3_900_000_000_000_000_000,
//! };
//! let receiver = ReceiverConfig {
//!     extensions: Default::default(),
//!     streams: vec![info],
//!     start: RemoteTime::ZERO,
//!     ssrc: 3,
//!     rtcp,
//!     nack: true,
//!     feedback_formats: Default::default(),
//!     feedback_interval: None,
//! };
//! let random = RandomStreams::new(1);
//! let mut sender = MediaSender::new(sender, &mut controller, random.stream("sender"), Signals::disabled());
//! let mut receiver = MediaReceiver::new(receiver, &mut controller, random.stream("receiver"), Signals::disabled());
//!
//! let delay = TimeDelta::from_millis(20);
//! let (mut path, mut out, mut frames) = (VecDeque::new(), Datagram::new(), 0);
//! while let Some(now) = sender.poll_timeout().filter(|due| *due < Time::from_secs(2)) {
//!     sender.handle_timeout(now);
//!     while sender.poll_transmit(now, &mut out).is_some() {
//!         path.push_back((now + delay, out.clone()));
//!     }
//!     while sender.poll_event().is_some() {}
//!     while path.front().is_some_and(|(arrival, _)| *arrival <= now) {
//!         let Some((arrival, datagram)) = path.pop_front() else { break };
//!         // The receiver has a clock of its own.
//!         let arrival = RemoteTime::from_nanos(arrival.as_nanos());
//!         receiver.handle_packet(arrival, datagram.bytes(), datagram.size(), datagram.ecn);
//!         while receiver.poll_transmit(arrival, &mut out) {
//!             sender.handle_packet(now, out.bytes());
//!         }
//!         while let Some(event) = receiver.poll_event() {
//!             frames += u32::from(matches!(event, ReceiverEvent::Frame { .. }));
//!         }
//!     }
//! }
//! assert!((55..=60).contains(&frames), "30 frames per second");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod datagram;
mod event_queue;
mod fec_decoder;
mod nack;
pub mod parameter;
mod reassembly;
mod receiver;
mod retransmission_store;
mod rtcp_timer;
mod sender;
pub mod source;
mod stream_info;
pub mod tcp;

pub use datagram::{Datagram, FramePiece, MEDIA_HEADERS, PACKET_SIZE_DEFAULT, PACKET_SIZE_RANGE};
pub use paceline::{FeedbackFormat, FeedbackFormats, IP_UDP_HEADERS, rtp_timestamp};
pub use receiver::{MediaReceiver, ReceiverConfig, ReceiverEvent};
pub use rtcp_timer::RtcpTiming;
pub use sender::{DatagramKind, MediaSender, SenderConfig, SenderEvent, StreamConfig};
pub use stream_info::{MediaKind, StreamInfo};
