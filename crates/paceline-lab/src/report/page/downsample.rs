// SPDX-License-Identifier: MIT OR Apache-2.0
//! Down-samples the series of a page, so that the page of a long run stays small.
//!
//! Time is divided into intervals of equal length. Of each interval, the first, the smallest, the largest and the last value
//! are kept, at their own times (M4; Jugel et al., VLDB 2014, section 4.2). A line through them covers the same pixels as the
//! line through all values, if no interval is wider than a pixel. Every peak is kept, whatever the length of the intervals.
//! The script of the page does the same again for the pixels of the visible span.

use crate::report::figure::{Figure, Panel, Series, SeriesKind};

/// Points of a page above which its series are down-sampled. A point needs 4 to 7 bytes of the page.
pub(super) const MOST_POINTS: usize = 500_000;

/// Points of a series that is never down-sampled: two for each pixel of a wide screen. Pages of very many runs may
/// therefore have more than [`MOST_POINTS`].
const LEAST_POINTS: usize = 2_000;

/// Points that an interval without missing values keeps at most. One in which values begin to be missing keeps one more.
const KEPT: usize = 4;

/// A figure for the page, and the intervals of its series.
pub(super) struct Downsampled {
    pub(super) figure: Figure,
    /// For each panel and series: length of its intervals, s; `None` if the series has all points.
    pub(super) intervals_s: Vec<Vec<Option<f64>>>,
}

/// Returns the figures with at most `most` points in all, or [`LEAST_POINTS`] in each series. Short series keep all points.
/// Each interval with a gap may add one point.
pub(super) fn downsample(figures: &[Figure], most: usize) -> Vec<Downsampled> {
    let series = figures.iter().flat_map(|figure| &figure.panels).flat_map(|panel| &panel.series);
    let lengths = series.map(Series::len).collect();
    let share = share(lengths, most).max(LEAST_POINTS);
    figures.iter().map(|figure| of_figure(figure, share)).collect()
}

/// Describes what a page with `shown` of `all` points lacks.
pub(super) fn note(shown: usize, all: usize) -> String {
    format!(
        " The plots have {shown} of {all} points: of each interval of time the first, smallest, largest and last value, with \
         four digits. The tables in the folder have every value."
    )
}

/// Returns the number of points of the longest series, if series share `most` points and short ones leave theirs to the
/// others.
fn share(mut lengths: Vec<usize>, most: usize) -> usize {
    lengths.sort_unstable();
    let (mut left, mut series) = (most, lengths.len());
    for length in lengths {
        let share = left / series;
        if length > share {
            return share;
        }
        (left, series) = (left - length, series - 1);
    }
    usize::MAX
}

fn of_figure(figure: &Figure, most: usize) -> Downsampled {
    let of_series = |series: &Series| {
        // A distribution has few steps, and its x is no time.
        if series.len() <= most || series.kind == SeriesKind::Cdf {
            return (series.clone(), None);
        }
        let intervals = (most / KEPT).max(1);
        let length_s = (series.x[series.len() - 1] - series.x[0]) / intervals as f64;
        (m4(series, intervals), Some(length_s))
    };
    let of_panel = |panel: &Panel| {
        let (series, intervals_s): (Vec<_>, Vec<_>) = panel.series.iter().map(of_series).unzip();
        (panel.with_series(series), intervals_s)
    };
    let (panels, intervals_s) = figure.panels.iter().map(of_panel).unzip();
    Downsampled { figure: figure.with_panels(panels), intervals_s }
}

