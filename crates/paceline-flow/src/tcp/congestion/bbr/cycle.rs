//! PROBE_BW: eight phases, one that looks for more bandwidth, one that clears the queue which that left, six that cruise.

use paceline_units::{DataSize, RandomStream, Time, TimeDelta};

/// Pacing gain of each phase (`bbr_pacing_gain`).
const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

/// The place in the cycle.
#[derive(Debug)]
pub(super) struct Cycle {
    phase: usize,
    since: Time,
}

/// What a phase may end by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions {
    pub now: Time,
    /// RTprop.
    pub least: TimeDelta,
    /// The ACK told of losses.
    pub losses: bool,
    /// Bytes in the network when it came, and with the segment that may leave next.
    pub pipe: DataSize,
    pub pipe_next: DataSize,
    /// What there is at the phase's gain, and at a gain of 1.
    pub probing: DataSize,
    pub drained: DataSize,
}

impl Cycle {
    /// Begins in a phase drawn from all but the second, so that flows do not probe all at once.
    pub fn begin(now: Time, random: &mut RandomStream) -> Self {
        let back = (random.unit() * (GAINS.len() - 1) as f64) as usize;
        Self { phase: (GAINS.len() - back) % GAINS.len(), since: now }
    }

    pub fn gain(&self) -> f64 {
        GAINS[self.phase]
    }

    /// It is the phase that looks for more.
    pub fn probes(&self) -> bool {
        self.phase == 0
    }

    /// Goes on to the next phase when this one is over (`bbr_is_next_cycle_phase`): after a round trip. The first lasts
    /// until there is as much in the network as its gain would have there, or a loss says that the path will not hold it.
    /// The second is over sooner where the queue is gone.
    pub fn handle_ack(&mut self, c: Conditions) {
        let long = c.now - self.since > c.least;
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
    use paceline_units::Streams;

    const BYTES: fn(u64) -> DataSize = DataSize::from_bytes;

    #[test]
    fn it_begins_anywhere_but_in_the_phase_that_drains() {
        let mut random = Streams::new(1).stream("cycle");
        let mut seen = [0; 8];
        for _ in 0..7000 {
            seen[Cycle::begin(Time::ZERO, &mut random).phase] += 1;
        }
        for (phase, count) in seen.into_iter().enumerate() {
            let expected = if phase == 1 { 0..1 } else { 880..1120 };
            assert!(expected.contains(&count), "phase {phase}: {count}");
        }
    }

    #[test]
    fn phases_end_by_time_by_queue_and_by_loss() {
        let least = TimeDelta::from_millis(40);
        let at = |ms| Conditions {
            now: Time::from_millis(ms),
            least,
            losses: false,
            pipe: BYTES(50_000),
            pipe_next: BYTES(52_000),
            probing: BYTES(62_500),
            drained: BYTES(50_000),
        };
        let after = |phase, conditions| {
            let mut cycle = Cycle { phase, since: Time::ZERO };
            cycle.handle_ack(conditions);
            cycle.phase
        };
        assert_eq!((after(3, at(40)), after(3, at(41)), after(7, at(41))), (3, 4, 0));
        assert_eq!(after(0, at(41)), 0, "not yet full");
        assert_eq!(after(0, Conditions { pipe_next: BYTES(62_500), ..at(41) }), 1);
        assert_eq!(after(0, Conditions { pipe_next: BYTES(62_500), ..at(40) }), 0, "too soon");
        assert_eq!(after(0, Conditions { losses: true, ..at(41) }), 1);
        assert_eq!(after(1, Conditions { pipe: BYTES(50_001), ..at(5) }), 1);
        assert_eq!((after(1, at(5)), after(1, Conditions { pipe: BYTES(60_000), ..at(41) })), (2, 2));
    }
}
