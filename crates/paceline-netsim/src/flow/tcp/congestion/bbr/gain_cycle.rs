// SPDX-License-Identifier: MIT OR Apache-2.0
//! PROBE_BW: a cycle of eight phases. One probes for more bandwidth, one drains the resulting queue, six cruise.

use paceline_units::{DataSize, RandomStream, Time, TimeDelta};

/// Pacing gain of each phase (`bbr_pacing_gain`).
const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

#[derive(Debug)]
pub(super) struct GainCycle {
    phase: usize,
    since: Time,
}

/// The inputs that can end a phase.
#[derive(Clone, Copy, Debug)]
pub(super) struct CycleInput {
    pub now: Time,
    /// RTprop.
    pub min_rtt: TimeDelta,
    /// The ACK showed losses.
    pub losses: bool,
    /// Bytes in the network before the ACK, and with the segment that may be sent next.
    pub pipe: DataSize,
    pub pipe_next: DataSize,
    /// Target bytes in flight at the gain of the phase, and at a gain of 1.
    pub probing: DataSize,
    pub drained: DataSize,
}

impl GainCycle {
    /// Begins in a random phase other than the second, so that flows do not probe at the same time.
    pub fn begin(now: Time, random: &mut RandomStream) -> Self {
        let back = (random.unit() * (GAINS.len() - 1) as f64) as usize;
        Self { phase: (GAINS.len() - back) % GAINS.len(), since: now }
    }

    pub fn gain(&self) -> f64 {
        GAINS[self.phase]
    }

    /// Returns whether this phase probes for more bandwidth.
    pub fn probes(&self) -> bool {
        self.phase == 0
    }

    /// Advances to the next phase when this one is over (`bbr_is_next_cycle_phase`). A phase lasts one round trip. The
    /// first lasts longer, until the bytes in flight reach the target of its gain or a loss occurs. The second ends
    /// earlier if the queue is drained.
    pub fn handle_ack(&mut self, c: CycleInput) {
        let long = c.now - self.since > c.min_rtt;
        let over = match self.phase {
            0 => long && (c.losses || c.pipe_next >= c.probing),
            1 => long || c.pipe <= c.drained,
            _ => long,
        };
        if over {
            *self = Self { phase: (self.phase + 1) % GAINS.len(), since: c.now };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::RandomStreams;

    const BYTES: fn(u64) -> DataSize = DataSize::from_bytes;

    #[test]
    fn begins_in_any_phase_except_the_draining_one() {
        let mut random = RandomStreams::new(1).stream("cycle");
        let mut seen = [0; 8];
        for _ in 0..7000 {
            seen[GainCycle::begin(Time::ZERO, &mut random).phase] += 1;
        }
        for (phase, count) in seen.into_iter().enumerate() {
            let expected = if phase == 1 { 0..1 } else { 880..1120 };
            assert!(expected.contains(&count), "phase {phase}: {count}");
        }
    }

    #[test]
    fn phases_end_by_time_queue_and_loss() {
        let min_rtt = TimeDelta::from_millis(40);
        let at = |ms| CycleInput {
            now: Time::from_millis(ms),
            min_rtt,
            losses: false,
            pipe: BYTES(50_000),
            pipe_next: BYTES(52_000),
            probing: BYTES(62_500),
            drained: BYTES(50_000),
        };
        let after = |phase, conditions| {
            let mut cycle = GainCycle { phase, since: Time::ZERO };
            cycle.handle_ack(conditions);
            cycle.phase
        };
        assert_eq!((after(3, at(40)), after(3, at(41)), after(7, at(41))), (3, 4, 0));
        assert_eq!(after(0, at(41)), 0, "the pipe is not full yet");
        assert_eq!(after(0, CycleInput { pipe_next: BYTES(62_500), ..at(41) }), 1);
        assert_eq!(after(0, CycleInput { pipe_next: BYTES(62_500), ..at(40) }), 0, "a round trip is not over");
        assert_eq!(after(0, CycleInput { losses: true, ..at(41) }), 1);
        assert_eq!(after(1, CycleInput { pipe: BYTES(50_001), ..at(5) }), 1);
        assert_eq!((after(1, at(5)), after(1, CycleInput { pipe: BYTES(60_000), ..at(41) })), (2, 2));
    }
}
