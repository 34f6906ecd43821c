//! The network device at one end of a link: what is sent there is read here, and what is written here arrives there.

use crate::namespace::{Namespace, queue_length};
use crate::port::{Came, Port};
use crate::{Unavailable, ipv4};
use paceline_units::{DataSize, Ecn};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use tun_rs::{DeviceBuilder, SyncDevice};

/// Largest packet, IP header included: what a path without tunnels carries.
pub const MTU: u16 = 1500;

/// Bits of the address that both ends share.
const PREFIX: u8 = 24;

/// Packets that wait to be read. The link reads them at once, unless the machine holds it up: 200 ms at 200,000 packets a
/// second. The kernel's 500 are 2.5 ms.
const QUEUE: u32 = 40_000;

/// A TUN device. It goes when this does, and when the process does.
pub struct Device {
    device: SyncDevice,
}

impl Device {
    /// Makes one with this name and address in a namespace. It has no offloads: every packet on it is one of the link.
    ///
    /// # Errors
    /// The process may not, or the name is taken.
    pub fn open(namespace: &Namespace, name: &str, address: Ipv4Addr) -> Result<Self, Unavailable> {
        let make = || {
            let builder = DeviceBuilder::new().name(name).ipv4(address, PREFIX, None).mtu(MTU);
            let device = builder.build_sync()?;
            device.set_nonblocking(true)?;
            // By netlink, for which a namespace of one's own is enough; the older way wants privilege in the first.
            queue_length(name, QUEUE)?;
            Ok(device)
        };
        let device = namespace.within(make).map_err(Unavailable::Device)?;
        Ok(Self { device })
    }
}

impl Port for Device {
    #[inline]
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Came>> {
        match self.device.recv(buffer) {
            Ok(len) => Ok(Some(Came { len, size: DataSize::from_bytes(len as u64), ecn: ipv4::ecn(&buffer[..len]) })),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    #[inline]
    fn send(&mut self, packet: &mut [u8], ecn: Ecn) -> io::Result<()> {
        ipv4::set_ecn(packet, ecn);
        self.device.send(packet).map(|_| ())
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
