// SPDX-License-Identifier: MIT OR Apache-2.0
//! Anonymous network namespaces: the kernel removes one when the last process leaves it and the last handle is closed, so
//! none remains after a process ends.

use crate::testbed::error::Unavailable;
use nix::sched::{CloneFlags, setns, unshare};
use rtnetlink::packet_route::address::AddressHeaderFlags;
use rtnetlink::packet_route::link::LinkAttribute;
use rtnetlink::{Handle, LinkUnspec, RouteMessageBuilder};
use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network namespace: interfaces, addresses, routes and sockets.
#[derive(Debug)]
pub struct Namespace {
    file: File,
}

impl Namespace {
    /// Creates a namespace with its loopback interface up and without IPv6, whose control traffic would use the link.
    pub fn new() -> Result<Self, Unavailable> {
        let created = on_a_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|e| Unavailable::Namespace(e.into()))?;
            set_ipv6(false).map_err(Unavailable::Settings)?;
            loopback_up().map_err(Unavailable::Namespace)?;
            current().map_err(Unavailable::Namespace)
        });
        created.map(|file| Self { file })
    }

    /// Returns the namespace of the calling thread.
    pub fn current() -> io::Result<Self> {
        current().map(|file| Self { file })
    }

    /// Enables IPv6, and forwarding of it; a namespace of this process has neither at first. Returns whether the kernel has IPv6.
    pub fn enable_ipv6(&self) -> io::Result<bool> {
        self.within(|| {
            set_ipv6(true)?;
            has_ipv6()
        })
    }

    /// Returns whether a new device has IPv6.
    pub fn has_ipv6(&self) -> io::Result<bool> {
        self.within(has_ipv6)
    }

    /// Adds an IPv6 address to a device, without a search for duplicates.
    ///
    /// # Errors
    /// The process lacks the privilege, or the device does not exist.
    pub fn add_ipv6_address(&self, device: &str, address: Ipv6Addr, prefix: u8) -> io::Result<()> {
        self.within(|| {
            let index = nix::net::if_::if_nametoindex(device)?;
            by_netlink(async |handle| {
                let mut request = handle.address().add(index, IpAddr::V6(address), prefix);
                request.message_mut().header.flags |= AddressHeaderFlags::Nodad;
                request.execute().await
            })
        })
    }

    /// Adds a default route of IPv4 over a device.
    ///
    /// # Errors
    /// The process lacks the privilege, or the device does not exist.
    pub fn add_default_route(&self, device: &str) -> io::Result<()> {
        self.add_route(device, RouteMessageBuilder::<Ipv4Addr>::new())
    }

    /// Adds a default route of IPv6 over a device.
    ///
    /// # Errors
    /// The process lacks the privilege, or the device does not exist or has no IPv6.
    pub fn add_ipv6_default_route(&self, device: &str) -> io::Result<()> {
        self.add_route(device, RouteMessageBuilder::<Ipv6Addr>::new())
    }

    fn add_route<T: Send>(&self, device: &str, route: RouteMessageBuilder<T>) -> io::Result<()> {
        self.within(|| {
            let route = route.output_interface(nix::net::if_::if_nametoindex(device)?).build();
            by_netlink(async |handle| handle.route().add(route).execute().await)
        })
    }

    /// Moves the calling thread into the namespace. Threads and processes that it starts inherit the namespace.
    pub fn enter(&self) -> io::Result<()> {
        Ok(setns(&self.file, CloneFlags::CLONE_NEWNET)?)
    }

    /// Calls `act` in the namespace, on a new thread.
    ///
    /// # Errors
    /// The process lacks the privilege to enter it, or `act` failed.
    pub fn within<T: Send>(&self, act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        on_a_thread(|| {
            self.enter()?;
            act()
        })
    }
}

/// Calls `act` on a new thread, because a thread cannot return to its former namespace.
fn on_a_thread<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(act).join()).expect("does not panic")
}

fn current() -> io::Result<File> {
    File::open("/proc/thread-self/ns/net")
}

/// Settings of IPv6 in the calling thread's namespace.
const IPV6: &str = "/proc/sys/net/ipv6/conf";

/// Enables or disables IPv6 and its forwarding in the calling thread's namespace. A kernel without IPv6 needs neither.
fn set_ipv6(enabled: bool) -> io::Result<()> {
    let settings = [("all/disable_ipv6", !enabled), ("default/disable_ipv6", !enabled), ("all/forwarding", enabled)];
    for (setting, value) in settings {
        match fs::write(format!("{IPV6}/{setting}"), if value { "1" } else { "0" }) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            written => written?,
        }
    }
    Ok(())
}

/// Returns whether a new device of the calling thread's namespace has IPv6.
fn has_ipv6() -> io::Result<bool> {
    match fs::read_to_string(format!("{IPV6}/default/disable_ipv6")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        text => Ok(text?.trim() == "0"),
    }
}

/// Sets the transmit queue length of a device of the calling thread's namespace, packets.
pub(crate) fn set_queue_length(device: &str, packets: u32) -> io::Result<()> {
    by_netlink(async |handle| {
        let length = LinkUnspec::new_with_name(device).append_extra_attribute(LinkAttribute::TxQueueLen(packets));
        handle.link().set(length.build()).execute().await
    })
}

fn loopback_up() -> io::Result<()> {
    by_netlink(async |handle| {
        let up = LinkUnspec::new_with_name("lo").up().build();
        handle.link().set(up).execute().await
    })
}

/// Sends a netlink request in the calling thread's namespace.
fn by_netlink(request: impl AsyncFnOnce(Handle) -> Result<(), rtnetlink::Error>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let (connection, handle, _) = rtnetlink::new_connection()?;
        tokio::spawn(connection);
        request(handle).await.map_err(io::Error::other)
    })
}
