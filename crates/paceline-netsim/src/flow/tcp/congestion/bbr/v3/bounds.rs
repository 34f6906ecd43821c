// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bounds of the bytes in flight and of the bandwidth: `hi` from probes, `lo` from losses between them.

use paceline_units::{DataSize, Rate};

/// The share that remains after a loss (Beta).
const BETA: f64 = 0.7;
/// The share of `hi` that a cruising flow leaves to others (Headroom).
const HEADROOM: f64 = 0.15;
/// No bound.
const NONE: DataSize = DataSize::from_bytes(u64::MAX);
/// The growth of `hi` doubles each round, up to this power.
const SLOPE_MAX: u32 = 30;

/// What a round delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Latest {
    pub bandwidth: Rate,
    pub delivered: DataSize,
}

#[derive(Debug)]
pub(super) struct Bounds {
    segment: DataSize,
    /// The most of the current round (bw_latest, inflight_latest).
    pub latest: Latest,
    /// The bytes in flight and the bandwidth that are safe beside the current traffic (inflight_shortterm, bw_shortterm).
    pub lo: DataSize,
    pub bandwidth_lo: Rate,
    /// The bytes in flight that are safe without it (inflight_longterm).
    pub hi: DataSize,
    /// The round of losses ends with a segment that was sent when this much had been delivered.
    loss_round_end: DataSize,
    loss_in_round: bool,
    /// Rounds of the probe, acknowledged bytes since `hi` last grew, and those for one segment of growth.
    slope: u32,
    acked: DataSize,
    per_segment: DataSize,
}

impl Bounds {
    pub fn new(segment: DataSize) -> Self {
        Self {
            segment,
            latest: Latest::default(),
            lo: NONE,
            bandwidth_lo: Rate::MAX,
            hi: NONE,
            loss_round_end: DataSize::ZERO,
            loss_in_round: false,
            slope: 0,
            acked: DataSize::ZERO,
            per_segment: NONE,
        }
    }

    /// Notes a loss after this much was delivered. The first one begins a round.
    pub fn note_loss(&mut self, delivered: DataSize) {
        if !core::mem::replace(&mut self.loss_in_round, true) {
            self.loss_round_end = delivered;
        }
    }

    /// Handles a sample. Returns whether a round of losses begins, and whether there were losses in the one before.
    pub fn handle_sample(&mut self, before: DataSize, delivered: DataSize, latest: Latest) -> (bool, bool) {
        self.latest.bandwidth = self.latest.bandwidth.max(latest.bandwidth);
        self.latest.delivered = self.latest.delivered.max(latest.delivered);
        let begins = before >= self.loss_round_end;
        if !begins {
            return (false, false);
        }
        self.loss_round_end = delivered;
        (true, core::mem::take(&mut self.loss_in_round))
    }

    /// Lowers `lo` after a round with losses (BBRAdaptLowerBoundsFromCongestion).
    pub fn lower(&mut self, bandwidth: Rate, cwnd: DataSize) {
        let (lo, bandwidth_lo) = (self.lo.min(cwnd), self.bandwidth_lo.min(bandwidth));
        self.bandwidth_lo = self.latest.bandwidth.max(bandwidth_lo.scale(BETA));
        self.lo = self.latest.delivered.max(scaled(lo, BETA));
    }

    pub fn forget_lower(&mut self) {
        (self.lo, self.bandwidth_lo) = (NONE, Rate::MAX);
    }

    pub fn forget_latest(&mut self) {
        (self.latest, self.loss_in_round) = (Latest::default(), false);
    }

    /// Begins to probe beyond `hi`.
    pub fn begin_probe(&mut self, cwnd: DataSize) {
        (self.slope, self.acked) = (0, DataSize::ZERO);
        self.raise_slope(cwnd);
    }

    /// Doubles the growth of `hi` (BBRRaiseInflightLongtermSlope).
    fn raise_slope(&mut self, cwnd: DataSize) {
        let growth = 1 << self.slope;
        self.slope = (self.slope + 1).min(SLOPE_MAX);
        self.per_segment = DataSize::from_bytes((cwnd.as_bytes() / growth).max(self.segment.as_bytes()));
    }

