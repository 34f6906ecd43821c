// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interface between a link and the network at one of its ends.

use paceline_units::{DataSize, Ecn};
use std::io;
use std::os::fd::BorrowedFd;

/// A packet that a port received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedPacket {
    /// Number of bytes in the buffer.
    pub len: usize,
    /// Size on the network, IP header included.
    pub size: DataSize,
    /// ECN field.
    pub ecn: Ecn,
}

/// One end of a link. No method blocks.
pub trait LinkPort {
    /// Reads the next packet into `buffer`; `None` if there is none.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<ReceivedPacket>>;
    /// Sends a packet with this ECN field.
    fn send(&mut self, packet: &mut [u8], ecn: Ecn) -> io::Result<()>;
    /// Returns a descriptor that is readable when a packet waits.
    fn fd(&self) -> BorrowedFd<'_>;
}
