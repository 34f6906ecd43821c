// SPDX-License-Identifier: MIT OR Apache-2.0
//! Comparison with other implementations: `rtc-rtcp` (a port of pion) as writer and reader, `rtcp-types` as reader.

use crate::{only, written};
use paceline_units::{Ecn, Rate, TimeDelta};
use paceline_wire::*;
use proptest::collection::vec;
use proptest::prelude::*;
use rtc_rtcp::packet::Packet;
use rtc_rtcp::payload_feedbacks::picture_loss_indication::PictureLossIndication;
use rtc_rtcp::payload_feedbacks::receiver_estimated_maximum_bitrate::ReceiverEstimatedMaximumBitrate;
use rtc_rtcp::receiver_report::ReceiverReport;
use rtc_rtcp::reception_report::ReceptionReport;
use rtc_rtcp::sender_report::SenderReport;
use rtc_rtcp::transport_feedbacks::cc_feedback_report as cc;
use rtc_rtcp::transport_feedbacks::transport_layer_cc::*;
use rtc_rtcp::transport_feedbacks::transport_layer_nack::{TransportLayerNack, nack_pairs_from_sequence_numbers};

/// Reads bytes of this crate with `rtc-rtcp`.
fn theirs<T: Packet + Clone + 'static>(mut bytes: &[u8]) -> T {
    let packets = rtc_rtcp::packet::unmarshal(&mut bytes).unwrap();
    assert_eq!(packets.len(), 1);
    packets[0].as_any().downcast_ref::<T>().unwrap().clone()
}

/// The output of the other implementation.
fn marshal(packet: impl Packet + 'static) -> Vec<u8> {
    rtc_rtcp::packet::marshal(&[Box::new(packet)]).unwrap().to_vec()
}

fn block() -> impl Strategy<Value = ReportBlock> {
    (any::<[u32; 5]>(), any::<u8>(), -0x80_0000..0x80_0000).prop_map(|(n, fraction_lost, cumulative_lost)| {
        ReportBlock {
            ssrc: n[0],
            fraction_lost,
            cumulative_lost,
            highest_sequence: n[1],
            jitter: n[2],
            last_sr: n[3],
            delay_since_last_sr: n[4],
        }
    })
}

fn their_block(b: &ReportBlock) -> ReceptionReport {
    ReceptionReport {
        ssrc: b.ssrc,
        fraction_lost: b.fraction_lost,
        total_lost: b.cumulative_lost as u32 & 0xFF_FFFF, // theirs has no sign
        last_sequence_number: b.highest_sequence,
        jitter: b.jitter,
        last_sender_report: b.last_sr,
        delay: b.delay_since_last_sr,
    }
}

/// Consecutive packets with loss, reordering and pauses, in ticks of 250 us; the first has arrived.
fn arrivals(max: usize) -> impl Strategy<Value = Vec<Option<i64>>> {
    let delta = prop_oneof![
        4 => 0i64..40,
        1 => -30i64..0,
        1 => 200i64..300,
        1 => prop::sample::select(vec![0, 255, 256, -1, -32768, 32767]),
    ];
    let step = (delta, prop_oneof![3 => Just(0.0), 1 => Just(0.3), 1 => Just(1.0)], 0.0..1.0);
    (0i64..1 << 31, vec((step, 1usize..30), 1..max / 8)).prop_map(move |(start, steps)| {
        let mut at = start;
        let mut out = vec![Some(at)];
        for ((delta, loss, _), repeat) in steps {
            for i in 0..repeat {
                let lost = loss == 1.0 || loss > 0.0 && i % 3 == 0;
                if !lost {
                    at += delta;
                }
                out.push((!lost).then_some(at));
            }
        }
        out.truncate(max);
        out
    })
}

