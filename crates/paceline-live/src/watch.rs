//! What else the machine did during a run.

use nix::sys::resource::{UsageWho, getrusage};
use std::fs;
use std::time::Instant;

/// Processor time so far: of the machine, in its ticks, and of this process, s.
#[derive(Clone, Copy, Debug)]
struct Spent {
    total: f64,
    idle: f64,
    own_s: f64,
    at: Instant,
}

/// Looks at the machine from its beginning on.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    who: UsageWho,
    began: Option<Spent>,
}

/// Ticks of `/proc/stat` in a second, on every Linux that there is (`USER_HZ`).
const TICKS_PER_S: f64 = 100.0;

impl Watch {
    /// Begins to look.
    pub fn begin() -> Self {
        Self::of(UsageWho::RUSAGE_SELF)
    }

    /// The same, where only the calling thread counts as one's own.
    pub fn of_this_thread() -> Self {
        Self::of(UsageWho::RUSAGE_THREAD)
    }

    fn of(who: UsageWho) -> Self {
        Self { who, began: spent(who) }
    }

    /// Processor time that this process took since then, over the time that passed on one processor.
    pub fn own_share(&self) -> f64 {
        let (Some(from), Some(to)) = (self.began, spent(self.who)) else { return 0.0 };
        (to.own_s - from.own_s) / (to.at - from.at).as_secs_f64().max(1e-9)
    }

    /// Shares of the machine's time since then: idle, and taken by other processes or the machine around this one. Both
    /// zero where the system does not say.
    pub fn shares(&self) -> (f64, f64) {
        let (Some(from), Some(to)) = (self.began, spent(self.who)) else { return (0.0, 0.0) };
        let total = to.total - from.total;
        if total <= 0.0 {
            return (0.0, 0.0);
        }
        let idle = ((to.idle - from.idle) / total).clamp(0.0, 1.0);
        let own = ((to.own_s - from.own_s) * TICKS_PER_S / total).clamp(0.0, 1.0);
        (idle, (1.0 - idle - own).max(0.0))
    }
}

fn spent(who: UsageWho) -> Option<Spent> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let (total, idle) = read(&stat)?;
    let usage = getrusage(who).ok()?;
    let seconds = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 * 1e-6;
    Some(Spent { at: Instant::now(), total, idle, own_s: seconds(usage.user_time()) + seconds(usage.system_time()) })
}

/// Ticks in all and idle ones, of all processors. Time of guests is counted in `user`, too, so only the first eight count.
fn read(stat: &str) -> Option<(f64, f64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<f64> = line.split_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
    let [_, _, _, idle, waiting, ..] = ticks[..] else { return None };
    Some((ticks.iter().sum(), idle + waiting))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_read() {
        let stat = "cpu  10 1 5 80 4 0 0 2 7 0\ncpu0 1 2 3\n";
        assert_eq!(read(stat), Some((102.0, 84.0)));
        assert_eq!(read("intr 5\n"), None);
        assert_eq!(read("cpu  1 2\n"), None);
    }

    #[test]
    fn what_this_process_does_is_not_of_others() {
        let watch = Watch::begin();
        let mut x = 1u64;
        let until = crate::clock::Monotonic::starting_in(paceline_units::TimeDelta::from_millis(400));
        while until.now() < paceline_units::Time::ZERO {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        let (idle, others) = watch.shares();
        assert!(
            (0.0..=1.0).contains(&idle) && (0.0..=1.0).contains(&others) && idle + others <= 1.0,
            "{idle} {others}"
        );
        // One thread at least; others of this process may run beside it, and others of the machine before it.
        let processors = std::thread::available_parallelism().unwrap().get() as f64;
        let own = watch.own_share();
        assert!((0.02..=processors + 0.1).contains(&own), "{own}");
    }
}
