// SPDX-License-Identifier: MIT OR Apache-2.0
//! A session with every kind of step, and random changes of it.

use super::{hosts, mutations};
use paceline_live::hosts::message::{self, Message, Totals};

const INPUTS: usize = 2_000;

/// Returns inputs with each kind of step, for each controller.
fn samples() -> Vec<Vec<u8>> {
    let hello = message::write(hosts::ID, Message::Hello);
    let bye = message::write(hosts::ID, Message::Bye);
    let goodbye = message::write(hosts::ID, Message::Goodbye(Totals::default(), b"{\"back\":null,\"tcp_bytes\":null}"));
    // Version 2, type 96, one after the other; a receiver report, and a report of arrivals of no packet.
    let rtp = [&[0x80, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0][..], &[1; 40]].concat();
    let receiver_report = [&[0x80, 201, 0, 1][..], &[0; 4]].concat();
    let arrivals = [0; 36];
    (0..3u8)
        .map(|controller| {
            let mut input = vec![controller];
            let mut step = |kind: u8, words: usize, bytes: &[u8]| {
                input.extend([kind, words as u8]);
                input.extend(bytes);
                input.resize(input.len() - bytes.len() + if kind == 0 { 0 } else { 4 * words }, 0);
            };
            for _ in 0..20 {
                step(0, 20, &[]);
            }
            for (kind, bytes) in [
                (1, &*hello),
                (1, &*bye),
                (2, &*rtp),
                (3, &*receiver_report),
                (4, &arrivals),
                (5, &*goodbye),
                (6, &*goodbye),
                (7, &[0, 0, 0, 1]),
            ] {
                step(kind, bytes.len().div_ceil(4), bytes);
                step(0, 30, &[]);
            }
            input
        })
        .collect()
}

#[test]
fn hosts_target_survives_changed_datagrams() {
    let mut datagrams = 0;
    mutations::check_mutations("hosts", &samples(), INPUTS, |bytes| datagrams += hosts::check(bytes));
    assert!(datagrams > INPUTS, "{datagrams} datagrams");
}