/// Returns the first, smallest, largest and last value of each of these intervals, and the first missing one.
fn m4(series: &Series, intervals: usize) -> Series {
    let (first, last) = (series.x[0], series.x[series.len() - 1]);
    let per_second = intervals as f64 / (last - first);
    let interval = |index: usize| (((series.x[index] - first) * per_second) as usize).min(intervals - 1);
    let mut kept = Vec::new();
    let mut from = 0;
    while from < series.len() {
        let number = interval(from);
        let to = (from..series.len()).find(|index| interval(*index) != number).unwrap_or(series.len());
        let values = &series.y[from..to];
        let mut shown = [0, 0, 0, 0, values.len() - 1];
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for (index, value) in values.iter().enumerate() {
            if *value < least {
                (least, shown[1]) = (*value, index);
            }
            if *value > most {
                (most, shown[2]) = (*value, index);
            }
            if value.is_nan() && shown[3] == 0 && !values[0].is_nan() {
                shown[3] = index;
            }
        }
        shown.sort_unstable();
        kept.extend(shown.map(|index| from + index));
        from = to;
    }
    kept.dedup();
    let at = |values: &[f64]| kept.iter().map(|index| values[*index]).collect();
    let ci95 = if series.ci95.is_empty() { Vec::new() } else { at(&series.ci95) };
    Series { x: at(&series.x), y: at(&series.y), ci95, ..series.without_points() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::figure::{Axis, Role};
    use std::slice::from_ref;

    fn series(kind: SeriesKind, y: impl IntoIterator<Item = f64>) -> Series {
        let mut series = Series::new("s", "s", 0, Role::Main, kind);
        y.into_iter().enumerate().for_each(|(n, y)| series.push(n as f64 * 0.001, y));
        series
    }

    fn figure(series: Vec<Series>) -> Figure {
        let (x, y) = (Axis::time(1.0), Axis::new("", ""));
        let (id, title) = (String::new(), String::new());
        let panel = Panel { id: id.clone(), title: title.clone(), caption: String::new(), x, y, series };
        Figure { id, scenario: String::new(), title, subjects: Vec::new(), panels: vec![panel] }
    }

    /// A million values between 0 and 1, and one peak in each direction.
    fn with_peaks() -> Series {
        let noise = (0..1_000_000_u32).map(|n| f64::from(n.wrapping_mul(2_654_435_761) >> 8) / f64::from(1 << 24));
        series(
            SeriesKind::Line,
            noise.enumerate().map(|(n, y)| match n {
                333_333 => 50.0,
                777_777 => -50.0,
                _ => y,
            }),
        )
    }

    #[test]
    fn peaks_of_one_value_are_kept_at_every_level() {
        let all = with_peaks();
        for level in 0..16 {
            let intervals = 2_usize.pow(level);
            let kept = m4(&all, intervals);
            let points: Vec<(f64, f64)> = kept.x.iter().copied().zip(kept.y.iter().copied()).collect();
            for peak in [(333.333, 50.0), (777.777, -50.0)] {
                assert!(points.contains(&peak), "{intervals} intervals");
            }
            assert!((3 * intervals..=KEPT * intervals).contains(&points.len()), "{intervals}: {} points", points.len());
            assert_eq!((points[0], points[points.len() - 1]), ((0.0, all.y[0]), (999.999, all.y[999_999])));
            assert!(kept.x.is_sorted());
        }
    }

    #[test]
    fn long_series_share_the_points_that_short_ones_leave() {
        assert_eq!(share(vec![10, 1000, 20, 1000], 100), 35);
        assert_eq!(share(vec![10, 20, 70], 100), usize::MAX);
        assert_eq!(share(vec![10, 20, 71], 100), 70);
        assert_eq!(share(Vec::new(), 100), usize::MAX);
    }

    #[test]
    fn pages_have_a_limit_and_small_pages_have_every_point() {
        let short = series(SeriesKind::Steps, (0..3000).map(f64::from));
        let whole = figure(vec![with_peaks(), short.clone(), with_peaks()]);
        let points = |figure: &Figure| figure.panels[0].series.iter().map(Series::len).collect::<Vec<_>>();
        let [reduced] = &downsample(from_ref(&whole), 100_000)[..] else { panic!("one figure") };
        let [first, second, third] = points(&reduced.figure)[..] else { panic!("three series") };
        assert_eq!((second, first), (3000, third));
        assert!((80_000..=100_000).contains(&(first + second + third)), "{first} {second} {third}");
        let length = 999.999 / (97_000 / 2 / KEPT) as f64;
        let [Some(a), None, Some(b)] = reduced.intervals_s[0][..] else { panic!("{:?}", reduced.intervals_s) };
        assert!((a - length).abs() < 1e-9 && (b - length).abs() < 1e-9, "{a} {b}");

        let [kept] = &downsample(from_ref(&whole), 2_003_000)[..] else { panic!("one figure") };
        assert_eq!((&kept.figure, &kept.intervals_s[0][..]), (&whole, &[None; 3][..]));
        let [least] = &downsample(&[whole], 1)[..] else { panic!("one figure") };
        assert!(points(&least.figure).iter().all(|n| (1000..=LEAST_POINTS).contains(n)), "{:?}", points(&least.figure));
    }

    #[test]
    fn gaps_and_states_are_kept() {
        let gaps = (0..8000).map(|n| if (4000..4010).contains(&n) { f64::NAN } else { 1.0 });
        let kept = m4(&series(SeriesKind::Line, gaps), 80);
        assert_eq!(kept.y.iter().filter(|y| y.is_nan()).count(), 1);
        assert!(kept.len() > 80 && kept.len() < 250, "{}", kept.len());
        let all_five = series(SeriesKind::Line, [1.0, 0.0, f64::NAN, 2.0, 2.0, 1.0]);
        assert_eq!(m4(&all_five, 1).len(), KEPT + 1);
        let freeze = (0..8000).map(|n| if n % 2 == 0 { f64::NAN } else { f64::from(n == 4321) });
        let band = Series { states: vec!["a".to_owned(), "b".to_owned()], ..series(SeriesKind::Band, freeze) };
        let kept = m4(&band, 8);
        assert!(kept.y.contains(&1.0) && kept.y.contains(&0.0), "a state of one event");
        assert_eq!(kept.states, band.states);
    }
}
