// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fuzz targets (`fuzz/` at the root of the repository) for a short time, on stable Rust: every test vector, and packets
//! made from the vectors by random changes.

pub mod rtcp;
mod rtp;

#[path = "../../../../../fuzz/mutations.rs"]
mod mutations;

use crate::{properties, vectors};

const INPUTS: usize = 50_000;

fn fuzz(target: &str, check: fn(&[u8])) {
    let mut vectors = vectors::all();
    vectors.extend(packets(&properties::everything()));
    mutations::check_mutations(target, &vectors, INPUTS, check);
}

/// Splits a compound into its packets.
fn packets(mut compound: &[u8]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    while let [_, _, high, low, ..] = *compound {
        let (packet, rest) = compound.split_at(4 + 4 * usize::from(u16::from_be_bytes([high, low])));
        packets.push(packet.to_vec());
        compound = rest;
    }
    packets
}

#[test]
fn rtp_target_survives_changed_packets() {
    fuzz("rtp", rtp::check);
}

#[test]
fn rtcp_target_survives_changed_packets() {
    fuzz("rtcp", rtcp::check);
}
