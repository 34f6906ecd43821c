// SPDX-License-Identifier: MIT OR Apache-2.0
//! Feedback of the format that both ends support.

use super::congestion::CongestionFeedbackBuilder;
use super::format::FeedbackFormat;
use super::transport_wide::TransportFeedbackBuilder;
use crate::FeedbackRequirement;
use paceline_units::{DataSize, Ecn, RemoteTime};
use paceline_wire::{CompoundWriter, RtpHeader};

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
