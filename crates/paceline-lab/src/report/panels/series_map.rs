// SPDX-License-Identifier: MIT OR Apache-2.0
//! Series created on the first event that belongs to them.

use crate::report::figure::Series;
use crate::report::read::SignalRow;
use paceline_units::Time;

/// Series by subject and number. Both are places in lists, so they must be small.
#[derive(Default)]
pub(super) struct SeriesMap {
    keys: Vec<(usize, usize)>,
    series: Vec<Series>,
    /// The place of each subject and number.
    places: Vec<Vec<Option<usize>>>,
}

impl SeriesMap {
    pub(super) fn of(&mut self, subject: usize, number: usize, make: impl FnOnce() -> Series) -> &mut Series {
        let place = self.place(subject, number, make);
        &mut self.series[place]
    }

    /// Returns the place of the series of this key, created if necessary.
    pub(super) fn place(&mut self, subject: usize, number: usize, make: impl FnOnce() -> Series) -> usize {
        *element(element(&mut self.places, subject), number).get_or_insert_with(|| {
            self.keys.push((subject, number));
            self.series.push(make());
            self.keys.len() - 1
        })
    }

    pub(super) fn at(&mut self, place: usize) -> &mut Series {
        &mut self.series[place]
    }

    /// Returns the series, sorted by subject and number.
    pub(super) fn finish(self) -> Vec<Series> {
        let mut all: Vec<_> = self.keys.into_iter().zip(self.series).collect();
        all.sort_by_key(|(key, _)| *key);
        all.into_iter().map(|(_, series)| series).collect()
    }
}

/// Adds a point unless the value is unchanged.
pub(super) fn step(series: &mut Series, x: f64, y: f64) {
    if series.y.last() != Some(&y) {
        series.push(x, y);
    }
}

/// Extends the last value to `x`.
pub(super) fn hold(series: &mut Series, x: f64) {
    if let (Some(last), Some(&y)) = (series.x.last(), series.y.last())
        && *last < x
    {
        series.push(x, y);
    }
}

/// Returns the element of this index, after defaults up to it if necessary.
pub(super) fn element<T: Default>(list: &mut Vec<T>, index: usize) -> &mut T {
    if list.len() <= index {
        list.resize_with(index + 1, T::default);
    }
    &mut list[index]
}

/// A value for each signal of each flow, computed when it first occurs, because names are slow to compare.
pub(super) struct BySignal<T>(Vec<Vec<Option<T>>>);

impl<T> Default for BySignal<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Copy> BySignal<T> {
    pub(super) fn of(&mut self, row: &SignalRow<'_>, make: impl FnOnce() -> T) -> T {
        let (half, name) = (2 * usize::from(row.flow.0) + usize::from(row.receive), usize::from(row.name_index));
        *element(element(&mut self.0, half), name).get_or_insert_with(make)
    }
}

/// Sums by subject in time bins of equal length.
#[derive(Default)]
pub(super) struct Bins<T>(Vec<Vec<T>>);

impl<T: Default> Bins<T> {
    /// Returns the sum of a subject in the bin of length `bin_ns` that contains a time.
    #[inline(always)] // division by a constant
    pub(super) fn at(&mut self, subject: usize, at: Time, bin_ns: i64) -> &mut T {
        let bin = usize::try_from(at.as_nanos() / bin_ns).unwrap_or(0);
        element(element(&mut self.0, subject), bin)
    }

    pub(super) fn finish(self) -> impl Iterator<Item = (usize, Vec<T>)> {
        self.0.into_iter().enumerate().filter(|(_, bins)| !bins.is_empty())
    }
}
