//! One flow's receiver: the receive half of a controller, if it has one, and the per-packet feedback that the send half needs.

use crate::sender::controller;
use crate::signals::LastSignals;
use crate::status::{Failure, PACELINE_ERROR_BUFFER, PACELINE_ERROR_CONTROLLER};
use paceline::{Arrival, Message, ReceiveHalf, Setup};
use paceline_flow::{FeedbackBuilder, FeedbackFormats, SendTimeUnwrapper, messages};
use paceline_units::RemoteTime;
use paceline_wire::{AbsSendTime, CompoundWriter, RtpHeader};
use std::collections::VecDeque;

/// The most messages that wait to be sent.
const MESSAGES_MAX: usize = 64;
/// The most SSRCs in RFC 8888 reports: those of media, retransmissions and padding, and some that a flow changes to.
pub(crate) const SSRCS_MAX: usize = 8;
/// The least buffer: an Ethernet packet without IPv6 and UDP headers, rounded down.
pub(crate) const BUFFER_MIN: usize = 1200;

#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    half: Option<Box<dyn ReceiveHalf>>,
    pub signals: LastSignals,
    feedback: Option<FeedbackBuilder>,
    /// The SSRCs in RFC 8888 reports, the oldest first.
    ssrcs: VecDeque<u32>,
    messages: VecDeque<Message>,
    own_ssrc: u32,
    media_ssrc: u32,
    send_times: SendTimeUnwrapper,
    now: RemoteTime,
}

/// A packet that arrived: what its RTP header states, and its size and ECN field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    /// What a receive half sees, without the send time.
    pub arrival: Arrival,
    pub ssrc: u32,
    /// The transport-wide number.
    pub transport: Option<u16>,
    pub sent: Option<AbsSendTime>,
}

impl Receiver {
    pub fn new(
        name: &str,
        setup: &Setup,
        settings: &[(String, f64)],
        [own_ssrc, media_ssrc]: [u32; 2],
    ) -> Result<Self, Failure> {
        let (controller, (_, signals)) = controller(name, setup, settings)?;
        if controller.receive.is_none() && controller.feedback.is_none() {
            return Err((PACELINE_ERROR_CONTROLLER, format!("`{name}` has no half at the receiver and no feedback")));
        }
        let feedback = controller.feedback.and_then(|wanted| {
            let format = FeedbackFormats::default().choose(&wanted)?;
            Some(FeedbackBuilder::new(format, &wanted, [media_ssrc].into_iter()))
        });
        Ok(Self {
            half: controller.receive,
            signals: LastSignals::new(signals),
            feedback,
            ssrcs: VecDeque::from([media_ssrc]),
            messages: VecDeque::new(),
            own_ssrc,
            media_ssrc,
            send_times: SendTimeUnwrapper::default(),
            now: RemoteTime::ZERO,
        })
    }

    fn at(&mut self, now: RemoteTime) -> RemoteTime {
        self.now = self.now.max(now);
        self.now
    }

    pub fn media_ssrc(&self) -> u32 {
        self.media_ssrc
    }

    /// Handles a packet.
    pub fn handle_packet(&mut self, now: RemoteTime, packet: Received) {
        let now = self.at(now);
        let Received { mut arrival, ssrc, transport, sent } = packet;
        arrival.sent = sent.map(|stamp| self.send_times.unwrap(now, stamp));
        if let Some(feedback) = &mut self.feedback {
            if !self.ssrcs.contains(&ssrc) {
                if self.ssrcs.len() == SSRCS_MAX {
                    feedback.remove_ssrcs(self.ssrcs.pop_front().as_slice());
                }
                self.ssrcs.push_back(ssrc);
                feedback.add_ssrcs(&[ssrc]);
            }
            let header = RtpHeader {
                sequence: arrival.sequence,
                timestamp: arrival.timestamp,
                ssrc,
                abs_send_time: sent,
                transport_sequence: transport,
                ..RtpHeader::default()
            };
            feedback.handle_packet(now, &header, arrival.ecn, arrival.size);
        }
        if let Some(half) = &mut self.half {
            half.handle_arrival(now, &arrival, self.signals.collector());
        }
        self.collect(now);
    }

    /// Takes the signals and the messages of the half.
    fn collect(&mut self, now: RemoteTime) {
        self.signals.update();
        let Some(half) = &mut self.half else { return };
        while let Some(message) = half.poll_message(now) {
            self.messages.retain(|older| !messages::replaces(&message, older));
            if self.messages.len() == MESSAGES_MAX {
                self.messages.pop_front();
            }
            self.messages.push_back(message);
        }
    }

    pub fn handle_timeout(&mut self, now: RemoteTime) {
        let now = self.at(now);
        if let Some(half) = &mut self.half
            && half.poll_timeout().is_some_and(|due| due <= now)
        {
            half.handle_timeout(now, self.signals.collector());
        }
        self.collect(now);
    }

    pub fn next_timeout(&self) -> Option<RemoteTime> {
        let half = self.half.as_ref().and_then(|half| half.poll_timeout());
        let report = self.feedback.as_ref().and_then(FeedbackBuilder::poll_timeout);
        let message = (!self.messages.is_empty()).then_some(self.now);
        [half, report, message].into_iter().flatten().min()
    }

    /// Writes the next RTCP compound: messages, or a report on packets if no message waits. Returns its length, or `None` if
    /// nothing is due.
    pub fn poll_rtcp(&mut self, now: RemoteTime, buffer: &mut [u8]) -> Result<Option<usize>, Failure> {
        let now = self.at(now);
        let too_small = |_| (PACELINE_ERROR_BUFFER, format!("the buffer needs at least {BUFFER_MIN} bytes"));
        let mut writer = CompoundWriter::new(buffer);
        writer.receiver_report(self.own_ssrc, &[]).map_err(too_small)?;
        let empty = writer.len();
        // What does not fit follows in the next compound. A report on packets gets a compound of its own, because it needs room.
        while let Some(message) = self.messages.front()
            && messages::write(message, self.own_ssrc, &[self.media_ssrc], &mut writer).is_ok()
        {
            self.messages.pop_front();
        }
        if writer.len() == empty
            && let Some(feedback) = &mut self.feedback
        {
            feedback.write(now, self.own_ssrc, self.media_ssrc, &mut writer);
        }
        Ok((writer.len() > empty).then(|| writer.finish()))
    }
}