/// The statuses of their report, by the draft: sequence and ticks.
fn their_statuses(report: &TransportLayerCc) -> Vec<(u16, Option<i64>)> {
    let mut symbols = Vec::new();
    for chunk in &report.packet_chunks {
        match chunk {
            PacketStatusChunk::RunLengthChunk(run) => {
                symbols.extend(std::iter::repeat_n(run.packet_status_symbol, usize::from(run.run_length)));
            }
            PacketStatusChunk::StatusVectorChunk(vector) => symbols.extend(&vector.symbol_list),
        }
    }
    symbols.truncate(usize::from(report.packet_status_count));
    // They keep the reference time without its sign.
    let mut at = i64::from((report.reference_time << 8) as i32 >> 8) * 256;
    let mut deltas = report.recv_deltas.iter();
    let statuses = symbols.into_iter().enumerate().map(|(i, symbol)| {
        let received = symbol != SymbolTypeTcc::PacketNotReceived;
        let ticks = received.then(|| {
            at += deltas.next().unwrap().delta / 250; // theirs are in microseconds
            at
        });
        (report.base_sequence_number.wrapping_add(i as u16), ticks)
    });
    statuses.collect()
}

/// Streams with the reception of consecutive packets of each.
fn receptions() -> impl Strategy<Value = Vec<(u32, u16, Vec<Option<Reception>>)>> {
    let offset = prop_oneof![
        8 => (0u16..8190).prop_map(ArrivalOffset::Units),
        1 => Just(ArrivalOffset::OverRange),
        1 => Just(ArrivalOffset::Unavailable),
    ];
    let reception = (any::<u8>(), offset).prop_map(|(bits, offset)| Reception { ecn: Ecn::from_bits(bits), offset });
    vec((any::<u32>(), any::<u16>(), vec(prop::option::weighted(0.8, reception), 0..60)), 0..6)
}

fn their_metric(reception: Option<Reception>) -> cc::CcFeedbackMetricBlock {
    let Some(Reception { ecn, offset }) = reception else { return cc::CcFeedbackMetricBlock::default() };
    let ecn = match ecn {
        Ecn::NotEct => cc::Ecn::NotEct,
        Ecn::Ect1 => cc::Ecn::Ect1,
        Ecn::Ect0 => cc::Ecn::Ect0,
        Ecn::Ce => cc::Ecn::Ce,
    };
    let arrival_time_offset = match offset {
        ArrivalOffset::Units(units) => units,
        ArrivalOffset::OverRange => 0x1FFE,
        ArrivalOffset::Unavailable => 0x1FFF,
    };
    cc::CcFeedbackMetricBlock { received: true, ecn, arrival_time_offset }
}

