// SPDX-License-Identifier: MIT OR Apache-2.0
//! Link ports over UDP sockets, which need no privilege: datagrams of a client at the near socket go to a target, and
//! those of the target go back to the client.

use crate::testbed::link_port::{LinkPort, ReceivedPacket};
use crate::testbed::socket::{Socket, ecn_of};
use paceline_netsim::flow::IP_UDP_HEADERS;
use paceline_units::{DataSize, Ecn};
use quinn_udp::RecvMeta;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Additional size of an IPv6 header over IPv4.
const IPV6_MORE: DataSize = DataSize::from_bytes(20);

/// Size of the read buffer.
const BUFFER: usize = 65_536;

/// One side of a relay.
pub struct Relay {
    socket: Socket,
    /// Destination of packets: at the near side the first sender, `None` before its first packet.
    peer: Option<SocketAddr>,
    /// Datagrams that others than the peer sent, and empty ones.
    refused: Arc<AtomicU64>,
    /// Datagrams of one size that the kernel coalesced (GRO), and the position of the next.
    joined: Vec<u8>,
    next: usize,
    meta: RecvMeta,
}

impl Relay {
    /// Creates the side of the client, at this address. The sender of the first datagram that is not empty is the client for as
    /// long as the relay exists: nobody else can take over its stream, or have packets sent to a third party.
    pub fn near(at: SocketAddr) -> io::Result<Self> {
        Ok(Self::new(Socket::new(UdpSocket::bind(at)?)?, None))
    }

    /// Creates the side of a target.
    pub fn far(target: SocketAddr) -> io::Result<Self> {
        let any: SocketAddr = match target {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        // Receive from the target only.
        socket.connect(target)?;
        Ok(Self::new(Socket::new(socket)?, Some(target)))
    }

    fn new(socket: Socket, peer: Option<SocketAddr>) -> Self {
        let refused = Arc::default();
        Self { socket, peer, refused, joined: vec![0; BUFFER], next: 0, meta: RecvMeta::default() }
    }

    /// Returns the number of datagrams so far that were refused: those of others than the peer, and empty ones.
    pub fn refused(&self) -> Arc<AtomicU64> {
        self.refused.clone()
    }

    /// Returns the local address.
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
        let is_valid = self.meta.len > 0 && self.peer.is_none_or(|peer| peer == self.meta.addr);
        if is_valid {
            self.peer = Some(self.meta.addr);
        } else {
            self.refused.fetch_add(1, Ordering::Relaxed);
            self.meta.len = 0;
        }
        Ok(is_valid)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::time::Duration;

    const LOOPBACK: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

    /// Returns all that has arrived.
    fn received(relay: &mut Relay) -> Vec<Vec<u8>> {
        thread::sleep(Duration::from_millis(20));
        let (mut all, mut buffer, mut idle) = (Vec::new(), [0; 2048], 0);
        while idle < 5 {
            match relay.receive(&mut buffer).unwrap() {
                Some(packet) => all.push(buffer[..packet.len].to_vec()),
                None => idle += 1,
            }
        }
        all
    }

    #[test]
    fn the_first_valid_datagram_decides_who_the_client_is() {
        let mut near = Relay::near(LOOPBACK.into()).unwrap();
        let (at, refused) = (near.address().unwrap(), near.refused());
        let [client, other] = [(); 2].map(|()| UdpSocket::bind(LOOPBACK).unwrap());
        other.send_to(&[], at).unwrap();
        assert!(received(&mut near).is_empty());
        assert_eq!(near.send(&mut [1], Ecn::NotEct).unwrap_err().kind(), io::ErrorKind::NotConnected, "no client yet");

        client.send_to(b"hello", at).unwrap();
        assert_eq!(received(&mut near), [b"hello"]);
        for attack in [&[][..], b"mine"] {
            other.send_to(attack, at).unwrap();
        }
        client.send_to(b"again", at).unwrap();
        assert_eq!(received(&mut near), [b"again"]);
        assert_eq!(refused.load(Ordering::Relaxed), 3, "two empty datagrams, and one of another sender");

        near.send(&mut b"reply".to_vec(), Ecn::NotEct).unwrap();
        let mut buffer = [0; 16];
        for (socket, expected) in [(&client, Some(5)), (&other, None)] {
            socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            assert_eq!(socket.recv(&mut buffer).ok(), expected);
        }
    }
}
