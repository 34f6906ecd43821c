//! Per-packet feedback of the receiver: transport-wide feedback or RFC 8888 reports.

mod congestion;
mod format;
mod report_interval;
mod transport_wide;

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
#[derive(Clone, Debug)]
pub struct FeedbackBuilder(Builder);

#[derive(Clone, Debug)]
enum Builder {
    TransportWide(TransportFeedbackBuilder),
    Rfc8888(CongestionFeedbackBuilder),
}

impl FeedbackBuilder {
    /// Creates the builder for feedback of this format. RFC 8888 reports cover packets with these SSRCs.
    pub fn new(format: FeedbackFormat, wanted: &FeedbackRequirement, ssrcs: impl Iterator<Item = u32>) -> Self {
        let (interval, longest) = (wanted.interval, wanted.longest);
        Self(match format {
            FeedbackFormat::TransportWide => Builder::TransportWide(TransportFeedbackBuilder::new(interval, longest)),
            FeedbackFormat::Rfc8888 => Builder::Rfc8888(CongestionFeedbackBuilder::new(interval, longest, ssrcs)),
        })
    }

    /// Sends no report before the interval is over, even if it takes several datagrams.
    pub fn never_send_early(&mut self) {
        match &mut self.0 {
            Builder::TransportWide(builder) => builder.interval.never_send_early(),
            Builder::Rfc8888(builder) => builder.interval.never_send_early(),
        }
    }

    /// Adds SSRCs, such as those of a new stream.
    pub fn add_ssrcs(&mut self, ssrcs: &[u32]) {
        if let Builder::Rfc8888(builder) = &mut self.0 {
            builder.add_ssrcs(ssrcs);
        }
    }

    /// Removes SSRCs.
    pub fn remove_ssrcs(&mut self, ssrcs: &[u32]) {
        if let Builder::Rfc8888(builder) = &mut self.0 {
            builder.remove_ssrcs(ssrcs);
        }
    }

    /// Records the arrival of an RTP packet. Transport-wide feedback covers packets with a transport-wide number alone.
    pub fn handle_packet(&mut self, now: RemoteTime, header: &RtpHeader, ecn: Ecn, size: DataSize) {
        match (&mut self.0, header.transport_sequence) {
            (Builder::TransportWide(builder), Some(number)) => builder.handle_packet(now, number, size),
            (Builder::TransportWide(_), None) => {}
            (Builder::Rfc8888(builder), _) => builder.handle_packet(now, header.ssrc, header.sequence, ecn, size),
        }
    }

    /// Writes the next report that is due at `now`, on the flow with this media SSRC. Returns whether one was written.
    pub fn write(&mut self, now: RemoteTime, own: u32, media_ssrc: u32, writer: &mut CompoundWriter<'_>) -> bool {
        match &mut self.0 {
            Builder::TransportWide(builder) => builder.write(now, own, media_ssrc, writer),
            Builder::Rfc8888(builder) => builder.write(now, own, writer),
        }
    }

    /// Returns the time at which the next report is due.
    pub fn poll_timeout(&self) -> Option<RemoteTime> {
        match &self.0 {
            Builder::TransportWide(builder) => builder.poll_timeout(),
            Builder::Rfc8888(builder) => builder.poll_timeout(),
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
