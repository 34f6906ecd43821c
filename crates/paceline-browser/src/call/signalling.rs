// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines of session descriptions (SDP) that the world reads or changes.

use std::net::Ipv4Addr;

/// The fields of a session description that the world needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// UDP ports of the endpoint.
    pub ports: Vec<u16>,
    /// Payload type of VP8.
    pub media: u8,
    /// Payload type of its retransmissions, if offered.
    pub retransmission: Option<u8>,
}

/// An error of a session description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SdpError {
    /// It has no VP8.
    #[error("the session description of {0} has no VP8")]
    NoVp8(String),
    /// It has no candidate with an address on the link.
    #[error("the session description of {0} has no candidate on the link")]
    NoAddress(String),
}

impl Description {
    /// Reads the description of an endpoint with this `address`; `endpoint` names it in errors.
    ///
    /// # Errors
    /// It has no VP8 or no candidate on the link.
    pub fn read(sdp: &str, endpoint: &str, address: Ipv4Addr) -> Result<Self, SdpError> {
        let ports: Vec<u16> = sdp.lines().filter_map(|line| port(line, address)).collect();
        if ports.is_empty() {
            return Err(SdpError::NoAddress(endpoint.to_owned()));
        }
        let media = payload_type(sdp, "VP8/90000").ok_or_else(|| SdpError::NoVp8(endpoint.to_owned()))?;
        let apt = format!("apt={media}");
        let retransmission = sdp.lines().filter_map(|line| line.strip_prefix("a=fmtp:")).find_map(|line| {
            let (payload_type, parameters) = line.split_once(' ')?;
            parameters.split(';').any(|p| p.trim() == apt).then(|| payload_type.parse().ok())?
        });
        Ok(Self { ports, media, retransmission })
    }
}

/// Returns the port of a UDP candidate line with this address.
fn port(line: &str, at: Ipv4Addr) -> Option<u16> {
    let mut words = line.trim_end().strip_prefix("a=candidate:")?.split(' ');
    // foundation component transport priority address port
    let (transport, address, port) = (words.nth(2)?, words.nth(1)?, words.next()?);
    (transport.eq_ignore_ascii_case("udp") && address.parse() == Ok(at)).then(|| port.parse().ok())?
}

fn payload_type(sdp: &str, codec: &str) -> Option<u8> {
    let of = |line: &str| {
        let (payload_type, name) = line.strip_prefix("a=rtpmap:")?.split_once(' ')?;
        name.trim_end().eq_ignore_ascii_case(codec).then(|| payload_type.parse().ok())?
    };
    sdp.lines().find_map(of)
}

/// Removes TCP candidates, which the link does not carry.
pub fn over_udp(sdp: &str) -> String {
    let is_tcp = |line: &str| {
        line.starts_with("a=candidate:") && line.split(' ').nth(2).is_some_and(|t| t.eq_ignore_ascii_case("tcp"))
    };
    sdp.lines().filter(|line| !is_tcp(line)).flat_map(|line| [line.trim_end(), "\r\n"]).collect()
}

/// Adds the start rate and the minimum rate, bit/s, for a Chromium sender to an answer, as applications do.
pub fn with_rates(answer: &str, media: u8, start_bps: u64, min_bps: u64) -> String {
    let (start, min) = (start_bps / 1000, min_bps / 1000);
    let mut lines = String::new();
    let codec = format!("a=rtpmap:{media} ");
    for line in answer.lines() {
        lines += line.trim_end();
        lines += "\r\n";
        if line.starts_with(&codec) {
            lines += &format!("a=fmtp:{media} x-google-start-bitrate={start};x-google-min-bitrate={min}\r\n");
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const SDP: &str = "v=0\r\nm=video 9 UDP/TLS/RTP/SAVPF 96 97\r\na=rtpmap:96 VP8/90000\r\na=rtpmap:97 rtx/90000\r\n\
        a=fmtp:97 apt=96\r\na=candidate:1 1 udp 2122260223 10.77.0.1 40001 typ host generation 0\r\n\
        a=candidate:2 1 tcp 1518280447 10.77.0.1 9 typ host tcptype active\r\na=candidate:3 1 udp 1 127.0.0.1 5 typ host\r\n";

    #[test]
    fn reads_ports_and_payload_types() {
        let at = Ipv4Addr::new(10, 77, 0, 1);
        let expected = Description { ports: vec![40_001], media: 96, retransmission: Some(97) };
        assert_eq!(Description::read(SDP, "the sender", at), Ok(expected));
        let other = Ipv4Addr::new(10, 77, 0, 2);
        assert_eq!(Description::read(SDP, "the sender", other), Err(SdpError::NoAddress("the sender".into())));
        let vp9 = SDP.replace("VP8", "VP9");
        assert_eq!(Description::read(&vp9, "the sender", at), Err(SdpError::NoVp8("the sender".into())));
        let alone = SDP.replace("apt=96", "apt=95");
        assert_eq!(Description::read(&alone, "it", at).unwrap().retransmission, None);
    }

    #[test]
    fn removes_tcp_candidates_and_adds_rates() {
        let udp = over_udp(SDP);
        assert!(!udp.contains(" tcp ") && udp.contains("40001") && udp.lines().count() + 1 == SDP.lines().count());
        let with = with_rates(SDP, 96, 300_000, 30_000);
        assert!(
            with.contains("VP8/90000\r\na=fmtp:96 x-google-start-bitrate=300;x-google-min-bitrate=30\r\n"),
            "{with}"
        );
        assert_eq!(with.lines().count(), SDP.lines().count() + 1);
    }
}
