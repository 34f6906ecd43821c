//! Real-time scheduling of a thread, and waiting for a time or a packet.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use paceline_units::TimeDelta;
use std::os::fd::BorrowedFd;
use std::time::Duration;
use thread_priority::unix::{RealtimeThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy};
use thread_priority::{ThreadPriority, ThreadPriorityValue, thread_native_id};

/// The accuracy with which a thread waits for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// Sleeps until so long before the time, then polls the clock: exact unless the wake-up takes longer, at the cost of part of a core.
    Polls(TimeDelta),
    /// Sleeps until the time; the kernel wakes the thread some tens of microseconds later.
    Sleep,
}

/// The role of a thread; its value is the real-time priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Endpoints of flows: above every thread without real-time priority.
    Endpoint = 10,
    /// The link: above the endpoints, which would otherwise delay it and measure that as path delay.
    Link = 20,
}

/// Configures the calling thread for exact timing: removes the timer slack of 50 µs and, if the process has the
/// privilege, sets a real-time priority.
pub fn enter_realtime(role: Role) {
    nix::sys::prctl::set_timerslack(1).expect("needs no privilege");
    let priority = ThreadPriorityValue::try_from(role as u8).expect("within the range");
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    // Without the privilege other threads may delay this one; the run reports its lateness.
    let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Crossplatform(priority), policy);
}

impl Timing {
    /// For thousands of packets a second: polls for a time that is longer than the usual latency of a wake-up.
    pub const PRECISE: Self = Self::Polls(TimeDelta::from_micros(60));

    /// Waits until a descriptor is readable or `left` has passed. May return earlier: call in a loop.
    pub fn wait(self, descriptors: &[BorrowedFd<'_>], left: TimeDelta) {
        let sleep = match self {
            Self::Polls(time) => left - time,
            Self::Sleep => left,
        };
        if sleep <= TimeDelta::ZERO {
            return;
        }
        let mut polled: Vec<PollFd<'_>> = descriptors.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
        let timeout = TimeSpec::from_duration(Duration::from_nanos(sleep.as_nanos() as u64));
        match ppoll(&mut polled, Some(timeout), None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => unreachable!("descriptors are open: {error}"),
        }
    }
}
