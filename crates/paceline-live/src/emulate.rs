//! A link alone: a command behind a network device, or a relay between sockets. What `paceline link` is.

use crate::classify::AllOne;
use crate::clock::Monotonic;
use crate::device::Device;
use crate::hold::holder;
use crate::link::{Carried, Handling, Link, Side};
use crate::namespace::Namespace;
use crate::port::Port;
use crate::relay::Relay;
use crate::rows::{Tell, merge};
use crate::wait::Timing;
use crate::watch::Watch;
use crate::{Unavailable, broken};
use nix::ifaddrs::getifaddrs;
use paceline_lab::network::Network;
use paceline_lab::plan::Plan;
use paceline_lab::rows::RowSink;
use paceline_lab::world::{Outcome, WorldError};
use paceline_units::{Streams, Time, TimeDelta};
use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Addresses of a link are 100.127.N.1 at the far side and 100.127.N.2 at the near one: of the range that is set aside
/// for networks behind a carrier (RFC 6598), with the first N that is free.
const RANGE: [u8; 2] = [100, 127];

/// Name of the near device, and beginning of the far one's, which N follows.
const NAME: &str = "paceline";

/// How often the command and the wish to stop are looked at.
const LOOK: Duration = Duration::from_millis(10);

/// What an emulated link came to, besides its rows.
#[derive(Debug)]
pub struct Emulated {
    /// How long it was there.
    pub lasted: TimeDelta,
    /// What the model did.
    pub outcome: Outcome,
    /// What the machine did.
    pub handling: Handling,
    /// Share of one processor that this process took.
    pub busy: f64,
    /// How the command ended; none: there was none, or it was ended with the link.
    pub status: Option<ExitStatus>,
}

/// A link to emulate: the hops of a plan, whose one flow is all traffic.
pub struct Emulation<'a> {
    /// The hops, and the longest that the link is to be there.
    pub plan: &'a Plan,
    /// Draws losses and jitter.
    pub seed: u64,
    /// How exactly packets are released.
    pub timing: Timing,
    /// Ends the link when set.
    pub stop: &'a AtomicBool,
    /// What the command writes to stdout goes to stderr.
    pub to_stderr: bool,
}

