// SPDX-License-Identifier: MIT OR Apache-2.0
//! A link without endpoints, for `paceline link`: a command behind a network device, or a relay between sockets.

use crate::testbed::child_guard;
use crate::testbed::classify::SingleFlow;
use crate::testbed::clock::Monotonic;
use crate::testbed::command_user::CommandUser;
use crate::testbed::device::Device;
use crate::testbed::error::{Unavailable, broken};
use crate::testbed::event_merge::{EventSender, merge};
use crate::testbed::five_tuple::FiveTupleHash;
use crate::testbed::host_monitor::HostMonitor;
use crate::testbed::link::{Link, LinkFlow, LinkStats, Side};
use crate::testbed::link_port::LinkPort;
use crate::testbed::namespace::Namespace;
use crate::testbed::nat::Nat;
use crate::testbed::relay::Relay;
use crate::testbed::timing::Timing;
use nix::ifaddrs::getifaddrs;
use paceline_netsim::network::Network;
use paceline_netsim::plan::Plan;
use paceline_netsim::records::EventObserver;
use paceline_netsim::world::{Outcome, WorldError};
use paceline_units::{RandomStreams, Time, TimeDelta};
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Addresses of a link are 100.127.N.1 at the far side and 100.127.N.2 at the near side, with the first free N. The
/// range is reserved for carrier-grade NAT (RFC 6598).
const RANGE: [u8; 2] = [100, 127];

/// Global identifier of the link's IPv6 addresses, which are PREFIX:N::1 and PREFIX:N::2: unique local addresses, whose
/// identifier is drawn at random (RFC 4193, section 3.2).
const IPV6_PREFIX: [u16; 3] = [0xfd3b, 0x91c4, 0x7e52];

/// Prefix length of the IPv6 network that both ends share.
const IPV6_LENGTH: u8 = 64;

/// Name of the near device, and prefix of the far device's name, which N follows.
const NAME: &str = "paceline";

/// Interval of checks for the end of the command and of the run.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The addresses of one side of a link.
#[derive(Clone, Copy, Debug)]
pub struct SideAddresses {
    /// The IPv4 address.
    pub ipv4: Ipv4Addr,
    /// The IPv6 address; `None` if IPv6 is disabled on this machine.
    pub ipv6: Option<Ipv6Addr>,
}

impl fmt::Display for SideAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.ipv4)?;
        self.ipv6.map_or(Ok(()), |ipv6| write!(f, ", {ipv6}"))
    }
}

/// The result of an emulated link, besides its events.
#[derive(Debug)]
pub struct EmulationResult {
    /// The time for which the link existed.
    pub lasted: TimeDelta,
    /// The outcome of the network model.
    pub outcome: Outcome,
    /// Statistics of the link.
    pub stats: LinkStats,
    /// Processor time of this process, relative to one processor.
    pub busy: f64,
    /// Exit status of the command; `None` if there was none or the link ended first.
    pub status: Option<ExitStatus>,
}

/// Emulates the hops of a plan, whose single flow is all traffic.
pub struct LinkEmulator<'a> {
    /// The hops, and the maximum duration.
    pub plan: &'a Plan,
    /// Seed of loss and jitter.
    pub seed: u64,
    /// The accuracy with which packets are sent.
    pub timing: Timing,
    /// Ends the link when set.
    pub stop: &'a AtomicBool,
    /// Whether to redirect the command's stdout to stderr.
    pub to_stderr: bool,
    /// Whether the command reaches the networks of this machine.
    pub nat: bool,
    /// The user as whom the command runs; `None`: the caller.
    pub user: Option<CommandUser>,
}

