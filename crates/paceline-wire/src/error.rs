//! What can be wrong with a packet, one name for each way, so that an endpoint can count them by kind.

macro_rules! wire_errors {
    ($($(#[$doc:meta])+ $name:ident, $kind:literal, $text:literal;)+) => {
        /// Why bytes from the network are not the packet they claim to be.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
        #[non_exhaustive]
        pub enum WireError {
            $($(#[$doc])+ #[error($text)] $name,)+
        }

        impl WireError {
            /// Every kind, at the position that [`index`](Self::index) gives.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];
            /// How many kinds there are.
            pub const COUNT: usize = Self::ALL.len();

            /// A stable short name for counters and logs.
            pub const fn kind(self) -> &'static str {
                match self { $(Self::$name => $kind),+ }
            }

            /// A number from 0 to `COUNT - 1`, for an array of counters.
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
    /// A redundant payload ends inside its headers or before the blocks that they announce.
    RedTruncated, "red_truncated", "the redundant payload is shorter than its headers say";
    /// A FEC packet ends inside its headers or before the end of what it protects.
    FecTruncated, "fec_truncated", "the FEC packet is shorter than its headers say";
    /// A FEC packet that protects no packet.
    FecEmpty, "fec_empty", "the FEC packet protects nothing";
    /// What a FEC packet restores is longer than what it protects, or than there is room for.
    FecRecovery, "fec_recovery", "the FEC packet does not fit the packets that it protects";
    /// The VP8 payload ends inside its descriptor or before the first octet of its frame.
    Vp8Truncated, "vp8_truncated", "the payload ends inside the VP8 descriptor";
    /// An RTCP packet is shorter than its header or its length field says.
    RtcpTruncated, "rtcp_truncated", "the RTCP packet is shorter than its length field says";
    /// A packet type outside 192 to 223, which no RTCP packet has.
    NotRtcp, "not_rtcp", "the packet type is not one of RTCP";
    /// The padding count of an RTCP packet is zero, too large, or not a multiple of 4.
    RtcpPadding, "rtcp_padding", "the RTCP padding count is impossible";
    /// Padding on a packet that is not the last of its compound.
    PaddingNotLast, "padding_not_last", "padding on a packet that is not the last of the compound";
    /// A sender or receiver report is shorter than its report blocks need.
    ReportTruncated, "report_truncated", "the report is shorter than its block count needs";
    /// A source description whose chunks or items run past its end.
    SdesMalformed, "sdes_malformed", "the source description runs past its end";
    /// A goodbye shorter than its sources or its reason.
    ByeMalformed, "bye_malformed", "the goodbye is shorter than its sources or its reason";
    /// An application packet without SSRC and name.
    AppTruncated, "app_truncated", "the application packet has no SSRC and name";
    /// An application packet whose data does not have the length that its name asks for.
    AppLength, "app_length", "the data of the application packet does not have the length of its kind";
    /// An extended report whose blocks run past its end or have an impossible length.
    XrMalformed, "xr_malformed", "a block of the extended report has an impossible length";
    /// A feedback packet without its two SSRCs.
    FeedbackTruncated, "feedback_truncated", "the feedback packet has no room for its two SSRCs";
    /// A generic NACK that names no packet.
    NackEmpty, "nack_empty", "the NACK names no packet";
    /// A picture loss indication that carries something.
    PliLength, "pli_length", "the picture loss indication is not empty";
    /// A full intra request without whole entries of 8 bytes.
    FirLength, "fir_length", "the full intra request does not hold whole entries";
    /// A REMB whose length does not match its number of SSRCs.
    RembLength, "remb_length", "the REMB length does not match its SSRC count";
    /// A REMB whose rate needs more than 64 bits.
    RembOverflow, "remb_overflow", "the REMB rate needs more than 64 bits";
    /// A transport-wide feedback packet that ends inside its fixed fields.
    TwccTruncated, "twcc_truncated", "the transport feedback ends inside its header";
    /// A transport-wide feedback packet about no packets.
    TwccEmpty, "twcc_empty", "the transport feedback describes no packet";
    /// A status count larger than the chunks provide.
    TwccChunksMissing, "twcc_chunks_missing", "the transport feedback has fewer chunks than its status count needs";
    /// The reserved status symbol 11.
    TwccReservedSymbol, "twcc_reserved_symbol", "the transport feedback uses the reserved status symbol";
    /// Fewer delta bytes than the statuses imply.
    TwccDeltasMissing, "twcc_deltas_missing", "the transport feedback has fewer deltas than its statuses imply";
    /// A congestion control feedback packet that ends inside its fixed fields or before the packets that it announces.
    CcfbTruncated, "ccfb_truncated", "the congestion control feedback is shorter than its counts need";
    /// A block of congestion control feedback on more than a quarter of the sequence numbers.
    CcfbTooMany, "ccfb_too_many", "a block of congestion control feedback is on more than 16384 packets";
}

/// Why a packet was not written; the writer is as it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The rest of the buffer is too short.
    #[error("the buffer is full")]
    BufferFull,
    /// A list or text is longer than its count field can say.
    #[error("a list is longer than its count field can say")]
    TooMany,
    /// There is nothing to report, and the format has no way to say so.
    #[error("there is nothing to report")]
    Empty,
}

#[cfg(test)]
mod tests {
    use super::*;

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
