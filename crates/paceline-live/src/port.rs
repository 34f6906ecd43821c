//! Where packets come to a link and where they leave it.

use paceline_units::{DataSize, Ecn};
use std::io;
use std::os::fd::BorrowedFd;

/// A packet that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    /// How many bytes of the buffer it is.
    pub len: usize,
    /// Its size on the network, IP header included.
    pub size: DataSize,
    /// Its ECN field.
    pub ecn: Ecn,
}

/// One end of a link, as the link sees it. Nothing here blocks.
pub trait Port {
    /// The next packet that waits; `None`: none does.
    ///
    /// # Errors
    /// The end is gone.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Came>>;
    /// Hands a packet over, with this ECN field.
    ///
    /// # Errors
    /// It was not taken.
    fn send(&mut self, packet: &mut [u8], ecn: Ecn) -> io::Result<()>;
    /// Readable when a packet waits.
    fn fd(&self) -> BorrowedFd<'_>;
}
