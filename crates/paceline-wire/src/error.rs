// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of reading and writing. Each kind has a name and an index, so that endpoints can count them.

macro_rules! wire_errors {
    ($($(#[$doc:meta])+ $name:ident, $kind:literal, $text:literal;)+) => {
        /// The reason why bytes from the network are not a valid packet.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
        #[non_exhaustive]
        pub enum WireError {
            $($(#[$doc])+ #[error($text)] $name,)+
        }

        impl WireError {
            /// Every kind, at its [`index`](Self::index).
            pub const ALL: &'static [Self] = &[$(Self::$name),+];
            /// The number of kinds.
            pub const COUNT: usize = Self::ALL.len();

            /// Returns a stable short name for counters and logs.
            pub const fn kind(self) -> &'static str {
                match self { $(Self::$name => $kind),+ }
            }

            /// Returns a number from 0 to `COUNT - 1`, for an array of counters.
            pub const fn index(self) -> usize {
                self as usize
            }
        }
    };
}

wire_errors! {
    /// The packet ends inside its fixed header, CSRC list or extension block.
    RtpTruncated, "rtp_truncated", "the RTP packet ends inside its header";
    /// The version field is not 2 (RTP or RTCP).
    BadVersion, "bad_version", "the version field is not 2";
    /// A header-extension element is longer than the block that holds it.
    ExtensionOverrun, "extension_overrun", "a header-extension element is longer than its block";
    /// The padding count of an RTP packet is zero or more than its payload.
    RtpPadding, "rtp_padding", "the RTP padding count does not fit the packet";
    /// A retransmission is too short for its original sequence number.
    RtxTruncated, "rtx_truncated", "the RTX payload is shorter than 2 bytes";
    /// A redundant payload ends inside its headers or before the end of its blocks.
    RedTruncated, "red_truncated", "the redundant payload is shorter than its headers state";
    /// A FEC packet ends inside its headers or before its protection length.
    FecTruncated, "fec_truncated", "the FEC packet is shorter than its headers state";
    /// The mask of a FEC packet is empty.
    FecEmpty, "fec_empty", "the mask of the FEC packet is empty";
    /// A recovered packet is longer than the protection length or the buffer.
    FecRecovery, "fec_recovery", "the recovered packet is longer than the protection length or the buffer";
    /// The VP8 payload ends inside its descriptor or before the first octet of its frame.
    Vp8Truncated, "vp8_truncated", "the payload ends inside the VP8 descriptor";
    /// An RTCP packet is shorter than its header or its length field states.
    RtcpTruncated, "rtcp_truncated", "the RTCP packet is shorter than its length field states";
    /// The packet type is outside 192 to 223.
    NotRtcp, "not_rtcp", "the packet type is not in the RTCP range 192 to 223";
    /// The padding count of an RTCP packet is zero, too large, or not a multiple of 4.
    RtcpPadding, "rtcp_padding", "the RTCP padding count is zero, too large or not a multiple of 4";
    /// A packet with padding is not the last of its compound.
    PaddingNotLast, "padding_not_last", "a packet with padding is not the last of the compound";
    /// A sender or receiver report ends before its last report block.
    ReportTruncated, "report_truncated", "the report ends before its last report block";
    /// A chunk or item of a source description exceeds the packet.
    SdesMalformed, "sdes_malformed", "a chunk of the source description exceeds the packet";
    /// A goodbye packet ends before its sources or its reason.
    ByeMalformed, "bye_malformed", "the goodbye packet ends before its sources or its reason";
    /// An application-defined packet has no SSRC and name.
    AppTruncated, "app_truncated", "the application packet has no SSRC and name";
    /// The data of an application-defined packet has the wrong length for its name.
    AppLength, "app_length", "the data of the application packet has the wrong length for its name";
    /// A block of an extended report exceeds the packet or has a wrong length.
    XrMalformed, "xr_malformed", "a block of the extended report has a wrong length";
    /// A feedback packet ends before its two SSRCs.
    FeedbackTruncated, "feedback_truncated", "the feedback packet ends before its two SSRCs";
    /// A generic NACK has no entry.
    NackEmpty, "nack_empty", "the NACK has no entry";
    /// A picture loss indication has a payload.
    PliLength, "pli_length", "the picture loss indication is not empty";
    /// The entries of a full intra request are not a positive multiple of 8 bytes.
    FirLength, "fir_length", "the full intra request does not contain whole entries";
    /// The length of a REMB does not match its number of SSRCs.
    RembLength, "remb_length", "the REMB length does not match its SSRC count";
    /// The rate of a REMB needs more than 64 bits.
    RembOverflow, "remb_overflow", "the REMB rate needs more than 64 bits";
    /// A transport-wide feedback packet ends inside its fixed fields.
    TwccTruncated, "twcc_truncated", "the transport feedback ends inside its header";
    /// The status count of a transport-wide feedback packet is zero.
    TwccEmpty, "twcc_empty", "the status count of the transport feedback is zero";
    /// The chunks have fewer statuses than the status count.
    TwccChunksMissing, "twcc_chunks_missing", "the chunks of the transport feedback have fewer statuses than its status count";
    /// A chunk contains the reserved status symbol 11.
    TwccReservedSymbol, "twcc_reserved_symbol", "the transport feedback uses the reserved status symbol";
    /// There are fewer delta bytes than the statuses need.
    TwccDeltasMissing, "twcc_deltas_missing", "the transport feedback has fewer deltas than its statuses need";
    /// A congestion control feedback packet ends inside its fixed fields or its blocks.
    CcfbTruncated, "ccfb_truncated", "the congestion control feedback ends inside a block";
    /// A block of congestion control feedback covers more than a quarter of the sequence numbers.
    CcfbTooMany, "ccfb_too_many", "a block of congestion control feedback covers more than 16384 packets";
}

/// An error of writing a packet. The writer is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The remaining buffer is too short.
    #[error("the buffer is full")]
    BufferFull,
    /// A list or text is too long for its count field.
    #[error("a list is too long for its count field")]
    TooMany,
    /// There is nothing to report, and the format cannot express that.
    #[error("there is nothing to report")]
    Empty,
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn kinds_are_distinct_and_indexed() {
        let mut kinds: Vec<_> = WireError::ALL.iter().map(|e| e.kind()).collect();
        for (i, e) in WireError::ALL.iter().enumerate() {
            assert_eq!(e.index(), i);
        }
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), WireError::COUNT);
    }
}
