//! The fuzz targets (`fuzz/` at the root of the repository) for a short time, on stable Rust: every test vector, and packets
//! made from the vectors by random changes. The seed is fixed, so a failure repeats.

pub mod rtcp;
mod rtp;

use crate::{properties, vectors};

const INPUTS: usize = 50_000;

/// Checks every vector, then changed copies. The failing input is printed.
fn fuzz(check: fn(&[u8])) {
    let mut vectors = vectors::all();
    vectors.extend(packets(&properties::everything()));
    let mut random = Random(0x5EED);
    let mut input_bytes = PrintOnPanic(Vec::new());
    for input in 0..INPUTS {
        input_bytes.0 = vectors[input % vectors.len()].clone();
        if input >= vectors.len() {
            (0..=random.below(4)).for_each(|_| change(&mut input_bytes.0, &vectors, &mut random));
        }
        check(&input_bytes.0);
    }
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

/// An input that is printed if the check panics.
struct PrintOnPanic(Vec<u8>);

impl Drop for PrintOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("input: {:02x?}", self.0);
        }
    }
}

/// Changes one thing about a packet.
fn change(bytes: &mut Vec<u8>, vectors: &[Vec<u8>], random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    match random.below(6) {
        0 => bytes.truncate(at),
        1 => bytes.extend(&vectors[random.below(vectors.len())]),
        // The length of an RTCP packet that is alone.
        2 if bytes.len() >= 4 => {
            let words = (bytes.len() / 4 - 1) as u16;
            bytes[2..4].copy_from_slice(&words.to_be_bytes());
        }
        3 => bytes.insert(at, [0, 1, 0x7F, 0x80, 0xFF][random.below(5)]),
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.next() as u8;
            }
        }
    }
}

/// Marsaglia's xorshift64: no quality is needed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

#[test]
fn rtp_target_survives_changed_packets() {
    fuzz(rtp::check);
}

#[test]
fn rtcp_target_survives_changed_packets() {
    fuzz(rtcp::check);
}
