// SPDX-License-Identifier: MIT OR Apache-2.0
//! The choice of a format for per-packet feedback.

use crate::FeedbackRequirement;

/// A format of per-packet feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedbackFormat {
    /// Transport-wide congestion control feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01): arrival times in
    /// steps of 250 µs, no ECN.
    TransportWide,
    /// Congestion control feedback (RFC 8888): per stream, with the ECN field of each packet. Arrival times have a
    /// resolution of 1/1024 s. Every packet is covered by two reports.
    Rfc8888,
}

/// The formats that both ends of a flow support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedbackFormats {
    /// [`FeedbackFormat::TransportWide`].
    pub transport_wide: bool,
    /// [`FeedbackFormat::Rfc8888`].
    pub rfc8888: bool,
}

impl Default for FeedbackFormats {
    /// Returns all formats.
    fn default() -> Self {
        Self { transport_wide: true, rfc8888: true }
    }
}

impl FeedbackFormats {
    /// Returns the format for a controller: RFC 8888 if it uses ECN, else transport-wide feedback, whose arrival times are
    /// finer. If that format is not supported, the other one; `None` if neither is.
    pub fn choose(self, wanted: &FeedbackRequirement) -> Option<FeedbackFormat> {
        let (wide, by_stream) = (
            self.transport_wide.then_some(FeedbackFormat::TransportWide),
            self.rfc8888.then_some(FeedbackFormat::Rfc8888),
        );
        if wanted.ecn { by_stream.or(wide) } else { wide.or(by_stream) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::TimeDelta;

    #[test]
    fn format_follows_the_requirement_and_what_is_supported() {
        let chosen = |transport_wide, rfc8888, ecn| {
            let interval = TimeDelta::from_millis(50);
            let wanted = FeedbackRequirement { ecn, interval, longest: interval };
            FeedbackFormats { transport_wide, rfc8888 }.choose(&wanted)
        };
        assert_eq!(chosen(true, true, false), Some(FeedbackFormat::TransportWide));
        assert_eq!(chosen(true, true, true), Some(FeedbackFormat::Rfc8888));
        assert_eq!(chosen(true, false, true), Some(FeedbackFormat::TransportWide), "without ECN rather than nothing");
        assert_eq!(chosen(false, true, false), Some(FeedbackFormat::Rfc8888));
        assert_eq!(chosen(false, false, false), None);
    }
}
