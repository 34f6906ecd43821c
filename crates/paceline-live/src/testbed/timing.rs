// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real-time scheduling of a thread, and waiting for a time or a packet.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use paceline_units::TimeDelta;
use std::os::fd::BorrowedFd;
use std::thread;
use std::time::{Duration, Instant};
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
/// privilege, sets a real-time priority. Returns whether it has one.
pub fn enter_realtime(role: Role) -> bool {
    nix::sys::prctl::set_timerslack(1).expect("needs no privilege");
    let priority = ThreadPriorityValue::try_from(role as u8).expect("within the range");
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    // Without the privilege other threads may delay this one; the run reports its lateness.
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Crossplatform(priority), policy).is_ok()
}

/// Rests of a thread with real-time priority. If such a thread takes a whole processor, the kernel gives the others 50 ms of each
/// second at once (sched(7), `sched_rt_runtime_us`), and the packets of this time are late. Short rests give them as much, and
/// packets are late by about 0.1 ms.
#[derive(Debug)]
pub struct Rests {
    /// When the last sleep ended that was as long as a rest.
    awake_since: Instant,
}

impl Rests {
    /// How long a thread stays awake, and a rest: 6 % of the time, where the kernel would take 5 %.
    const AWAKE: Duration = Duration::from_millis(1);
    const REST: Duration = Duration::from_micros(60);

    /// Begins at this time.
    pub fn new(now: Instant) -> Self {
        Self { awake_since: now }
    }

    /// Records a wait from one time to another, and returns whether a rest is due.
    fn is_due(&mut self, from: Instant, to: Instant) -> bool {
        if to - from >= Self::REST {
            self.awake_since = to;
        }
        to - self.awake_since >= Self::AWAKE
    }

    /// Sleeps if a rest is due after a wait that began at `from`.
    pub fn take(&mut self, from: Instant) {
        if self.is_due(from, Instant::now()) {
            thread::sleep(Self::REST);
            self.awake_since = Instant::now();
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_is_due_after_a_millisecond_without_one() {
        let start = Instant::now();
        let at = |us| start + Duration::from_micros(us);
        let mut rests = Rests::new(start);
        assert!(!rests.is_due(at(940), at(999)));
        assert!(rests.is_due(at(999), at(1000)));
        // A wait of 60 µs is a rest.
        assert!(!rests.is_due(at(1000), at(1060)) && !rests.is_due(at(2001), at(2059)));
        assert!(rests.is_due(at(2059), at(2060)));
    }

    #[test]
    fn a_rest_begins_a_new_millisecond() {
        let start = Instant::now();
        let mut rests = Rests::new(start - Rests::AWAKE);
        // A wait that began at the same time as the call is no rest, however slow this machine is.
        rests.take(Instant::now() + Rests::REST);
        assert!(rests.awake_since - start >= Rests::REST);
    }
}
