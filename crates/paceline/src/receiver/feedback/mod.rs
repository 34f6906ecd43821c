// SPDX-License-Identifier: MIT OR Apache-2.0
//! Per-packet feedback of the receiver: transport-wide feedback or RFC 8888 reports.

#[cfg(feature = "rtp")]
mod builder;
#[cfg(feature = "rtp")]
mod congestion;
mod format;
mod report_interval;
#[cfg(feature = "rtp")]
mod transport_wide;

#[cfg(feature = "rtp")]
pub use builder::FeedbackBuilder;
pub use format::{FeedbackFormat, FeedbackFormats};
pub(super) use report_interval::ReportInterval;

/// The largest distance of a packet behind the highest number. The 16-bit numbers wrap, so a number further back is
/// taken for one ahead, after an outage.
#[cfg(feature = "rtp")]
const LATE_MAX: u64 = 1024;

#[cfg(all(test, feature = "rtp"))]
mod testing {
    //! Helpers of the tests of both builders.

    use alloc::vec::Vec;
    use paceline_units::{DataSize, RemoteTime, TimeDelta};

    pub const INTERVAL: TimeDelta = TimeDelta::from_millis(50);
    pub const LONGEST: TimeDelta = TimeDelta::from_millis(250);
    pub const SIZE: DataSize = DataSize::from_bytes(1000);

    pub fn at(ms: i64) -> RemoteTime {
        RemoteTime::from_millis(ms)
    }

    /// Receives 1000 bytes every 80 ms, which is 100 kbit/s, and writes every report when it is due. Returns the mean
    /// time between reports in ms.
    pub fn mean_interval<B>(
        builder: &mut B,
        receive: impl Fn(&mut B, RemoteTime, u16),
        poll_timeout: impl Fn(&B) -> Option<RemoteTime>,
        write: impl Fn(&mut B, RemoteTime),
    ) -> f64 {
        let mut due = Vec::new();
        for n in 0..1000 {
            receive(builder, at(80 * n), n as u16);
            while let Some(now) = poll_timeout(builder).filter(|due| *due < at(80 * (n + 1))) {
                due.push(now);
                write(builder, now);
            }
        }
        (due[500] - due[100]).as_millis_f64() / 400.0
    }
}
