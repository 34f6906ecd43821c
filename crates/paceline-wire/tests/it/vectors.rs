// SPDX-License-Identifier: MIT OR Apache-2.0
//! Test vectors: made by hand, or captured from Chromium 156. Their decoded fields are those of two or three other
//! implementations. This crate reads the same fields, and writes the same bytes.

use crate::{only, written};
use paceline_units::{Ecn, Rate, TimeDelta};
use paceline_wire::*;
use serde_json::Value;

fn vectors(json: &str) -> Vec<(String, Vec<u8>, Value)> {
    let file: Value = serde_json::from_str(json).unwrap();
    let vectors = file["vectors"].as_array().unwrap();
    vectors.iter().map(|v| (v["name"].as_str().unwrap().to_owned(), bytes(&v["hex"]), v["decoded"].clone())).collect()
}

/// Returns the bytes of every vector.
pub fn all() -> Vec<Vec<u8>> {
    let files = [
        include_str!("vectors/rtp.json"),
        include_str!("vectors/rtcp.json"),
        include_str!("vectors/remb.json"),
        include_str!("vectors/twcc.json"),
        include_str!("vectors/ccfb.json"),
    ];
    files.into_iter().flat_map(vectors).map(|(_, bytes, _)| bytes).collect()
}

fn bytes(hex: &Value) -> Vec<u8> {
    let hex = hex.as_str().unwrap();
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

/// A number, or text like `"0x11223344"`.
fn number(v: &Value) -> i64 {
    match v.as_str() {
        Some(text) => i64::from_str_radix(text.strip_prefix("0x").unwrap(), 16).unwrap(),
        None => v.as_i64().unwrap(),
    }
}
fn u32_of(v: &Value) -> u32 {
    number(v).try_into().unwrap()
}
fn list(v: &Value) -> impl Iterator<Item = &Value> {
    v.as_array().unwrap().iter()
}

#[test]
fn rtp_vectors_are_read_and_written() {
    let ids = ExtensionIds::default();
    let vectors = vectors(include_str!("vectors/rtp.json"));
    assert_eq!(vectors.len(), 4);
    for (name, packet, d) in vectors {
        let (h, offset) = RtpHeader::parse(&packet, &ids).unwrap();
        assert_eq!(h.marker, d["marker"], "{name}");
        assert_eq!(h.padding, d["padding"], "{name}");
        assert_eq!(i64::from(h.payload_type), number(&d["payload_type"]), "{name}");
        assert_eq!(i64::from(h.sequence), number(&d["sequence"]), "{name}");
        assert_eq!(i64::from(h.timestamp), number(&d["timestamp"]), "{name}");
        assert_eq!(h.ssrc, u32_of(&d["ssrc"]), "{name}");
        assert_eq!(offset as i64, number(&d["payload_offset"]), "{name}");
        let element = |id: u8, len: usize| {
            let elements = d["elements"].as_array()?;
            let data = bytes(&elements.iter().find(|e| e["id"] == id)?["data"]);
            Some(data[..len].iter().fold(0, |n, &b| n << 8 | u32::from(b)))
        };
        assert_eq!(h.abs_send_time.map(AbsSendTime::bits), element(2, 3), "{name}");
        assert_eq!(h.transport_sequence.map(u32::from), element(3, 2), "{name}");
        let padding = if h.padding { padding_len(&packet, offset).unwrap() } else { 0 };
        assert_eq!(padding as i64, d["pad_bytes"].as_i64().unwrap_or(0), "{name}");
        assert_eq!(packet[offset..packet.len() - padding], bytes(&d["payload"]), "{name}");
        assert!(!is_rtcp(&packet), "{name}");
        if name == "rtp_rtx" {
            assert_eq!(rtx::read(&packet[offset..]), Ok(0x1234));
        }
        // Elements that this crate does not know are not written again; a header without them is the same bytes.
        let mut out = [0; RtpHeader::MAX_LEN];
        let len = h.write(&ids, &mut out);
        assert_eq!(RtpHeader::parse(&out, &ids), Ok((h, len)), "{name}");
        if d["elements"].is_null() {
            assert_eq!(out[..len], packet[..offset], "{name}");
        }
    }
}

/// The content of the first Chromium packet of a call without its MID: both elements and one byte of padding.
#[test]
fn rtp_header_as_chromium_writes_it() {
    let header = RtpHeader {
        payload_type: 118,
        sequence: 12911,
        timestamp: 34759372,
        ssrc: 0x21702c9f,
        abs_send_time: Some(AbsSendTime::from_bits(0x1c77fd)),
        transport_sequence: Some(31),
        ..RtpHeader::default()
    };
    let mut out = [0xEE; RtpHeader::MAX_LEN];
    assert_eq!(header.write(&ExtensionIds::default(), &mut out), 24);
    let expected = "9076326f021262cc21702c9f" /* fixed */
        .to_owned()
        + "bede0002221c77fd31001f00";
    assert_eq!(out[..], bytes(&Value::String(expected)));
}

fn blocks(d: &Value) -> Vec<ReportBlock> {
    list(&d["blocks"])
        .map(|b| ReportBlock {
            ssrc: u32_of(&b["ssrc"]),
            fraction_lost: number(&b["fraction_lost"]).try_into().unwrap(),
            cumulative_lost: number(&b["cumulative_lost"]).try_into().unwrap(),
            highest_sequence: u32_of(&b["ext_highest_seq"]),
            jitter: u32_of(&b["jitter"]),
            last_sr: u32_of(&b["lsr"]),
            delay_since_last_sr: u32_of(&b["dlsr"]),
        })
        .collect()
}

fn stamp(d: &Value) -> u64 {
    u64::from(u32_of(&d["ntp_sec"])) << 32 | u64::from(u32_of(&d["ntp_frac"]))
}

#[test]
fn rtcp_vectors_are_read_and_written() {
    let vectors = vectors(include_str!("vectors/rtcp.json"));
    assert_eq!(vectors.len(), 11);
    for (name, packet, d) in vectors {
        assert!(is_rtcp(&packet));
        let again = match only(&packet) {
            Rtcp::SenderReport { ssrc, ntp, rtp_timestamp, packets, octets, blocks: read } => {
                assert_eq!(number(&d["packet_type"]), 200, "{name}");
                assert_eq!((ssrc, ntp), (u32_of(&d["ssrc"]), stamp(&d)), "{name}");
                assert_eq!(rtp_timestamp, u32_of(&d["rtp_timestamp"]), "{name}");
                assert_eq!((packets, octets), (u32_of(&d["packets"]), u32_of(&d["octets"])), "{name}");
                assert!(read.eq(blocks(&d)), "{name}");
                written(|w| w.sender_report(ssrc, ntp, rtp_timestamp, packets, octets, &blocks(&d)))
            }
            Rtcp::ReceiverReport { ssrc, blocks: read } => {
                assert_eq!(number(&d["packet_type"]), 201, "{name}");
                assert_eq!(ssrc, u32_of(&d["ssrc"]), "{name}");
                assert!(read.eq(blocks(&d)), "{name}");
                written(|w| w.receiver_report(ssrc, &blocks(&d)))
            }
            Rtcp::Nack { sender_ssrc, media_ssrc, lost } => {
                assert_eq!((sender_ssrc, media_ssrc), (u32_of(&d["sender_ssrc"]), u32_of(&d["media_ssrc"])));
                let lost: Vec<u16> = lost.collect();
                assert!(lost.iter().map(|&l| i64::from(l)).eq(list(&d["lost"]).map(number)), "{lost:?}");
                written(|w| w.nack(sender_ssrc, media_ssrc, &lost))
            }
            Rtcp::Pli { sender_ssrc, media_ssrc } => {
                assert_eq!((sender_ssrc, media_ssrc), (u32_of(&d["sender_ssrc"]), u32_of(&d["media_ssrc"])));
                written(|w| w.pli(sender_ssrc, media_ssrc))
            }
            Rtcp::Fir { sender_ssrc, entries } => {
                assert_eq!(sender_ssrc, u32_of(&d["sender_ssrc"]));
                let entries: Vec<_> = entries.collect();
                let listed = list(&d["entries"]).map(|e| (u32_of(&e["ssrc"]), number(&e["seq_nr"]) as u8));
                assert!(entries.iter().copied().eq(listed));
                written(|w| w.fir(sender_ssrc, &entries))
            }
            Rtcp::Xr { ssrc, mut blocks } => {
                assert_eq!(ssrc, u32_of(&d["ssrc"]), "{name}");
                let listed = &d["blocks"][0];
                let block = blocks.next().unwrap();
                assert_eq!(blocks.next(), None);
                match block {
                    XrBlock::ReferenceTime { ntp } => {
                        assert_eq!((4, ntp), (number(&listed["block_type"]), stamp(listed)));
                        written(|w| w.xr_reference_time(ssrc, ntp))
                    }
                    XrBlock::DelaySinceLast(entries) => {
                        let entries: Vec<_> = entries.collect();
                        let listed = list(&listed["reports"]).map(|r| DelayEntry {
                            ssrc: u32_of(&r["ssrc"]),
                            last_rr: u32_of(&r["lrr"]),
                            delay_since_last_rr: u32_of(&r["dlrr"]),
                        });
                        assert!(entries.iter().copied().eq(listed), "{name}");
                        written(|w| w.xr_delay_since_last(ssrc, &entries))
                    }
                    other => panic!("{name}: {other:?}"),
                }
            }
            Rtcp::Bye { ssrcs, reason } => {
                assert!(ssrcs.eq(list(&d["ssrcs"]).map(u32_of)));
                assert_eq!(reason, None);
                packet.clone() // not written by this crate
            }
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(again, packet, "{name}");
    }
}

#[test]
fn remb_vectors_are_read_and_written() {
    let vectors = vectors(include_str!("vectors/remb.json"));
    assert_eq!(vectors.len(), 8);
    for (name, packet, d) in vectors {
        let Rtcp::Remb { sender_ssrc, rate, ssrcs } = only(&packet) else { panic!("{name}") };
        assert_eq!(sender_ssrc, u32_of(&d["sender_ssrc"]), "{name}");
        assert_eq!(rate.as_bps(), d["bitrate_bps"].as_u64().unwrap(), "{name}");
        assert!(ssrcs.eq(list(&d["ssrcs"]).map(u32_of)), "{name}");
        let requested = Rate::from_bps(d["requested_bps"].as_u64().unwrap_or(rate.as_bps()));
        let ssrcs: Vec<u32> = ssrcs.collect();
        assert_eq!(written(|w| w.remb(sender_ssrc, requested, &ssrcs)), packet, "{name}");
    }
}

/// By hand: RFC 8698, section 5.3, in two words; 5.5 ms is 55 units, 3.2767 s the largest.
#[test]
fn nada_vectors_are_read_and_written() {
    let ms = TimeDelta::from_millis_f64;
    let head = b"\x80\xCC\0\x04\x11\x22\x33\x44NADA";
    // (mode, signal and rate as requested, signal and rate as read, data)
    let cases: [(_, _, _, _, _, [u8; 8]); 5] = [
        (false, 0.0, 0, 0.0, 0, [0; 8]),
        (true, 5.5, 1_000_000, 5.5, 1_000_000, [0x80, 55, 0, 0, 0, 0x0F, 0x42, 0x40]),
        (false, 52.04, 900_000, 52.0, 900_000, [0x02, 0x08, 0, 0, 0, 0x0D, 0xBB, 0xA0]),
        (true, 52.06, 1, 52.1, 1, [0x82, 0x09, 0, 0, 0, 0, 0, 1]),
        (true, 4000.0, u64::MAX, 3276.7, u32::MAX.into(), [0xFF, 0xFF, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF]),
    ];
    for (gradual, asked, asked_bps, signal, bps, data) in cases {
        let packet = [&head[..], &data].concat();
        let of = |signal, bps| NadaFeedback { gradual, signal: ms(signal), rate: Rate::from_bps(bps) };
        assert_eq!(written(|w| w.nada(0x1122_3344, &of(asked, asked_bps))), packet, "{asked} ms");
        assert_eq!(only(&packet), Rtcp::Nada { ssrc: 0x1122_3344, feedback: of(signal, bps) }, "{asked} ms");
    }
    // A signal below zero is none, and reserved bits are not read.
    let feedback = NadaFeedback { gradual: false, signal: ms(-5.0), rate: Rate::ZERO };
    assert_eq!(written(|w| w.nada(0x1122_3344, &feedback)), [&head[..], &[0; 8]].concat());
    let Rtcp::Nada { feedback, .. } = only(b"\x80\xCC\0\x04\0\0\0\x01NADA\0\x01\xFF\xFF\0\0\0\x02") else { panic!() };
    assert_eq!(feedback, NadaFeedback { gradual: false, signal: ms(0.1), rate: Rate::from_bps(2) });
}

#[test]
fn transport_feedback_vectors_are_read_and_written() {
    let vectors = vectors(include_str!("vectors/twcc.json"));
    assert_eq!(vectors.len(), 7);
    for (name, packet, d) in vectors {
        let Rtcp::TransportFeedback(f) = only(&packet) else { panic!("{name}") };
        assert_eq!(f.sender_ssrc, u32_of(&d["sender_ssrc"]), "{name}");
        assert_eq!(f.media_ssrc, u32_of(&d["media_ssrc"]), "{name}");
        assert_eq!(i64::from(f.base_sequence), number(&d["base_seq"]), "{name}");
        assert_eq!(i64::from(f.status_count), number(&d["status_count"]), "{name}");
        assert_eq!(i64::from(f.reference_time), number(&d["reference_time_signed"]), "{name}");
        assert_eq!(i64::from(f.feedback_count), number(&d["feedback_count"]), "{name}");

        let statuses: Vec<_> = f.packets().collect();
        assert_eq!(statuses.len(), usize::from(f.status_count), "{name}");
        let symbols = d["symbols"].as_str().unwrap();
        assert!(statuses.iter().map(|s| s.1.is_some()).eq(symbols.chars().map(|c| c != '0')), "{name}");
        let received = statuses.iter().filter_map(|&(sequence, at)| {
            Some((i64::from(sequence), (at? - 256 * i64::from(f.reference_time)) as f64 / 4.0))
        });
        let listed = list(&d["received"]).map(|r| (number(&r["seq"]), r["offset_ms"].as_f64().unwrap()));
        assert!(received.eq(listed), "{name}");

        let arrivals: Vec<_> = statuses.iter().map(|s| s.1).collect();
        let again = written(|w| {
            let (base, count) = (f.base_sequence, f.feedback_count);
            let taken = w.transport_feedback(f.sender_ssrc, f.media_ssrc, base, count, &arrivals)?;
            assert_eq!(taken, arrivals.len(), "{name}");
            Ok(())
        });
        let mut expected = packet.clone();
        match &*name {
            // Made by hand with a 1-bit chunk; libwebrtc ends a report of at most 7 statuses with a 2-bit one.
            "twcc_1bit_seq_wrap" => expected[20..22].copy_from_slice(&0b11_01_00_01_01_00_00_01u16.to_be_bytes()),
            // Chromium rounds down to 64 ms before it rounds to ticks: an arrival less than 125 us before the next 64
            // ms gets a first delta of 64 ms, where ticks give the next reference time and 0. The times are the same.
            "chromium156_twcc_2bit_no_pad" => {
                assert_eq!(only(&again), only(&bytes(&Value::from(SAME_TIMES))));
                let Rtcp::TransportFeedback(f) = only(&again) else { panic!() };
                assert!(f.packets().eq(statuses));
                continue;
            }
            _ => {}
        }
        assert_eq!(again, expected, "{name}");
    }
}

/// `chromium156_twcc_2bit_no_pad` with reference time 12865 for 12864, a run of 5 small deltas, and 1 byte of fill.
const SAME_TIMES: &str = "afcd0006fa17fa17355fd8a602c70005003241802005004f2c002501";

#[test]
fn congestion_feedback_vectors_are_read_and_written() {
    let vectors = vectors(include_str!("vectors/ccfb.json"));
    assert_eq!(vectors.len(), 3);
    for (name, packet, d) in vectors {
        let Rtcp::CongestionFeedback(f) = only(&packet) else { panic!("{name}") };
        assert_eq!((f.sender_ssrc, f.timestamp), (u32_of(&d["sender_ssrc"]), u32_of(&d["rts"])), "{name}");
        let blocks: Vec<_> = f.blocks().collect();
        assert_eq!(blocks.len(), d["blocks"].as_array().unwrap().len(), "{name}");
        for (block, listed) in blocks.iter().zip(list(&d["blocks"])) {
            assert_eq!(block.ssrc, u32_of(&listed["ssrc"]), "{name}");
            assert_eq!(i64::from(block.begin_sequence), number(&listed["begin_seq"]), "{name}");
            assert_eq!(block.packets().len() as i64, number(&listed["num_reports"]), "{name}");
            assert_eq!(block.packets().len(), listed["metrics"].as_array().unwrap().len(), "{name}");
            for ((sequence, reception), metric) in block.packets().zip(list(&listed["metrics"])) {
                assert_eq!(i64::from(sequence), number(&metric["seq"]), "{name}");
                assert_eq!(reception.is_some(), metric["received"], "{name}");
                let Some(reception) = reception else { continue };
                let ecn = match metric["ecn"].as_str().unwrap() {
                    "not-ECT" => Ecn::NotEct,
                    "ECT(1)" => Ecn::Ect1,
                    "ECT(0)" => Ecn::Ect0,
                    "CE" => Ecn::Ce,
                    other => panic!("{name}: {other}"),
                };
                let offset = match number(&metric["ato"]) {
                    8190 => ArrivalOffset::OverRange,
                    8191 => ArrivalOffset::Unavailable,
                    units => ArrivalOffset::Units(units.try_into().unwrap()),
                };
                assert_eq!(reception, Reception { ecn, offset }, "{name}");
                let arrival = offset.in_timestamp_units().map(|units| f.timestamp.wrapping_sub(units));
                assert_eq!(arrival, (!metric["arrival"].is_null()).then(|| u32_of(&metric["arrival"])), "{name}");
            }
        }
        let receptions: Vec<Vec<_>> = blocks.iter().map(|b| b.packets().map(|p| p.1).collect()).collect();
        let again: Vec<_> =
            blocks.iter().zip(&receptions).map(|(b, r)| (b.ssrc, b.begin_sequence, r.as_slice())).collect();
        assert_eq!(written(|w| w.congestion_feedback(f.sender_ssrc, f.timestamp, &again)), packet, "{name}");
    }
}
