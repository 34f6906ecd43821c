// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties of every packet: what is written is read back, buffers and fields keep their limits, and no bytes from
//! the network cause more than an error.

use crate::fuzz::rtcp;
use crate::only;
use paceline_units::{Ecn, Rate, TimeDelta};
use paceline_wire::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// Returns a compound with one packet of every type. The transport feedback is last.
pub fn everything() -> Vec<u8> {
    let block = ReportBlock { ssrc: 2, fraction_lost: 9, cumulative_lost: -5, ..ReportBlock::default() };
    let mut out = [0xEE; 700];
    let mut w = CompoundWriter::new(&mut out);
    w.sender_report(1, 0x1234_5678_9ABC_DEF0, 90_000, 10, 12_000, &[block; 2]).unwrap();
    w.receiver_report(1, &[block]).unwrap();
    w.sdes_cname(1, "someone@example.org").unwrap();
    w.xr_reference_time(1, 77).unwrap();
    w.xr_delay_since_last(1, &[DelayEntry { ssrc: 3, last_rr: 4, delay_since_last_rr: 5 }]).unwrap();
    w.remb(1, Rate::from_kbps(2500), &[2, 3]).unwrap();
    w.nack(1, 2, &[5, 6, 30]).unwrap();
    w.pli(1, 2).unwrap();
    w.fir(1, &[(2, 3)]).unwrap();
    let (signal, rate) = (TimeDelta::from_millis(52), Rate::from_kbps(900));
    w.nada(1, &NadaFeedback { gradual: true, signal, rate }).unwrap();
    w.app(1, 3, *b"MINE", &[u32::MAX, 33_000, 7]).unwrap();
    let came = |units| Some(Reception { ecn: Ecn::Ect1, offset: ArrivalOffset::Units(units) });
    w.congestion_feedback(1, 77, &[(2, 65_534, &[came(9), None, came(3)]), (3, 8, &[])]).unwrap();
    let arrivals = [Some(1000), None, Some(1300), Some(1299), None, None, Some(1310), Some(1310), Some(1311)];
    assert_eq!(w.transport_feedback(1, 2, 65_530, 255, &arrivals), Ok(9));
    let len = w.finish();
    out[..len].to_vec()
}

/// Reads everything, and writes again what can be written; returns the number of packets.
fn exhaust(bytes: &[u8]) -> Option<usize> {
    rtcp::check(bytes);
    Some(parse_compound(bytes).ok()?.into_iter().count())
}

fn feedback(bytes: &[u8]) -> TransportFeedback<'_> {
    match parse_compound(bytes).unwrap().into_iter().next() {
        Some(Rtcp::TransportFeedback(f)) => f,
        other => panic!("{other:?}"),
    }
}

/// Writes one report. Returns its bytes and how many packets it covers.
fn report(room: usize, base: u16, arrivals: &[Option<i64>]) -> Result<(Vec<u8>, usize), WriteError> {
    let mut out = vec![0xEE; room];
    let mut w = CompoundWriter::new(&mut out);
    let taken = w.transport_feedback(1, 2, base, 0, arrivals)?;
    let len = w.finish();
    out.truncate(len);
    Ok((out, taken))
}

fn ticks(bytes: &[u8]) -> Vec<Option<i64>> {
    feedback(bytes).packets().map(|p| p.1).collect()
}

/// A chunk written as its bits, in groups.
fn bits(groups: &str) -> u16 {
    u16::from_str_radix(&groups.replace(' ', ""), 2).unwrap()
}

#[test]
fn every_packet_type_is_written_and_read() {
    let bytes = everything();
    assert_eq!(exhaust(&bytes), Some(13));
    let kinds: Vec<_> = parse_compound(&bytes).unwrap().into_iter().map(|p| core::mem::discriminant(&p)).collect();
    assert_eq!(kinds.len(), 13);
    let Some(Rtcp::Sdes { mut chunks }) = parse_compound(&bytes).unwrap().into_iter().nth(2) else { panic!() };
    assert_eq!(chunks.next(), Some(SdesChunk { ssrc: 1, cname: Some(b"someone@example.org") }));
}

