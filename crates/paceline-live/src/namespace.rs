//! Anonymous network namespaces: the kernel removes one when the last process leaves it and the last handle is closed, so
//! none remains after a process ends.

use crate::Unavailable;
use nix::sched::{CloneFlags, setns, unshare};
use rtnetlink::packet_route::link::LinkAttribute;
use rtnetlink::{Handle, LinkUnspec, RouteMessageBuilder};
use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;

/// A network namespace: interfaces, addresses, routes and sockets.
#[derive(Debug)]
pub struct Namespace {
    file: File,
}

impl Namespace {
    /// Creates a namespace with its loopback interface up and without IPv6, whose control traffic would use the link.
    ///
    /// # Errors
    /// The process lacks the privilege.
    pub fn new() -> Result<Self, Unavailable> {
        let created = on_a_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|e| Unavailable::Namespace(e.into()))?;
            for which in ["all", "default"] {
                match fs::write(format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6"), "1") {
                    // A kernel without IPv6 has no such file.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    written => written.map_err(Unavailable::Settings)?,
                }
            }
            loopback_up().map_err(Unavailable::Namespace)?;
            current().map_err(Unavailable::Namespace)
        });
        created.map(|file| Self { file })
    }

    /// Returns the namespace of the calling thread.
    ///
    /// # Errors
    /// `/proc` is not available.
    pub fn current() -> io::Result<Self> {
        current().map(|file| Self { file })
    }

    /// Adds a default route over a device.
    ///
    /// # Errors
    /// The process lacks the privilege, or the device does not exist.
    pub fn add_default_route(&self, device: &str) -> io::Result<()> {
        self.within(|| {
            let index = nix::net::if_::if_nametoindex(device)?;
            by_netlink(async |handle| {
                let default = RouteMessageBuilder::<Ipv4Addr>::new().output_interface(index).build();
                handle.route().add(default).execute().await
            })
        })
    }

    /// Moves the calling thread into the namespace. Threads and processes that it starts inherit the namespace.
    ///
    /// # Errors
    /// The process lacks the privilege.
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
