//! The messages of libwebrtc's `rtc_event_log2.proto` and `rtc_event_log.proto`, as far as they are read: field numbers and types.

use prost::Message;

/// Packets of one SSRC: fields of the first, deltas of the others.
#[derive(Clone, PartialEq, Message)]
pub struct Rtp {
    #[prost(int64, optional, tag = "1")]
    pub ms: Option<i64>,
    #[prost(uint32, optional, tag = "4")]
    pub sequence: Option<u32>,
    #[prost(fixed32, optional, tag = "5")]
    pub timestamp: Option<u32>,
    #[prost(fixed32, optional, tag = "6")]
    pub ssrc: Option<u32>,
    #[prost(uint32, optional, tag = "8")]
    pub payload: Option<u32>,
    #[prost(uint32, optional, tag = "9")]
    pub header: Option<u32>,
    #[prost(uint32, optional, tag = "10")]
    pub padding: Option<u32>,
    #[prost(uint32, optional, tag = "11")]
    pub deltas: Option<u32>,
    #[prost(uint32, optional, tag = "15")]
    pub transport_sequence: Option<u32>,
    #[prost(uint32, optional, tag = "17")]
    pub abs_send_time: Option<u32>,
    #[prost(bytes = "vec", tag = "101")]
    pub ms_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "104")]
    pub sequence_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "105")]
    pub timestamp_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "108")]
    pub payload_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "109")]
    pub header_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "110")]
    pub padding_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "115")]
    pub transport_sequence_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "117")]
    pub abs_send_time_deltas: Vec<u8>,
}

/// RTCP compounds.
#[derive(Clone, PartialEq, Message)]
pub struct Rtcp {
    #[prost(int64, optional, tag = "1")]
    pub ms: Option<i64>,
    #[prost(bytes = "vec", tag = "2")]
    pub raw: Vec<u8>,
    #[prost(uint32, optional, tag = "3")]
    pub deltas: Option<u32>,
    #[prost(bytes = "vec", tag = "101")]
    pub ms_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "102")]
    pub blobs: Vec<u8>,
}

/// Estimates of the loss-based controller.
#[derive(Clone, PartialEq, Message)]
pub struct LossBased {
    #[prost(int64, optional, tag = "1")]
    pub ms: Option<i64>,
    #[prost(uint32, optional, tag = "2")]
    pub bps: Option<u32>,
    #[prost(uint32, optional, tag = "5")]
    pub deltas: Option<u32>,
    #[prost(bytes = "vec", tag = "101")]
    pub ms_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "102")]
    pub bps_deltas: Vec<u8>,
}

/// Estimates of the delay-based controller.
#[derive(Clone, PartialEq, Message)]
pub struct DelayBased {
    #[prost(int64, optional, tag = "1")]
    pub ms: Option<i64>,
    #[prost(uint32, optional, tag = "2")]
    pub bps: Option<u32>,
    #[prost(int32, optional, tag = "3")]
    pub state: Option<i32>,
    #[prost(uint32, optional, tag = "4")]
    pub deltas: Option<u32>,
    #[prost(bytes = "vec", tag = "101")]
    pub ms_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "102")]
    pub bps_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "103")]
    pub state_deltas: Vec<u8>,
}

/// A time and up to two numbers: probes, application limits, routes, selected pairs.
#[derive(Clone, PartialEq, Message)]
pub struct Single {
    #[prost(int64, optional, tag = "1")]
    pub ms: Option<i64>,
    #[prost(uint64, optional, tag = "2")]
    pub second: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub third: Option<u64>,
}

/// An event of version 1.
#[derive(Clone, PartialEq, Message)]
pub struct Event1 {
    #[prost(int64, optional, tag = "1")]
    pub us: Option<i64>,
    #[prost(message, optional, tag = "3")]
    pub rtp: Option<Rtp1>,
    #[prost(message, optional, tag = "4")]
    pub rtcp: Option<Rtcp1>,
    #[prost(message, optional, tag = "6")]
    pub loss: Option<Numbers>,
    #[prost(message, optional, tag = "7")]
    pub delay: Option<Numbers>,
    #[prost(message, optional, tag = "17")]
    pub cluster: Option<Numbers>,
    #[prost(message, optional, tag = "18")]
    pub result: Option<Numbers>,
    #[prost(message, optional, tag = "19")]
    pub alr: Option<Numbers>,
}

/// An RTP header of version 1.
#[derive(Clone, PartialEq, Message)]
pub struct Rtp1 {
    #[prost(bool, optional, tag = "1")]
    pub incoming: Option<bool>,
    #[prost(uint32, optional, tag = "3")]
    pub length: Option<u32>,
    #[prost(bytes = "vec", tag = "4")]
    pub header: Vec<u8>,
}

/// An RTCP compound of version 1.
#[derive(Clone, PartialEq, Message)]
pub struct Rtcp1 {
    #[prost(bool, optional, tag = "1")]
    pub incoming: Option<bool>,
    #[prost(bytes = "vec", tag = "3")]
    pub data: Vec<u8>,
}

/// Up to three numbers of version 1.
#[derive(Clone, PartialEq, Message)]
pub struct Numbers {
    #[prost(uint64, optional, tag = "1")]
    pub first: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub second: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub third: Option<u64>,
}
