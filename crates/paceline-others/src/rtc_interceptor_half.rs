// SPDX-License-Identifier: MIT OR Apache-2.0
//! GCC of the crate `rtc-interceptor`, the interceptors of webrtc-rs: a Kalman filter, an adaptive threshold, and control by loss.
//!
//! Its packet history and its estimator are used as they are, in the order of its `CongestionControlInterceptor`. How each input and
//! output is translated:
//!
//! | Paceline | crate | translation |
//! |---|---|---|
//! | setup | `Gcc::new` | start, minimum and maximum as they are |
//! | sent packet | `History::add_outgoing` | one SSRC, with a transport-wide number; the size on the network, while the crate counts RTP bytes: 28 bytes per packet less |
//! | feedback | `History::on_twcc_feedback`, `take_reports`, `Gcc::on_reports` | each packet of the message; the history drops arrivals after a reported loss, and reports losses once a later packet arrives |
//! | every message | `History::prune_before` | 2 s, the crate's `CONGESTION_CONTROL_DEFAULT_PRUNE_HORIZON` |
//! | limits of the flow | `Gcc::new` | the estimator cannot change its limits, so a new one starts at the target |
//! | route | `Gcc::new`, `History::new` | a new estimator |
//! | target | `target_bitrate` | as it is |
//! | pacing | the `Pacer` | at the target, in bursts of 100 ms or 12 kbit: the depth of its token bucket |
//! | feedback interval | `TwccReceiverBuilder` | 100 ms, its default |
//! | padding, probes, window | none | the crate has none |
//! | RTCP reports, round-trip times, REMB | none | the crate counts losses in the transport-wide feedback and uses no round-trip times |
//!
//! What is lost: the token bucket begins full after an idle time and packets of all kinds wait in one queue, while the flow's pacer sends audio
//! first. A target that exceeds the limits of the flow cannot occur.

use crate::time::{SystemClock, arrival};
use core::fmt;
use paceline::{
    Bounds, Config, Controller, Decision, Entry, Event, Feedback, FeedbackRequirement, Parameters, SendHalf,
    SendSnapshot, SentPacket, Setup, Signals,
};
use paceline_units::{DataSize, Rate, Time, TimeDelta};
use rtc_interceptor::{
    Acknowledgement, BandwidthEstimator, CONGESTION_CONTROL_DEFAULT_PRUNE_HORIZON, Gcc, History, PACER_MIN_BURST_BITS,
};

pub(crate) const NAME: &str = "rtc-interceptor-0.21";

/// The interval of feedback (`DEFAULT_INTERVAL`, `twcc/receiver.rs`).
const FEEDBACK: TimeDelta = TimeDelta::from_millis(100);
/// The depth of the token bucket at the pacing rate (`burst_for`, `pacing/pacer.rs`).
const BURST: TimeDelta = TimeDelta::from_millis(100);
/// The SSRC that stands for the flow. The crate reports on the transport as a whole.
const SSRC: u32 = 1;

pub(crate) fn entry() -> Entry {
    let summary = "another implementation: GCC of the crate rtc-interceptor 0.21 (webrtc-rs)";
    Entry::new(NAME, summary, "rtc-interceptor 0.21.1 (draft-ietf-rmcat-gcc-02)", RtcInterceptor)
}

#[derive(Clone, Debug)]
struct RtcInterceptor;

impl Parameters for RtcInterceptor {}

impl Config for RtcInterceptor {
    fn halves(&self, setup: &Setup) -> Controller {
        let feedback = Some(FeedbackRequirement::new(FEEDBACK, FEEDBACK));
        Controller::from_sender(Half::new(setup)).with_feedback(feedback)
    }
    /// Without the guard, which is no part of the crate.
    fn build(&self, setup: &Setup) -> Controller {
        self.halves(setup)
    }
}

struct Half {
    clock: SystemClock,
    history: History,
    gcc: Gcc,
    bounds: Bounds,
}

impl fmt::Debug for Half {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("rtc-interceptor").field("stats", &self.gcc.stats()).finish_non_exhaustive()
    }
}

impl SendSnapshot for Half {
    fn snapshot(&self) -> Box<dyn SendHalf> {
        panic!("the crate rtc-interceptor offers no copy of its state, so a call under {NAME} cannot be branched");
    }
}

impl Half {
    fn new(setup: &Setup) -> Self {
        let bounds = setup.bounds();
        Self { clock: SystemClock::new(), history: History::new(), gcc: gcc(setup.start, &bounds), bounds }
    }
}

fn gcc(start: Rate, bounds: &Bounds) -> Gcc {
    let min = bounds.min.as_bps_f64();
    Gcc::new(start.as_bps_f64(), min, bounds.max.as_bps_f64().max(min))
}

impl SendHalf for Half {
    fn handle_event(&mut self, now: Time, event: &Event<'_>, _: &mut Signals) {
        match *event {
            Event::Sent(packet) => self.handle_sent(now, packet),
            Event::Feedback(feedback) => self.handle_feedback(now, feedback),
            Event::Bounds(bounds) => self.handle_bounds(bounds),
            Event::RouteChange(setup) => *self = Self::new(setup),
            _ => {}
        }
    }

    fn decides_on_sent(&self) -> bool {
        false
    }

    fn decision(&self) -> Decision {
        let target = self.bounds.clamp(Rate::from_bps_f64(self.gcc.target_bitrate()));
        let least = DataSize::from_bytes((PACER_MIN_BURST_BITS / 8.0) as u64);
        Decision::new(target).with_burst(BURST.max(least / target))
    }
}

impl Half {
    fn handle_sent(&mut self, now: Time, packet: &SentPacket) {
        let number = packet.sequence as u16;
        let size = packet.size.as_bytes() as usize;
        self.history.add_outgoing(SSRC, number, true, number, size, self.clock.at(now));
    }

    fn handle_feedback(&mut self, now: Time, feedback: &Feedback<'_>) {
        let at = self.clock.at(now);
        self.history.prune_before(at - CONGESTION_CONTROL_DEFAULT_PRUNE_HORIZON);
        for report in feedback.packets {
            let number = report.sequence as u16;
            let acknowledgement = match report.arrival {
                Some(at) => Acknowledgement::received(number, Some(arrival(at)), Default::default()),
                None => Acknowledgement::lost(number),
            };
            self.history.on_twcc_feedback(at, acknowledgement);
        }
        self.gcc.on_reports(at, &self.history.take_reports());
    }

    fn handle_bounds(&mut self, bounds: &Bounds) {
        if *bounds != self.bounds {
            self.bounds = *bounds;
            self.gcc = gcc(Rate::from_bps_f64(self.gcc.target_bitrate()), bounds);
        }
    }
}
