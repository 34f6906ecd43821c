// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names that rtcstats-js 2 abbreviates to numbers (`rtcstats-shared/compression.js`). Numbers are never assigned anew.

use std::ops::RangeInclusive;

/// Properties that are read, by number.
const PROPERTIES: &[(u64, &str)] = &[
    (10, "ssrc"),
    (11, "kind"),
    (14, "packetsReceived"),
    (15, "packetsLost"),
    (16, "jitter"),
    (25, "framesPerSecond"),
    (32, "freezeCount"),
    (33, "totalFreezesDuration"),
    (35, "headerBytesReceived"),
    (41, "bytesReceived"),
    (75, "roundTripTime"),
    (77, "fractionLost"),
    (78, "roundTripTimeMeasurements"),
    (79, "packetsSent"),
    (80, "bytesSent"),
    (81, "mediaSourceId"),
    (84, "headerBytesSent"),
    (85, "retransmittedPacketsSent"),
    (87, "targetBitrate"),
    (91, "framesEncoded"),
    (93, "totalEncodeTime"),
    (94, "totalPacketSendDelay"),
    (95, "qualityLimitationReason"),
    (100, "active"),
    (108, "frames"),
    (118, "state"),
    (125, "selectedCandidatePairId"),
    (132, "selectedCandidatePairChanges"),
    (150, "nominated"),
    (152, "currentRoundTripTime"),
    (153, "availableOutgoingBitrate"),
    (157, "responsesReceived"),
    (169, "packetsReceivedWithEct1"),
    (170, "packetsReceivedWithCe"),
    (171, "packetsReportedAsLost"),
    (172, "packetsReportedAsLostButRecovered"),
    (173, "packetsWithBleachedEct1Marking"),
    (174, "packetsSentWithEct1"),
];

/// The numbers that are in use.
const IN_USE: [RangeInclusive<u64>; 4] = [4..=12, 14..=145, 148..=161, 163..=176];

const KINDS: [&str; 14] = [
    "inbound-rtp",
    "outbound-rtp",
    "remote-inbound-rtp",
    "remote-outbound-rtp",
    "transport",
    "candidate-pair",
    "local-candidate",
    "remote-candidate",
    "data-channel",
    "peer-connection",
    "certificate",
    "media-source",
    "media-playout",
    "codec",
];

/// Returns the name of a property, for one that is not read its number. `None`: a number that is not in use.
pub fn property(key: &str) -> Option<&str> {
    match key.parse::<u64>() {
        Err(_) if key == "t" => Some("timestamp"),
        Err(_) => Some(key),
        Ok(number) => {
            let at = PROPERTIES.binary_search_by_key(&number, |(number, _)| *number);
            at.map(|at| PROPERTIES[at].1).ok().or(IN_USE.iter().any(|range| range.contains(&number)).then_some(key))
        }
    }
}

/// Returns the name of a type of statistics.
pub fn kind(number: f64) -> Option<&'static str> {
    (number >= 1.0).then(|| KINDS.get(number as usize - 1).copied()).flatten()
}

/// Returns the name of a method whose events are read.
pub fn method(code: u64) -> &'static str {
    match code {
        1 => "g",
        8 => "setRemoteDescription",
        24 => "oniceconnectionstatechange",
        25 => "onconnectionstatechange",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_names_of_the_standard() {
        assert!(PROPERTIES.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(
            ["80", "153", "t", "mid"].map(property),
            ["bytesSent", "availableOutgoingBitrate", "timestamp", "mid"].map(Some)
        );
        assert_eq!(["777", "3", "99999"].map(property), [None; 3]);
        assert_eq!([0.0, 2.0, 14.0, 15.0, f64::NAN].map(kind), [None, Some("outbound-rtp"), Some("codec"), None, None]);
    }
}
