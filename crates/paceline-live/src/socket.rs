//! A UDP socket of an end: when each datagram came, by the kernel's stamp, and its ECN field.

use crate::clock::Monotonic;
use crate::relay::receive_buffer;
use paceline_units::{Ecn, Time};
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// Room for one read: the kernel may join datagrams.
const ROOM: usize = 65_536;

/// Datagrams read in one call.
const BATCH: usize = 16;

/// Where datagrams are read into.
pub struct Room {
    buffers: [Vec<u8>; BATCH],
    metas: [RecvMeta; BATCH],
}

impl Default for Room {
    fn default() -> Self {
        Self { buffers: std::array::from_fn(|_| vec![0; ROOM]), metas: [RecvMeta::default(); BATCH] }
    }
}

/// The socket. Nothing here blocks.
pub struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl Socket {
    /// A socket at this address, in the namespace that the calling thread is in.
    ///
    /// # Errors
    /// The system has none.
    pub fn bind(at: SocketAddrV4) -> io::Result<Self> {
        let socket = UdpSocket::bind(at)?;
        let state = UdpSocketState::new((&socket).into())?;
        receive_buffer(&socket)?;
        Ok(Self { socket, state })
    }

    /// Where it is.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Hands every datagram that has come to `handle`: when it came, from whom, its bytes and its ECN field.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn receive(
        &self,
        clock: &Monotonic,
        room: &mut Room,
        mut handle: impl FnMut(Time, SocketAddr, &[u8], Ecn),
    ) -> io::Result<()> {
        loop {
            let mut slices = room.buffers.each_mut().map(|b| IoSliceMut::new(b));
            let n = match self.state.recv((&self.socket).into(), &mut slices, &mut room.metas) {
                Ok(n) => n,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // What an ICMP message said about an earlier packet.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
                Err(error) => return Err(error),
            };
            for (buffer, meta) in room.buffers.iter().zip(&room.metas).take(n) {
                let at = meta.timestamp.map_or_else(|| clock.now(), |stamp| clock.of_stamp(stamp));
                let ecn = meta.ecn.map_or(Ecn::NotEct, |ecn| Ecn::from_bits(ecn as u8));
                // The kernel may join datagrams of one size.
                for bytes in buffer[..meta.len].chunks(meta.stride.max(1)) {
                    handle(at, meta.addr, bytes, ecn);
                }
            }
        }
    }

    /// Sends a datagram. What the system does not take is lost, as on a path.
    pub fn send(&self, to: SocketAddr, bytes: &[u8], ecn: Ecn) {
        let transmit = Transmit {
            destination: to,
            ecn: EcnCodepoint::from_bits(ecn as u8),
            contents: bytes,
            segment_size: None,
            src_ip: None,
        };
        let _ = self.state.try_send((&self.socket).into(), &transmit);
    }

    /// Readable when a datagram waits.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
