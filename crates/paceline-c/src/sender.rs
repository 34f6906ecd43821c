// SPDX-License-Identifier: MIT OR Apache-2.0
//! One flow's sender: that of the library, with what C reads of it.

use crate::catalogue::unknown;
use crate::signals::LastSignals;
use crate::status::{
    Failure, PACELINE_ERROR_CONTROLLER, PACELINE_ERROR_FULL, PACELINE_ERROR_PARAMETER, PACELINE_ERROR_RTCP, argument,
};
use paceline::{
    ConfigError, Controller, Needs, NewFrame, Registry, SenderConfig, SenderEvent, Setup, SignalTables, Signals,
};
use paceline::{FrameDropped, StreamConfig};
use paceline_abi::PACELINE_NO_PROBE;
use paceline_units::{DataSize, Ecn, Rate, RemoteTime, StreamId, Time};
use paceline_wire::{Rtcp, parse_compound};
use std::collections::VecDeque;

/// The one stream of a sender.
pub(crate) const STREAM: StreamId = StreamId(0);
/// The most results of probes that wait.
const RESULTS_MAX: usize = 64;

/// The controller changed its decision: read it with `paceline_sender_decision`.
pub const PACELINE_EVENT_DECISION: u32 = 1;
/// A frame was dropped, or removed from the queue.
pub const PACELINE_EVENT_FRAME_DROPPED: u32 = 2;
/// The encoder should make a key frame.
pub const PACELINE_EVENT_KEY_FRAME_REQUESTED: u32 = 3;
/// No feedback has arrived for 3 s, so that the rate falls.
pub const PACELINE_EVENT_FEEDBACK_LOST: u32 = 4;
/// Feedback arrives again.
pub const PACELINE_EVENT_FEEDBACK_RESUMED: u32 = 5;
/// A time was more than 100 ms before an earlier one. From then on times are shifted, so that the controller sees none that goes back.
pub const PACELINE_EVENT_CLOCK_STEPPED_BACK: u32 = 6;
/// The controller failed, and the last decision stays in force. The controllers of this library do not fail.
pub const PACELINE_EVENT_CONTROLLER_FAILED: u32 = 7;

/// A probe cluster arrived: `probe` and `rate_bps`. Further packets of it may refine the rate.
pub const PACELINE_EVENT_PROBE_RESULT: u32 = 8;
/// The rate of the encoder changed: `rate_bps`.
pub const PACELINE_EVENT_STREAM_RATES: u32 = 9;

/// An event of a sender. It has no stream, because a sender has one.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PacelineEvent {
    /// The size of the struct in the caller's header: `sizeof`.
    pub size: usize,
    /// `PACELINE_EVENT_…`.
    pub kind: u32,
    /// The cluster of the result of a probe, or `PACELINE_NO_PROBE`.
    pub probe: i32,
    /// The rate of the result of a probe, and the rate of the encoder with new rates of streams; else 0.
    pub rate_bps: u64,
}

paceline_abi::sized_structs!(PacelineEvent);

#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub core: paceline::Sender<u64>,
    pub signals: LastSignals,
    /// The last event of each kind, and of each probe cluster, in order.
    pub events: VecDeque<PacelineEvent>,
    name: &'static str,
    pub needs: Needs,
    /// Whether RTP numbers of packets are known, by which RFC 8888 feedback names them.
    has_rtp_numbers: bool,
    /// The latest time of a call.
    pub now: Time,
}

/// Builds the controller of a name, with some parameters changed. Also returns its name and the signals of its halves.
pub(crate) fn controller(
    name: &str,
    setup: &Setup,
    settings: &[(String, f64)],
) -> Result<(Controller, &'static str, SignalTables), Failure> {
    let registry = Registry::standard();
    let entry = registry.get(name).ok_or_else(|| unknown(name))?;
    let built = entry.build(setup, settings).map_err(|error| match &error {
        ConfigError::UnknownField { known, .. } => {
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            (PACELINE_ERROR_PARAMETER, format!("{error}; known: {known}"))
        }
        _ => argument(error.to_string()),
    })?;
    Ok((built, entry.name(), entry.signals()))
}

impl Sender {
    pub fn new(name: &str, setup: &Setup, settings: &[(String, f64)]) -> Result<Self, Failure> {
        let (mut controller, name, (signals, _)) = controller(name, setup, settings)?;
        if controller.send.is_none() {
            return Err((PACELINE_ERROR_CONTROLLER, format!("`{name}` has no half at the sender")));
        }
        let needs = controller.needs();
        let mut core = paceline::Sender::new(&SenderConfig::new(setup), &mut controller, Signals::disabled());
        core.add_stream(&StreamConfig::video(STREAM, Rate::ZERO, Rate::MAX));
        // Until the first frame: a program with a pacer of its own queues none.
        core.set_paces(false);
        let (signals, events) = (LastSignals::new(signals), VecDeque::new());
        let now = Time::ZERO;
        Ok(Self { core, signals, events, name, needs, has_rtp_numbers: false, now })
    }

