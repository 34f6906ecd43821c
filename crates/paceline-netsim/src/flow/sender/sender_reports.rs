// SPDX-License-Identifier: MIT OR Apache-2.0
//! When sender reports are due, and which streams the report that is being written has left.

use crate::flow::rtcp_timer::RtcpTimer;
use paceline_units::{DataSize, Time};
use paceline_wire::ntp;

pub(super) struct SenderReports {
    timer: RtcpTimer,
    next: Time,
    /// The first stream of the next datagram of an unfinished report; 0 if there is none.
    pub place: usize,
    /// The size of the datagrams of an unfinished report.
    size: DataSize,
    /// The NTP time of time zero, ns since 1900.
    ntp_origin: u64,
}

impl SenderReports {
    pub fn new(mut timer: RtcpTimer, start: Time, ntp_origin: u64) -> Self {
        let next = start + timer.next_interval(None);
        Self { timer, next, place: 0, size: DataSize::ZERO, ntp_origin }
    }

    /// Returns the time at which a datagram is due: at once for the rest of a report.
    #[inline]
    pub fn due(&self) -> Time {
        if self.place > 0 { Time::ZERO } else { self.next }
    }

    pub fn is_due(&self, now: Time) -> bool {
        now >= self.next || self.place > 0
    }

    /// Sends a report at once, or none while there is no network.
    pub fn set_available(&mut self, now: Time, available: bool) {
        (self.next, self.place) = (if available { now } else { Time::MAX }, 0);
    }

    pub fn handle_written(&mut self, size: DataSize) {
        self.size += size;
    }

    /// Sets the time of the next report after the last datagram of this one.
    pub fn finish(&mut self, now: Time) {
        let size = core::mem::take(&mut self.size);
        self.place = 0;
        self.next = now + self.timer.next_interval((size > DataSize::ZERO).then_some(size));
    }

    pub fn ntp(&self, now: Time) -> u64 {
        ntp::from_nanos(self.ntp_origin.wrapping_add(now.as_nanos() as u64))
    }
}