#[test]
fn truncated_compound_is_rejected_as_a_whole() {
    let bytes = everything();
    // Packets begin after 0, 76, 108, ... bytes: at these lengths the compound is a shorter valid one.
    let mut ends = vec![];
    let mut at = 0;
    while at < bytes.len() {
        at += 4 + 4 * usize::from(u16::from_be_bytes([bytes[at + 2], bytes[at + 3]]));
        ends.push(at);
    }
    assert_eq!(ends.len(), 13);
    for cut in 0..=bytes.len() {
        match ends.iter().position(|&e| e == cut) {
            Some(i) => assert_eq!(exhaust(&bytes[..cut]), Some(i + 1)),
            None => assert_eq!(parse_compound(&bytes[..cut]).unwrap_err(), WireError::RtcpTruncated, "{cut}"),
        }
    }
}

/// Every error of RTCP, as (bytes, error).
#[test]
fn every_malformed_packet_has_its_error() {
    use WireError::*;
    let cases: &[(&[u8], WireError)] = &[
        (&[], RtcpTruncated),
        (&[0x80, 201, 0, 1, 0, 0, 0], RtcpTruncated),
        (&[0x40, 201, 0, 1, 0, 0, 0, 1], BadVersion),
        (&[0x80, 191, 0, 1, 0, 0, 0, 1], NotRtcp),
        (&[0xA0, 201, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0], RtcpPadding),
        (&[0xA0, 201, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3], RtcpPadding),
        (&[0xA0, 201, 0, 2, 0, 0, 0, 1, 0, 0, 0, 12], RtcpPadding),
        (&[0xA0, 201, 0, 0], RtcpPadding),
        (&[0xA0, 201, 0, 2, 0, 0, 0, 1, 0, 0, 0, 4, 0x80, 201, 0, 1, 0, 0, 0, 1], PaddingNotLast),
        (&[0x80, 201, 0, 0], ReportTruncated),
        (&[0x81, 201, 0, 1, 0, 0, 0, 1], ReportTruncated),
        (&[0x80, 200, 0, 1, 0, 0, 0, 1], ReportTruncated),
        (&[0x81, 202, 0, 1, 0, 0, 0, 1], SdesMalformed), // no end of items
        (&[0x81, 202, 0, 2, 0, 0, 0, 1, 1, 3, 65, 66], SdesMalformed), // item too long
        (&[0x82, 202, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0], SdesMalformed), // one chunk of two
        (&[0x82, 203, 0, 1, 0, 0, 0, 1], ByeMalformed),
        (&[0x81, 203, 0, 2, 0, 0, 0, 1, 4, 65, 66, 67], ByeMalformed),
        (&[0x80, 204, 0, 1, 0, 0, 0, 1], AppTruncated),
        (b"\x80\xCC\0\x03\0\0\0\x01NADA\0\0\0\0", AppLength), // a word is missing
        (b"\x80\xCC\0\x05\0\0\0\x01NADA\0\0\0\0\0\0\0\0\0\0\0\0", AppLength), // a word too many
        (&[0x80, 207, 0, 0], XrMalformed),
        (&[0x80, 207, 0, 2, 0, 0, 0, 1, 9, 0, 0, 1], XrMalformed), // block too long
        (&[0x80, 207, 0, 2, 0, 0, 0, 1, 4, 0, 0, 0], XrMalformed), // reference time without its time
        (&[0x80, 207, 0, 5, 0, 0, 0, 1, 4, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], XrMalformed), // too much
        (&[0x80, 207, 0, 3, 0, 0, 0, 1, 5, 0, 0, 1, 0, 0, 0, 0], XrMalformed), // a third of an entry
        (&[0x81, 205, 0, 1, 0, 0, 0, 1], FeedbackTruncated),
        (&[0x81, 205, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2], NackEmpty),
        (&[0x81, 206, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0], PliLength),
        (&[0x84, 206, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0], FirLength),
        (&[0x84, 206, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2], FirLength),
        (b"\x8F\xCE\0\x03\0\0\0\x01\0\0\0\0REMB", RembLength),
        (b"\x8F\xCE\0\x04\0\0\0\x01\0\0\0\0REMB\x01\0\0\x01", RembLength), // one SSRC, but none is there
        (b"\x8F\xCE\0\x05\0\0\0\x01\0\0\0\0REMB\0\0\0\x01\0\0\0\x02", RembLength), // none, but one is there
        (b"\x8F\xCE\0\x04\0\0\0\x01\0\0\0\0REMB\0\xBF\xFF\xFF", RembOverflow), // 0x3FFFF << 47
        (&[0x8F, 205, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1], TwccTruncated),
        (&twcc(0, &[0x20, 1, 0, 0]), TwccEmpty),
        (&twcc(3, &[0x20, 1, 0x20, 1]), TwccChunksMissing), // two runs of one, no room for more
        (&twcc(1, &[0, 0, 0, 0]), TwccChunksMissing),       // runs of nothing
        (&twcc(1, &[0x60, 1, 0, 0]), TwccReservedSymbol),
        (&twcc(3, &[0xC7, 0, 0, 0]), TwccReservedSymbol), // 00 01 11
        (&twcc(3, &[0x20, 3, 9, 9]), TwccDeltasMissing),
        (&twcc(2, &[0x40, 2, 9, 9]), TwccDeltasMissing),
        (&[0x8B, 205, 0, 1, 0, 0, 0, 1], CcfbTruncated),   // no timestamp
        (&ccfb(&[0, 0, 0, 2]), CcfbTruncated),             // half a block's head
        (&ccfb(&[0, 0, 0, 2, 0, 9, 0, 1]), CcfbTruncated), // one packet, and it is the timestamp
        (&ccfb(&[0, 0, 0, 2, 0, 9, 0, 3, 0x80, 0, 0x80, 0]), CcfbTruncated), // three packets, room for two
        (&ccfb(&[0, 0, 0, 2, 0, 9, 0x40, 1]), CcfbTooMany), // 16385
    ];
    for (bytes, error) in cases {
        assert_eq!(parse_compound(bytes).err(), Some(*error), "{bytes:x?}");
    }
    let rtp_kinds = [
        RtpTruncated,
        ExtensionOverrun,
        RtpPadding,
        RtxTruncated,
        Vp8Truncated,
        RedTruncated,
        FecTruncated,
        FecEmpty,
        FecRecovery,
    ];
    for kind in WireError::ALL {
        assert!(rtp_kinds.contains(kind) || cases.iter().any(|c| c.1 == *kind), "{kind:?} has no case");
    }
}

