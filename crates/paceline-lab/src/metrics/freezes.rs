//! Freezes: a gap between rendered frames over `max(3 x mean, mean + 150 ms)`, the mean being that of the last 30 gaps.

use paceline_units::{Time, TimeDelta};

const MEMORY: usize = 30;

#[derive(Clone, Debug)]
pub(crate) struct Freezes {
    last: Option<Time>,
    /// The last gaps, zero where none was yet, and their sum.
    gaps: [TimeDelta; MEMORY],
    sum: TimeDelta,
    seen: usize,
    pub count: u64,
    pub total: TimeDelta,
}

impl Freezes {
    pub fn new() -> Self {
        Self {
            last: None,
            gaps: [TimeDelta::ZERO; MEMORY],
            sum: TimeDelta::ZERO,
            seen: 0,
            count: 0,
            total: TimeDelta::ZERO,
        }
    }

    pub fn rendered(&mut self, at: Time) {
        let Some(last) = self.last.replace(at) else { return };
        let gap = at - last;
        let known = self.seen.min(MEMORY) as i64;
        if known >= 2 {
            let mean = self.sum / known;
            if gap > (mean * 3).max(mean + TimeDelta::from_millis(150)) {
                self.count += 1;
                self.total += gap;
            }
        }
        self.sum += gap - core::mem::replace(&mut self.gaps[self.seen % MEMORY], gap);
        self.seen += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_over_both_bounds_are_freezes() {
        let mut freezes = Freezes::new();
        let mut at = Time::ZERO;
        let mut show = |freezes: &mut Freezes, gap_ms: i64| {
            at += TimeDelta::from_millis(gap_ms);
            freezes.rendered(at);
        };
        for _ in 0..40 {
            show(&mut freezes, 33);
        }
        show(&mut freezes, 182); // 33 + 150 = 183 is more than 3 * 33
        assert_eq!(freezes.count, 0);
        for _ in 0..40 {
            show(&mut freezes, 33);
        }
        show(&mut freezes, 184);
        assert_eq!((freezes.count, freezes.total), (1, TimeDelta::from_millis(184)));
    }
}
