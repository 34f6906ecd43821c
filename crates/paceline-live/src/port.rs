//! Where packets come to a link and where they leave it.

use std::io;
use std::os::fd::BorrowedFd;

/// One end of a link, as the link sees it. Nothing here blocks.
pub trait Port {
    /// The next packet that waits, and how long it is; `None`: none does.
    ///
    /// # Errors
    /// The end is gone.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>>;
    /// Hands a packet over.
    ///
    /// # Errors
    /// It was not taken.
    fn send(&mut self, packet: &[u8]) -> io::Result<()>;
    /// Readable when a packet waits.
    fn fd(&self) -> BorrowedFd<'_>;
}
