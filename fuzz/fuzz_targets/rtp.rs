//! RTP headers, padding, RTX and VP8 descriptors: whatever parses survives being written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use paceline_wire::{ExtensionIds, RtpHeader, Vp8Descriptor, is_rtcp, padding_len, rtx};

fuzz_target!(|bytes: &[u8]| {
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
});
