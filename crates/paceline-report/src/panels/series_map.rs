//! Series created on the first event that belongs to them.

use crate::figure::Series;
use crate::read::SignalRow;

/// Series by subject and number.
#[derive(Default)]
pub(super) struct SeriesMap {
    keys: Vec<(usize, usize)>,
    series: Vec<Series>,
    last: usize,
}

impl SeriesMap {
    /// Returns the series of this key, created if necessary.
    pub(super) fn of(&mut self, subject: usize, number: usize, make: impl FnOnce() -> Series) -> &mut Series {
        // Consecutive events often belong to the same series.
        if self.keys.get(self.last) != Some(&(subject, number)) {
            self.last = self.place(subject, number, make);
        }
        &mut self.series[self.last]
    }

    /// Returns the place of the series of this key, created if necessary.
    pub(super) fn place(&mut self, subject: usize, number: usize, make: impl FnOnce() -> Series) -> usize {
        let key = (subject, number);
        self.keys.iter().position(|known| *known == key).unwrap_or_else(|| {
            self.keys.push(key);
            self.series.push(make());
            self.keys.len() - 1
        })
    }

    /// Returns the series at a place.
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

/// Returns the value of a key in a short list, created if necessary.
pub(super) fn entry<K: PartialEq, V: Default>(list: &mut Vec<(K, V)>, key: K) -> &mut V {
    let at = list.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
        list.push((key, V::default()));
        list.len() - 1
    });
    &mut list[at].1
}

/// A value for each signal of each flow, computed when it first occurs, because names are slow to compare.
pub(super) struct BySignal<T>(Vec<Vec<Option<T>>>);

impl<T> Default for BySignal<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Copy> BySignal<T> {
    /// Returns the value of the signal of a row.
    pub(super) fn of(&mut self, row: &SignalRow<'_>, make: impl FnOnce() -> T) -> T {
        let (half, name) = (2 * usize::from(row.flow) + usize::from(row.receive), usize::from(row.name_index));
        if self.0.len() <= half {
            self.0.resize_with(half + 1, Vec::new);
        }
        let names = &mut self.0[half];
        if names.len() <= name {
            names.resize_with(name + 1, || None);
        }
        *names[name].get_or_insert_with(make)
    }
}

/// Sums by subject in time bins of equal length.
#[derive(Default)]
pub(super) struct Bins<T>(Vec<(usize, Vec<T>)>);

impl<T: Clone + Default> Bins<T> {
    /// Returns the sum of a subject in the bin of length `bin_ns` that contains a time.
    #[inline(always)] // division by a constant
    pub(super) fn at(&mut self, subject: usize, time_ns: i64, bin_ns: i64) -> &mut T {
        let bins = entry(&mut self.0, subject);
        let bin = usize::try_from(time_ns / bin_ns).unwrap_or(0);
        if bins.len() <= bin {
            bins.resize(bin + 1, T::default());
        }
        &mut bins[bin]
    }

    /// Returns the bins of each subject, sorted by subject.
    pub(super) fn finish(mut self) -> Vec<(usize, Vec<T>)> {
        self.0.sort_by_key(|(subject, _)| *subject);
        self.0
    }
}
