// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the video section of session descriptions.

use super::error::EndpointError;
use paceline_netsim::flow::{MediaKind, StreamInfo};
use paceline_units::StreamId;
use paceline_wire::ExtensionIds;
use rtc::sdp::SessionDescription;
use rtc::sdp::description::media::MediaDescription;
use std::io::Cursor;

pub(super) const ABS_SEND_TIME: &str = "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time";
pub(super) const TRANSPORT_SEQUENCE: &str = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";

/// Payload types of VP8 and its retransmissions, as Chromium assigns them.
pub(super) const VP8: u8 = 96;
pub(super) const RTX: u8 = 97;

/// The fields of a video section that local endpoints need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VideoSection {
    /// Ids of the header extensions; 0 if an extension is missing.
    pub extensions: ExtensionIds,
    /// SSRCs of media and retransmissions, if the section sends.
    pub ssrcs: Option<(u32, u32)>,
    /// RTCP feedback of VP8, such as `nack pli`.
    pub feedback: Vec<String>,
}

impl VideoSection {
    /// Reads the only video section of a session description.
    ///
    /// # Errors
    /// The text is not a session description, does not have exactly one video section, or maps the payload types of VP8
    /// differently.
    pub fn read(sdp: &str) -> Result<Self, EndpointError> {
        let description = SessionDescription::unmarshal(&mut Cursor::new(sdp.as_bytes()))
            .map_err(|error| EndpointError::NotSdp(error.to_string()))?;
        let mut sections = description.media_descriptions.iter().filter(|media| media.media_name.media == "video");
        let (Some(section), None) = (sections.next(), sections.next()) else {
            return Err(EndpointError::Disagreement("not one section of video".to_owned()));
        };
        if section.media_name.port.value == 0 {
            return Err(EndpointError::Disagreement("a refused section of video".to_owned()));
        }
        check_payload_types(section)?;
        let extension = |uri: &str| {
            let id = |value: &str| {
                let (id, rest) = value.split_once(' ')?;
                let id = id.split('/').next()?.parse().ok()?;
                rest.split(' ').any(|part| part == uri).then_some(id)
            };
            values(section, "extmap").find_map(id).unwrap_or(0)
        };
        let extensions =
            ExtensionIds { abs_send_time: extension(ABS_SEND_TIME), transport_sequence: extension(TRANSPORT_SEQUENCE) };
        let feedback = values(section, "rtcp-fb").filter_map(|value| {
            let (payload_type, what) = value.split_once(' ')?;
            (payload_type == "*" || payload_type.parse() == Ok(VP8)).then(|| what.trim().to_owned())
        });
        let group = |value: &str| {
            let mut words = value.split(' ');
            let (kind, media, rtx) = (words.next()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            (kind == "FID").then_some((media, rtx))
        };
        let ssrcs = values(section, "ssrc-group").find_map(group);
        Ok(Self { extensions, feedback: feedback.collect(), ssrcs })
    }

    /// Returns whether VP8 has this RTCP feedback.
    pub fn has(&self, feedback: &str) -> bool {
        self.feedback.iter().any(|f| f == feedback)
    }

    /// Returns the stream that the section sends.
    ///
    /// # Errors
    /// The section has no SSRC group.
    pub fn stream(&self) -> Result<StreamInfo, EndpointError> {
        let (ssrc, rtx_ssrc) = self
            .ssrcs
            .ok_or_else(|| EndpointError::Disagreement("no `a=ssrc-group:FID`, hence no retransmissions".to_owned()))?;
        Ok(StreamInfo { id: StreamId(0), kind: MediaKind::Video, ssrc, rtx_ssrc, clock_rate: 90_000 })
    }
}

/// Checks that the payload types that local endpoints write mean VP8 and its retransmissions.
fn check_payload_types(section: &MediaDescription) -> Result<(), EndpointError> {
    let map = |wanted: u8| {
        let codec = |value: &str| {
            let (payload_type, codec) = value.split_once(' ')?;
            (payload_type.parse() == Ok(wanted)).then(|| codec.to_ascii_lowercase())
        };
        values(section, "rtpmap").find_map(codec)
    };
    for (payload_type, wanted) in [(VP8, "vp8/90000"), (RTX, "rtx/90000")] {
        let found = map(payload_type);
        if found.as_deref() != Some(wanted) {
            let found = found.unwrap_or_else(|| "nothing".to_owned());
            let what = format!("{found} as payload type {payload_type}, which must be {wanted}");
            return Err(EndpointError::Disagreement(what));
        }
    }
    Ok(())
}

/// Returns the values of all attributes with this key.
fn values<'a>(section: &'a MediaDescription, key: &'static str) -> impl Iterator<Item = &'a str> {
    section.attributes.iter().filter(move |a| a.key == key).filter_map(|a| a.value.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An offer of Chromium 156 without its other codecs.
    const OFFER: &str = include_str!("../../../tests/sdp/chromium-offer.sdp");

    fn without(line: &str) -> String {
        assert!(OFFER.contains(line), "{line}");
        OFFER.lines().filter(|l| !l.contains(line)).map(|l| format!("{l}\n")).collect()
    }

    fn refusal(sdp: &str) -> String {
        VideoSection::read(sdp).and_then(|section| section.stream()).unwrap_err().to_string()
    }

    #[test]
    fn reads_chromiums_offer() {
        let section = VideoSection::read(OFFER).unwrap();
        assert_eq!(section.extensions, ExtensionIds { abs_send_time: 2, transport_sequence: 4 });
        assert_eq!(section.feedback, ["goog-remb", "transport-cc", "ccm fir", "nack", "nack pli"]);
        assert!(section.has("nack pli") && !section.has("ack ccfb"));
        let stream = section.stream().unwrap();
        assert_eq!((stream.ssrc, stream.rtx_ssrc), (2_574_653_470, 3_962_447_287));
        assert_eq!(
            (stream.payload_type(), stream.rtx_payload_type()),
            (VP8, RTX),
            "the payload types that local endpoints write"
        );
    }

    #[test]
    fn accepts_missing_extensions_and_other_ids() {
        let ids = |sdp: &str| VideoSection::read(sdp).unwrap().extensions;
        assert_eq!(ids(&without("abs-send-time")), ExtensionIds { abs_send_time: 0, transport_sequence: 4 });
        let other = OFFER.replace("a=extmap:4 ", "a=extmap:13/sendonly ");
        assert_eq!(ids(&other), ExtensionIds { abs_send_time: 2, transport_sequence: 13 });
    }

    #[test]
    fn rejects_unsupported_descriptions_with_the_reason() {
        assert!(refusal(&without("VP8/90000")).contains("nothing as payload type 96, which must be vp8/90000"));
        let other = OFFER.replace("96 VP8", "96 AV1");
        assert!(refusal(&other).contains("av1/90000 as payload type 96"), "{}", refusal(&other));
        assert!(refusal(&without("rtx/90000")).contains("payload type 97"));
        assert!(refusal(&without("ssrc-group")).contains("a=ssrc-group:FID"));
        assert!(refusal(&OFFER.replace("m=video", "m=audio")).contains("not one section of video"));
        assert!(refusal(&OFFER.replace("m=video 55632", "m=video 0")).contains("refused"));
        assert!(refusal("hello").contains("not a session description"));
        assert!(refusal("").contains("not a session description"));
    }

    proptest! {
        /// A changed line never causes a panic.
        #[test]
        fn reads_or_rejects_any_description(line in 0usize..60, text in ".{0,40}", key in "[a-z-]{1,12}") {
            let broken: String = OFFER
                .lines()
                .enumerate()
                .map(|(i, l)| match i == line {
                    true => format!("a={key}:{text}\n{}{text}\n", l.split(' ').next().unwrap_or_default()),
                    false => format!("{l}\n"),
                })
                .collect();
            if let Ok(section) = VideoSection::read(&broken) {
                let _ = section.stream();
            }
            let _ = VideoSection::read(&text);
        }
    }
}
