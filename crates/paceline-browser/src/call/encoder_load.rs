// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detects runs that a busy machine disturbed: CPU-limited encoders and late frame events.

use std::sync::atomic::{AtomicU32, Ordering};

/// Largest share of statistics samples in which the CPU may limit the encoder of a sender.
const MAX_CPU_LIMITED: f64 = 0.1;

/// Counters over all calls of a run.
#[derive(Debug, Default)]
pub struct EncoderLoad {
    /// Statistics samples of senders.
    samples: AtomicU32,
    /// Samples in which the CPU limited the encoder.
    cpu_limited: AtomicU32,
    /// Frames whose event came later than [`MAX_EVENT_AGE`](crate::call::stats::MAX_EVENT_AGE) allows.
    late_frames: AtomicU32,
}

impl EncoderLoad {
    /// Counts a statistics sample of a sender.
    pub fn record_sample(&self, cpu_limited: bool) {
        self.samples.fetch_add(1, Ordering::Relaxed);
        self.cpu_limited.fetch_add(cpu_limited.into(), Ordering::Relaxed);
    }

    /// Counts a rendered frame; `late` if its event was moved to a later time.
    pub fn record_frame(&self, late: bool) {
        self.late_frames.fetch_add(late.into(), Ordering::Relaxed);
    }

    /// Returns the reason why the run was disturbed, if it was.
    pub fn disturbed(&self) -> Option<String> {
        let counters = [&self.samples, &self.cpu_limited, &self.late_frames];
        let [samples, cpu_limited, late] = counters.map(|count| count.load(Ordering::Relaxed));
        if late > 0 {
            return Some(format!("{late} rendered frames were reported too late"));
        }
        (f64::from(cpu_limited) > MAX_CPU_LIMITED * f64::from(samples))
            .then(|| format!("the CPU limited a browser's encoder in {cpu_limited} of {samples} samples"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_repeated_cpu_limits_and_late_frames() {
        let of = |samples: u32, cpu_limited: u32, late: u32| {
            let load = EncoderLoad::default();
            (0..samples).for_each(|n| load.record_sample(n < cpu_limited));
            (0..600).for_each(|n| load.record_frame(n < late));
            load.disturbed()
        };
        assert_eq!((of(0, 0, 0), of(20, 0, 0), of(20, 2, 0)), (None, None, None));
        assert!(of(20, 3, 0).is_some_and(|why| why.contains("in 3 of 20 samples")));
        assert!(of(20, 0, 1).is_some_and(|why| why.starts_with("1 rendered frames")));
    }
}