/// Returns a transport feedback with this status count and these chunks and deltas.
fn twcc(count: u8, rest: &[u8]) -> Vec<u8> {
    let mut p = vec![0x8F, 205, 0, (4 + rest.len() / 4) as u8, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, count, 0, 0, 0, 0];
    p.extend(rest);
    p
}

/// Returns a congestion control feedback with these blocks.
fn ccfb(blocks: &[u8]) -> Vec<u8> {
    let mut p = vec![0x8B, 205, 0, (2 + blocks.len() / 4) as u8, 0, 0, 0, 1];
    p.extend(blocks);
    p.extend([0, 0, 0, 77]);
    p
}

#[test]
fn unusual_but_valid_packets_are_read() {
    // The largest REMB that fits 64 bits: 0x3FFFF << 46.
    let remb = b"\x8F\xCE\0\x04\0\0\0\x01\0\0\0\0REMB\0\xBB\xFF\xFF";
    let Rtcp::Remb { rate, .. } = only(remb) else { panic!() };
    assert_eq!(rate.as_bps(), 0x3_FFFF << 46);
    let mut out = [0; 20];
    let mut w = CompoundWriter::new(&mut out);
    w.remb(1, Rate::MAX, &[]).unwrap();
    assert_eq!(out, *remb, "the rate that stands for no limit is written as the largest");

    // Another application-layer message, another feedback format, an unknown packet type.
    for (bytes, packet_type, format) in [
        (&b"\x8F\xCE\0\x03\0\0\0\x01\0\0\0\0ABCD"[..], 206, 15),
        (&b"\x83\xCD\0\x02\0\0\0\x01\0\0\0\0"[..], 205, 3),
        (&b"\x80\xC0\0\0"[..], 192, 0),
    ] {
        let read: Vec<_> = parse_compound(bytes).unwrap().into_iter().collect();
        assert_eq!(read, [Rtcp::Other { packet_type, format }]);
    }
    // Padding on the last packet is not content: two words of it, the NACK keeps one entry.
    let nack = [0xA1, 205, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8];
    let Rtcp::Nack { lost, .. } = only(&nack) else { panic!() };
    assert_eq!(lost.collect::<Vec<_>>(), [9]);
    // Transport feedback: fill bytes with and without P bit; with it, also before another packet.
    let with_p = [&[0xAF][..], &twcc(1, &[0x20, 1, 8, 1])[1..]].concat();
    for bytes in [&twcc(1, &[0x20, 1, 8, 0])[..], &with_p] {
        assert_eq!(ticks(bytes), [Some(8)]);
        assert_eq!(exhaust(&[bytes, &[0x80, 201, 0, 1, 0, 0, 0, 1]].concat()), Some(2));
    }
    // Congestion feedback on no stream; bits set with a zero R; fill that is not zero.
    assert_eq!(exhaust(&ccfb(&[])), Some(1));
    let bytes = ccfb(&[0, 0, 0, 2, 255, 255, 0, 3, 0x7F, 0xFF, 0xE0, 2, 0x1F, 0xFF, 0xFF, 0xFF]);
    let Rtcp::CongestionFeedback(f) = only(&bytes) else { panic!() };
    let packets: Vec<_> = f.blocks().flat_map(|b| b.packets()).collect();
    let marked = Reception { ecn: Ecn::Ce, offset: ArrivalOffset::Units(2) };
    assert_eq!((f.timestamp, packets), (77, vec![(65_535, None), (0, Some(marked)), (1, None)]));
    // A reserved symbol after the counted ones.
    assert_eq!(ticks(&twcc(2, &[0xC7, 0, 8, 0])), [None, Some(8)]);
    // Nothing but padding, where a body may be empty.
    assert_eq!(exhaust(&[0xA0, 202, 0, 1, 0, 0, 0, 4]), Some(1));
    // A goodbye with its reason, a report with a profile's extension.
    let bye = [0x81, 203, 0, 2, 0, 0, 0, 7, 2, b'o', b'k', 0];
    let Rtcp::Bye { ssrcs, reason } = only(&bye) else { panic!() };
    assert_eq!((ssrcs.collect::<Vec<_>>(), reason), (vec![7], Some(&b"ok"[..])));
    assert_eq!(exhaust(&[0x80, 201, 0, 2, 0, 0, 0, 1, 9, 9, 9, 9]), Some(1));
    // Two chunks. The first has an item before its CNAME, and its end falls on a word of its own; the second SSRC
    // begins with zeros.
    let sdes = [
        &[0x82, 202, 0, 7, 0, 0, 0, 1, 6, 1, b't', 1, 3, b'a', b'b', b'c', 0, 0, 0, 0][..],
        &[0, 0, 0, 2, 1, 2, b'd', b'e', 0, 0, 0, 0],
    ];
    let sdes = sdes.concat();
    let Rtcp::Sdes { chunks } = only(&sdes) else { panic!() };
    let read: Vec<_> = chunks.map(|c| (c.ssrc, c.cname.unwrap())).collect();
    assert_eq!(read, [(1, &b"abc"[..]), (2, b"de")]);
}