proptest! {
    #[test]
    fn sender_reports_agree_with_rtc_rtcp(ssrc in any::<u32>(), ntp in any::<u64>(), n in any::<[u32; 3]>(), blocks in vec(block(), 0..32)) {
        let ours = written(|w| w.sender_report(ssrc, ntp, n[0], n[1], n[2], &blocks));
        let report: SenderReport = theirs(&ours);
        prop_assert_eq!((report.ssrc, report.ntp_time), (ssrc, ntp));
        prop_assert_eq!([report.rtp_time, report.packet_count, report.octet_count], n);
        prop_assert!(report.reports.iter().eq(&blocks.iter().map(their_block).collect::<Vec<_>>()));
        prop_assert_eq!(&marshal(report), &ours);

        let Rtcp::SenderReport { ssrc: s, ntp: t, rtp_timestamp, packets, octets, blocks: read } = only(&ours) else {
            panic!()
        };
        prop_assert_eq!((s, t, [rtp_timestamp, packets, octets]), (ssrc, ntp, n));
        prop_assert!(read.eq(blocks));

        use rtcp_types::RtcpPacketParser;
        let third = rtcp_types::SenderReport::parse(&ours).unwrap();
        prop_assert_eq!((third.ssrc(), third.ntp_timestamp()), (ssrc, ntp));
        prop_assert_eq!([third.rtp_timestamp(), third.packet_count(), third.octet_count()], n);
    }

    #[test]
    fn receiver_reports_agree_with_rtc_rtcp(ssrc in any::<u32>(), blocks in vec(block(), 0..32)) {
        let ours = written(|w| w.receiver_report(ssrc, &blocks));
        let report: ReceiverReport = theirs(&ours);
        prop_assert_eq!(report.ssrc, ssrc);
        prop_assert!(report.reports.iter().eq(&blocks.iter().map(their_block).collect::<Vec<_>>()));
        prop_assert_eq!(&marshal(report), &ours);
        let Rtcp::ReceiverReport { ssrc: s, blocks: read } = only(&ours) else { panic!() };
        prop_assert_eq!((s, read.len()), (ssrc, blocks.len()));
        prop_assert!(read.eq(blocks.iter().copied()));

        use rtcp_types::RtcpPacketParser;
        let third = rtcp_types::ReceiverReport::parse(&ours).unwrap();
        for (theirs, ours) in third.report_blocks().zip(&blocks) {
            prop_assert_eq!(theirs.cumulative_lost(), ours.cumulative_lost as u32 & 0xFF_FFFF);
            prop_assert_eq!(theirs.extended_sequence_number(), ours.highest_sequence);
        }
    }

    #[test]
    fn rembs_agree_with_rtc_rtcp(sender in any::<u32>(), bits in 0u32..64, low in any::<u64>(), ssrcs in vec(any::<u32>(), 0..9)) {
        let bps = low >> bits;
        let ours = written(|w| w.remb(sender, Rate::from_bps(bps), &ssrcs));
        let report: ReceiverEstimatedMaximumBitrate = theirs(&ours);
        prop_assert_eq!((report.sender_ssrc, &report.ssrcs), (sender, &ssrcs));
        let Rtcp::Remb { sender_ssrc, rate, ssrcs: read } = only(&ours) else { panic!() };
        prop_assert_eq!(sender_ssrc, sender);
        prop_assert!(read.eq(ssrcs));
        // Never up, and by less than 2^-17.
        prop_assert!(rate.as_bps() <= bps && bps - rate.as_bps() <= bps >> 17);
        if bps > 0 { // their reader takes mantissa 0 for 2^23
            prop_assert_eq!(rate.as_bps() as f32, report.bitrate);
            prop_assert_eq!(&marshal(report), &ours);
        }
    }

    /// `rtcp-types` finds the same fields in application packets; another name keeps its subtype and data.
    #[test]
    fn app_packets_round_trip(ssrc in any::<u32>(), gradual in any::<bool>(), units in 0i64..0x8000, bps in any::<u32>(), subtype in 1u8..32) {
        use rtcp_types::{RtcpPacketParser, RtcpPacketParserExt};
        let (signal, rate) = (TimeDelta::from_micros(100 * units), Rate::from_bps(bps.into()));
        let mut ours = written(|w| w.nada(ssrc, &NadaFeedback { gradual, signal, rate }));
        let third = rtcp_types::App::parse(&ours).unwrap();
        prop_assert_eq!((third.ssrc(), third.name(), third.subtype()), (ssrc, *b"NADA", 0));
        let [a, b, 0, 0, r @ ..] = *<&[u8; 8]>::try_from(third.data()).unwrap() else { panic!() };
        prop_assert_eq!(u16::from_be_bytes([a, b]), u16::from(gradual) << 15 | units as u16);
        prop_assert_eq!(u32::from_be_bytes(r), bps);
        ours[0] |= subtype;
        let third = rtcp_types::App::parse(&ours).unwrap();
        let (name, data) = (third.name(), third.data());
        prop_assert_eq!(only(&ours), Rtcp::App { ssrc, subtype: third.subtype(), name, data });
        prop_assert_eq!(third.subtype(), subtype);
    }

    #[test]
    fn nacks_agree_with_rtc_rtcp(sender in any::<u32>(), media in any::<u32>(), start in any::<u16>(), gaps in vec(1u16..40, 1..60)) {
        let mut at = start;
        let lost: Vec<u16> = gaps.iter().map(|gap| { at = at.wrapping_add(*gap); at }).collect();
        let ours = written(|w| w.nack(sender, media, &lost));
        let report: TransportLayerNack = theirs(&ours);
        prop_assert_eq!((report.sender_ssrc, report.media_ssrc), (sender, media));
        prop_assert_eq!(report.nacks.iter().flat_map(|n| n.packet_list()).collect::<Vec<_>>(), lost.clone());
        let Rtcp::Nack { sender_ssrc, media_ssrc, lost: read } = only(&ours) else { panic!() };
        prop_assert_eq!((sender_ssrc, media_ssrc), (sender, media));
        prop_assert!(read.eq(lost.iter().copied()));
        // Their packing is the same but across the wrap, where theirs sorts.
        let nacks = nack_pairs_from_sequence_numbers(&lost);
        let theirs = marshal(TransportLayerNack { sender_ssrc, media_ssrc, nacks });
        let Rtcp::Nack { lost: read, .. } = only(&theirs) else { panic!() };
        let (mut read, mut lost): (Vec<_>, _) = (read.collect(), lost);
        read.sort_unstable();
        lost.sort_unstable();
        prop_assert_eq!(read, lost);
    }

    #[test]
    fn plis_agree_with_rtc_rtcp(sender_ssrc in any::<u32>(), media_ssrc in any::<u32>()) {
        let ours = written(|w| w.pli(sender_ssrc, media_ssrc));
        let report: PictureLossIndication = theirs(&ours);
        prop_assert_eq!(&report, &PictureLossIndication { sender_ssrc, media_ssrc });
        prop_assert_eq!(&marshal(report), &ours);
        prop_assert_eq!(only(&ours), Rtcp::Pli { sender_ssrc, media_ssrc });
    }

    #[test]
    fn rtc_rtcp_reads_our_transport_feedback(base in any::<u16>(), count in any::<u8>(), arrivals in arrivals(600)) {
        let ours = written(|w| {
            assert_eq!(w.transport_feedback(7, 8, base, count, &arrivals)?, arrivals.len());
            Ok(())
        });
        let expected: Vec<_> = (0..).map(|i| base.wrapping_add(i)).zip(arrivals).collect();
        let report: TransportLayerCc = theirs(&ours);
        prop_assert_eq!((report.sender_ssrc, report.media_ssrc, report.fb_pkt_count), (7, 8, count));
        prop_assert_eq!(&their_statuses(&report), &expected);
        prop_assert_eq!(&marshal(report), &ours);

        let Rtcp::TransportFeedback(f) = only(&ours) else { panic!() };
        prop_assert_eq!((f.base_sequence, f.feedback_count), (base, count));
        prop_assert_eq!(f.packets().collect::<Vec<_>>(), expected.clone());

        use rtcp_types::RtcpPacketParser;
        let third = rtcp_types::TransportFeedback::parse(&ours).unwrap();
        let third = third.parse_fci::<rtcp_types::Twcc<'_>>().unwrap();
        let received = third.packets().map(|p| {
            let (sequence, status) = p.unwrap();
            (sequence, matches!(status, rtcp_types::TwccPacketStatus::Received { .. }))
        });
        prop_assert!(received.eq(expected.iter().map(|(s, a)| (*s, a.is_some()))));
    }

    /// Both ways: they read what we write and write the same bytes, which we read.
    #[test]
    fn congestion_feedback_agrees_with_rtc_rtcp(sender in any::<u32>(), timestamp in any::<u32>(), streams in receptions()) {
        let blocks: Vec<_> = streams.iter().map(|(ssrc, begin, packets)| (*ssrc, *begin, packets.as_slice())).collect();
        let ours = written(|w| w.congestion_feedback(sender, timestamp, &blocks));
        let report: cc::CcFeedbackReport = theirs(&ours);
        let expected = cc::CcFeedbackReport {
            sender_ssrc: sender,
            report_timestamp: timestamp,
            report_blocks: streams.iter().map(|(ssrc, begin, packets)| cc::CcFeedbackReportBlock {
                media_ssrc: *ssrc,
                begin_sequence: *begin,
                metric_blocks: packets.iter().map(|p| their_metric(*p)).collect(),
            }).collect(),
        };
        prop_assert_eq!(&report, &expected);
        prop_assert_eq!(&marshal(report), &ours);

        let Rtcp::CongestionFeedback(f) = only(&ours) else { panic!() };
        prop_assert_eq!((f.sender_ssrc, f.timestamp), (sender, timestamp));
        let read: Vec<_> = f
            .blocks()
            .map(|b| (b.ssrc, b.begin_sequence, b.packets().map(|p| p.1).collect::<Vec<_>>()))
            .collect();
        prop_assert_eq!(&read, &streams);
        for block in f.blocks() {
            let numbers: Vec<u16> = block.packets().map(|p| p.0).collect();
            let from = block.begin_sequence;
            prop_assert!(numbers.iter().copied().eq((0..numbers.len() as u16).map(|i| from.wrapping_add(i))));
        }
    }

    /// Any mix of chunks, not only what an encoder would choose, with surplus symbols at the end.
    #[test]
    fn reads_transport_feedback_of_rtc_rtcp(
        base in any::<u16>(), reference in 0u32..1 << 24, surplus in 0u16..7,
        chunks in vec((0u16..3, vec(0u16..3, 14), 1u16..50), 1..20), deltas in vec(any::<i16>(), 700),
    ) {
        let mut symbols = Vec::new();
        let packet_chunks: Vec<_> = chunks.iter().map(|(form, list, run)| match form {
            0 => {
                symbols.extend(std::iter::repeat_n(list[0], usize::from(*run)));
                PacketStatusChunk::RunLengthChunk(RunLengthChunk {
                    type_tcc: StatusChunkTypeTcc::RunLengthChunk,
                    packet_status_symbol: list[0].into(),
                    run_length: *run,
                })
            }
            _ => {
                let (symbol_size, list): (_, Vec<u16>) = match form {
                    1 => (SymbolSizeTypeTcc::OneBit, list.iter().map(|s| s & 1).collect()),
                    _ => (SymbolSizeTypeTcc::TwoBit, list[..7].to_vec()),
                };
                symbols.extend(&list);
                PacketStatusChunk::StatusVectorChunk(StatusVectorChunk {
                    type_tcc: StatusChunkTypeTcc::StatusVectorChunk,
                    symbol_size,
                    symbol_list: list.into_iter().map(SymbolTypeTcc::from).collect(),
                })
            }
        }).collect();
        // The last chunk may describe more than the report counts.
        let last = match chunks.last().unwrap() { (0, _, run) => *run, (1, ..) => 14, _ => 7 };
        let count = symbols.len() as u16 - surplus.min(last - 1);
        symbols.truncate(usize::from(count));
        let recv_deltas: Vec<_> = symbols.iter().zip(&deltas).filter(|(s, _)| **s != 0).map(|(s, d)| RecvDelta {
            type_tcc_packet: (*s).into(),
            delta: 250 * if *s == 1 { i64::from(*d as u8) } else { i64::from(*d) },
        }).collect();
        let report = TransportLayerCc {
            sender_ssrc: 1,
            media_ssrc: 2,
            base_sequence_number: base,
            packet_status_count: count,
            reference_time: reference,
            fb_pkt_count: 255,
            packet_chunks,
            recv_deltas,
        };
        let expected = their_statuses(&report);
        let bytes = marshal(report);
        let Rtcp::TransportFeedback(f) = only(&bytes) else { panic!() };
        prop_assert_eq!((f.status_count, f.feedback_count), (count, 255));
        prop_assert_eq!(f.packets().collect::<Vec<_>>(), expected);
    }
}
