//! TCP of the kernel: the other traffic of the test track. A program that sends and one that reads, each in a thread that
//! is in the namespace of its end.
//!
//! They keep to the plan where the kernel lets them: congestion control, data in a segment, the receiver's window, and the
//! workload with the very draws of the simulator. How the kernel recovers, times out and acknowledges is its own affair:
//! [`TcpConfig::profile`](paceline_flow::tcp::TcpConfig::profile) says how the simulator does, and is ignored here.
//!
//! A program that is held up while it reads holds up ACKs: the kernel answers what came meanwhile with one. So both are
//! punctual, like the link.

mod kernel;
mod options;
mod receiver;
mod sender;
mod signals;
#[cfg(test)]
mod tests;

pub use kernel::{kernel_name, missing, prepare};
pub use receiver::{listen, receive};

use crate::clock::Monotonic;
use crate::wait::{Rank, be_punctual};
use nix::errno::Errno;
use nix::poll::{PollFd, ppoll};
use nix::sys::time::TimeSpec;
use paceline_flow::tcp::TcpSenderEvent;
use paceline_lab::plan::TcpPlan;
use paceline_lab::rows::{HalfName, Row};
use paceline_units::{FlowId, RandomStream, Time, TimeDelta};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// What both programs of a flow know.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    /// Which flow.
    pub flow: FlowId,
    /// What it is.
    pub tcp: &'a TcpPlan,
    /// When both programs close what is open, and end.
    pub stop: Time,
    /// Makes them end before that, as soon as it is set.
    pub cancelled: &'a AtomicBool,
    /// What time it is.
    pub clock: Monotonic,
    /// Where rows go.
    pub rows: &'a mpsc::Sender<Row>,
}

/// Sends, from the address `from` to the listener at `to`, what the plan says, from `start` to the flow's stop. `random`
/// is the flow's workload stream. Rows are the [signals](paceline_flow::tcp::TcpSender::SIGNALS) of the simulated sender,
/// looked up in the kernel every 20 ms and told when they change; there is no `W_max`, which the kernel keeps to itself.
///
/// # Errors
/// The listener is gone or refuses, or the kernel lacks the congestion control.
pub fn send(
    program: &Program<'_>,
    from: Ipv4Addr,
    to: SocketAddrV4,
    start: Time,
    random: RandomStream,
) -> io::Result<()> {
    be_punctual(Rank::End);
    let mut tell = |at, event| {
        if let TcpSenderEvent::Signal(signal, value) = event {
            program.tell(Row::Signal { at, flow: program.flow, half: HalfName::Send, signal, value });
        }
    };
    sender::Sender::new(program, from, to, random, &mut tell).run(start)
}

/// A program looks this often whether it is cancelled.
const LOOK: TimeDelta = TimeDelta::from_millis(20);

impl Program<'_> {
    /// Whether it is to end.
    fn is_over(&self) -> bool {
        self.clock.now() >= self.stop || self.cancelled.load(Ordering::Relaxed)
    }

    /// Waits until one of these is ready, but no longer than to `until` or the program's end; true: one is ready.
    fn ready(&self, descriptors: &mut [PollFd<'_>], until: Time) -> io::Result<bool> {
        let until = until.min(self.stop);
        loop {
            let left = until - self.clock.now();
            if !left.is_positive() || self.is_over() {
                return Ok(false);
            }
            let slice = Duration::from_nanos(left.min(LOOK).as_nanos() as u64);
            match ppoll(descriptors, Some(TimeSpec::from_duration(slice)), None) {
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Nobody may listen any more: then the world is about to end, and says why.
    fn tell(&self, row: Row) {
        let _ = self.rows.send(row);
    }
}
