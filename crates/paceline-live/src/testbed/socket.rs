// SPDX-License-Identifier: MIT OR Apache-2.0
//! A UDP socket of an endpoint, with the kernel's receive timestamp and the ECN field of each datagram.

use crate::testbed::clock::Monotonic;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce};
use paceline_units::{Ecn, Time};
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// Size of one buffer: the kernel may coalesce datagrams (GRO).
const BUFFER: usize = 65_536;

/// Size of the socket's receive buffer.
const RECEIVE_BUFFER: usize = 4 << 20;

/// Maximum number of datagrams per system call.
const BATCH: usize = 16;

/// Maximum number of system calls after which [`Socket::receive`] returns, so that timers and signals are served in a flood, too.
const BATCHES: usize = 16;

/// Buffers for received datagrams.
pub struct ReceiveBuffers {
    buffers: [Vec<u8>; BATCH],
    metas: [RecvMeta; BATCH],
}

impl Default for ReceiveBuffers {
    fn default() -> Self {
        Self { buffers: std::array::from_fn(|_| vec![0; BUFFER]), metas: [RecvMeta::default(); BATCH] }
    }
}

/// The socket. No method blocks.
pub struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl Socket {
    /// Creates a socket at this address, in the namespace of the calling thread.
    pub fn bind(at: SocketAddrV4) -> io::Result<Self> {
        Self::new(UdpSocket::bind(at)?)
    }

    /// Configures a socket, with a large receive buffer for interruptions of its reader.
    pub fn new(socket: UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        // Without privilege, up to the system's limit.
        setsockopt(&socket, RcvBufForce, &RECEIVE_BUFFER).or_else(|_| setsockopt(&socket, RcvBuf, &RECEIVE_BUFFER))?;
        Ok(Self { socket, state })
    }

    /// Returns the local address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Calls `handle` for received datagrams with their arrival time, source, bytes and ECN field, until none waits or after 16
    /// batches. The descriptor stays readable if some wait.
    pub fn receive(
        &self,
        clock: &Monotonic,
        buffers: &mut ReceiveBuffers,
        mut handle: impl FnMut(Time, SocketAddr, &[u8], Ecn),
    ) -> io::Result<()> {
        for _ in 0..BATCHES {
            let n = match self.read(&mut buffers.buffers, &mut buffers.metas) {
                Ok(0) => return Ok(()),
                Ok(n) => n,
                // An ICMP message on an earlier packet.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
                Err(error) => return Err(error),
            };
            for (buffer, meta) in buffers.buffers.iter().zip(&buffers.metas).take(n) {
                let at = meta.timestamp.map_or_else(|| clock.now(), |stamp| clock.from_wall_clock(stamp));
                // The kernel may coalesce datagrams of one size.
                for bytes in buffer[..meta.len].chunks(meta.stride.max(1)) {
                    handle(at, meta.addr, bytes, ecn_of(meta));
                }
            }
        }
        Ok(())
    }

    /// Reads up to one batch of datagrams; returns 0 if none waits.
    pub(crate) fn read<const N: usize>(
        &self,
        buffers: &mut [impl AsMut<[u8]>; N],
        metas: &mut [RecvMeta; N],
    ) -> io::Result<usize> {
        let mut slices = buffers.each_mut().map(|buffer| IoSliceMut::new(buffer.as_mut()));
        match self.state.recv((&self.socket).into(), &mut slices, metas) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            result => result,
        }
    }

    /// Sends a datagram. A datagram that the system does not accept is lost.
    pub fn send(&self, to: SocketAddr, bytes: &[u8], ecn: Ecn) {
        let _ = self.try_send(to, bytes, ecn);
    }

    /// Sends a datagram.
    pub fn try_send(&self, destination: SocketAddr, contents: &[u8], ecn: Ecn) -> io::Result<()> {
        let ecn = EcnCodepoint::from_bits(ecn as u8);
        let transmit = Transmit { destination, ecn, contents, segment_size: None, src_ip: None };
        self.state.try_send((&self.socket).into(), &transmit)
    }

    /// Returns a descriptor that is readable when a datagram waits.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

pub(crate) fn ecn_of(meta: &RecvMeta) -> Ecn {
    meta.ecn.map_or(Ecn::NotEct, |ecn| Ecn::from_bits(ecn as u8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::TimeDelta;
    use std::net::Ipv4Addr;

    #[test]
    fn a_flood_keeps_no_caller_from_its_timers() {
        const SENT: usize = 5000;
        let socket = Socket::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (address, clock) = (socket.address().unwrap(), Monotonic::starting_in(TimeDelta::ZERO));
        let mut buffers = ReceiveBuffers::default();
        socket.send(address, &[0], Ecn::NotEct);
        let (mut sent, mut received, mut longest) = (1, 0, 0);
        while received < sent {
            let mut handled = 0;
            // A datagram comes in for each that is taken out, as in a flood that never ends.
            let flood = |_, _, _: &[u8], _| {
                handled += 1;
                if sent < SENT {
                    sent += 1;
                    socket.send(address, &[0], Ecn::NotEct);
                }
            };
            socket.receive(&clock, &mut buffers, flood).unwrap();
            (received, longest) = (received + handled, longest.max(handled));
        }
        assert_eq!(received, SENT, "those that waited come with the next calls");
        assert!((1..=BATCHES * BATCH).contains(&longest), "{longest} in one call");
    }
}