#[test]
fn writer_is_unchanged_if_a_packet_does_not_fit() {
    let full = everything();
    for room in 0..24 {
        let mut out = vec![0xEE; room];
        let mut w = CompoundWriter::new(&mut out);
        w.pli(1, 2).and_then(|()| w.remb(1, Rate::from_bps(1), &[])).unwrap_err();
        let len = w.len();
        assert_eq!(len, if room < 12 { 0 } else { 12 });
        assert_eq!(w.is_empty(), len == 0);
        assert_eq!(w.sdes_cname(1, "0123456789"), Err(WriteError::BufferFull));
        assert_eq!(w.transport_feedback(1, 2, 0, 0, &[Some(1)]), Err(WriteError::BufferFull));
        assert_eq!(w.finish(), len);
        assert!(out[len..].iter().all(|&b| b == 0xEE));
    }
    let mut out = [0; 9000];
    let mut w = CompoundWriter::new(&mut out);
    assert_eq!(w.receiver_report(1, &[ReportBlock::default(); 32]), Err(WriteError::TooMany));
    assert_eq!(w.remb(1, Rate::ZERO, &[0; 256]), Err(WriteError::TooMany));
    assert_eq!(w.sdes_cname(1, &"x".repeat(256)), Err(WriteError::TooMany));
    assert_eq!(w.nack(1, 2, &[]), Err(WriteError::Empty));
    assert_eq!(w.fir(1, &[]), Err(WriteError::Empty));
    assert_eq!(w.transport_feedback(1, 2, 0, 0, &[None, None]), Err(WriteError::Empty));
    let many = vec![None; 16_385];
    assert_eq!(w.congestion_feedback(1, 2, &[(3, 4, &many)]), Err(WriteError::TooMany));
    assert_eq!(w.congestion_feedback(1, 2, &[(3, 4, &many[1..])]), Err(WriteError::BufferFull));
    assert!(w.is_empty());
    w.receiver_report(1, &[ReportBlock::default(); 31]).unwrap();
    w.remb(1, Rate::ZERO, &[0; 255]).unwrap();
    w.sdes_cname(1, &"x".repeat(255)).unwrap();
    let len = w.finish();
    assert_eq!(exhaust(&out[..len]), Some(3));
    assert!(full.len() > 200);
}

