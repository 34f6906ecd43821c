// SPDX-License-Identifier: MIT OR Apache-2.0
//! One flow's receiver: that of the library, with what C reads of it.

use crate::sender::controller;
use crate::signals::LastSignals;
use crate::status::{Failure, PACELINE_ERROR_BUFFER, PACELINE_ERROR_CONTROLLER};
use paceline::{FeedbackFormats, RtpArrival, Setup, Signals};
use paceline_units::RemoteTime;
use paceline_wire::RtpHeader;

/// The least buffer: an Ethernet packet without IPv6 and UDP headers, rounded down.
pub(crate) const BUFFER_MIN: usize = 1200;

#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    pub core: paceline::Receiver,
    pub signals: LastSignals,
    pub media_ssrc: u32,
}

impl Receiver {
    pub fn new(name: &str, setup: &Setup, settings: &[(String, f64)], ssrcs: [u32; 2]) -> Result<Self, Failure> {
        let (mut controller, name, (_, signals)) = controller(name, setup, settings)?;
        if controller.receive.is_none() && controller.feedback.is_none() {
            return Err((PACELINE_ERROR_CONTROLLER, format!("`{name}` has no half at the receiver and no feedback")));
        }
        let formats = FeedbackFormats::default();
        let core = paceline::Receiver::for_rtp(&mut controller, ssrcs, formats, Signals::disabled());
        Ok(Self { core, signals: LastSignals::new(signals), media_ssrc: ssrcs[1] })
    }

    pub fn handle_packet(&mut self, now: RemoteTime, header: &RtpHeader, packet: &RtpArrival) {
        self.core.handle_rtp(now, header, packet);
        self.collect();
    }

    pub fn handle_timeout(&mut self, now: RemoteTime) {
        self.core.handle_timeout(now);
        self.collect();
    }

    pub fn poll_rtcp(&mut self, now: RemoteTime, buffer: &mut [u8]) -> Result<Option<usize>, Failure> {
        let too_small = |_| (PACELINE_ERROR_BUFFER, format!("the buffer needs at least {BUFFER_MIN} bytes"));
        self.core.poll_rtcp(now, buffer).map_err(too_small)
    }

    /// Takes the signals of the last call.
    fn collect(&mut self) {
        let Self { core, signals, .. } = self;
        core.signals().drain().for_each(|(index, value)| signals.set(index, value));
    }
}
