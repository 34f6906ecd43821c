// SPDX-License-Identifier: MIT OR Apache-2.0
//! RTP and RTCP written anew from what is read of them, so that nothing else of the input is in the copy.

use paceline_wire::{CompoundWriter, ExtensionIds, Rtcp, RtpHeader, WriteError, parse_compound};

/// The header of an RTCP packet, in clear in SRTCP too.
const RTCP_HEADER: usize = 8;

/// Returns the header of RTP with the extension elements of these ids; `None` for everything else.
pub(super) fn rtp_header(payload: &[u8], ids: &ExtensionIds) -> Option<Vec<u8>> {
    let (header, _) = RtpHeader::parse(payload, ids).ok()?;
    let mut out = [0; RtpHeader::MAX_LEN];
    let length = header.write(ids, &mut out);
    Some(out[..length].to_vec())
}

/// Returns reports on congestion and the times of senders. Of RTCP that is encrypted or damaged, the first header and zeros stay.
pub(super) fn rtcp(compound: &[u8]) -> Vec<u8> {
    written(compound).unwrap_or_else(|| {
        let mut out = compound.to_vec();
        out.iter_mut().skip(RTCP_HEADER).for_each(|byte| *byte = 0);
        out
    })
}

fn written(compound: &[u8]) -> Option<Vec<u8>> {
    // A report may take several packets. Each needs less than twice its size.
    let mut out = vec![0; 2 * compound.len() + 64];
    let mut writer = CompoundWriter::new(&mut out);
    for packet in parse_compound(compound).ok()? {
        write(&packet, &mut writer).ok()?;
    }
    let length = writer.finish();
    out.truncate(length);
    Some(out)
}

