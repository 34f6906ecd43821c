// SPDX-License-Identifier: MIT OR Apache-2.0
//! Windows by time: an event finds those that it concerns without a look at all of them.

use paceline_scenario::Window;
use paceline_units::Time;

/// The windows of a collector, by their numbers, in tracks: those of a track do not overlap and are in order. Hundreds of windows of
/// `each` are one track.
#[derive(Clone, Debug)]
pub(crate) struct Tracks {
    tracks: Vec<Vec<(Window, usize)>>,
    /// The begin and the end of each window, in order.
    borders: Vec<Time>,
    /// The windows that were found last, and the time between two borders in which they stay the same; empty without one.
    found: Vec<usize>,
    valid: Window,
}

impl Tracks {
    pub fn new(windows: impl Iterator<Item = (Window, usize)>) -> Self {
        let mut in_order: Vec<(Window, usize)> = windows.collect();
        in_order.sort_by_key(|(window, number)| (window.from, *number));
        let mut tracks: Vec<Vec<(Window, usize)>> = Vec::new();
        for (window, number) in in_order {
            let is_free =
                |track: &&mut Vec<(Window, usize)>| track.last().is_none_or(|(last, _)| last.to <= window.from);
            match tracks.iter_mut().find(is_free) {
                Some(track) => track.push((window, number)),
                None => tracks.push(vec![(window, number)]),
            }
        }
        let mut borders: Vec<Time> = tracks.iter().flatten().flat_map(|(window, _)| [window.from, window.to]).collect();
        borders.sort_unstable();
        Self { tracks, borders, found: Vec::new(), valid: Window { from: Time::ZERO, to: Time::ZERO } }
    }

    pub fn is_empty(&self) -> bool {
        self.tracks.is_empty()
    }

    /// Returns the numbers of the windows that contain a time from `from` to `to`, both included. A sequence of times that mostly
    /// increase is fast.
    #[inline]
    pub fn between(&mut self, from: Time, to: Time) -> &[usize] {
        if from < self.valid.from || to >= self.valid.to {
            self.find(from, to);
        }
        &self.found
    }

    fn find(&mut self, from: Time, to: Time) {
        self.found.clear();
        for track in &self.tracks {
            let first = track.partition_point(|(window, _)| window.to <= from);
            let inside = track[first..].iter().take_while(|(window, _)| window.from <= to);
            self.found.extend(inside.map(|(_, number)| *number));
        }
        let next = self.borders.partition_point(|border| *border <= from);
        let begin = if next > 0 { self.borders[next - 1] } else { Time::ZERO };
        let end = self.borders.get(next).copied().unwrap_or(Time::MAX);
        self.valid = Window { from: begin, to: if to < end { end } else { begin } };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_windows_that_contain_a_time() {
        let window = |(from, to)| Window { from: Time::from_secs(from), to: Time::from_secs(to) };
        // Each second, overlapping, nested, equal and empty.
        let windows: Vec<Window> =
            (0..10).map(|n| (n, n + 1)).chain([(0, 10), (2, 5), (4, 7), (4, 7), (3, 3)]).map(window).collect();
        let mut tracks = Tracks::new(windows.iter().copied().zip(0..));
        assert_eq!(tracks.tracks.len(), 5, "{tracks:?}");
        for from in 0..12 {
            for to in from..12 {
                let (from, to) = (Time::from_secs(from), Time::from_secs(to));
                let mut found = tracks.between(from, to).to_vec();
                found.sort_unstable();
                let expected = |number: &usize| {
                    let window = &windows[*number];
                    window.from <= to && from < window.to
                };
                assert_eq!(found, (0..windows.len()).filter(expected).collect::<Vec<_>>(), "{from} to {to}");
            }
        }
    }
}
