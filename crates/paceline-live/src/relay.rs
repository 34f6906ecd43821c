//! Link ports over UDP sockets, which need no privilege: datagrams of a client at the near socket go to a target, and
//! those of the target go back to the client.

use crate::link_port::{LinkPort, ReceivedPacket};
use crate::socket::{Socket, ecn_of};
use paceline_flow::IP_UDP_HEADERS;
use paceline_units::{DataSize, Ecn};
use quinn_udp::RecvMeta;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::BorrowedFd;

/// Additional size of an IPv6 header over IPv4.
const IPV6_MORE: DataSize = DataSize::from_bytes(20);

/// Size of the read buffer.
const BUFFER: usize = 65_536;

/// One side of a relay.
pub struct Relay {
    socket: Socket,
    /// Destination of packets: at the near side the last sender, `None` before the first packet.
    peer: Option<SocketAddr>,
    near: bool,
    /// Datagrams of one size that the kernel coalesced (GRO), and the position of the next.
    joined: Vec<u8>,
    next: usize,
    meta: RecvMeta,
}

impl Relay {
    /// Creates the side of the client, at this address. The client is the last sender.
    ///
    /// # Errors
    /// The address is not available.
    pub fn near(at: SocketAddr) -> io::Result<Self> {
        Ok(Self::new(Socket::new(UdpSocket::bind(at)?)?, None, true))
    }

    /// Creates the side of a target.
    ///
    /// # Errors
    /// The socket cannot be created.
    pub fn far(target: SocketAddr) -> io::Result<Self> {
        let any: SocketAddr = match target {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        // Receive from the target only.
        socket.connect(target)?;
        Ok(Self::new(Socket::new(socket)?, Some(target), false))
    }

    fn new(socket: Socket, peer: Option<SocketAddr>, near: bool) -> Self {
        Self { socket, peer, near, joined: vec![0; BUFFER], next: 0, meta: RecvMeta::default() }
    }

    /// Returns the local address.
    ///
    /// # Errors
    /// The socket failed.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.address()
    }

    /// Reads the next datagrams; returns false if there are none.
    fn read(&mut self) -> io::Result<bool> {
        let mut meta = [self.meta];
        match self.socket.read(&mut [&mut self.joined], &mut meta) {
            Ok(0) => return Ok(false),
            Ok(_) => {}
            Err(error) if is_icmp_error(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
        ([self.meta], self.next) = (meta, 0);
        if self.near {
            self.peer = Some(self.meta.addr);
        }
        // Ignore empty datagrams.
        Ok(self.meta.len > 0)
    }
}

/// Returns whether an error is an ICMP message on an earlier packet. That packet is lost; later ones may arrive.
fn is_icmp_error(error: &io::Error) -> bool {
    use nix::libc::{
        EACCES, ECONNREFUSED, EHOSTDOWN, EHOSTUNREACH, EMSGSIZE, ENETDOWN, ENETUNREACH, ENOPROTOOPT, EPROTO,
    };
    let soft = [EACCES, ECONNREFUSED, EHOSTDOWN, EHOSTUNREACH, EMSGSIZE, ENETDOWN, ENETUNREACH, ENOPROTOOPT, EPROTO];
    error.raw_os_error().is_some_and(|code| soft.contains(&code))
}

impl LinkPort for Relay {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<ReceivedPacket>> {
        if self.next >= self.meta.len && !self.read()? {
            return Ok(None);
        }
        let len = self.meta.stride.min(self.meta.len - self.next);
        buffer[..len].copy_from_slice(&self.joined[self.next..self.next + len]);
        self.next += len;
        let more = if self.meta.addr.ip().to_canonical().is_ipv6() { IPV6_MORE } else { DataSize::ZERO };
        let headers = IP_UDP_HEADERS + more;
        let ecn = ecn_of(&self.meta);
        Ok(Some(ReceivedPacket { len, size: DataSize::from_bytes(len as u64) + headers, ecn }))
    }

    fn send(&mut self, packet: &mut [u8], ecn: Ecn) -> io::Result<()> {
        let Some(destination) = self.peer else { return Err(io::ErrorKind::NotConnected.into()) };
        self.socket.try_send(destination, packet, ecn)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.fd()
    }
}
