// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happened to this host during a session: interruptions of the process, refused packets, changes of route and clock.
//!
//! The path is not the cause of any of them, so that the [diagnosis](crate::hosts::diagnosis) looks at them first.

use crate::testbed::clock::ClockReadings;
use nix::errno::Errno;
use nix::sys::socket::{getsockopt, sockopt::IpMtu};
use paceline_units::{Time, TimeDelta};
use serde::Serialize;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Lateness of a wake-up that counts as an interruption: such a gap between frames is a freeze of the video or close to it.
const STALL_MIN: TimeDelta = TimeDelta::from_millis(100);

/// Difference of two clocks that counts as a step: the kernel adjusts a clock by at most 500 ppm, which are 0.5 ms in a second.
const STEP_MIN: TimeDelta = TimeDelta::from_millis(50);

/// Interval in which clocks and route are looked at.
const INTERVAL: TimeDelta = TimeDelta::from_secs(1);

/// Facts about this host, from the start of a session to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HostFacts {
    /// Interruptions of this process of 100 ms or more, their sum, and the longest one, s.
    pub stalls: u64,
    pub stalled_s: f64,
    pub longest_stall_s: f64,
    /// Time for which the host was suspended, s.
    pub suspended_s: f64,
    /// Steps of the wall clock, and the last one, s.
    pub clock_steps: u64,
    pub last_clock_step_s: f64,
    /// Packets that the system did not accept, by cause.
    pub refused: Refused,
    /// Smallest MTU of the route, bytes; `None` if it is not known.
    pub mtu: Option<u32>,
    /// Changes of the address from which the route leaves, and the latest such address.
    pub address_changes: u64,
    pub address: Option<IpAddr>,
}

/// Packets that the system did not accept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// They exceed the MTU of the interface.
    pub too_large: u64,
    /// There is no route, or the interface is down or has lost its address.
    pub unreachable: u64,
    /// A firewall of this host forbids them.
    pub forbidden: u64,
    /// Buffers are full.
    pub buffers_full: u64,
    /// Other causes.
    pub other: u64,
}

impl Refused {
    /// Counts an error of a packet.
    pub(crate) fn add(&mut self, error: &io::Error) {
        let count = match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EMSGSIZE) => &mut self.too_large,
            Some(
                Errno::ENETUNREACH
                | Errno::ENETDOWN
                | Errno::EHOSTUNREACH
                | Errno::EHOSTDOWN
                | Errno::EADDRNOTAVAIL
                | Errno::ENODEV,
            ) => &mut self.unreachable,
            Some(Errno::EPERM | Errno::EACCES) => &mut self.forbidden,
            Some(Errno::ENOBUFS | Errno::ENOMEM | Errno::EAGAIN) => &mut self.buffers_full,
            _ => &mut self.other,
        };
        *count += 1;
    }

    /// Returns their number.
    pub fn count(&self) -> u64 {
        self.too_large + self.unreachable + self.forbidden + self.buffers_full + self.other
    }
}

impl HostFacts {
    /// Returns the time in which this process did not run, s.
    pub fn absent_s(&self) -> f64 {
        self.stalled_s + self.suspended_s
    }

    /// Describes what happened, the gravest first; nothing if nothing did.
    pub fn describe(&self) -> Vec<String> {
        let Self { stalls, stalled_s, longest_stall_s, suspended_s, clock_steps, last_clock_step_s, refused, .. } =
            self;
        let mtu = self.mtu.map_or(String::new(), |mtu| format!(", {mtu} B"));
        let address = self.address.map_or("none".to_owned(), |address| address.to_string());
        let Refused { too_large, unreachable, forbidden, buffers_full, other } = refused;
        let facts = [
            (
                *too_large,
                format!(
                    "this host refused {too_large} packets above the MTU of its interface{mtu}; raise it to 1280 B or more"
                ),
            ),
            (
                *unreachable,
                format!("this host had no network for {unreachable} packets: no route, or the interface was down"),
            ),
            (*forbidden, format!("a firewall of this host refused {forbidden} packets")),
            (*buffers_full, format!("buffers of this host were full for {buffers_full} packets")),
            (*other, format!("this host did not accept {other} packets")),
            ((*suspended_s > 0.0).into(), format!("this host was suspended for {suspended_s:.1} s")),
            (
                *stalls,
                format!(
                    "this process did not run for {stalled_s:.1} s when it was due, at most {longest_stall_s:.1} s at once"
                ),
            ),
            (self.address_changes, format!("the local address changed, at last to {address}")),
            (*clock_steps, format!("the wall clock stepped, at last by {last_clock_step_s:+.1} s")),
        ];
        facts.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text).collect()
    }
}