/// The returned number of packets fits, one more does not.
#[test]
fn congestion_feedback_room_is_exact() {
    let packets = vec![Some(Reception { ecn: Ecn::Ect0, offset: ArrivalOffset::Units(7) }); 200];
    for (room, first, fits) in [(19, None, 0), (24, None, 2), (27, None, 2), (28, None, 4), (256, None, 118)]
        .into_iter()
        .chain([(256, Some(0), 114), (256, Some(1), 112), (256, Some(2), 112), (30, Some(3), 0)])
    {
        let mut out = vec![0xEE; room];
        let mut w = CompoundWriter::new(&mut out);
        assert_eq!(w.congestion_feedback_room(first), fits, "{room} bytes, {first:?}");
        let mut report = |n| {
            let blocks: Vec<_> = first.into_iter().chain([n]).map(|n| (1, 0, &packets[..n])).collect();
            w.congestion_feedback(1, 2, &blocks)
        };
        assert_eq!(report(fits + 1), Err(WriteError::BufferFull));
        if fits > 0 {
            assert_eq!(report(fits), Ok(()));
            assert_eq!(w.finish(), room & !3);
        }
    }
    let mut out = vec![0; 40_000];
    let mut w = CompoundWriter::new(&mut out);
    assert_eq!(w.congestion_feedback_room([]), 16_384);
    w.congestion_feedback(1, 2, &[(3, 4, &vec![None; 16_384])]).unwrap();
    let len = w.finish();
    assert_eq!((len, exhaust(&out[..len])), (20 + 2 * 16_384, Some(1)));
}

#[test]
fn losses_saturate_to_24_bits() {
    for (lost, read) in [(i32::MAX, 0x7F_FFFF), (i32::MIN, -0x80_0000), (-1, -1), (0x7F_FFFF, 0x7F_FFFF)] {
        let mut out = [0; 32];
        let mut w = CompoundWriter::new(&mut out);
        w.receiver_report(1, &[ReportBlock { cumulative_lost: lost, ..ReportBlock::default() }]).unwrap();
        let Some(Rtcp::ReceiverReport { mut blocks, .. }) = parse_compound(&out).unwrap().into_iter().next() else {
            panic!()
        };
        assert_eq!(blocks.next().unwrap().cumulative_lost, read);
    }
}

