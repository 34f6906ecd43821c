// SPDX-License-Identifier: MIT OR Apache-2.0
//! RTP headers, padding, RTX, RED, ULPFEC and VP8 descriptors: what was read is written and read again, and a packet that
//! FEC recovers is valid.

use paceline_wire::red::Red;
use paceline_wire::ulpfec::FecPacket;
use paceline_wire::{ExtensionIds, RtpHeader, Vp8Descriptor, clear_stamps, is_rtcp, padding_len, rtx};

/// Checks one input.
pub fn check(bytes: &[u8]) {
    let ids = ExtensionIds::default();
    is_rtcp(bytes);
    let Ok((header, offset)) = RtpHeader::parse(bytes, &ids) else { return };
    assert!((12..=bytes.len()).contains(&offset));
    let mut out = [0xEE; RtpHeader::MAX_LEN];
    let len = header.write(&ids, &mut out);
    assert_eq!(RtpHeader::parse(&out[..len], &ids), Ok((header, len)));

    let payload = &bytes[offset..];
    if let Ok(count) = padding_len(bytes, offset) {
        assert!((1..=payload.len()).contains(&count));
    }
    if let Ok(sequence) = rtx::read(payload) {
        assert_eq!(sequence.to_be_bytes(), payload[..rtx::LEN]);
    }
    if let Ok(descriptor) = Vp8Descriptor::parse(payload) {
        let len = descriptor.write(&mut out);
        assert_eq!(Vp8Descriptor::parse(&out[..len]), Ok(descriptor));
    }
    if let Ok(red) = Red::parse(payload) {
        let older: usize = red.redundant().map(|block| 4 + block.data.len()).sum();
        assert_eq!(older + 1 + red.primary().len(), payload.len());
        if let Ok(fec) = FecPacket::parse(red.primary(), red.primary().len()) {
            let mut restored = vec![0xEE; 2000];
            if let Ok(mut recovery) = fec.recovery(&mut restored)
                && recovery.add(bytes, bytes.len()).is_ok()
                && let Ok((written, len)) = recovery.finish(header.sequence, header.ssrc)
            {
                assert!((12..=len).contains(&written));
                assert_eq!(restored[0] >> 6, 2);
            }
        }
    }
    let mut packet = bytes.to_vec();
    clear_stamps(&mut packet, &ids).expect("the header was read before");
    let (cleared, again) = RtpHeader::parse(&packet, &ids).expect("the same header");
    assert_eq!((cleared.sequence, cleared.ssrc, again), (header.sequence, header.ssrc, offset));
    assert_eq!(packet.len(), bytes.len());
}
