// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures of the classic format for unit tests.

/// The numbers of UDP and TCP.
pub const UDP: u8 = 17;
pub const TCP: u8 = 6;
/// The link type of packets without a header of the link.
pub const RAW: u32 = 101;

/// Returns numbers in network byte order.
pub fn words(words: &[u16]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Returns a packet of IPv4 or IPv6 between two addresses that end with these bytes.
pub fn ip_packet(is_v6: bool, protocol: u8, (from, to): (u8, u8), inner: &[u8]) -> Vec<u8> {
    let size = inner.len() as u16;
    let address = |last: u8| [[0xFD; 15].as_slice(), &[last]].concat();
    let header = match is_v6 {
        false => {
            [&[0x45, 0][..], &words(&[20 + size, 0, 0]), &[64, protocol, 0, 0, 10, 0, 0, from, 10, 0, 0, to]].concat()
        }
        true => [&[0x60, 0, 0, 0][..], &words(&[size]), &[protocol, 64], &address(from), &address(to)].concat(),
    };
    [&header, inner].concat()
}

pub fn udp(ports: (u16, u16), inner: &[u8]) -> Vec<u8> {
    [words(&[ports.0, ports.1, 8 + inner.len() as u16, 0]), inner.to_vec()].concat()
}

pub fn rtp(ssrc: u16, number: u16, payload: &[u8]) -> Vec<u8> {
    [&[0x80, 96][..], &words(&[number, 0, 0, 0, ssrc]), payload].concat()
}

/// Returns a file with these packets, each with its time in ms.
pub fn file(link: u32, packets: impl IntoIterator<Item = (u32, Vec<u8>)>) -> Vec<u8> {
    let mut file = [0xA1B2_C3D4_u32.to_le_bytes(), 0x0004_0002_u32.to_le_bytes()].concat();
    file.extend([0, 0, 65535, link].into_iter().flat_map(u32::to_le_bytes));
    packets.into_iter().for_each(|(ms, packet)| push(&mut file, ms, &packet));
    file
}

/// Adds a packet to a file.
pub fn push(file: &mut Vec<u8>, ms: u32, packet: &[u8]) {
    push_cut(file, ms, packet, packet.len());
}

/// Adds the first bytes of a packet to a file.
pub fn push_cut(file: &mut Vec<u8>, ms: u32, packet: &[u8], bytes: usize) {
    let cut = &packet[..packet.len().min(bytes)];
    let sizes = [cut.len() as u32, packet.len() as u32];
    file.extend([1_700_000_000 + ms / 1000, ms % 1000 * 1000].into_iter().chain(sizes).flat_map(u32::to_le_bytes));
    file.extend(cut);
}