/// The route to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// The address from which it leaves.
    pub(crate) address: IpAddr,
    /// Its MTU, bytes; `None` if it is not known.
    pub(crate) mtu: Option<u32>,
}

impl Route {
    /// Looks it up; `None` if there is none.
    pub(crate) fn to(peer: SocketAddr) -> Option<Self> {
        let any: IpAddr = if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind((any, 0)).ok()?;
        // Sends nothing.
        socket.connect(peer).ok()?;
        let mtu = getsockopt(&socket, IpMtu).ok().and_then(|mtu| u32::try_from(mtu).ok());
        Some(Self { address: socket.local_addr().ok()?.ip(), mtu })
    }
}

/// Collects facts about this host.
#[derive(Debug)]
pub(crate) struct HostWatch {
    facts: HostFacts,
    clocks: ClockReadings,
    next_check: Time,
}

impl HostWatch {
    /// Starts at this time, with these readings and this route.
    pub(crate) fn new(now: Time, clocks: ClockReadings, route: Option<Route>) -> Self {
        let mut watch = Self { facts: HostFacts::default(), clocks, next_check: now + INTERVAL };
        watch.handle_route(route);
        watch
    }

    /// Handles a wake-up at `now` that was due at `due`. Returns whether [`check`](Self::check) is due.
    pub(crate) fn handle_wake(&mut self, now: Time, due: Time) -> bool {
        let late = now - due;
        if late >= STALL_MIN {
            self.facts.stalls += 1;
            self.facts.stalled_s += late.as_secs_f64();
            self.facts.longest_stall_s = self.facts.longest_stall_s.max(late.as_secs_f64());
        }
        let is_due = now >= self.next_check;
        if is_due {
            self.next_check = now + INTERVAL;
        }
        is_due
    }

    /// Handles readings of the clocks and the route of now.
    pub(crate) fn check(&mut self, clocks: ClockReadings, route: Option<Route>) {
        let before = std::mem::replace(&mut self.clocks, clocks);
        let awake = clocks.monotonic - before.monotonic;
        let passed = clocks.boot - before.boot;
        if passed - awake >= STEP_MIN {
            self.facts.suspended_s += (passed - awake).as_secs_f64();
        }
        let step = clocks.wall - before.wall - passed;
        if step.max(TimeDelta::ZERO - step) >= STEP_MIN {
            self.facts.clock_steps += 1;
            self.facts.last_clock_step_s = step.as_secs_f64();
        }
        self.handle_route(route);
    }

    fn handle_route(&mut self, route: Option<Route>) {
        let Some(Route { address, mtu }) = route else { return };
        if self.facts.address.replace(address).is_some_and(|before| before != address) {
            self.facts.address_changes += 1;
        }
        self.facts.mtu = self.facts.mtu.into_iter().chain(mtu).min();
    }

