//! Per-packet feedback of the receiver: transport-wide feedback or RFC 8888 reports.

mod congestion;
mod format;
mod report_interval;
mod transport_wide;

use crate::stream_info::StreamInfo;
use congestion::CongestionFeedbackBuilder;
pub use format::{FeedbackFormat, FeedbackFormats};
use paceline::FeedbackRequirement;
use paceline_units::{DataSize, Ecn, RemoteTime};
use paceline_wire::{CompoundWriter, RtpHeader};
use transport_wide::TransportFeedbackBuilder;

/// The largest distance of a packet behind the highest number. The 16-bit numbers wrap, so a number further back is
/// taken for one ahead, after an outage.
const LATE_MAX: u64 = 1024;

/// Gathers arrivals and writes the feedback that the controller requires.
pub(crate) enum FeedbackBuilder {
    TransportWide(TransportFeedbackBuilder),
    Rfc8888(CongestionFeedbackBuilder),
}

impl FeedbackBuilder {
    /// Creates the builder for feedback of this format.
    pub fn new(format: FeedbackFormat, wanted: &FeedbackRequirement, streams: &[StreamInfo]) -> Self {
        let (interval, longest) = (wanted.interval, wanted.longest);
        match format {
            FeedbackFormat::TransportWide => Self::TransportWide(TransportFeedbackBuilder::new(interval, longest)),
            FeedbackFormat::Rfc8888 => {
                let ssrcs = streams.iter().flat_map(|info| [info.ssrc, info.rtx_ssrc]);
                Self::Rfc8888(CongestionFeedbackBuilder::new(interval, longest, ssrcs))
            }
        }
    }

    /// Sends no report before the interval is over, even if it takes several datagrams.
    pub fn never_send_early(&mut self) {
        match self {
            Self::TransportWide(builder) => builder.interval.never_send_early(),
            Self::Rfc8888(builder) => builder.interval.never_send_early(),
        }
    }

    /// Adds the SSRCs of a stream.
    pub fn add_stream(&mut self, info: &StreamInfo) {
        if let Self::Rfc8888(builder) = self {
            builder.add_ssrcs([info.ssrc, info.rtx_ssrc]);
        }
    }

    /// Removes the SSRCs of a stream.
    pub fn remove_stream(&mut self, info: &StreamInfo) {
        if let Self::Rfc8888(builder) = self {
            builder.remove_ssrcs([info.ssrc, info.rtx_ssrc]);
        }
    }

    /// Records the arrival of an RTP packet.
    pub fn handle_packet(&mut self, now: RemoteTime, header: &RtpHeader, ecn: Ecn, size: DataSize) {
        match (self, header.transport_sequence) {
            (Self::TransportWide(builder), Some(number)) => builder.handle_packet(now, number, size),
            (Self::TransportWide(_), None) => {}
            (Self::Rfc8888(builder), _) => builder.handle_packet(now, header.ssrc, header.sequence, ecn, size),
        }
    }

    /// Writes the next report that is due at `now`, on the flow with this media SSRC. Returns whether one was written.
    pub fn write(&mut self, now: RemoteTime, own: u32, media_ssrc: u32, writer: &mut CompoundWriter<'_>) -> bool {
        match self {
            Self::TransportWide(builder) => builder.write(now, own, media_ssrc, writer),
            Self::Rfc8888(builder) => builder.write(now, own, writer),
        }
    }

    /// Returns the time at which the next report is due.
    pub fn poll_timeout(&self) -> Option<RemoteTime> {
        match self {
            Self::TransportWide(builder) => builder.poll_timeout(),
            Self::Rfc8888(builder) => builder.poll_timeout(),
        }
    }
}

#[cfg(test)]
mod testing {
    //! Helpers of the tests of both builders.

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
