//! Windows by time: an event finds those that it concerns without a look at all of them.

use paceline_scenario::Window;
use paceline_units::Time;

/// The windows of a collector, by their numbers, in tracks: those of a track do not overlap and are in order. Hundreds of windows of
/// `each` are one track.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracks(Vec<Vec<(Window, usize)>>);

impl Tracks {
    /// Creates the tracks of these windows and their numbers.
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
        Self(tracks)
    }

    /// Returns whether there is no window.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the numbers of the windows that contain a time from `from` to `to`, both included.
    #[inline]
    pub fn between(&self, from: Time, to: Time) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().flat_map(move |track| {
            let first = track.partition_point(|(window, _)| window.to <= from);
            track[first..].iter().take_while(move |(window, _)| window.from <= to).map(|(_, number)| *number)
        })
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
        let tracks = Tracks::new(windows.iter().copied().zip(0..));
        assert_eq!(tracks.0.len(), 5, "{tracks:?}");
        for from in 0..12 {
            for to in from..12 {
                let (from, to) = (Time::from_secs(from), Time::from_secs(to));
                let mut found: Vec<usize> = tracks.between(from, to).collect();
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
