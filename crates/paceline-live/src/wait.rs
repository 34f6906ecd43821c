//! Waiting for a time or a packet, whichever comes first.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use paceline_units::TimeDelta;
use std::os::fd::BorrowedFd;
use std::time::Duration;
use thread_priority::unix::{RealtimeThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy};
use thread_priority::{ThreadPriority, ThreadPriorityValue, thread_native_id};

/// How exactly a thread keeps its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// Sleeps until shortly before the time, then looks at the clock until it has come: exact, for part of a core.
    Precise,
    /// Sleeps until the time; the kernel wakes it some tens of microseconds later.
    Sleep,
}

/// For so long before a time a precise thread does not sleep: longer than the kernel usually takes to wake it.
const SPIN: TimeDelta = TimeDelta::from_micros(60);

/// Who goes first where several threads of real time want to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// The ends of flows: above all that has no real-time priority.
    End = 10,
    /// The link: above its ends, which would otherwise make it late and themselves see that as delay.
    Link = 20,
}

/// Makes the calling thread keep its times: its sleeps end when they should, where the kernel may otherwise add 50 us to
/// gather wake-ups, and it goes before what has no real-time priority, where the process may ask for that.
pub fn be_punctual(rank: Rank) {
    nix::sys::prctl::set_timerslack(1).expect("any thread may ask for it");
    let priority = ThreadPriorityValue::try_from(rank as u8).expect("it is in the range");
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    // Without the privilege it is as late as others make it, and says how late.
    let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Crossplatform(priority), policy);
}

impl Timing {
    /// Waits until one of the descriptors is readable or `left` is over, and no longer; it may return earlier. Ask
    /// again in a loop.
    pub fn wait(self, descriptors: &[BorrowedFd<'_>], left: TimeDelta) {
        let sleep = match self {
            Self::Precise => left - SPIN,
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