impl Emulation<'_> {
    /// Runs a command in a network of its own, from which the link leads into the caller's. The command finds the address
    /// of the caller's side in `PACELINE_FAR` and its own in `PACELINE_NEAR`; all that it sends elsewhere comes out of the
    /// far device, too. Ends with the command. `ready` is called with both addresses, near first.
    ///
    /// # Errors
    /// The machine does not allow it, or a device broke.
    pub fn behind_device(
        &self,
        words: &[OsString],
        rows: &mut dyn RowSink,
        ready: impl FnOnce(Ipv4Addr, Ipv4Addr),
    ) -> Result<Emulated, WorldError> {
        let (far, number) = far_device()?;
        let [near_address, far_address] = addresses(number);
        let namespace = Namespace::new()?;
        let near = Device::open(&namespace, NAME, near_address)?;
        namespace.lead_everywhere(NAME).map_err(Unavailable::Device)?;
        ready(near_address, far_address);
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let command = scope.spawn(|| {
                let ended = self.command(&namespace, words, [near_address, far_address], &over);
                over.store(true, Ordering::Relaxed);
                ended
            });
            let carried = self.carry([near, far], AllOne::IPV4, rows, &over);
            over.store(true, Ordering::Relaxed);
            let status = command.join().expect("it does not panic").map_err(broken)?;
            Ok(Emulated { status, ..carried? })
        })
    }

    /// Relays between sockets until it is stopped or the plan's duration is over.
    ///
    /// # Errors
    /// A socket broke.
    pub fn relay(&self, near: Relay, far: Relay, rows: &mut dyn RowSink) -> Result<Emulated, WorldError> {
        self.carry([near, far], AllOne::ANYTHING, rows, &AtomicBool::new(false))
    }

    /// Runs the command to its end, or ends it when the link ends.
    fn command(
        &self,
        namespace: &Namespace,
        words: &[OsString],
        [near, far]: [Ipv4Addr; 2],
        over: &AtomicBool,
    ) -> io::Result<Option<ExitStatus>> {
        namespace.enter()?;
        let mut holder = holder(words)?;
        holder.env("PACELINE_NEAR", near.to_string()).env("PACELINE_FAR", far.to_string());
        if self.to_stderr {
            holder.stdout(io::stderr().as_fd().try_clone_to_owned()?);
        }
        let mut child = holder.spawn()?;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            if self.stop.load(Ordering::Relaxed) || over.load(Ordering::Relaxed) {
                child.kill()?;
                child.wait()?;
                return Ok(None);
            }
            thread::sleep(LOOK);
        }
    }

    fn carry<P: Port + Send>(
        &self,
        ports: [P; 2],
        mut all: AllOne,
        rows: &mut dyn RowSink,
        over: &AtomicBool,
    ) -> Result<Emulated, WorldError> {
        let clock = Monotonic::starting_in(TimeDelta::ZERO);
        let end = Time::ZERO + self.plan.duration;
        let watch = Watch::begin();
        let (to, told) = mpsc::channel();
        let done = AtomicBool::new(false);
        let gone = AtomicBool::new(false);
        let ended = || [over, self.stop, &gone].iter().any(|flag| flag.load(Ordering::Relaxed));
        let (outcome, handling, at) = thread::scope(|scope| {
            let link = scope.spawn(|| {
                let mut tell = Tell { to };
                let streams = Streams::new(self.seed);
                let network = Network::new(self.plan, &streams, &mut tell);
                let link = Link::new(
                    network,
                    ports,
                    &mut all,
                    vec![Carried { sender: Side::Near, stop: Time::MAX }],
                    clock,
                    self.timing,
                );
                let carried = link.run(end, &done).map(|(network, handling)| (network.outcome(), handling));
                gone.store(true, Ordering::Relaxed);
                carried.map(|(outcome, handling)| (outcome, handling, clock.now().min(end)))
            });
            scope.spawn(|| {
                while !ended() && clock.now() < end {
                    thread::sleep(LOOK);
                }
                done.store(true, Ordering::Relaxed);
            });
            merge(&told, rows, || clock.now(), end);
            link.join().expect("it does not panic")
        })
        .map_err(broken)?;
        let lasted = at - Time::ZERO;
        Ok(Emulated { lasted, outcome, handling, busy: watch.own_share(), status: None })
    }
}

fn addresses(number: u8) -> [Ipv4Addr; 2] {
    [2, 1].map(|host| Ipv4Addr::new(RANGE[0], RANGE[1], number, host))
}

/// The far device, in the caller's namespace, and its number.
fn far_device() -> Result<(Device, u8), Unavailable> {
    let here = Namespace::current().map_err(Unavailable::Namespace)?;
    let taken = || -> io::Result<Vec<Ipv4Addr>> {
        let addresses = getifaddrs()?.filter_map(|i| Some(i.address?.as_sockaddr_in()?.ip()));
        Ok(addresses.collect())
    };
    let taken = taken().map_err(Unavailable::Device)?;
    let is_free = |number: &u8| !taken.iter().any(|t| t.octets()[..3] == [RANGE[0], RANGE[1], *number]);
    let mut last = io::Error::other("every one of its addresses is taken");
    for number in (0..=u8::MAX).filter(is_free) {
        match Device::open(&here, &format!("{NAME}{number}"), addresses(number)[1]) {
            Ok(device) => return Ok((device, number)),
            // Another link was faster.
            Err(Unavailable::Device(error)) if error.raw_os_error() == Some(nix::libc::EBUSY) => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(Unavailable::Device(last))
}

/// The address pair of `--relay LISTEN=TARGET`.
///
/// # Errors
/// Says what is wrong with it.
pub fn relay_of(text: &str) -> Result<(SocketAddr, SocketAddr), String> {
    let (listen, target) = text.split_once('=').ok_or("it wants two addresses, LISTEN=TARGET")?;
    let address = |text: &str| text.parse().map_err(|_| format!("`{text}` is no address and port"));
    Ok((address(listen)?, address(target)?))
}
