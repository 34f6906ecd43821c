// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP flows of the testbed, over the TCP of the kernel: a sending and a receiving program, each in a thread in the
//! namespace of its end.
//!
//! The programs follow the plan in congestion control, segment size, receive window, and workload, with the random
//! draws of the simulator. Loss recovery, timeouts and acknowledgements are those of the kernel;
//! [`TcpConfig::profile`](paceline_netsim::flow::tcp::TcpConfig::profile) applies to the simulator only.
//!
//! A late reader delays ACKs, because the kernel then acknowledges several segments at once. Both programs therefore
//! run with real-time priority, like the link.

mod kernel;
mod options;
mod receiver;
mod sender;
mod signals;
#[cfg(test)]
mod tests;

pub use kernel::{ecn_problem, kernel_name, missing, prepare, set_ecn};
pub use receiver::{listen, receive};

use crate::testbed::clock::Monotonic;
use crate::testbed::timing::{Role, enter_realtime};
use nix::errno::Errno;
use nix::poll::{PollFd, ppoll};
use nix::sys::time::TimeSpec;
use paceline_netsim::flow::tcp::TcpSenderEvent;
use paceline_netsim::plan::TcpPlan;
use paceline_netsim::records::{EventRecord, HalfName};
use paceline_units::{FlowId, RandomStream, Time, TimeDelta};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// The common state of both programs of a flow.
#[derive(Clone, Copy, Debug)]
pub struct TcpProgram<'a> {
    pub flow: FlowId,
    /// Parameters of the flow.
    pub tcp: &'a TcpPlan,
    /// The time at which both programs close their connections and end.
    pub stop: Time,
    /// Ends both programs early when set.
    pub cancelled: &'a AtomicBool,
    /// Clock of the run.
    pub clock: Monotonic,
    /// Receives events.
    pub events: &'a mpsc::Sender<EventRecord>,
}

/// Sends the workload of the plan from address `from` to the listener at `to`, from `start` to the flow's stop.
/// `random` is the flow's workload stream. Emits the [signals](paceline_netsim::flow::tcp::TcpSender::SIGNALS) of the simulated
/// sender when they change, sampled every 20 ms, without `W_max`, which the kernel does not provide.
///
/// # Errors
/// The connection is refused, or the kernel lacks the congestion control.
pub fn send(
    program: &TcpProgram<'_>,
    from: Ipv4Addr,
    to: SocketAddrV4,
    start: Time,
    random: RandomStream,
) -> io::Result<()> {
    enter_realtime(Role::Endpoint);
    let mut emit = |at, event| {
        if let TcpSenderEvent::Signal(signal, value) = event {
            program.emit(EventRecord::Signal { at, flow: program.flow, half: HalfName::Send, signal, value });
        }
    };
    sender::Sender::new(program, from, to, random, &mut emit).run(start)
}

/// Interval of checks for cancellation.
const POLL_INTERVAL: TimeDelta = TimeDelta::from_millis(20);

impl TcpProgram<'_> {
    fn is_over(&self) -> bool {
        self.clock.now() >= self.stop || self.cancelled.load(Ordering::Relaxed)
    }

    /// Waits until a descriptor is ready, at most to `until` or the program's end. Returns whether one is ready.
    fn ready(&self, descriptors: &mut [PollFd<'_>], until: Time) -> io::Result<bool> {
        let until = until.min(self.stop);
        loop {
            let left = until - self.clock.now();
            if !left.is_positive() || self.is_over() {
                return Ok(false);
            }
            let slice = Duration::from_nanos(left.min(POLL_INTERVAL).as_nanos() as u64);
            match ppoll(descriptors, Some(TimeSpec::from_duration(slice)), None) {
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Emits an event. After a failed run the receiver is gone.
    fn emit(&self, event: EventRecord) {
        let _ = self.events.send(event);
    }
}
