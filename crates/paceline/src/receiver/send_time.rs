// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unwraps the abs-send-time header extension to the sender's clock.

use paceline_units::{RemoteTime, Time, TimeDelta};
use paceline_wire::AbsSendTime;

/// abs-send-time wraps after this time.
const CYCLE: TimeDelta = TimeDelta::from_secs(64);

/// Unwraps each send time relative to the previous packet.
#[derive(Clone, Debug, Default)]
pub struct SendTimeUnwrapper {
    /// The last send time, as received and unwrapped, and when it was received.
    last: Option<(AbsSendTime, Time, RemoteTime)>,
}

impl SendTimeUnwrapper {
    /// Returns the send time of a packet received at `now`, relative to that of the first packet. The receiver's own
    /// clock gives the number of wraps since the previous packet.
    #[inline]
    pub fn unwrap(&mut self, now: RemoteTime, stamp: AbsSendTime) -> Time {
        let time = match self.last {
            None => Time::ZERO,
            Some((before, at, received)) => {
                let step = stamp.since(before);
                let late = now - received - step;
                // Mostly there is no silence of half a cycle.
                match late.abs() < CYCLE / 2 {
                    true => at + step,
                    false => at + step + CYCLE * (late + CYCLE / 2).as_nanos().div_euclid(CYCLE.as_nanos()),
                }
            }
        };
        self.last = Some((stamp, time, now));
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn send_times_unwrap_after_any_silence() {
        let (mut unwrapper, mut now) = (SendTimeUnwrapper::default(), RemoteTime::from_millis(777_777));
        let mut sent = Time::from_millis(123);
        let mut before = unwrapper.unwrap(now, AbsSendTime::from_time(sent));
        for (sent_ms, received_ms) in [(5, 5), (-3, 0), (33, 933), (900, 0), (31_000, 31_000), (33_000, 33_400)]
            .into_iter()
            .chain([(64_000, 64_000), (65_000, 64_500), (100_000, 100_000), (86_400_000, 86_400_900)])
        {
            (sent, now) = (sent + TimeDelta::from_millis(sent_ms), now + TimeDelta::from_millis(received_ms));
            let time = unwrapper.unwrap(now, AbsSendTime::from_time(sent));
            let step = time - before;
            assert!((step - TimeDelta::from_millis(sent_ms)).abs() < TimeDelta::from_micros(4), "{sent_ms}: {step:?}");
            before = time;
        }
    }
}