/// Deltas at the limits of their fields: 63.75 and 64 ms, -0.25 ms, the 16-bit limits, and one beyond.
#[test]
fn deltas_use_the_whole_range_of_their_fields() {
    // (delta in ticks, bytes of the report: 20 + chunk 2 + first delta 1 + this delta, padded)
    for (delta, long) in [(255, false), (256, true), (-1, true), (32_767, true), (-32_768, true)] {
        let arrivals = [Some(512), Some(512 + delta)];
        let (bytes, taken) = report(100, 9, &arrivals).unwrap();
        assert_eq!(taken, 2);
        assert_eq!(ticks(&bytes), arrivals, "{delta}");
        let chunk = u16::from_be_bytes([bytes[20], bytes[21]]);
        // A run of two small ones, or one small and one large in two bits each.
        assert_eq!(chunk, if long { bits("11 01 10 00 00 00 00 00") } else { 0x2002 }, "{delta}");
    }
    for delta in [32_768, -32_769, 1 << 40] {
        let arrivals = [Some(512), None, Some(512 + delta), Some(513 + delta)];
        let (bytes, taken) = report(100, 65_535, &arrivals).unwrap();
        assert_eq!((taken, ticks(&bytes)), (1, vec![Some(512)]), "{delta}: ends after the last that arrived");
        // The caller goes on with a new report, which begins with the missing one.
        let (bytes, taken) = report(100, 0, &arrivals[1..]).unwrap();
        assert_eq!(taken, 3);
        let modulo: Vec<_> = arrivals[1..].iter().map(|a| a.map(|t| unwrap_ticks(0, t))).collect();
        assert_eq!(ticks(&bytes), modulo);
    }
}

#[test]
fn reference_time_is_rounded_down_and_wraps() {
    for (first, reference) in [(0, 0), (255, 0), (256, 1), (-1, -1), (-256, -1), (-257, -2)] {
        let (bytes, _) = report(100, 0, &[Some(first)]).unwrap();
        assert_eq!(feedback(&bytes).reference_time, reference);
        assert_eq!(ticks(&bytes), [Some(first)]);
    }
    // 0x7FFFFF -> 0x800000: the field changes its sign, the unwrapped time goes on.
    let before = 0x7F_FFFF * 256 + 255;
    let (last, _) = report(100, 0, &[Some(before)]).unwrap();
    let (next, _) = report(100, 1, &[Some(before + 1)]).unwrap();
    assert_eq!(feedback(&last).reference_time, 0x7F_FFFF);
    assert_eq!(feedback(&next).reference_time, -0x80_0000);
    assert_eq!(unwrap_ticks(before, ticks(&next)[0].unwrap()), before + 1);
    assert_eq!(unwrap_ticks(before + 1, ticks(&last)[0].unwrap()), before, "and back, after reordering");
    // Within one report it does not wrap.
    let (across, _) = report(100, 0, &[Some(before), Some(before + 1)]).unwrap();
    assert_eq!(ticks(&across), [Some(before), Some(before + 1)]);
}

