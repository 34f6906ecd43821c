// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiving endpoint, on its own clock: passes arrivals to the receive half, reassembles frames, and sends
//! reports, feedback and requests.

mod changes;
mod rtcp_out;
mod rtp_in;
mod stream;

use crate::flow::datagram::Datagram;
use crate::flow::event_queue;
use crate::flow::rtcp_timer::{RtcpTimer, RtcpTiming};
use crate::flow::stream_info::StreamInfo;
use paceline::{Controller, Failure, FeedbackFormats, Receiver, Signals};
use paceline_units::{DataSize, Ecn, RandomStream, Rate, RemoteTime, StreamId, TimeDelta};
use paceline_wire::{ExtensionIds, Rtcp, WireError, is_rtcp, ntp, parse_compound};
use std::collections::VecDeque;
use stream::ReceiverStream;

/// The configuration of a [`MediaReceiver`].
pub struct ReceiverConfig {
    /// Header extension ids.
    pub extensions: ExtensionIds,
    /// The expected streams.
    pub streams: Vec<StreamInfo>,
    /// The time at which the receiver starts, on its own clock.
    pub start: RemoteTime,
    /// The receiver's SSRC in reports.
    pub ssrc: u32,
    /// Timing of receiver reports.
    pub rtcp: RtcpTiming,
    /// Whether lost video packets are requested by NACK.
    pub nack: bool,
    /// The formats of per-packet feedback that both ends support.
    pub feedback_formats: FeedbackFormats,
    /// Time between per-packet reports, and shortest time between messages of the receive half; `None`: as the controller
    /// requires.
    pub feedback_interval: Option<TimeDelta>,
}

/// An event of a [`MediaReceiver`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReceiverEvent {
    /// A frame was rendered.
    Frame {
        stream: StreamId,
        /// The RTP timestamp of the frame.
        timestamp: u32,
        /// The encoded size.
        size: DataSize,
        /// Number of frames that were given up since the previous one.
        dropped: u16,
    },
    /// A REMB was sent.
    Remb(Rate),
    /// The receive half emitted the signal with this index of its signal table.
    Signal(u8, f64),
}

/// A time that is always due.
const AT_ONCE: RemoteTime = RemoteTime::from_nanos(i64::MIN);

/// The receiving endpoint of a media flow.
pub struct MediaReceiver {
    extensions: ExtensionIds,
    ssrc: u32,
    streams: Vec<ReceiverStream>,
    core: Receiver,
    rtcp: RtcpTimer,
    next_report: RemoteTime,
    /// The first source of the next datagram of an unfinished report; 0 if there is none. See `source`.
    next_block: usize,
    /// The size of the datagrams of an unfinished report.
    reported: DataSize,
    /// The time from which messages may be sent.
    messages_due: RemoteTime,
    /// Shortest time between messages; `None`: as the receive half decides.
    message_interval: Option<TimeDelta>,
    nack: bool,
    events: VecDeque<ReceiverEvent>,
    malformed: [u32; WireError::COUNT],
    ignored: u32,
    /// The earliest time at which a call does something.
    wake: RemoteTime,
}

impl MediaReceiver {
    /// Creates a receiver that takes the receive half out of `controller`.
    pub fn new(config: ReceiverConfig, controller: &mut Controller, random: RandomStream, signals: Signals) -> Self {
        let mut rtcp = RtcpTimer::new(config.rtcp, random);
        let next_report = config.start + rtcp.next_interval(None);
        let ssrcs: Vec<u32> = config.streams.iter().flat_map(|info| [info.ssrc, info.rtx_ssrc]).collect();
        let media_ssrc = ssrcs.first().copied().unwrap_or(0);
        let feedback = (config.feedback_formats, config.feedback_interval);
        Self {
            extensions: config.extensions,
            ssrc: config.ssrc,
            streams: config.streams.into_iter().map(ReceiverStream::new).collect(),
            core: Receiver::for_ssrcs(controller, [config.ssrc, media_ssrc], ssrcs, feedback, signals),
            rtcp,
            next_report,
            next_block: 0,
            reported: DataSize::ZERO,
            messages_due: AT_ONCE,
            message_interval: config.feedback_interval,
            nack: config.nack,
            events: VecDeque::new(),
            malformed: [0; WireError::COUNT],
            ignored: 0,
            wake: next_report,
        }
    }

    /// Handles an incoming datagram. `bytes` are its real bytes, `size` is its size on the network, and `ecn` its ECN
    /// field. Malformed datagrams, and packets of unknown streams, are counted and ignored.
    pub fn handle_packet(&mut self, now: RemoteTime, bytes: &[u8], size: DataSize, ecn: Ecn) {
        let handled =
            if is_rtcp(bytes) { self.handle_rtcp(now, bytes) } else { self.handle_rtp(now, bytes, size, ecn) };
        if let Err(error) = handled {
            self.malformed[error.index()] += 1;
        }
        self.update_wake();
    }

    /// Handles the expiry of [`poll_timeout`](Self::poll_timeout).
    pub fn handle_timeout(&mut self, now: RemoteTime) {
        self.core.handle_timeout(now);
        for index in 0..self.streams.len() {
            self.render(now, index);
        }
        self.update_wake();
    }

    /// Writes the next datagram that is due at `now` into `out`. Call until it returns false: then nothing was written.
    pub fn poll_transmit(&mut self, now: RemoteTime, out: &mut Datagram) -> bool {
        if now < self.wake {
            return false;
        }
        let wrote = self.write_next(now, out);
        self.update_wake();
        wrote
    }

    /// Returns the next event, in order.
    #[inline(always)]
    pub fn poll_event(&mut self) -> Option<ReceiverEvent> {
        event_queue::poll_event(&mut self.events, self.core.signals(), ReceiverEvent::Signal)
    }

    /// Returns why the receive half failed; `None` if it has not. The flow has no receive half from then on, so the program ends
    /// it.
    #[inline]
    pub fn failure(&self) -> Option<&Failure> {
        self.core.failure()
    }

    /// Returns the next time at which [`handle_timeout`](Self::handle_timeout) and
    /// [`poll_transmit`](Self::poll_transmit) must be called.
    #[inline]
    pub fn poll_timeout(&self) -> Option<RemoteTime> {
        (self.wake != RemoteTime::MAX).then_some(self.wake)
    }

    /// Returns the numbers of malformed packets that arrived, by kind of error, and of well-formed packets of unknown
    /// streams that were ignored.
    pub fn rejected_packets(&self) -> (&[u32; WireError::COUNT], u32) {
        (&self.malformed, self.ignored)
    }

    fn update_wake(&mut self) {
        let mut wake = self.report_due().min(self.core.timeout_without_messages());
        for stream in &self.streams {
            if let Some(due) = stream.reassembly.poll_timeout() {
                wake = wake.min(due);
            }
            if self.nack
                && let Some(due) = stream.nack.poll_timeout()
            {
                wake = wake.min(due);
            }
        }
        self.wake = wake;
    }

    fn handle_rtcp(&mut self, now: RemoteTime, bytes: &[u8]) -> Result<(), WireError> {
        for packet in parse_compound(bytes)? {
            if let Rtcp::SenderReport { ssrc, ntp, .. } = packet {
                match self.streams.iter_mut().find(|s| s.info.ssrc == ssrc) {
                    Some(stream) => stream.last_sr = Some((ntp::middle(ntp), now)),
                    None => self.ignored += 1,
                }
            }
        }
        Ok(())
    }
}
