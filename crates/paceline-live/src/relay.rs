//! A link between UDP sockets, for those who may not make devices: what a client sends to the near socket goes on to a target,
//! and what the target answers goes back.

use crate::port::{Came, Port};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce};
use paceline_flow::IP_UDP_HEADERS;
use paceline_units::{DataSize, Ecn};
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// Bytes that IPv6 has more of than IPv4.
const IPV6_MORE: DataSize = DataSize::from_bytes(20);

/// Room for what one read may bring.
const ROOM: usize = 65_536;

/// Room for what waits to be read.
const RECEIVE_BUFFER: usize = 4 << 20;

/// Gives a socket room for what comes while the machine holds its reader up; as much as everybody may have, without the
/// privilege to have more.
pub(crate) fn receive_buffer(socket: &UdpSocket) -> io::Result<()> {
    setsockopt(socket, RcvBufForce, &RECEIVE_BUFFER).or_else(|_| setsockopt(socket, RcvBuf, &RECEIVE_BUFFER))?;
    Ok(())
}

/// One side of a relay.
pub struct Relay {
    socket: UdpSocket,
    state: UdpSocketState,
    /// Whom packets go to: at the near side whoever sent last, and nobody at first.
    peer: Option<SocketAddr>,
    near: bool,
    /// Datagrams of one size that the kernel joined, from the next that is to be told on.
    joined: Vec<u8>,
    next: usize,
    meta: RecvMeta,
}

impl Relay {
    /// The side of clients, at this address. There is one client at a time: the one heard last.
    ///
    /// # Errors
    /// The address is not to be had.
    pub fn near(at: SocketAddr) -> io::Result<Self> {
        Self::new(UdpSocket::bind(at)?, None, true)
    }

    /// The side of a target.
    ///
    /// # Errors
    /// The system has no socket for it.
    pub fn far(target: SocketAddr) -> io::Result<Self> {
        let any: SocketAddr = match target {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        // Only the target is heard.
        socket.connect(target)?;
        Self::new(socket, Some(target), false)
    }

    fn new(socket: UdpSocket, peer: Option<SocketAddr>, near: bool) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        receive_buffer(&socket)?;
        let (joined, next, meta) = (vec![0; ROOM], 0, RecvMeta::default());
        Ok(Self { socket, state, peer, near, joined, next, meta })
    }

    /// Where it can be reached.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

impl Relay {
    /// Reads what has come, if something has.
    fn read(&mut self) -> io::Result<bool> {
        let mut meta = [self.meta];
        match self.state.recv((&self.socket).into(), &mut [IoSliceMut::new(&mut self.joined)], &mut meta) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if is_of_one_packet(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
        ([self.meta], self.next) = (meta, 0);
        if self.near {
            self.peer = Some(self.meta.addr);
        }
        // An empty datagram is nothing to carry.
        Ok(self.meta.len > 0)
    }
}

/// Whether an ICMP message told it of an earlier packet: that is lost, and the next may find its way.
fn is_of_one_packet(error: &io::Error) -> bool {
    use nix::libc::{
        EACCES, ECONNREFUSED, EHOSTDOWN, EHOSTUNREACH, EMSGSIZE, ENETDOWN, ENETUNREACH, ENOPROTOOPT, EPROTO,
    };
    let soft = [EACCES, ECONNREFUSED, EHOSTDOWN, EHOSTUNREACH, EMSGSIZE, ENETDOWN, ENETUNREACH, ENOPROTOOPT, EPROTO];
    error.raw_os_error().is_some_and(|code| soft.contains(&code))
}

impl Port for Relay {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Came>> {
        if self.next >= self.meta.len && !self.read()? {
            return Ok(None);
        }
        let len = self.meta.stride.min(self.meta.len - self.next);
        buffer[..len].copy_from_slice(&self.joined[self.next..self.next + len]);
        self.next += len;
        let headers =
            IP_UDP_HEADERS + if self.meta.addr.ip().to_canonical().is_ipv6() { IPV6_MORE } else { DataSize::ZERO };
        let ecn = self.meta.ecn.map_or(Ecn::NotEct, |ecn| Ecn::from_bits(ecn as u8));
        Ok(Some(Came { len, size: DataSize::from_bytes(len as u64) + headers, ecn }))
    }

    fn send(&mut self, packet: &mut [u8], ecn: Ecn) -> io::Result<()> {
        let Some(destination) = self.peer else { return Err(io::ErrorKind::NotConnected.into()) };
        let ecn = EcnCodepoint::from_bits(ecn as u8);
        let transmit = Transmit { destination, ecn, contents: packet, segment_size: None, src_ip: None };
        self.state.try_send((&self.socket).into(), &transmit)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