    /// Returns the facts, with the packets that the system did not accept.
    pub(crate) fn facts(&self, refused: Refused) -> HostFacts {
        HostFacts { refused, ..self.facts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    fn route(last: u8, mtu: u32) -> Option<Route> {
        Some(Route { address: Ipv4Addr::new(192, 0, 2, last).into(), mtu: Some(mtu) })
    }

    /// A host whose clocks read these seconds since the start of the session: awake, with suspension, and of the wall.
    fn clocks([monotonic, boot, wall]: [f64; 3]) -> ClockReadings {
        let at = |origin: f64, s: f64| TimeDelta::from_secs_f64(origin + s);
        ClockReadings { monotonic: at(100.0, monotonic), boot: at(5000.0, boot), wall: at(1.8e9, wall) }
    }

    fn watch() -> HostWatch {
        HostWatch::new(Time::ZERO, clocks([0.0; 3]), route(1, 1500))
    }

    #[test]
    fn a_wake_up_counts_as_an_interruption_from_a_tenth_of_a_second_on() {
        let (mut watch, ms) = (watch(), Time::from_millis);
        for (now, due) in [(50, 50), (149, 50), (120, 300)] {
            watch.handle_wake(ms(now), ms(due));
        }
        assert_eq!(
            watch.facts(Refused::default()),
            HostFacts { mtu: Some(1500), address: Some(ADDRESS), ..HostFacts::default() }
        );
        watch.handle_wake(ms(400), ms(300));
        watch.handle_wake(ms(4500), ms(500));
        let facts = watch.facts(Refused::default());
        assert_eq!((facts.stalls, facts.longest_stall_s), (2, 4.0));
        assert!((facts.stalled_s - 4.1).abs() < 1e-9, "{facts:?}");
        assert!(facts.describe()[0].contains("4.1 s when it was due, at most 4.0 s"), "{:?}", facts.describe());
    }

    #[test]
    fn checks_are_a_second_apart() {
        let mut watch = watch();
        let due =
            [999, 1000, 1500, 1999, 2000].map(|ms| watch.handle_wake(Time::from_millis(ms), Time::from_millis(ms)));
        assert_eq!(due, [false, true, false, false, true]);
    }

    #[test]
    fn suspension_and_steps_of_the_wall_clock_differ_from_adjustments() {
        for (readings, suspended_s, steps, step_s) in [
            ([1.0, 1.0, 1.0005], 0.0, 0, 0.0),
            ([1.0, 1.0, 0.96], 0.0, 0, 0.0),
            ([1.0, 31.0, 31.0], 30.0, 0, 0.0),
            ([1.0, 1.0, 4.0], 0.0, 1, 3.0),
            ([1.0, 1.0, -3599.0], 0.0, 1, -3600.0),
            ([1.0, 31.0, 32.0], 30.0, 1, 1.0),
        ] {
            let mut watch = watch();
            watch.check(clocks(readings), route(1, 1500));
            let facts = watch.facts(Refused::default());
            assert!((facts.suspended_s - suspended_s).abs() < 1e-6, "{facts:?}");
            assert!(facts.clock_steps == steps && (facts.last_clock_step_s - step_s).abs() < 1e-6, "{facts:?}");
            assert_eq!(facts.describe().len(), usize::from(suspended_s > 0.0) + steps as usize);
        }
    }

    #[test]
    fn another_address_counts_and_a_missing_route_does_not() {
        let mut watch = watch();
        for route in [route(1, 1500), None, route(1, 1400), route(2, 1500)] {
            watch.check(clocks([1.0; 3]), route);
        }
        let facts = watch.facts(Refused::default());
        assert_eq!((facts.address_changes, facts.mtu), (1, Some(1400)));
        assert_eq!(facts.describe(), ["the local address changed, at last to 192.0.2.2"]);
    }

    #[test]
    fn errors_of_packets_are_counted_by_cause() {
        let mut refused = Refused::default();
        for errno in [
            Errno::EMSGSIZE,
            Errno::ENETUNREACH,
            Errno::ENETDOWN,
            Errno::EADDRNOTAVAIL,
            Errno::EPERM,
            Errno::ENOBUFS,
            Errno::EAGAIN,
            Errno::EIO,
        ] {
            refused.add(&errno.into());
        }
        let expected = Refused { too_large: 1, unreachable: 3, forbidden: 1, buffers_full: 2, other: 1 };
        assert_eq!((refused, refused.count()), (expected, 8));
        let facts = HostFacts { refused, mtu: Some(1000), ..HostFacts::default() };
        assert!(facts.describe()[0].contains("MTU of its interface, 1000 B"), "{:?}", facts.describe());
        assert_eq!(facts.describe().len(), 5);
    }

    #[test]
    fn the_route_of_the_loopback_is_known() {
        let route = Route::to((Ipv4Addr::LOCALHOST, 9).into()).unwrap();
        assert_eq!(route.address, Ipv4Addr::LOCALHOST);
        assert!(route.mtu.is_some_and(|mtu| (576..=65_536).contains(&mtu)), "{route:?}");
    }
}
