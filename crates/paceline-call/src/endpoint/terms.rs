//! What both ends agreed on, read from session descriptions.

use super::error::EndpointError;
use paceline_flow::{MediaKind, StreamNames};
use paceline_units::StreamId;
use paceline_wire::ExtensionIds;
use rtc::sdp::SessionDescription;
use rtc::sdp::description::media::MediaDescription;
use std::io::Cursor;

/// The extension of send times.
pub(super) const ABS_SEND_TIME: &str = "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time";
/// The extension of transport-wide numbers.
pub(super) const TRANSPORT_SEQUENCE: &str = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";

/// Payload types of media and of retransmissions: those that Chromium gives VP8.
pub(super) const VP8: u8 = 96;
pub(super) const RTX: u8 = 97;

/// The video section of a session description, as far as our ends need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VideoSection {
    /// Ids of the extensions that our ends read and write; 0: not there.
    pub extensions: ExtensionIds,
    /// SSRCs of media and of retransmissions, where the section sends.
    pub ssrcs: Option<(u32, u32)>,
    /// What reports VP8 is to have, such as `nack pli`.
    pub feedback: Vec<String>,
}

impl VideoSection {
    /// Reads the one section of video.
    ///
    /// # Errors
    /// It is no session description, or its video is not VP8 as our ends speak it.
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

    /// Whether VP8 is to have such reports.
    pub fn has(&self, feedback: &str) -> bool {
        self.feedback.iter().any(|f| f == feedback)
    }

    /// The stream that the section sends, by its names on the wire.
    ///
    /// # Errors
    /// The section does not say its SSRCs.
    pub fn stream(&self) -> Result<StreamNames, EndpointError> {
        let (ssrc, rtx_ssrc) = self
            .ssrcs
            .ok_or_else(|| EndpointError::Disagreement("no `a=ssrc-group:FID`, hence no retransmissions".to_owned()))?;
        Ok(StreamNames { id: StreamId(0), kind: MediaKind::Video, ssrc, rtx_ssrc, clock_rate: 90_000 })
    }
}

/// Our ends write the payload types that Chromium has for VP8, whoever it is: nothing else is to mean them.
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
            let what = format!("{found} where payload type {payload_type} is to be {wanted}");
            return Err(EndpointError::Disagreement(what));
        }
    }
    Ok(())
}

/// Values of all attributes of a key.
fn values<'a>(section: &'a MediaDescription, key: &'static str) -> impl Iterator<Item = &'a str> {
    section.attributes.iter().filter(move |a| a.key == key).filter_map(|a| a.value.as_deref())
}
