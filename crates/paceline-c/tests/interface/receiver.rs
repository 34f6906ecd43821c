//! Receivers.

use crate::harness::*;
use paceline_abi::PACELINE_NEVER;
use paceline_c::PacelineReceivedPacket;
use paceline_wire::{Rtcp, parse_compound};

/// Returns the reports in compounds: number, and whether it arrived.
fn reported(compounds: &[Vec<u8>]) -> Vec<(u16, bool)> {
    let mut packets = Vec::new();
    for compound in compounds {
        for packet in parse_compound(compound).unwrap() {
            if let Rtcp::TransportFeedback(feedback) = packet {
                packets.extend(feedback.packets().map(|(number, ticks)| (number, ticks.is_some())));
            }
        }
    }
    packets
}

/// Returns the reports on packets of the next time at which there are some. A receiver report may be due before.
fn next_reports(receiver: &mut Receiver) -> Vec<(u16, bool)> {
    let mut next = || {
        let now = receiver.next_timeout();
        reported(&receiver.rtcp(now))
    };
    let first = next();
    if first.is_empty() { next() } else { first }
}

#[test]
fn duplicates_and_late_packets_cause_no_losses() {
    let mut receiver = Receiver::new("googcc");
    (0..10).for_each(|n| receiver.packet(ms(n.into()), received(n)));
    assert_eq!(next_reports(&mut receiver), (0..10).map(|n| (n, true)).collect::<Vec<_>>());
    // A duplicate of a reported packet.
    receiver.packet(ms(1000), received(3));
    receiver.packet(ms(1001), received(10));
    assert_eq!(next_reports(&mut receiver), [(10, true)]);
    // A packet that was reported missing before it arrived.
    receiver.packet(ms(2000), received(12));
    assert_eq!(next_reports(&mut receiver), [(11, false), (12, true)]);
    receiver.packet(ms(3000), received(11));
    receiver.packet(ms(3001), received(13));
    assert_eq!(next_reports(&mut receiver), [(11, true), (13, true)]);
    assert_eq!(receiver.next_timeout(), PACELINE_NEVER);
}

/// Receives 100 packets in a second, each 10 ms after it was sent, and returns the largest congestion signal, µs.
fn largest_signal(receiver: &mut Receiver, first: u16, from_ms: i64) -> i64 {
    let mut largest = None;
    for (number, sent_ms) in (first..first + 100).zip((from_ms..).step_by(10)) {
        let stamp = (i128::from(ms(sent_ms)) << 18) / 1_000_000_000 % (1 << 24);
        let packet = PacelineReceivedPacket {
            abs_send_time: stamp as i32,
            rtp_timestamp: (sent_ms * 90) as u32,
            ..received(number)
        };
        receiver.packet(ms(sent_ms + 10), packet);
        for compound in receiver.rtcp(ms(sent_ms + 10)) {
            for packet in parse_compound(&compound).unwrap() {
                if let Rtcp::Nada { feedback, .. } = packet {
                    largest = largest.max(Some(feedback.signal.as_nanos() / 1000));
                }
            }
        }
    }
    largest.expect("the receiver sends messages")
}

/// The send time wraps every 64 s, so a step of 40 s looks like one of 24 s back: a delay that is 64 s longer.
#[test]
fn send_times_unwrap_after_any_silence() {
    for silence_ms in [0, 40_000, 100_000] {
        let mut receiver = Receiver::new("nada");
        assert!(largest_signal(&mut receiver, 0, 0) < 1000);
        let signal = largest_signal(&mut receiver, 100, 1000 + silence_ms);
        assert!(signal < 1000, "{signal} µs after {silence_ms} ms");
    }
}
