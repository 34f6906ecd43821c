// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processor use of the host during a run.

use nix::sys::resource::{UsageWho, getrusage};
use std::fs;
use std::time::Instant;

/// Processor time so far: of the host in ticks, of this process in seconds.
#[derive(Clone, Copy, Debug)]
struct ProcessorTime {
    total: f64,
    idle: f64,
    own_s: f64,
    at: Instant,
}

/// Measures processor use since its start.
#[derive(Clone, Copy, Debug)]
pub struct HostMonitor {
    who: UsageWho,
    start: Option<ProcessorTime>,
}

/// Ticks per second in `/proc/stat` (`USER_HZ`, the same on every Linux).
const TICKS_PER_S: f64 = 100.0;

impl HostMonitor {
    /// Starts to measure this process.
    pub fn start() -> Self {
        Self::start_for(UsageWho::RUSAGE_SELF)
    }

    /// Starts to measure the calling thread.
    pub fn start_for_this_thread() -> Self {
        Self::start_for(UsageWho::RUSAGE_THREAD)
    }

    fn start_for(who: UsageWho) -> Self {
        Self { who, start: read(who) }
    }

    /// Returns the processor time of this process or thread since the start, relative to one processor.
    pub fn own_share(&self) -> f64 {
        let (Some(from), Some(to)) = (self.start, read(self.who)) else { return 0.0 };
        (to.own_s - from.own_s) / (to.at - from.at).as_secs_f64().max(1e-9)
    }

    /// Returns the shares of processor time since the start that were idle, and that other processes or the hypervisor used.
    /// Both are 0 if the system has no such data.
    pub fn shares(&self) -> (f64, f64) {
        let (Some(from), Some(to)) = (self.start, read(self.who)) else { return (0.0, 0.0) };
        let total = to.total - from.total;
        if total <= 0.0 {
            return (0.0, 0.0);
        }
        let idle = ((to.idle - from.idle) / total).clamp(0.0, 1.0);
        let own = ((to.own_s - from.own_s) * TICKS_PER_S / total).clamp(0.0, 1.0);
        (idle, (1.0 - idle - own).max(0.0))
    }
}

fn read(who: UsageWho) -> Option<ProcessorTime> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let (total, idle) = parse(&stat)?;
    let usage = getrusage(who).ok()?;
    let seconds = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 * 1e-6;
    Some(ProcessorTime {
        at: Instant::now(),
        total,
        idle,
        own_s: seconds(usage.user_time()) + seconds(usage.system_time()),
    })
}

/// Parses total and idle ticks of all processors. Guest time is part of `user`, so only the first eight fields count.
fn parse(stat: &str) -> Option<(f64, f64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<f64> = line.split_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
    let [_, _, _, idle, iowait, ..] = ticks[..] else { return None };
    Some((ticks.iter().sum(), idle + iowait))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_ticks() {
        let stat = "cpu  10 1 5 80 4 0 0 2 7 0\ncpu0 1 2 3\n";
        assert_eq!(parse(stat), Some((102.0, 84.0)));
        assert_eq!(parse("intr 5\n"), None);
        assert_eq!(parse("cpu  1 2\n"), None);
    }

    #[test]
    fn own_use_is_separate_from_other_processes() {
        let monitor = HostMonitor::start();
        let mut x = 1u64;
        let until = Instant::now() + std::time::Duration::from_millis(400);
        while Instant::now() < until {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        let (idle, others) = monitor.shares();
        assert!(
            (0.0..=1.0).contains(&idle) && (0.0..=1.0).contains(&others) && idle + others <= 1.0,
            "{idle} {others}"
        );
        // At least one thread of this process runs; other tests and processes may run at the same time.
        let processors = std::thread::available_parallelism().unwrap().get() as f64;
        let own = monitor.own_share();
        assert!((0.02..=processors + 0.1).contains(&own), "{own}");
    }
}
