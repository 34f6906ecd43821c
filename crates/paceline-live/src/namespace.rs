//! Network namespaces without a name: they live as long as somebody is in one or holds it, so that nothing is left of
//! them when a process dies, however it dies.

use crate::Unavailable;
use nix::sched::{CloneFlags, setns, unshare};
use rtnetlink::packet_route::link::LinkAttribute;
use rtnetlink::{Handle, LinkUnspec, RouteMessageBuilder};
use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;

/// A network of its own: interfaces, addresses, routes, sockets.
#[derive(Debug)]
pub struct Namespace {
    file: File,
}

impl Namespace {
    /// A new one with its loopback interface up and without IPv6, whose own chatter would be traffic on the link.
    ///
    /// # Errors
    /// The process may not make one.
    pub fn new() -> Result<Self, Unavailable> {
        let made = on_a_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|e| Unavailable::Namespace(e.into()))?;
            for which in ["all", "default"] {
                match fs::write(format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6"), "1") {
                    // A kernel without IPv6 has no such chatter.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    written => written.map_err(Unavailable::Settings)?,
                }
            }
            loopback_up().map_err(Unavailable::Namespace)?;
            current().map_err(Unavailable::Namespace)
        });
        made.map(|file| Self { file })
    }

    /// The one that the calling thread is in.
    ///
    /// # Errors
    /// There is no `/proc`.
    pub fn current() -> io::Result<Self> {
        current().map(|file| Self { file })
    }

    /// Lets a device of it lead to wherever there is no nearer way.
    ///
    /// # Errors
    /// The process may not, or there is no such device.
    pub fn lead_everywhere(&self, device: &str) -> io::Result<()> {
        self.within(|| {
            let index = nix::net::if_::if_nametoindex(device)?;
            by_netlink(async |handle| {
                let everywhere = RouteMessageBuilder::<Ipv4Addr>::new().output_interface(index).build();
                handle.route().add(everywhere).execute().await
            })
        })
    }

    /// Takes the calling thread into it for good; threads and processes that it starts are in it, too.
    ///
    /// # Errors
    /// The process may not.
    pub fn enter(&self) -> io::Result<()> {
        Ok(setns(&self.file, CloneFlags::CLONE_NEWNET)?)
    }

    /// Does something in it, on a thread of its own.
    ///
    /// # Errors
    /// The process may not enter it, or what `act` answers.
    pub fn within<T: Send>(&self, act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        on_a_thread(|| {
            self.enter()?;
            act()
        })
    }
}

/// A thread's namespace is for good: whatever changes it has a thread of its own.
fn on_a_thread<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(act).join()).expect("it does not panic")
}

fn current() -> io::Result<File> {
    File::open("/proc/thread-self/ns/net")
}

/// Sets how many packets may wait in a device of the calling thread's namespace.
pub(crate) fn queue_length(device: &str, packets: u32) -> io::Result<()> {
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

/// Asks the kernel for something in the calling thread's namespace.
fn by_netlink(ask: impl AsyncFnOnce(Handle) -> Result<(), rtnetlink::Error>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let (connection, handle, _) = rtnetlink::new_connection()?;
        tokio::spawn(connection);
        ask(handle).await.map_err(io::Error::other)
    })
}
