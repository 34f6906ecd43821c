// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sending endpoint: sources, packetization, retransmissions, forward error correction and sender reports around the
//! [`Sender`] of the library, which has the pacer, the history, the checks of reports and the controller.
//!
//! ```text
//! sources ─▶ packetize ─▶ core: pacer, probes, padding, window ─▶ transmit ─▶ datagrams
//!    ▲                      │                                        ▲
//!    └── apply_decision ◀───┴──────── core: history, reports ◀── rtcp_in ◀── datagrams
//! ```

mod apply_decision;
mod config;
mod fec_encoder;
mod network;
mod packetize;
mod repair;
mod rtcp_in;
mod sender_reports;
mod stream;
mod stream_changes;
mod transmit;

use crate::flow::datagram::{Datagram, PACKET_SIZE_RANGE};
use crate::flow::retransmission_store::MediaPacket;
use crate::flow::rtcp_timer::RtcpTimer;
use paceline::{Controller, Decision, Failure, Sender, Setup, Signals};
use paceline_units::{DataSize, RandomStream, Rate, Time, TimeDelta};
use paceline_wire::{ExtensionIds, WireError};
use repair::Repair;
use sender_reports::SenderReports;
use stream::SenderStream;
use transmit::PADDING_SIZE;

pub use config::{DatagramKind, SenderConfig, StreamConfig};
pub use paceline::SenderEvent;

#[derive(Clone, Copy, Debug)]
struct QueuedPacket {
    stream: u8,
    kind: QueuedKind,
    packet: MediaPacket,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum QueuedKind {
    Media,
    Retransmission,
    /// A packet of the past that fills a probe.
    Filler,
    /// The next FEC packet of the stream's encoder. Only `sequence` and `timestamp` of `packet` are valid.
    Fec,
}

/// The sending endpoint of a media flow.
pub struct MediaSender {
    extensions: ExtensionIds,
    packet_size: DataSize,
    core: Sender<QueuedPacket>,
    /// The streams, at the same places as in the core.
    streams: Vec<SenderStream>,
    reports: SenderReports,
    repair: Repair,
    /// Target, padding and retransmission rate of the last allocation.
    allocated_for: Option<[Rate; 3]>,
    /// The earliest time at which a call does something.
    wake: Time,
    packet_time: TimeDelta,
    /// The time at which the host has sent the last packet.
    host_idle: Time,
}

impl MediaSender {
    /// Creates a sender that takes the send half out of `controller`. The receive half stays there for the receiver.
    ///
    /// # Panics
    /// `packet_size` is outside [`PACKET_SIZE_RANGE`].
    pub fn new(config: SenderConfig, controller: &mut Controller, random: RandomStream, signals: Signals) -> Self {
        assert!(PACKET_SIZE_RANGE.contains(&config.packet_size), "packet size {}", config.packet_size);
        let start = config.start;
        let most = config.streams.iter().map(|s| s.source.range().1).sum::<Rate>();
        let format = controller.feedback.and_then(|wanted| config.feedback_formats.choose(&wanted));
        let mut core_config = paceline::SenderConfig::new(&Setup::new(most, most, most));
        // The limits of the setup are those of the sources; only those that change during a call bound the target.
        (core_config.bounds, core_config.start, core_config.per_packet) = (None, start, Some(format.is_some()));
        (core_config.queue_limit, core_config.padding_size) = (config.pacer_limit, PADDING_SIZE);
        let mut core = Sender::new(&core_config, controller, signals);
        core.set_feedback_format(format);
        core.set_ntp_origin(config.ntp_origin);
        let repair = Repair::new(config.retransmit, config.protection, start);
        let fec = repair.has_fec();
        let mut sender = Self {
            extensions: config.extensions,
            packet_size: config.packet_size,
            core,
            streams: Vec::new(),
            reports: SenderReports::new(RtcpTimer::new(config.rtcp, random), start, config.ntp_origin),
            repair,
            allocated_for: None,
            wake: start,
            packet_time: config.packet_time,
            host_idle: Time::ZERO,
        };
        for stream in config.streams {
            sender.add_to_core(SenderStream::new(stream, fec, config.packet_size));
        }
        sender.follow_core(start);
        sender.update_wake();
        sender
    }

    /// Handles the expiry of [`poll_timeout`](Self::poll_timeout).
    pub fn handle_timeout(&mut self, now: Time) {
        let mut is_changed = self.core.handle_timeout(now);
        if is_changed {
            self.follow_core(now);
            if self.calculated_rate().is_some() {
                // Frames that are due now get the flow's share of this rate.
                self.update_wake();
                return;
            }
        }
        for place in 0..self.streams.len() {
            while self.streams[place].next_frame <= now {
                self.handle_frame_due(now, place);
                is_changed = true;
            }
        }
        // Mostly the next packet of the pacer is due, which is none of these.
        if is_changed {
            self.update_wake();
        }
    }

    /// Writes the next datagram that may be sent at `now` into `out` and returns its kind. Call until it returns
    /// `None`.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> Option<DatagramKind> {
        if now < self.wake {
            return None;
        }
        let sent = if now < self.host_idle { None } else { self.write_next(now, out) };
        if sent.is_some() {
            self.host_idle = now + self.packet_time;
        }
        self.update_wake();
        sent
    }

    /// Returns the next event, in order.
    #[inline(always)]
    pub fn poll_event(&mut self) -> Option<SenderEvent> {
        loop {
            match self.core.poll_event()? {
                // The sources have them already.
                SenderEvent::StreamRates | SenderEvent::KeyFrameRequested(_) => {}
                event => return Some(event),
            }
        }
    }

    /// Returns why the send half failed; `None` if it has not. The flow has no controller from then on, so the program ends it.
    #[inline]
    pub fn failure(&self) -> Option<&Failure> {
        self.core.failure()
    }

    /// Returns the next time at which [`handle_timeout`](Self::handle_timeout) and
    /// [`poll_transmit`](Self::poll_transmit) must be called.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        (self.wake != Time::MAX).then_some(self.wake)
    }

    /// Returns the decision in force.
    pub fn decision(&self) -> &Decision {
        self.core.decision()
    }

    /// Returns whether the application limits the flow: it has no backlog and sends less than the target allows.
    pub fn is_application_limited(&self) -> bool {
        self.core.is_application_limited()
    }

    /// Returns the numbers of malformed packets that arrived, by kind of error, and of well-formed ones that were ignored
    /// because they refer to nothing that this sender sent.
    pub fn rejected_packets(&self) -> (&[u32; WireError::COUNT], u32) {
        self.core.rejected_packets()
    }

    /// Follows the core after a call outside the packet path.
    fn finish(&mut self, now: Time) {
        self.follow_core(now);
        self.update_wake();
    }

    fn update_wake(&mut self) {
        let due = self.reports.due().min(self.core.poll_timeout().unwrap_or(Time::MAX));
        let mut wake = due.max(self.host_idle);
        for stream in &self.streams {
            wake = wake.min(stream.next_frame);
        }
        self.wake = wake;
    }
}
