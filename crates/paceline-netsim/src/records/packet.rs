// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets as events name them.

use paceline_units::{DataSize, FlowId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum PacketClass {
    /// First transmission of media.
    Media,
    /// Retransmission of media.
    Retransmission,
    /// Forward error correction.
    Fec,
    Padding,
    /// RTCP from the sender of the flow.
    SenderControl,
    /// RTCP from the receiver of the flow; it travels on the return path.
    ReceiverControl,
    /// First transmission of a TCP segment from the sender.
    TcpData,
    /// Retransmission of a TCP segment from the sender.
    TcpRetransmission,
    /// A TCP segment from the receiver; it travels on the return path.
    TcpAck,
}

impl PacketClass {
    /// Every class, in order.
    pub const ALL: [Self; 9] = [
        Self::Media,
        Self::Retransmission,
        Self::Fec,
        Self::Padding,
        Self::SenderControl,
        Self::ReceiverControl,
        Self::TcpData,
        Self::TcpRetransmission,
        Self::TcpAck,
    ];
    /// The name of each class in files.
    pub const NAMES: [&'static str; 9] = [
        "media",
        "retransmission",
        "fec",
        "padding",
        "sender_control",
        "receiver_control",
        "tcp_data",
        "tcp_retransmission",
        "tcp_ack",
    ];

    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Returns whether the packet travels from the flow's receiver to its sender.
    #[inline]
    pub fn is_from_receiver(self) -> bool {
        matches!(self, Self::ReceiverControl | Self::TcpAck)
    }

    /// Returns whether the packet is a TCP segment; all others are UDP datagrams.
    #[inline]
    pub fn is_tcp(self) -> bool {
        matches!(self, Self::TcpData | Self::TcpRetransmission | Self::TcpAck)
    }
}

/// The reason why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum DropReason {
    /// The queue was full.
    Overflow,
    /// Lost on the wire, or after the last attempt on a shared medium.
    Loss,
    /// Dropped by active queue management (RFC 7567).
    Aqm,
    /// Larger than the MTU of the hop.
    Mtu,
    /// Removed with the queue in which it waited.
    Purge,
}

impl DropReason {
    /// Every reason, in order.
    pub const ALL: [Self; 5] = [Self::Overflow, Self::Loss, Self::Aqm, Self::Mtu, Self::Purge];

    /// The name of each reason in files.
    pub const NAMES: [&'static str; 5] = ["overflow", "loss", "aqm", "mtu", "purge"];

    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// A packet, as events name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRecord {
    /// Number within the run, from 0, in order of sending.
    pub packet: u64,
    pub flow: FlowId,
    pub class: PacketClass,
    /// Size on the network, IP and transport headers included.
    pub size: DataSize,
}