    /// Takes the events and the signals of the last call.
    pub fn collect(&mut self, now: Time) {
        self.now = self.now.max(now);
        while let Some(event) = self.core.poll_event() {
            let (mut probe, mut rate) = (PACELINE_NO_PROBE, Rate::ZERO);
            let kind = match event {
                SenderEvent::Signal(index, value) => {
                    self.signals.set(index, value);
                    continue;
                }
                SenderEvent::ProbeResult { id, rate: measured } => {
                    (probe, rate) = (id.into(), measured);
                    PACELINE_EVENT_PROBE_RESULT
                }
                SenderEvent::StreamRates => {
                    rate = self.core.stream_rate(STREAM).unwrap_or_default();
                    PACELINE_EVENT_STREAM_RATES
                }
                SenderEvent::Decision(_) => PACELINE_EVENT_DECISION,
                SenderEvent::FrameDropped(_) => PACELINE_EVENT_FRAME_DROPPED,
                SenderEvent::KeyFrameRequested(_) => PACELINE_EVENT_KEY_FRAME_REQUESTED,
                SenderEvent::FeedbackLost => PACELINE_EVENT_FEEDBACK_LOST,
                SenderEvent::FeedbackResumed => PACELINE_EVENT_FEEDBACK_RESUMED,
                SenderEvent::ClockSteppedBack(_) => PACELINE_EVENT_CLOCK_STEPPED_BACK,
                SenderEvent::ControllerFailed => PACELINE_EVENT_CONTROLLER_FAILED,
                // The program itself passed the samples that these report.
                _ => continue,
            };
            let new = PacelineEvent { kind, probe, rate_bps: rate.as_bps(), ..PacelineEvent::default() };
            self.events.retain(|old| (old.kind, old.probe) != (new.kind, new.probe));
            self.events.push_back(new);
            let mut results = (0..self.events.len()).filter(|at| self.events[*at].probe != PACELINE_NO_PROBE);
            if let (Some(oldest), RESULTS_MAX..) = (results.next(), results.count()) {
                self.events.remove(oldest);
            }
        }
    }

    /// Records the SSRC and the RTP number of a packet that left, by which RFC 8888 reports name it.
    pub fn handle_rtp_number(&mut self, sequence: u64, ssrc: u32, number: u16) -> Result<(), Failure> {
        let sent = self.core.packets_sent();
        if sequence >= sent {
            return Err(argument(format!("`sequence` is {sequence}, but {sent} packets have left, from 0 on")));
        }
        self.has_rtp_numbers = true;
        self.core.handle_rtp_sent(sequence, ssrc, number);
        Ok(())
    }

    /// Queues a frame that was cut into packets: tokens of the caller, and sizes.
    pub fn push_frame(
        &mut self,
        now: Time,
        packets: &[(u64, DataSize)],
        key: bool,
        (min, max): (Rate, Rate),
    ) -> Result<(), Failure> {
        self.core.set_paces(true);
        self.core.set_stream_limits(now, STREAM, min, max.max(Rate::from_bps(1)));
        let frame = NewFrame::new(STREAM, now, key);
        let pushed = self.core.push_frame(now, &frame, packets.iter().copied());
        self.collect(now);
        pushed.map_err(|dropped: FrameDropped| (PACELINE_ERROR_FULL, format!("{dropped}; drop the frame")))
    }

    /// Handles reports on packets: number, arrival or `None`, ECN field.
    pub fn handle_feedback(
        &mut self,
        now: Time,
        packets: impl Iterator<Item = (u64, Option<RemoteTime>, Option<Ecn>)>,
    ) -> Result<(), Failure> {
        if !self.needs.feedback {
            let name = self.name;
            let text = format!(
                "`{name}` uses no reports on packets; `paceline_controller_needs` says what a controller needs"
            );
            return Err((PACELINE_ERROR_CONTROLLER, text));
        }
        self.core.handle_reports(now, packets);
        self.collect(now);
        Ok(())
    }

    /// Handles an RTCP datagram.
    pub fn handle_rtcp(&mut self, now: Time, datagram: &[u8]) -> Result<(), Failure> {
        let invalid = |error| (PACELINE_ERROR_RTCP, format!("{error}"));
        let names_packets = |packet| matches!(packet, Rtcp::CongestionFeedback(_));
        let is_unreadable =
            !self.has_rtp_numbers && parse_compound(datagram).map_err(invalid)?.into_iter().any(names_packets);
        self.core.handle_rtcp(now, datagram).map_err(invalid)?;
        self.collect(now);
        let text = "RFC 8888 feedback names packets by SSRC and RTP number: call `paceline_sender_rtp_number` for each packet \
            that leaves";
        if is_unreadable { Err(argument(text)) } else { Ok(()) }
    }
}