    /// Lets `hi` grow by 1, 2, 4 … segments in each round of a probe that reaches it (BBRProbeInflightLongtermUpward).
    pub fn grow_hi(&mut self, acked: DataSize, cwnd: DataSize, round_begins: bool) {
        self.acked += acked;
        while self.hi != NONE && self.acked >= self.per_segment {
            self.acked -= self.per_segment;
            self.hi += self.segment;
        }
        if round_begins {
            self.raise_slope(cwnd);
        }
    }

    /// Raises `hi` to the bytes in flight of a round that lost little.
    pub fn raise_hi(&mut self, pipe: DataSize) {
        self.hi = self.hi.max(pipe);
    }

    /// Lowers `hi` to the bytes in flight of a round that lost too much (BBRHandleInflightTooHigh).
    pub fn lower_hi(&mut self, pipe: DataSize, target: DataSize) {
        self.hi = pipe.max(scaled(target, BETA));
    }

    /// Returns `hi` with room for others (BBRInflightWithHeadroom).
    pub fn with_headroom(&self, least: DataSize) -> DataSize {
        if self.hi == NONE {
            return NONE;
        }
        (self.hi - scaled(self.hi, HEADROOM).max(self.segment).min(self.hi)).max(least)
    }
}

fn scaled(size: DataSize, share: f64) -> DataSize {
    DataSize::from_bytes((size.as_bytes() as f64 * share) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: fn(u64) -> DataSize = DataSize::from_bytes;

    /// By hand: 70 % of the first 100,000 B; of the next 70,000 B 49,000, but the round delivered 60,000.
    #[test]
    fn losses_lower_the_short_term_bounds_once_a_round() {
        let mut bounds = Bounds::new(BYTES(1000));
        let latest =
            |delivered| Latest { bandwidth: Rate::from_kbps(8 * delivered / 1000), delivered: BYTES(delivered) };
        bounds.note_loss(BYTES(50_000));
        assert_eq!(bounds.handle_sample(BYTES(40_000), BYTES(51_000), latest(11_000)), (false, false));
        assert_eq!(bounds.handle_sample(BYTES(50_000), BYTES(99_000), latest(49_000)), (true, true));
        bounds.lower(Rate::from_kbps(1000), BYTES(100_000));
        assert_eq!((bounds.lo, bounds.bandwidth_lo), (BYTES(70_000), Rate::from_kbps(700)));
        assert_eq!(
            bounds.handle_sample(BYTES(98_000), BYTES(100_000), latest(2000)),
            (false, false),
            "a round is not over"
        );
        bounds.latest = latest(60_000);
        bounds.lower(Rate::from_kbps(1000), BYTES(100_000));
        assert_eq!((bounds.lo, bounds.bandwidth_lo), (BYTES(60_000), Rate::from_kbps(490)));
        bounds.forget_lower();
        assert_eq!((bounds.lo, bounds.bandwidth_lo), (NONE, Rate::MAX));
    }

    /// By hand: 15 % of 10,000 B are 1500; of 4000 B less than a segment.
    #[test]
    fn headroom_is_a_share_of_the_bound_and_at_least_a_segment() {
        let mut bounds = Bounds::new(BYTES(1000));
        assert_eq!(bounds.with_headroom(BYTES(4000)), NONE);
        bounds.hi = BYTES(10_000);
        assert_eq!(bounds.with_headroom(BYTES(4000)), BYTES(8500));
        bounds.hi = BYTES(6000);
        assert_eq!(bounds.with_headroom(BYTES(4000)), BYTES(5000));
        bounds.hi = BYTES(4000);
        assert_eq!(bounds.with_headroom(BYTES(4000)), BYTES(4000));
    }

    /// Draft: 1, 2, 4, 8 segments in consecutive rounds.
    #[test]
    fn the_bound_grows_twice_as_fast_each_round() {
        let mut bounds = Bounds::new(BYTES(1000));
        bounds.hi = BYTES(16_000);
        bounds.begin_probe(BYTES(16_000));
        let mut growth = Vec::new();
        for _ in 0..4 {
            let before = bounds.hi;
            for ack in 0..16 {
                bounds.grow_hi(BYTES(1000), BYTES(16_000), ack == 15);
            }
            growth.push((bounds.hi - before).as_bytes() / 1000);
        }
        assert_eq!(growth, [1, 2, 4, 8]);
        bounds.lower_hi(BYTES(20_000), BYTES(40_000));
        assert_eq!(bounds.hi, BYTES(28_000));
        bounds.raise_hi(BYTES(30_000));
        assert_eq!(bounds.hi, BYTES(30_000));
    }
}
