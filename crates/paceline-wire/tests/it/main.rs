// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes of the wire: vectors of other implementations, properties of every packet, and fuzz targets.

mod fuzz;
mod interop;
mod properties;
mod vectors;

use paceline_wire::{CompoundWriter, Rtcp, WriteError, parse_compound};

/// Returns the bytes of a compound.
fn written(write: impl FnOnce(&mut CompoundWriter<'_>) -> Result<(), WriteError>) -> Vec<u8> {
    let mut out = vec![0xEE; 140_000];
    let mut writer = CompoundWriter::new(&mut out);
    write(&mut writer).unwrap();
    let len = writer.finish();
    out.truncate(len);
    out
}

/// Returns the only packet of a compound.
fn only(bytes: &[u8]) -> Rtcp<'_> {
    let mut packets = parse_compound(bytes).unwrap().into_iter();
    let packet = packets.next().unwrap();
    assert_eq!(packets.next(), None);
    packet
}
