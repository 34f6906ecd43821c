// SPDX-License-Identifier: MIT OR Apache-2.0
//! The TUN device at one end of a link.

use crate::testbed::error::Unavailable;
use crate::testbed::ip;
use crate::testbed::link_port::{LinkPort, ReceivedPacket};
use crate::testbed::namespace::{Namespace, set_queue_length};
use paceline_units::{DataSize, Ecn};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use tun_rs::{DeviceBuilder, SyncDevice};

/// Maximum packet size, IP header included.
pub const MTU: u16 = 1500;

/// Prefix length of the network that both ends share.
const PREFIX: u8 = 24;

/// Length of the transmit queue, packets. It covers interruptions of the link of 200 ms at 200,000 packets per second; the
/// kernel's default of 500 covers 2.5 ms.
const QUEUE: u32 = 40_000;

/// A TUN device. The kernel removes it when this value is dropped or the process ends.
pub struct Device {
    device: SyncDevice,
}

impl Device {
    /// Creates a device with this name and address in a namespace, without offloads.
    ///
    /// # Errors
    /// The process lacks the privilege, or the name is in use.
    pub fn open(namespace: &Namespace, name: &str, address: Ipv4Addr) -> Result<Self, Unavailable> {
        let create = || {
            let builder = DeviceBuilder::new().name(name).ipv4(address, PREFIX, None).mtu(MTU);
            let device = builder.build_sync()?;
            device.set_nonblocking(true)?;
            // Netlink needs privilege only in this namespace; `ioctl` needs it in the initial one.
            set_queue_length(name, QUEUE)?;
            Ok(device)
        };
        let device = namespace.within(create).map_err(Unavailable::Device)?;
        Ok(Self { device })
    }
}

impl LinkPort for Device {
    #[inline]
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<ReceivedPacket>> {
        match self.device.recv(buffer) {
            Ok(len) => {
                let size = DataSize::from_bytes(len as u64);
                Ok(Some(ReceivedPacket { len, size, ecn: ip::ecn(&buffer[..len]) }))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    #[inline]
    fn send(&mut self, packet: &mut [u8], ecn: Ecn) -> io::Result<()> {
        ip::set_ecn(packet, ecn);
        self.device.send(packet).map(|_| ())
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
