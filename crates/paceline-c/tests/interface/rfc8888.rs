// SPDX-License-Identifier: MIT OR Apache-2.0
//! RFC 8888 feedback, which controllers with ECN get.

use crate::harness::*;
use paceline::{Registry, Setup};
use paceline_abi::{PACELINE_ECN_CE, PACELINE_ECN_NOT_ECT};
use paceline_c::{PACELINE_ERROR_ARGUMENT, PACELINE_OK, PacelineReceivedPacket, PacelineSnapshot};
use paceline_units::Rate;
use paceline_wire::{Rtcp, parse_compound};

/// The SSRC of padding.
const PADDING_SSRC: u32 = 1001;

/// A flow of three seconds over a path with a delay of 20 ms in each direction. Of `one_in` packets one is marked, and every 50th
/// is lost if `loses`. RTP numbers begin anywhere.
fn run(controller: &str, one_in: u64, loses: bool) -> (PacelineSnapshot, u64) {
    let (mut sender, mut receiver) = (Sender::new(controller, LIMITS).unwrap(), Receiver::new(controller));
    let (mut packets, mut compounds) = (Vec::<(i64, PacelineReceivedPacket)>::new(), Vec::<(i64, Vec<u8>)>::new());
    let mut next = [65_530u16, 100];
    for step in 0..3000 {
        let now = ms(step);
        if step % 33 == 0 {
            let bytes = sender.decision().target_bps / 8 * 33 / 1000;
            sender.push_frame(now, bytes.div_ceil(1200) as usize);
        }
        for (_, compound) in compounds.extract_if(.., |(at, _)| *at <= now) {
            assert_eq!(sender.rtcp(now, &compound), PACELINE_OK, "{}", last_error());
        }
        let ecn = sender.decision().ecn;
        for (at, packet) in sender.poll_until(now, now + ms(1) - 1) {
            let padding = usize::from(packet.kind != 0);
            let (ssrc, number) = ([MEDIA_SSRC, PADDING_SSRC][padding], next[padding]);
            next[padding] = number.wrapping_add(1);
            assert_eq!(sender.rtp_number(packet.sequence, ssrc, number), PACELINE_OK);
            let marked = packet.sequence % one_in == one_in - 1;
            let arriving = PacelineReceivedPacket {
                size_bytes: packet.size_bytes,
                transport_sequence: -1,
                ssrc,
                ecn: if marked && ecn != PACELINE_ECN_NOT_ECT { PACELINE_ECN_CE } else { ecn },
                ..received(number)
            };
            if !(loses && packet.sequence % 50 == 49) {
                packets.push((at + ms(20), arriving));
            }
        }
        for (at, packet) in packets.extract_if(.., |(at, _)| *at <= now) {
            receiver.packet(at, packet);
        }
        compounds.extend(receiver.rtcp(now).into_iter().map(|compound| (now + ms(20), compound)));
    }
    (sender.snapshot(), sender.decision().target_bps)
}

#[test]
fn controllers_with_ecn_see_arrivals_losses_and_marks() {
    for controller in ["scream", "scream-v2", "nada-sender"] {
        let [(clear, _), (_, marked), (lossy, unmarked)] =
            [(u64::MAX, false), (5, true), (u64::MAX, true)].map(|(one_in, loses)| run(controller, one_in, loses));
        assert!(clear.packets_sent > 100, "{controller}: {clear:?}");
        let waiting = clear.packets_sent - clear.packets_arrived;
        assert!((0..60).contains(&waiting) && clear.packets_lost == 0, "{controller}: {clear:?}");
        let expected = lossy.packets_sent / 50;
        assert!((expected.saturating_sub(3)..=expected).contains(&lossy.packets_lost), "{controller}: {lossy:?}");
        // Accelerated ramp-up, which a loss ends, does not depend on marks (RFC 8698, section 4.2).
        assert!(marked < unmarked * 4 / 5, "{controller}: {unmarked} bit/s, and {marked} bit/s with marks");
    }
}

#[test]
fn receiver_writes_the_format_that_the_controller_needs() {
    let (registry, setup) = (Registry::standard(), Setup::new(Rate::from_bps(1), Rate::from_bps(1), Rate::from_bps(1)));
    let guide = include_str!("../../../../docs/how-to/c.md");
    let ecn_guide = guide.split("### ECN").nth(1).unwrap().split("1. Send").next().unwrap();
    for entry in registry.iter() {
        let Some(feedback) = entry.build(&setup, &[]).unwrap().feedback else { continue };
        let (controller, by_ssrc) = (entry.name(), feedback.ecn);
        assert_eq!(ecn_guide.contains(&format!("`{controller}`")), by_ssrc, "{controller} in docs/how-to/c.md");
        let mut receiver = Receiver::new(controller);
        receiver.packet(0, PacelineReceivedPacket { ecn: PACELINE_ECN_CE, ..received(5) });
        let [compound] = &receiver.rtcp(receiver.next_timeout())[..] else { panic!("{controller}") };
        let mut formats = parse_compound(compound).unwrap().into_iter().map(|packet| match packet {
            Rtcp::TransportFeedback(_) => Some(false),
            Rtcp::CongestionFeedback(feedback) => {
                let block = feedback.blocks().next().unwrap();
                assert_eq!(block.ssrc, MEDIA_SSRC, "without an SSRC of its own");
                let (number, reception) = block.packets().next().unwrap();
                assert_eq!((number, reception.unwrap().ecn as u8), (5, PACELINE_ECN_CE));
                Some(true)
            }
            _ => None,
        });
        assert!(formats.any(|format| format == Some(by_ssrc)), "{controller}");
    }
}

#[test]
fn feedback_on_packets_without_rtp_numbers_is_an_error() {
    let (mut sender, mut receiver) = (Sender::new("scream-v2", LIMITS).unwrap(), Receiver::new("scream-v2"));
    let sequence = sender.packet_sent(0);
    receiver.packet(ms(20), received(7));
    let compound = receiver.rtcp(receiver.next_timeout()).remove(0);
    assert_eq!(sender.rtcp(ms(100), &compound), PACELINE_ERROR_ARGUMENT);
    assert!(last_error().contains("call `paceline_sender_rtp_number`"), "{}", last_error());
    assert_eq!(sender.rtp_number(sequence + 1, MEDIA_SSRC, 8), PACELINE_ERROR_ARGUMENT, "it has not left");
    assert_eq!(sender.rtp_number(sequence, MEDIA_SSRC, 7), PACELINE_OK);
    assert_eq!((sender.rtcp(ms(101), &compound), sender.snapshot().packets_arrived), (PACELINE_OK, 1));
}