/// The chunks that the strategy of libwebrtc selects, computed by hand.
#[test]
fn chunks_equal_those_of_libwebrtc() {
    let chunks = |pattern: &str| {
        let mut at = 0;
        let arrivals: Vec<_> = pattern
            .chars()
            .map(|c| match c {
                '0' => None,
                '1' => Some(at),
                _ => {
                    at += 256;
                    Some(at)
                }
            })
            .collect();
        let (bytes, taken) = report(70_000, 0, &arrivals).unwrap();
        assert_eq!(taken, arrivals.len());
        assert_eq!(ticks(&bytes), arrivals);
        let mut out = vec![];
        let (mut covered, mut i) = (0, 20);
        while covered < arrivals.len() {
            let chunk = u16::from_be_bytes([bytes[i], bytes[i + 1]]);
            covered += match chunk >> 14 {
                2 => 14,
                3 => 7,
                _ => usize::from(chunk & 0x1FFF),
            };
            out.push(chunk);
            i += 2;
        }
        out
    };
    let run = |symbol: u16, len: u16| symbol << 13 | len;
    assert_eq!(chunks("1"), [run(1, 1)]);
    assert_eq!(chunks("1011010"), [bits("11 01 00 01 01 00 01 00")], "at most 7: two bits");
    assert_eq!(chunks("10110100"), [bits("10 10110100 000000")], "8 to 14 without large: one bit");
    assert_eq!(chunks("10110100111111"), [bits("10 10110100 111111")]);
    assert_eq!(chunks("101101001111111"), [bits("10 10110100 111111"), run(1, 1)]);
    // The 8th is large: the first 7 leave as two bits.
    assert_eq!(chunks("10110102"), [bits("11 01 00 01 01 00 01 00"), run(2, 1)]);
    // 12 small ones mixed, then a large one: 7 as two bits, 5 stay and take it.
    assert_eq!(chunks("1011010011112"), [bits("11 01 00 01 01 00 01 00"), bits("11 00 01 01 01 01 10 00")]);
    assert_eq!(chunks(&("1".repeat(20) + "0")), [run(1, 20), run(0, 1)]);
    assert_eq!(chunks(&("1".repeat(13) + "0")), [bits("10 1111111111111 0")]);
    assert_eq!(chunks(&("1".to_owned() + &"0".repeat(8200) + "1")), {
        // 1 and 13 zeros fill one bit; then runs of at most 8191.
        vec![bits("10 1000000 0000000"), run(0, 8187), run(1, 1)]
    });
    assert_eq!(chunks(&"1".repeat(8192)), [run(1, 8191), run(1, 1)]);
}

#[test]
fn longest_report_is_written_and_read() {
    let arrivals: Vec<_> = (0..70_000i64).map(|i| Some(i * 300)).collect();
    let (bytes, taken) = report(200_000, 1, &arrivals).unwrap();
    assert_eq!(taken, 65_535);
    assert_eq!(ticks(&bytes), arrivals[..taken]);
}