impl LinkEmulator<'_> {
    /// Runs a command in a new network namespace that the link connects with the caller's. The environment variables
    /// `PACELINE_FAR` and `PACELINE_NEAR` contain the IPv4 address of the caller's side and of the command's side,
    /// `PACELINE_FAR6` and `PACELINE_NEAR6` the IPv6 addresses if this machine has IPv6; the link is the default route of
    /// the command. The link ends with the command. Calls `ready` with both addresses, near
    /// first.
    ///
    /// # Errors
    /// The process lacks the privilege, or a device failed.
    pub fn behind_device(
        &self,
        words: &[OsString],
        observer: &mut dyn EventObserver,
        ready: impl FnOnce(SideAddresses, SideAddresses),
    ) -> Result<EmulationResult, WorldError> {
        let here = Namespace::current().map_err(Unavailable::Namespace)?;
        let namespace = Namespace::new()?;
        let (far, number) = far_device(&here)?;
        let far_name = format!("{NAME}{number}");
        let mut sides = addresses(number);
        let near = Device::open(&namespace, NAME, sides[0].ipv4)?;
        namespace.add_default_route(NAME).map_err(Unavailable::Device)?;
        if !here.has_ipv6().and_then(|here| Ok(here && namespace.enable_ipv6()?)).map_err(Unavailable::Device)? {
            sides = sides.map(|side| SideAddresses { ipv6: None, ..side });
        }
        for (side, namespace, device) in [(sides[0], &namespace, NAME), (sides[1], &here, &far_name)] {
            if let Some(ipv6) = side.ipv6 {
                namespace.add_ipv6_address(device, ipv6, IPV6_LENGTH).map_err(Unavailable::Device)?;
            }
        }
        let nat = self
            .nat
            .then(|| Nat::open(&far_name, sides[1].ipv4, sides[1].ipv6))
            .transpose()
            .map_err(Unavailable::Nat)?;
        // A command that reaches other networks by IPv4 alone must not try IPv6 first.
        if sides[0].ipv6.is_some() && nat.as_ref().is_none_or(Nat::has_ipv6) {
            namespace.add_ipv6_default_route(NAME).map_err(Unavailable::Device)?;
        }
        let resolv_conf = nat.as_ref().and_then(Nat::resolv_conf);
        ready(sides[0], sides[1]);
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let command = scope.spawn(|| {
                let ended = self.command(&namespace, words, sides, resolv_conf, &over);
                over.store(true, Ordering::Relaxed);
                ended
            });
            let hash = FiveTupleHash::new(&RandomStreams::new(self.seed));
            let carried = self.carry([near, far], SingleFlow::ip(hash), observer, &over);
            over.store(true, Ordering::Relaxed);
            let status = command.join().expect("does not panic").map_err(broken)?;
            Ok(EmulationResult { status, ..carried? })
        })
    }

    /// Relays between sockets until the emulator is stopped or the plan's duration is over.
    pub fn relay(
        &self,
        near: Relay,
        far: Relay,
        observer: &mut dyn EventObserver,
    ) -> Result<EmulationResult, WorldError> {
        self.carry([near, far], SingleFlow::ANY_PACKET, observer, &AtomicBool::new(false))
    }

    /// Runs the command to its end, or kills it when the link ends.
    fn command(
        &self,
        namespace: &Namespace,
        words: &[OsString],
        sides: [SideAddresses; 2],
        resolv_conf: Option<&str>,
        over: &AtomicBool,
    ) -> io::Result<Option<ExitStatus>> {
        namespace.enter()?;
        let mut guard = child_guard::command(words, self.user.as_ref(), resolv_conf)?;
        for (name, side) in ["PACELINE_NEAR", "PACELINE_FAR"].into_iter().zip(sides) {
            guard.env(name, side.ipv4.to_string());
            if let Some(ipv6) = side.ipv6 {
                guard.env(format!("{name}6"), ipv6.to_string());
            }
        }
        if self.to_stderr {
            guard.stdout(io::stderr().as_fd().try_clone_to_owned()?);
        }
        let mut child = guard.spawn()?;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            if self.stop.load(Ordering::Relaxed) || over.load(Ordering::Relaxed) {
                child.kill()?;
                child.wait()?;
                return Ok(None);
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn carry<P: LinkPort + Send>(
        &self,
        ports: [P; 2],
        mut classifier: SingleFlow,
        observer: &mut dyn EventObserver,
        over: &AtomicBool,
    ) -> Result<EmulationResult, WorldError> {
        let clock = Monotonic::starting_in(TimeDelta::ZERO);
        let end = Time::ZERO + self.plan.duration;
        let monitor = HostMonitor::start();
        let (sender, events) = mpsc::channel();
        let done = AtomicBool::new(false);
        let gone = AtomicBool::new(false);
        let ended = || [over, self.stop, &gone].iter().any(|flag| flag.load(Ordering::Relaxed));
        let (outcome, stats, at) = thread::scope(|scope| {
            let link = scope.spawn(|| {
                let mut sender = EventSender(sender);
                let streams = RandomStreams::new(self.seed);
                let network = Network::new(self.plan, &streams, &mut sender);
                let flows = vec![LinkFlow { sender: Side::Near, stop: end }];
                let link = Link::new(network, ports, &mut classifier, flows, clock, self.timing);
                let carried = link.run(end, &done).map(|(network, stats)| (network.outcome(), stats));
                gone.store(true, Ordering::Relaxed);
                carried.map(|(outcome, stats)| (outcome, stats, clock.now().min(end)))
            });
            scope.spawn(|| {
                while !ended() && clock.now() < end {
                    thread::sleep(POLL_INTERVAL);
                }
                done.store(true, Ordering::Relaxed);
            });
            merge(&events, observer, || clock.now(), end);
            link.join().expect("does not panic")
        })
        .map_err(broken)?;
        let lasted = at - Time::ZERO;
        Ok(EmulationResult { lasted, outcome, stats, busy: monitor.own_share(), status: None })
    }
}

/// Returns the addresses of both sides, near first.
fn addresses(number: u8) -> [SideAddresses; 2] {
    let [a, b, c] = IPV6_PREFIX;
    [2, 1].map(|host| SideAddresses {
        ipv4: Ipv4Addr::new(RANGE[0], RANGE[1], number, host),
        ipv6: Some(Ipv6Addr::new(a, b, c, u16::from(number), 0, 0, 0, u16::from(host))),
    })
}

/// Creates the far device, in the caller's namespace, and returns its number.
fn far_device(here: &Namespace) -> Result<(Device, u8), Unavailable> {
    let taken = || -> io::Result<Vec<Ipv4Addr>> {
        let addresses = getifaddrs()?.filter_map(|i| Some(i.address?.as_sockaddr_in()?.ip()));
        Ok(addresses.collect())
    };
    let taken = taken().map_err(Unavailable::Device)?;
    let is_free = |number: &u8| !taken.iter().any(|t| t.octets()[..3] == [RANGE[0], RANGE[1], *number]);
    let mut last = io::Error::other("every address is in use");
    for number in (0..=u8::MAX).filter(is_free) {
        match Device::open(here, &format!("{NAME}{number}"), addresses(number)[1].ipv4) {
            Ok(device) => return Ok((device, number)),
            // Another link took the name in the meantime.
            Err(Unavailable::Device(error)) if error.raw_os_error() == Some(nix::libc::EBUSY) => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(Unavailable::Device(last))
}

/// Parses the addresses of `--relay LISTEN=TARGET`.
///
/// # Errors
/// A description of the syntax error.
pub fn parse_relay(text: &str) -> Result<(SocketAddr, SocketAddr), String> {
    let (listen, target) = text.split_once('=').ok_or("expected two addresses, LISTEN=TARGET")?;
    let address = |text: &str| text.parse().map_err(|_| format!("`{text}` is not an address and port"));
    Ok((address(listen)?, address(target)?))
}
