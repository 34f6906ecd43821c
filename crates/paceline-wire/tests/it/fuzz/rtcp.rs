// SPDX-License-Identifier: MIT OR Apache-2.0
//! RTCP compounds: reads everything, writes again what this crate can write, and compares.

use paceline_wire::{CompoundWriter, Rtcp, WriteError, XrBlock, parse_compound};

/// Checks one input.
pub fn check(bytes: &[u8]) {
    let Ok(compound) = parse_compound(bytes) else { return };
    let mut out = vec![0xEE; 2 * bytes.len() + 64];
    for packet in compound {
        let mut writer = CompoundWriter::new(&mut out);
        if rewrite(&packet, &mut writer) != Ok(true) {
            continue;
        }
        let len = writer.finish();
        let mut again = parse_compound(&out[..len]).expect("the written packet is valid").into_iter();
        check_same(&packet, &again.next().expect("one packet was written"));
        assert!(again.next().is_none());
    }
}

/// Writes the packet again. Returns false if this crate does not write its type.
fn rewrite(packet: &Rtcp<'_>, w: &mut CompoundWriter<'_>) -> Result<bool, WriteError> {
    match *packet {
        Rtcp::SenderReport { ssrc, ntp, rtp_timestamp, packets, octets, blocks } => {
            w.sender_report(ssrc, ntp, rtp_timestamp, packets, octets, &blocks.collect::<Vec<_>>())?;
        }
        Rtcp::ReceiverReport { ssrc, blocks } => {
            assert_eq!(blocks.len(), blocks.count());
            w.receiver_report(ssrc, &blocks.collect::<Vec<_>>())?;
        }
        Rtcp::Remb { sender_ssrc, rate, ssrcs } => w.remb(sender_ssrc, rate, &ssrcs.collect::<Vec<_>>())?,
        Rtcp::Nada { ssrc, feedback } => w.nada(ssrc, &feedback)?,
        Rtcp::Nack { sender_ssrc, media_ssrc, lost } => w.nack(sender_ssrc, media_ssrc, &lost.collect::<Vec<_>>())?,
        Rtcp::Pli { sender_ssrc, media_ssrc } => w.pli(sender_ssrc, media_ssrc)?,
        Rtcp::Fir { sender_ssrc, entries } => w.fir(sender_ssrc, &entries.collect::<Vec<_>>())?,
        Rtcp::TransportFeedback(f) => {
            let arrivals: Vec<_> = f.packets().map(|(_, at)| at).collect();
            assert_eq!((arrivals.len(), f.packets().len()), (f.status_count.into(), f.status_count.into()));
            w.transport_feedback(f.sender_ssrc, f.media_ssrc, f.base_sequence, f.feedback_count, &arrivals)?;
        }
        Rtcp::CongestionFeedback(f) => {
            let blocks: Vec<(u32, u16, Vec<_>)> =
                f.blocks().map(|b| (b.ssrc, b.begin_sequence, b.packets().map(|p| p.1).collect())).collect();
            let blocks: Vec<_> = blocks.iter().map(|(ssrc, begin, packets)| (*ssrc, *begin, &packets[..])).collect();
            w.congestion_feedback(f.sender_ssrc, f.timestamp, &blocks)?;
        }
        Rtcp::Sdes { chunks } => {
            for chunk in chunks {
                if let Some(Ok(name)) = chunk.cname.map(str::from_utf8) {
                    w.sdes_cname(chunk.ssrc, name)?;
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        Rtcp::Xr { ssrc, blocks } => {
            for block in blocks {
                match block {
                    XrBlock::ReferenceTime { ntp } => w.xr_reference_time(ssrc, ntp)?,
                    XrBlock::DelaySinceLast(entries) => {
                        w.xr_delay_since_last(ssrc, &entries.collect::<Vec<_>>())?;
                    }
                    _ => continue,
                }
                return Ok(true);
            }
            return Ok(false);
        }
        Rtcp::Bye { ssrcs, .. } => {
            assert!(ssrcs.count() < 32);
            return Ok(false);
        }
        Rtcp::App { subtype, data, .. } => {
            assert!(subtype < 32 && data.len().is_multiple_of(4));
            return Ok(false);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Compares the content. The bytes may differ: padding, extensions, order of chunks and entries.
fn check_same(packet: &Rtcp<'_>, again: &Rtcp<'_>) {
    match (*packet, *again) {
        (Rtcp::TransportFeedback(a), Rtcp::TransportFeedback(b)) => {
            assert_eq!((a.base_sequence, a.feedback_count), (b.base_sequence, b.feedback_count));
            // Only modulo 2^32 ticks: the reference time may wrap on the way.
            let modulo = |at: Option<i64>| at.map(|ticks| ticks as u32);
            let of_a = a.packets().map(|(s, at)| (s, modulo(at)));
            let of_b = b.packets().map(|(s, at)| (s, modulo(at)));
            assert!(of_b.eq(of_a.take(usize::from(b.status_count))));
        }
        (Rtcp::CongestionFeedback(a), Rtcp::CongestionFeedback(b)) => {
            assert_eq!((a.sender_ssrc, a.timestamp), (b.sender_ssrc, b.timestamp));
            let packets = |f: paceline_wire::CongestionFeedback<'_>| -> Vec<(u32, u16, Vec<_>)> {
                f.blocks().map(|b| (b.ssrc, b.begin_sequence, b.packets().collect())).collect()
            };
            assert_eq!(packets(a), packets(b));
        }
        (Rtcp::Nack { lost: a, .. }, Rtcp::Nack { lost: b, .. }) => {
            // Overlapping entries may be joined.
            let sorted = |lost: paceline_wire::LostPackets<'_>| {
                let mut lost: Vec<_> = lost.collect();
                lost.sort_unstable();
                lost.dedup();
                lost
            };
            assert_eq!(sorted(a), sorted(b));
        }
        (Rtcp::SenderReport { blocks: a, .. }, Rtcp::SenderReport { blocks: b, .. })
        | (Rtcp::ReceiverReport { blocks: a, .. }, Rtcp::ReceiverReport { blocks: b, .. }) => assert!(a.eq(b)),
        (Rtcp::Remb { rate: a, ssrcs: s, .. }, Rtcp::Remb { rate: b, ssrcs: t, .. }) => {
            assert_eq!(a, b);
            assert!(s.eq(t));
        }
        (Rtcp::Fir { entries: a, .. }, Rtcp::Fir { entries: b, .. }) => assert!(a.eq(b)),
        (a @ Rtcp::Nada { .. }, b) => assert_eq!(a, b),
        (a, b) => assert_eq!(core::mem::discriminant(&a), core::mem::discriminant(&b)),
    }
}