fn arrivals() -> impl Strategy<Value = Vec<Option<i64>>> {
    let step = prop_oneof![
        6 => (0i64..30).prop_map(Some),
        2 => Just(None),
        1 => (-40i64..0).prop_map(Some),
        1 => prop::sample::select(vec![255, 256, -1, 32_767, 32_768, -32_768, -32_769, 1 << 20]).prop_map(Some),
    ];
    let repeated = (step, prop_oneof![4 => 1usize..4, 1 => 1usize..40]);
    (-(1i64 << 31)..1 << 31, vec(repeated, 1..60)).prop_map(|(start, steps)| {
        let mut at = start;
        let repeated = steps.into_iter().flat_map(|(step, n)| std::iter::repeat_n(step, n));
        repeated
            .map(|step| {
                step.map(|delta| {
                    at += delta;
                    at
                })
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Any arrivals, in as many reports as the buffer requires. The report count wraps at 256.
    #[test]
    fn feedback_in_several_reports_is_complete(base in any::<u16>(), arrivals in arrivals(), room in 28usize..200, count in any::<u8>()) {
        let (mut done, mut sequence, mut count, mut read) = (0, base, count, vec![]);
        while arrivals[done..].iter().any(Option::is_some) {
            let mut out = vec![0xEE; room];
            let mut w = CompoundWriter::new(&mut out);
            let taken = match w.transport_feedback(1, 2, sequence, count, &arrivals[done..]) {
                Ok(taken) => taken,
                // Losses alone may fill a small buffer before the first arrival.
                Err(e) => {
                    prop_assert_eq!(e, WriteError::BufferFull);
                    prop_assert!(arrivals[done].is_none());
                    read.push((sequence, None));
                    done += 1;
                    sequence = sequence.wrapping_add(1);
                    continue;
                }
            };
            let len = w.finish();
            prop_assert!(taken > 0 && len <= room && len.is_multiple_of(4));
            let f = feedback(&out[..len]);
            prop_assert_eq!((f.base_sequence, f.feedback_count, usize::from(f.status_count)), (sequence, count, taken));
            prop_assert_eq!(f.packets().len(), taken);
            read.extend(f.packets());
            done += taken;
            sequence = sequence.wrapping_add(taken as u16);
            count = count.wrapping_add(1);
        }
        prop_assert_eq!(read.len(), done);
        let mut previous = arrivals.iter().find_map(|a| *a).unwrap_or(0);
        for (i, (sequence, at)) in read.into_iter().enumerate() {
            prop_assert_eq!(sequence, base.wrapping_add(i as u16));
            let at = at.map(|at| { previous = unwrap_ticks(previous, at); previous });
            prop_assert_eq!(at, arrivals[i]);
        }
    }

    #[test]
    fn ticks_unwrap_to_the_nearest(previous in -(1i64 << 50)..1 << 50, step in -(1i64 << 31)..1 << 31) {
        let on_the_wire = i64::from((previous + step) as i32);
        prop_assert_eq!(unwrap_ticks(previous, on_the_wire), previous + step);
    }

    /// Random content after a plausible header.
    #[test]
    fn random_packets_never_panic(packet_type in 200u8..208, first in any::<u8>(), mut body in vec(any::<u8>(), 0..160), named in any::<bool>()) {
        body.truncate(body.len() & !3);
        if named && body.len() >= 12 {
            body[8..12].copy_from_slice(b"REMB");
            body[4..8].copy_from_slice(if first & 1 == 0 { b"NADA" } else { b"MINE" });
        }
        let mut bytes = vec![0x80 | first & 0x3F, packet_type];
        bytes.extend((body.len() as u16 / 4).to_be_bytes());
        bytes.extend(body);
        exhaust(&bytes);
    }

    /// Application packets with known names and about the right length.
    #[test]
    fn random_application_packets_never_panic(nada in any::<bool>(), subtype in 0u8..3, words in 0usize..6, data in vec(any::<u8>(), 20)) {
        let mut bytes = vec![0x80 | subtype, 204, 0, 2 + words as u8, 0, 0, 0, 1];
        bytes.extend(if nada { b"NADA" } else { b"MINE" });
        bytes.extend(&data[..4 * words.min(5)]);
        bytes.resize(12 + 4 * words, 0);
        let read = parse_compound(&bytes).map(|c| c.into_iter().next().unwrap());
        let (read_here, whole) = (subtype == 0 && nada, words == 2);
        match read {
            Ok(Rtcp::App { data, .. }) => prop_assert!(!read_here && data.len() == 4 * words),
            Ok(Rtcp::Nada { .. }) => prop_assert!(read_here && whole),
            Err(WireError::AppLength) => prop_assert!(read_here && !whole),
            other => prop_assert!(false, "{other:?}"),
        }
        exhaust(&bytes);
    }

    /// Random blocks with small counts.
    #[test]
    fn random_congestion_feedback_never_panics(count in 0u8..12, rest in vec(any::<u8>(), 0..80)) {
        let mut blocks = [&[0, 0, 0, 2, 0, 9, 0, count][..], &rest[..rest.len() & !3]].concat();
        if let Some(high) = blocks.get_mut(14 + 2 * usize::from(count.next_multiple_of(2))) {
            *high = 0; // of the second block's count
        }
        exhaust(&ccfb(&blocks));
    }

    /// Random chunks with a small status count, so that there are deltas.
    #[test]
    fn random_feedback_never_panics(count in 1u8..60, rest in vec(any::<u8>(), 4..80)) {
        let bytes = twcc(count, &rest[..rest.len() & !3]);
        if exhaust(&bytes).is_some() {
            prop_assert_eq!(ticks(&bytes).len(), usize::from(count));
        }
    }
}
