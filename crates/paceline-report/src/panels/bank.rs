//! Series that come into being as rows name them.

use crate::figure::Series;

/// Series by subject and a number of the drawer's own, in order of first use.
#[derive(Default)]
pub(super) struct Bank {
    keys: Vec<(usize, usize)>,
    series: Vec<Series>,
    last: usize,
}

impl Bank {
    /// The series of this key, made if there is none.
    pub(super) fn of(&mut self, subject: usize, number: usize, make: impl FnOnce() -> Series) -> &mut Series {
        let key = (subject, number);
        // Rows of one series often follow each other.
        if self.keys.get(self.last) != Some(&key) {
            self.last = self.keys.iter().position(|known| *known == key).unwrap_or(self.keys.len());
            if self.last == self.keys.len() {
                self.keys.push(key);
                self.series.push(make());
            }
        }
        &mut self.series[self.last]
    }

    /// All of them, by subject and number.
    pub(super) fn finish(self) -> Vec<Series> {
        let mut all: Vec<_> = self.keys.into_iter().zip(self.series).collect();
        all.sort_by_key(|(key, _)| *key);
        all.into_iter().map(|(_, series)| series).collect()
    }
}

/// Adds a value that holds until the next, unless it is what holds already.
pub(super) fn step(series: &mut Series, x: f64, y: f64) {
    if series.y.last() != Some(&y) {
        series.push(x, y);
    }
}

/// Carries the last value to `x`.
pub(super) fn hold(series: &mut Series, x: f64) {
    if let (Some(last), Some(&y)) = (series.x.last(), series.y.last())
        && *last < x
    {
        series.push(x, y);
    }
}
