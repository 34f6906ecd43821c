// SPDX-License-Identifier: MIT OR Apache-2.0
//! Receivers.

use crate::harness::*;
use paceline_abi::PACELINE_NEVER;
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
