// SPDX-License-Identifier: MIT OR Apache-2.0
//! The spans between the borders of all windows, each with its sums. An event is added to one span; the sums of a window
//! are those of its spans.

use super::Totals;
use paceline_scenario::Window;
use paceline_units::Time;
use std::ops::Range;

/// Disjoint spans of time in order, with their sums.
pub(crate) struct Spans {
    spans: Vec<Window>,
    totals: Vec<Totals>,
    /// The span of the last event, and its number.
    current: Window,
    index: usize,
}

impl Spans {
    /// Creates the spans of these windows, each with the sums `empty`. Times outside all windows belong to no span.
    pub fn new(windows: &[Window], empty: &Totals) -> Self {
        let mut borders: Vec<Time> = windows.iter().flat_map(|window| [window.from, window.to]).collect();
        borders.sort_unstable();
        borders.dedup();
        let is_covered = |span: &Window| windows.iter().any(|w| w.from <= span.from && span.to <= w.to);
        let spans = borders.windows(2).map(|border| Window { from: border[0], to: border[1] });
        let spans: Vec<Window> = spans.filter(is_covered).collect();
        let current = Window { from: Time::ZERO, to: Time::ZERO };
        Self { totals: vec![empty.clone(); spans.len()], spans, current, index: 0 }
    }

    /// Returns the sums of the span that contains `at`, if there is one. A sequence of times that mostly increase is fast.
    #[inline]
    pub fn containing(&mut self, at: Time) -> Option<&mut Totals> {
        if !contains(&self.current, at) {
            let index = self.spans.partition_point(|span| span.from <= at).checked_sub(1)?;
            let span = self.spans.get(index).filter(|span| contains(span, at))?;
            (self.current, self.index) = (*span, index);
        }
        self.totals.get_mut(self.index)
    }

    /// Returns the sums of these spans together, added to `sums`.
    pub fn sums(&self, spans: Range<usize>, mut sums: Totals) -> Totals {
        self.totals[spans].iter().for_each(|totals| sums.merge(totals));
        sums
    }

    pub fn within(&self, window: Window) -> Range<usize> {
        let from = self.spans.partition_point(|span| span.from < window.from);
        from..self.spans.partition_point(|span| span.to <= window.to).max(from)
    }
}

/// Returns whether a window contains a time: its end does not belong to it.
#[inline]
pub(crate) fn contains(window: &Window, at: Time) -> bool {
    window.from <= at && at < window.to
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Delays;

    fn window(from: i64, to: i64) -> Window {
        Window { from: Time::from_secs(from), to: Time::from_secs(to) }
    }
    fn empty() -> Totals {
        Totals { hops: vec![Default::default()], flows: Vec::new(), one_way: Delays::new() }
    }

    #[test]
    fn sums_of_a_window_are_those_of_the_events_in_it() {
        // Nested, overlapping, adjacent, empty and apart; twice the same.
        let all = [(0, 9), (2, 5), (4, 7), (7, 9), (3, 3), (12, 14), (12, 14), (20, 21)].map(|(a, b)| window(a, b));
        for windows in [&all[..], &all[1..5], &all[4..5], &[]] {
            let mut spans = Spans::new(windows, &empty());
            // In order, and with one step back.
            let times: Vec<i64> = (0..25).flat_map(|second| [second, (second - 1).max(0)]).collect();
            for second in &times {
                if let Some(totals) = spans.containing(Time::from_secs(*second)) {
                    totals.hops[0].crossed += 1 << second;
                }
            }
            for window in windows {
                let inside = times.iter().filter(|second| contains(window, Time::from_secs(**second)));
                let sums = spans.sums(spans.within(*window), empty());
                assert_eq!(sums.hops[0].crossed, inside.map(|second| 1 << second).sum::<u64>(), "{window:?}");
            }
            let outside =
                spans.containing(Time::from_secs(10)).is_none() && spans.containing(Time::from_secs(24)).is_none();
            assert!(outside);
        }
    }
}