fn write(packet: &Rtcp<'_>, writer: &mut CompoundWriter<'_>) -> Result<(), WriteError> {
    match *packet {
        Rtcp::SenderReport { ssrc, ntp, rtp_timestamp, packets, octets, blocks } => {
            writer.sender_report(ssrc, ntp, rtp_timestamp, packets, octets, &blocks.collect::<Vec<_>>())
        }
        Rtcp::ReceiverReport { ssrc, blocks } => writer.receiver_report(ssrc, &blocks.collect::<Vec<_>>()),
        Rtcp::Remb { sender_ssrc, rate, ssrcs } => writer.remb(sender_ssrc, rate, &ssrcs.collect::<Vec<_>>()),
        Rtcp::TransportFeedback(feedback) => {
            let (mut sequence, mut count) = (feedback.base_sequence, feedback.feedback_count);
            let arrivals: Vec<Option<i64>> = feedback.packets().map(|(_, arrival)| arrival).collect();
            let mut rest = &arrivals[..];
            // A sender of reports begins each with a packet that arrived.
            while rest.iter().any(Option::is_some) {
                let (ssrc, media_ssrc) = (feedback.sender_ssrc, feedback.media_ssrc);
                let covered = writer.transport_feedback(ssrc, media_ssrc, sequence, count, rest)?;
                rest = &rest[covered..];
                (sequence, count) = (sequence.wrapping_add(covered as u16), count.wrapping_add(1));
            }
            Ok(())
        }
        Rtcp::CongestionFeedback(feedback) => {
            let packets = |block: paceline_wire::CongestionBlock<'_>| {
                (block.ssrc, block.begin_sequence, block.packets().map(|(_, reception)| reception).collect::<Vec<_>>())
            };
            let blocks: Vec<_> = feedback.blocks().map(packets).collect();
            let blocks: Vec<_> = blocks.iter().map(|(ssrc, begin, packets)| (*ssrc, *begin, &packets[..])).collect();
            writer.congestion_feedback(feedback.sender_ssrc, feedback.timestamp, &blocks)
        }
        // The type of the first packet counts, too: these are reports whose content is not read.
        Rtcp::App { ssrc, .. } | Rtcp::Nada { ssrc, .. } if writer.is_empty() => writer.app(ssrc, 0, [0; 4], &[]),
        Rtcp::Other { packet_type: 206, format: 15 } if writer.is_empty() => writer.app(0, 0, [0; 4], &[]),
        _ if writer.is_empty() => writer.pli(0, 0),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(bytes: &[u8]) -> Vec<Rtcp<'_>> {
        parse_compound(bytes).unwrap().into_iter().collect()
    }

    #[test]
    fn reports_stay_and_names_do_not() {
        let report = [0x80, 201, 0, 1, 0, 0, 0, 7];
        let names = [0x81, 202, 0, 3, 0, 0, 0, 7, 1, 4, b'n', b'a', b'm', b'e', 0, 0];
        assert_eq!(rtcp(&[&report[..], &names].concat()), report);
        // A report with an extension of a profile.
        assert_eq!(rtcp(&[0x80, 201, 0, 3, 0, 0, 0, 7, b'n', b'a', b'm', b'e', 1, 2, 3, 4]), report);
        // SRTCP: what follows the first header is encrypted.
        let encrypted = [&report[..], &[0x13; 14]].concat();
        assert_eq!(rtcp(&encrypted), [&report[..], &[0; 14]].concat());
        // Cut after the name, or in clear with the trailer of SRTCP.
        for end in [&[][..], &[0x80, 0, 0, 1, 7, 7, 7, 7]] {
            let compound = [&report[..], &names[..names.len() - 2], end].concat();
            assert_eq!(rtcp(&compound), [&report[..], &vec![0; compound.len() - 8]].concat());
        }
        let app = [0x80, 204, 0, 3, 0, 0, 0, 7, b'n', b'a', b'm', b'e', 1, 2, 3, 4];
        assert_eq!(rtcp(&[&report[..], &app].concat()), report);
        assert_eq!(rtcp(&app), [0x80, 204, 0, 2, 0, 0, 0, 7, 0, 0, 0, 0]);
        assert_eq!(rtcp(&names), [0x81, 206, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0], "its type is not that of a report");
    }

    #[test]
    fn reports_on_packets_are_the_same_without_what_follows() {
        let mut out = [0; 400];
        let mut writer = CompoundWriter::new(&mut out);
        let arrivals: Vec<Option<i64>> = (0..50).map(|n| (n % 5 != 1).then_some(1000 + 300 * n)).collect();
        assert_eq!(writer.transport_feedback(1, 2, 65_530, 9, &arrivals), Ok(50));
        writer.remb(1, paceline_units::Rate::from_kbps(700), &[2, 3]).unwrap();
        let length = writer.finish();
        assert_eq!(packets(&rtcp(&out[..length])), packets(&out[..length]));
        // Words after the deltas of the feedback.
        let end = 4 * (usize::from(u16::from_be_bytes([out[2], out[3]])) + 1);
        let mut longer = [&out[..end], b"a secret"].concat();
        longer[3] += 2;
        // What was padding is no padding any more.
        longer[0] &= !0x20;
        assert_eq!(rtcp(&longer), out[..end]);
    }

    #[test]
    fn only_the_elements_that_are_read_stay() {
        // Ids 1 (MID), 2 (send time), 3 (sequence), 4 (RID), and a CSRC.
        let elements = [0x11, b'1', b'0', 0x22, 1, 2, 3, 0x31, 0, 9, 0x41, b'h', b'i', 0, 0, 0];
        let packet =
            [&[0x91, 0xE0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 7, b'n', b'a', b'm', b'e', 0xBE, 0xDE, 0, 4][..], &elements];
        let packet = [&packet.concat()[..], b"payload"].concat();
        let ids = ExtensionIds { abs_send_time: 2, transport_sequence: 3 };
        let out = rtp_header(&packet, &ids).unwrap();
        let fixed = [0x90, 0xE0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 7, 0xBE, 0xDE, 0, 2];
        assert_eq!(out, [&fixed[..], &[0x22, 1, 2, 3, 0x31, 0, 9, 0]].concat());
        assert_eq!(RtpHeader::parse(&out, &ids).unwrap().0, RtpHeader::parse(&packet, &ids).unwrap().0);
        let none = ExtensionIds { abs_send_time: 0, transport_sequence: 0 };
        assert_eq!(rtp_header(&packet, &none).unwrap(), [&[0x80], &packet[1..12]].concat());
        assert_eq!(rtp_header(&[0, 1, 0, 0], &none), None);
    }
}
