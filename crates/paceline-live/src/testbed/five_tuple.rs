// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hash of the five-tuple of IP packets: protocol, both addresses, both ports. Queue disciplines classify packets by it.

use paceline_units::{FlowId, RandomStreams};

/// Protocols whose headers begin with two ports: TCP, UDP, DCCP, SCTP, UDP-Lite.
const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];

/// A salted hash. The salt prevents that a sender chooses its queue (RFC 8290, section 4.1).
#[derive(Clone, Copy, Debug)]
pub struct FiveTupleHash {
    salt: u64,
}

impl FiveTupleHash {
    /// Draws the salt from the seed of a run.
    pub fn new(streams: &RandomStreams) -> Self {
        Self { salt: streams.stream("five-tuple").bits() }
    }

    /// Returns the hash of a packet; `None` if it is neither IPv4 nor IPv6. Ports are zero for protocols without ports, for
    /// fragments, and behind extension headers of IPv6.
    pub fn of(&self, packet: &[u8]) -> Option<FlowId> {
        let (protocol, addresses, transport, is_fragment) = match packet.first()? >> 4 {
            4 => {
                let header = packet.get(..20)?;
                let length = usize::from(header[0] & 0xf) * 4;
                // Offset, and the flag that more follow (RFC 791, section 3.1).
                let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
                // A header shorter than the least is malformed and has no ports behind it (RFC 791, section 3.1).
                let transport = if length >= 20 { packet.get(length..) } else { None };
                (header[9], &packet[12..20], transport, is_fragment)
            }
            6 => (*packet.get(6)?, packet.get(8..40)?, packet.get(40..), false),
            _ => return None,
        };
        let mut hash = mix(self.salt ^ u64::from(protocol));
        for word in addresses.chunks(8) {
            hash = mix(hash ^ word.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
        if let Some([a, b, c, d, ..]) = transport
            && WITH_PORTS.contains(&protocol)
            && !is_fragment
        {
            hash = mix(hash ^ u64::from(u32::from_be_bytes([*a, *b, *c, *d])));
        }
        Some(FlowId((hash >> 48) as u16))
    }
}

/// Mixes all bits (the finalizer of SplitMix64; Steele, Lea and Flood 2014).
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;
    use std::collections::BTreeMap;

    fn hash() -> FiveTupleHash {
        FiveTupleHash::new(&RandomStreams::new(1))
    }

    fn udp(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(from, to).write(&mut bytes, payload).unwrap();
        bytes
    }

    fn udp6(from: u16, to: u16) -> Vec<u8> {
        let mut bytes = Vec::new();
        PacketBuilder::ipv6([0xfd; 16], [0xfe; 16], 64).udp(from, to).write(&mut bytes, b"data").unwrap();
        bytes
    }

    #[test]
    fn a_flow_has_one_hash_and_each_field_counts() {
        let first = udp(1000, 2000, b"a");
        let of = |packet: &[u8]| hash().of(packet);
        let mut other = udp(1000, 2000, b"another payload");
        (other[1], other[8]) = (0xb9, 1); // DSCP, ECN and TTL
        assert_eq!(of(&first), of(&other));
        let mut changed = vec![udp(1001, 2000, b"a"), udp(1000, 2001, b"a"), udp6(1000, 2000)];
        for index in [9, 12, 19] {
            let mut packet = first.clone();
            packet[index] ^= 1;
            changed.push(packet);
        }
        assert!(changed.iter().all(|packet| of(packet).is_some() && of(packet) != of(&first)));
        assert_ne!(of(&first), FiveTupleHash::new(&RandomStreams::new(2)).of(&first), "another salt");
    }

    #[test]
    fn fragments_of_a_packet_stay_together_and_any_bytes_are_allowed() {
        let of = |packet: &[u8]| hash().of(packet);
        let mut fragments = [udp(1000, 2000, b"a"), udp(7, 8, b"b")];
        (fragments[0][6], fragments[1][7]) = (0x20, 100); // the first of several, and a later one
        assert_eq!(of(&fragments[0]), of(&fragments[1]));
        for packet in [udp(1, 2, b"data"), udp6(1, 2)] {
            for length in 0..packet.len() {
                let minimum = if packet[0] >> 4 == 4 { 20 } else { 40 };
                assert_eq!(of(&packet[..length]).is_some(), length >= minimum, "{length}");
            }
        }
        assert_eq!((of(&[]), of(&[0x50; 60])), (None, None));
        assert!(of(&[0x4f; 20]).is_some(), "options beyond the end");
    }

    #[test]
    fn flows_spread_over_1024_queues() {
        let mut queues: BTreeMap<u16, u32> = BTreeMap::new();
        for port in 0..10_240 {
            *queues.entry(hash().of(&udp(port, 2000, b"a")).unwrap().0 % 1024).or_default() += 1;
        }
        // Poisson with mean 10: none of 1024 is above 30 or, but for one in 20 times, empty.
        assert!(queues.len() >= 1022 && *queues.values().max().unwrap() <= 30);
    }
}
